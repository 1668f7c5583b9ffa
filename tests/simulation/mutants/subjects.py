"""Conditions on the worlds in which a mutant's subject can occur; these worlds run first (table.py). A mutant without a
condition can occur in all worlds.

The module imports nothing of the package, as table.py.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.simulation.mutants.exchanging import CLIENTS, EXCHANGES
from tests.simulation.mutants.recurring import SUBSCRIPTIONS
from tests.simulation.mutants.testing import CLOCKS, PROOFS

if TYPE_CHECKING:
    from tests.simulation.plan import Plan

Holds = Callable[["Plan"], bool]


def _by_payer(payer: str) -> Holds:
    return lambda plan: any(order.payer == payer for order in plan.orders)


def _by_weather(*kinds: str) -> Holds:
    return lambda plan: any(getattr(plan.weather, kind) for kind in kinds)


def _by_problem(*kinds: str) -> Holds:
    return lambda plan: any(blow.kind in kinds for blow in plan.blows)


def _all(*holds: Holds) -> Holds:
    return lambda plan: all(each(plan) for each in holds)


def _in_parts(plan: "Plan") -> bool:
    return any(swap.takes_usdt and swap.amount > 1200 for swap in plan.swaps)


def _too_much(plan: "Plan") -> bool:
    return any(each.percent > 100 for swap in plan.swaps for each in swap.sendings)


def _too_late(plan: "Plan") -> bool:
    return any(each.from_end and each.after > 0 for swap in plan.swaps for each in swap.sendings)


def _one_for_two(plan: "Plan") -> bool:
    """Somebody submits the transaction of another's payment, of which there is one."""
    of = {each.number: each for each in plan.handovers}
    return any(
        wish.handover != each.number and 0 <= wish.sent < len(of[wish.handover].sent)
        for each in plan.handovers
        for wish in each.submissions
    )


def _soon_proven(plan: "Plan") -> bool:
    """Somebody submits a transaction before it is final."""
    return any(
        wish.handover == each.number
        and 0 <= wish.sent < len(each.sent)
        and wish.after < each.sent[wish.sent].after + 60
        for each in plan.handovers
        for wish in each.submissions
    )


def _too_much_at_once(plan: "Plan") -> bool:
    """More money arrives while the first money is paid out."""
    swaps = (swap for swap in plan.swaps if swap.takes_usdt and len(swap.sendings) == 2)
    return any(swap.sendings[0].percent > 100 and swap.sendings[1].after < 400 for swap in swaps)


def _seen_to_wait(plan: "Plan") -> bool:
    """Webhooks fail while the vigil watches them."""
    weather = plan.weather
    fails = weather.webhook_lost or weather.webhook_refused or weather.webhook_unanswered
    return bool(fails) and not (weather.storage_lost or weather.storage_unanswered or weather.storage_late)


def _signed_twice(plan: "Plan") -> bool:
    """A worker freezes while a payout is signed for it, and another one claims the job."""
    return plan.workers > 1 and _by_problem("signer stops")(plan)


def _reversed(plan: "Plan") -> bool:
    return plan.reverses_refunds > 0


def _few_notifications(plan: "Plan") -> bool:
    return plan.weather.notification_lost >= 0.1


def _leapt_over(plan: "Plan") -> bool:
    """Calls are under way while a test clock leaps over days."""
    return any(rehearsal.rushes for rehearsal in plan.rehearsals)


def _refunds_paid_out(plan: "Plan") -> bool:
    """Whether the merchant without an overdraft makes refunds after its payout."""
    return any(order.merchant == 1 and any(each.after > 36_000 for each in order.returns) for order in plan.orders)


_HOLDS: dict[str, Holds] = {
    "one transfer proves several payments": _one_for_two,
    "a transaction in a block proves nothing": _soon_proven,
    "a second transfer is nobody's": _by_payer("twice"),
    "a payment is paid when we hear of it": _all(_few_notifications, _by_payer("late")),
    "late money is not polled for": _all(_few_notifications, _by_payer("late")),
    "the key of an unknown outcome is free again": _by_weather("provider_unanswered", "provider_late"),
    "a refund is not held against the balance": _refunds_paid_out,
    "a payment at midnight belongs to the day before": _by_payer("at midnight"),
    "money that came back from a payer is nobody's": _reversed,
    "money that comes back after settlement waits for no settlement": _reversed,
    "a completed refund is not polled for a reversal": _all(_reversed, _few_notifications),
    "a refund cannot come back before we saw it go": _all(_reversed, _few_notifications),
    "a refund that failed stays taken out of its payment": lambda plan: plan.fails_refunds > 0,
    "a refund that is under way can be cancelled": lambda plan: any(
        each.cancels_after is not None for order in plan.orders for each in order.returns
    ),
    "a payout is broadcast before it is stored": _signed_twice,
    "a failed payout gives nothing back": lambda plan: plan.weather.dropped >= 0.1,
    "another signature replaces the first": _signed_twice,
    "two units may take the same money at once": lambda plan: plan.overdraft != "0",
    "a worker ends a job that it lost": _all(
        _by_payer("twice"), lambda plan: max(plan.weather.wake_up_lost, plan.weather.wake_up_late) >= 0.1**plan.workers
    ),
    "a worker that leaves a receiver misses a request made meanwhile": lambda plan: plan.machine or _seen_to_wait(plan),
    "the timer forgets what is due later": _seen_to_wait,
    "a transfer in any block counts as final": _by_weather("reorganised"),
    "sums count twice where a unit lost": _by_weather("storage_unanswered", "storage_lost"),
    "a lost commit is done again": _by_weather("storage_unanswered"),
    "a charge whose answer was lost has failed": _by_weather("provider_unanswered", "provider_late"),
    "a late deposit counts for an exchange": _too_late,
    "each try of a remittance is another operation at the bank": _too_much_at_once,
    "USDT are sent without the hold": lambda plan: any(not swap.takes_usdt for swap in plan.swaps),
    "a deposit that is not final counts for an exchange": lambda plan: any(swap.takes_usdt for swap in plan.swaps),
    "an excess deposit does not go to suspense": _too_much,
    "an exchange that failed gives nothing back": lambda plan: plan.fails_remittances > 0 and bool(plan.swaps),
    "RUB that are taken back in the hold are sent for all the same": lambda plan: any(
        each.taken_back_after is not None for swap in plan.swaps for each in swap.sendings
    ),
    "the second part goes before the first has arrived": _in_parts,
    "a cancellation does not check whether money came": lambda plan: any(
        swap.takes_usdt and any(each.after < (swap.cancels_after or 0.0) for each in swap.sendings)
        for swap in plan.swaps
    ),
    "a verification that monitoring withdrew still counts": lambda plan: any(
        "revoked" in each.verdicts for each in plan.applicants
    ),
    "a save overwrites what others saved": lambda plan: plan.apis + plan.workers > 2,
    "the later of two requests with one key fails": lambda plan: any(order.doubled for order in plan.orders),
    "a repeat does not wait for the request that creates": lambda plan: any(order.doubled for order in plan.orders),
    "a webhook that failed is not tried again": _by_weather("webhook_lost", "webhook_refused", "webhook_unanswered"),
    "every answer of a receiver is good": _by_weather("webhook_refused"),
    "a failure sets no timer": _seen_to_wait,
    "a breaker that is open stays so": _by_problem("receiver hangs", "receiver away"),
    "an unreadable row ends the process": _by_problem("claim breaks"),
    "a bank that hangs holds all who ask it": lambda plan: plan.victim is not None,
    "receivers that hang hold all others": lambda plan: plan.crowd > 0,
    "one event that cannot be read delays its merchant's others": _by_problem("event spoilt"),
    "a clock that is set back leaves work in its future": lambda plan: plan.machine,
    "a webhook that was unreadable once is never sent": _by_problem("delivery spoilt"),
    "a payment stays pending if its money came too late before any poll": _leapt_over,
    "an event is of when its call began": _leapt_over,
}


def subject_of(name: str) -> Holds:
    """Whether what a mutant is about can occur in a plan."""
    if name in _HOLDS:
        return _HOLDS[name]
    if name in EXCHANGES:
        return lambda plan: bool(plan.swaps)
    if name in CLIENTS:
        return lambda plan: bool(plan.applicants)
    if name in PROOFS:
        return lambda plan: bool(plan.handovers)
    if name in CLOCKS:
        return lambda plan: any(rehearsal.leaps for rehearsal in plan.rehearsals)
    if name in SUBSCRIPTIONS:
        return lambda plan: plan.fails_charges > 0
    return lambda _: True


KNOWN = frozenset(_HOLDS)
"""Subjects with a condition."""

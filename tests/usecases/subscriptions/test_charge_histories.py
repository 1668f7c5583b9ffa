"""Random days of calls, failures, lost answers and crashes over the use cases. They cover cases beyond the domain's
properties (tests/domain/test_charge_lives.py; docs/subscriptions.md "Periods and attempts")."""

import asyncio
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Scheme
from cambist.core.domain.errors import Refusal
from cambist.core.domain.subscriptions.periods import Interval, Terms
from cambist.core.usecases.notifications import on_notification
from cambist.ports.bank import Notification
from tests.charge_app import ChargeApp, open_charge_app
from tests.crash_points import CrashPoint, Killed, fused

KINDS = st.sampled_from(
    [(Interval.DAY, 1, Scheme.WINDOW), (Interval.DAY, 3, Scheme.WINDOW), (Interval.DAY, 1, Scheme.CALENDAR)]
)
WISHES = st.sampled_from([None, None, "pending", "insufficient_funds", "insufficient_funds", "declined_by_bank"])
ENDINGS = st.sampled_from([None, None, None, *(each for each in Ending if each is not Ending.NORMAL)])
HOURS = st.sampled_from([0, 0, 1, 2, 4, 7, 13, 24, 30, 80])
CRASHES = st.none() | st.none() | st.none() | st.tuples(st.integers(1, 3), st.booleans())
ACTIONS = st.lists(st.tuples(HOURS, WISHES, ENDINGS, CRASHES, st.booleans(), st.booleans()), min_size=4, max_size=14)
EXPECTED = {
    "CHARGE_BEFORE_WINDOW",
    "RECURRING_CHARGE_EXHAUSTED",
    "PROVIDER_ERROR",
    "PROVIDER_NOT_CONFIGURED",
    "PROVIDER_UNAVAILABLE",
}


async def live(kind: tuple[Interval, int, Scheme], actions: list[Any]) -> None:
    interval, count, scheme = kind
    async with open_charge_app(receiver=False) as charges:
        subscription_id = await charges.subscribed(interval, count, scheme=scheme)
        key = str(uuid4())
        for hours, wish, ending, crash, repeats, settles in actions:
            await charges.app.work(timedelta(hours=hours).total_seconds())
            if settles:
                await settle(charges, subscription_id, paid=repeats)
            if wish is not None:
                await charges.next(subscription_id, wish)
            if ending is not None:
                charges.app.script.charge.append(Twist(ending=ending))
            key = key if repeats else str(uuid4())
            await ask(charges, subscription_id, key, crash)
            charges.app.script.charge.clear()
        await charges.app.work(timedelta(days=3).total_seconds())
        await check(charges, subscription_id, Terms(scheme=scheme, interval=interval, interval_count=count))


async def ask(charges: ChargeApp, subscription_id: str, key: str, crash: tuple[int, bool] | None) -> None:
    ports = charges.ports if crash is None else fused(charges.ports, CrashPoint(crash[0], after=crash[1]))
    with suppress(Killed):
        [answer] = await charges.together(guarded(charges.charge(subscription_id, key=key, ports=ports)))
        if isinstance(answer, Refusal):
            assert answer.code in EXPECTED, answer


async def guarded(work: Any) -> Any:
    """A crash as an answer: nothing but a task's own may see it."""
    try:
        return await work
    except Killed:
        return None
    except Refusal as refusal:
        return refusal


async def settle(charges: ChargeApp, subscription_id: str, *, paid: bool) -> None:
    """Let the bank finish all open operations, and send each notification twice."""
    for payment in await charges.payments(subscription_id):
        if payment.status == "pending" and payment.bank_reference is not None:
            await charges.app.simulate(payment.id, outcome="paid" if paid else "failed")
            await on_notification(charges.ports, Notification(operation=payment.id))


async def check(charges: ChargeApp, subscription_id: str, terms: Terms) -> None:
    payments = await charges.payments(subscription_id)
    tried = Counter(payment.period_ref for payment in payments)
    paid = Counter(payment.period_ref for payment in payments if payment.status == "paid")
    told = [event["period_ref"] for event in await charges.events(subscription_id)]
    assert all(number == 1 for number in paid.values()), "a period is never charged twice"
    assert all(number == 1 for number in (await charges.debits()).values())
    assert len(set(told)) == len(told), "one exhausted event per period"
    assert not set(told) & set(paid)
    if terms.budget is None:
        assert not told
    else:
        assert all(number <= terms.budget.attempts for number in tried.values())
        given_up = {ref for ref, number in tried.items() if number == terms.budget.attempts and ref not in paid}
        assert given_up - {payment.period_ref for payment in payments if payment.status == "pending"} <= set(told)
    for payment in payments:
        said = await charges.told(payment.id)
        assert said == ([] if payment.status == "pending" else [payment.status.value])
    subscription = await charges.subscription(subscription_id)
    times = [payment.paid_at for payment in payments if payment.paid_at is not None]
    if times and terms.scheme is Scheme.WINDOW:
        assert subscription.anchor == max(times)


@given(KINDS, ACTIONS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_period_is_never_charged_twice_whatever_happens(
    kind: tuple[Interval, int, Scheme], actions: list[Any]
) -> None:
    asyncio.run(live(kind, actions))

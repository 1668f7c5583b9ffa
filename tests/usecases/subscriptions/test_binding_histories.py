"""Any history of openings, payers, banks, merchants and time ends with one first charge at most, mandates that are
needed, and events for each change (docs/states.md "Subscription"; docs/subscriptions.md "Making one")."""

import asyncio
from contextlib import suppress
from itertools import pairwise
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.payments.payments import BindingCharge
from cambist.core.domain.payments.suspense import Suspense
from cambist.core.domain.subscriptions.binding_reports import TOOK_MONEY
from cambist.core.domain.subscriptions.subscriptions import SUBSCRIPTION_MOVES, SubscriptionStatus
from cambist.core.usecases.notifications import on_notification
from cambist.core.usecases.payments.recurring import binding_operation
from cambist.core.usecases.subscriptions.binding_opening import open_binding
from cambist.ports.bank import Notification
from cambist.ports.faults import NO_ANSWER, Refused
from cambist.ports.mandates import MandateEvent, MandateSimulation
from tests.apps import TestApp, open_test_app
from tests.invariants import everything
from tests.moves import pairs
from tests.subscription_app import bindings, call, choose_calendar, patch, record, simulator, statuses, subscribed

PLAYED = [each for each in MandateEvent if each is not MandateEvent.LINK_READY]
TWISTED = ("bind", "mandate_state", "revoke")
"""Calls of the bank that may go wrong."""
EVENTS = st.tuples(
    st.just("bank"),
    st.sampled_from(PLAYED),
    st.integers(0, 3),
    st.booleans(),
)
OTHERS = st.one_of(
    st.tuples(st.just("open")),
    st.tuples(st.just("cancel")),
    st.tuples(st.just("rebind")),
    st.tuples(st.just("patch"), st.sampled_from(["300", "500", "700"])),
    st.tuples(st.just("wait"), st.sampled_from([30, 1000, 3600, 8 * 3600, 86400])),
    st.tuples(st.just("twist"), st.sampled_from(TWISTED), st.sampled_from([*Ending])),
)


async def action(app: TestApp, subscription_id: str, step: tuple[object, ...]) -> None:
    match step:
        case ("open",):
            await open_binding(app.ports, subscription_id)
        case ("cancel",):
            await call(app, subscription_id, "cancel")
        case ("patch", str(amount)):
            await patch(app, subscription_id, {"amount_rub": amount, "cap_amount_rub": amount})
        case ("rebind",):
            await call(app, subscription_id, "rebind", Idempotency_Key=str(uuid4()))
        case ("wait", int(seconds)):
            await app.work(seconds)
        case ("twist", str(name), Ending() as ending):
            getattr(app.script, name).append(Twist(ending=ending))
        case ("bank", MandateEvent() as event, int(which), bool(silent)):
            await tell(app, subscription_id, event, which, silent=silent)


async def tell(app: TestApp, subscription_id: str, event: MandateEvent, which: int, *, silent: bool) -> None:
    found = await bindings(app, subscription_id)
    if not found:
        return
    payment = found[which % len(found)]
    operation = binding_operation(payment.id)
    money = event in (MandateEvent.PAID, MandateEvent.PAID_NOT_BOUND)
    if money and payment.binding is BindingCharge.NONE:
        return
    try:
        notifications = await simulator(app).simulate_mandate(operation, MandateSimulation(event=event, silent=silent))
    except Refused:
        return
    for notification in notifications:
        # A notification is lost while the simulated bank is away.
        with suppress(*NO_ANSWER):
            await on_notification(app.ports, Notification(operation=notification.operation))


async def check(app: TestApp, subscription_id: str) -> None:
    subscription, paid = await record(app, subscription_id), await bindings(app, subscription_id)
    charged = [each for each in paid if each.binding is BindingCharge.FIRST and each.status in TOOK_MONEY]
    assert len(charged) <= 1
    assert [each.id for each in charged] == ([subscription.first_payment_id] if subscription.first_payment_id else [])
    told = await statuses(app, subscription_id)
    assert all(after[0] == before[1] for before, after in pairwise(told)), told
    assert all(a == b or (a, b) in pairs(SUBSCRIPTION_MOVES) for a, b in told)
    assert not told or told[-1][1] == subscription.status
    if subscription.status is SubscriptionStatus.ACTIVE:
        assert subscription.mandate_token is not None
        assert subscription.anchor is not None
        assert charged or subscription.binding_charge is BindingCharge.NONE
    if subscription.mandate_reference is None:
        assert subscription.amount == subscription.cap_amount
    elif subscription.consent is not None:
        # The amount shown on the page of the confirmed binding bounds both amounts.
        [shown] = [each.shown_amount for each in paid if each.bank_reference == subscription.mandate_reference]
        assert subscription.consent == shown or subscription.is_final
        assert subscription.amount <= subscription.cap_amount <= subscription.consent
    at_bank = [(each, await simulator(app).mandate_state(each.bank_reference)) for each in paid if each.bank_reference]
    # All money that the bank holds is a payment's, or waits for the operator.
    came = sum(transfer.amount_kopecks for _, state in at_bank for transfer in state.transfers)
    known = sum(each.actual_amount.kopecks for each in charged if each.actual_amount)
    unapplied = await everything(app.ports, Suspense)
    assert came == known + sum(each.amount.kopecks for each in unapplied)
    for each, state in at_bank:
        if state.status == "active" and subscription.status is not SubscriptionStatus.PENDING_BINDING:
            assert each.bank_reference == subscription.mandate_reference, (each.id, subscription.status)
            assert not subscription.is_final


async def run(steps: list[tuple[object, ...]], *, calendar: bool, charge: str) -> None:
    async with open_test_app() as app:
        if calendar:
            await choose_calendar(app)
        made = (await subscribed(app, binding_charge=charge))["id"]
        for step in steps:
            await action(app, made, step)
        for name in TWISTED:
            getattr(app.script, name).clear()
        # The scheduled polls find everything that was lost. The rate of polls is not tested here.
        for each in await bindings(app, made):
            await on_notification(app.ports, Notification(operation=binding_operation(each.id)))
        await app.work(2 * 86400)
        await check(app, made)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.one_of(EVENTS, EVENTS, OTHERS), max_size=14).map(lambda steps: [("open",), *steps]),
    st.booleans(),
    st.sampled_from(["first", "none"]),
)
def test_any_history_ends_well(steps: list[tuple[object, ...]], calendar: bool, charge: str) -> None:
    asyncio.run(run(steps, calendar=calendar, charge=charge))


async def test_binding_confirmed_and_lost_before_a_poll_makes_two_transitions() -> None:
    async with open_test_app() as app:
        made = (await subscribed(app, binding_charge="first"))["id"]
        await action(app, made, ("open",))
        await action(app, made, ("bank", MandateEvent.CONFIRM, 0, True))
        await action(app, made, ("bank", MandateEvent.MANDATE_LOST, 0, False))
        assert await statuses(app, made) == [("pending_binding", "active"), ("active", "paused")]

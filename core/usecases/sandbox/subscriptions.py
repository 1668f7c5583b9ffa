"""Simulation of a subscription's payer and bank in test mode (docs/sandbox.md "The calls")."""

from collections.abc import Callable, Mapping
from typing import Annotated

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import NotConfigured, Refused
from ....ports.mandates import MandateEvent, MandateSimulation, MandateSimulator
from ...domain import shared_fields as shared
from ...domain.accounts.accounts import Caller
from ...domain.errors import Refusal, shape_error
from ...domain.payments.payments import Payment
from ...domain.subscriptions.subscriptions import Subscription, SubscriptionStatus, awaits_binding
from ..payments.recurring import any_subscription, binding_operation, mandate_operation
from ..subscriptions.binding_opening import open_binding
from ..subscriptions.binding_progress import on_binding_notification
from ..subscriptions.subscriptions import get_subscription

_S = SubscriptionStatus
_E = MandateEvent

_MAKES_SENSE: Mapping[MandateEvent, Callable[[Subscription], bool]] = {
    _E.CONFIRM: lambda it: awaits_binding(it) and not it.binding_url_pending,
    _E.REFUSE: lambda it: awaits_binding(it) and not it.binding_url_pending,
    _E.LINK_READY: lambda it: awaits_binding(it) and it.binding_url_pending,
    _E.NO_LINK: lambda it: it.status is _S.PENDING_BINDING or (awaits_binding(it) and it.binding_url_pending),
    _E.MANDATE_LOST: lambda it: it.status is _S.ACTIVE,
    _E.MANDATE_RESTORED: lambda it: it.status is _S.PAUSED and it.mandate_reference is not None,
    _E.PAST_DUE: lambda it: it.status is _S.ACTIVE and not it.past_due,
    _E.PAST_DUE_CLEARED: lambda it: it.status is _S.ACTIVE and it.past_due,
    _E.CONSENT_ENDED: lambda it: it.status is _S.ACTIVE,
}
"""Outcomes of docs/sandbox.md "The calls", each with its precondition."""

_OF_BINDING = (_E.CONFIRM, _E.REFUSE, _E.LINK_READY, _E.NO_LINK)
"""Events of the open binding; all others are events of the mandate."""


class SubscriptionSimulation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /sandbox/subscriptions/{id}/simulate."""

    outcome: Annotated[
        str,
        shared.OUTCOME,
        shared.among(
            (
                *("confirm", "refuse", "link_ready", "no_link", "mandate_lost", "mandate_restored"),
                *("past_due", "past_due_cleared", "consent_ended"),
            )
        ),
    ]


async def simulate_subscription(
    ports: Ports, caller: Caller, subscription_id: str, read_wish: Callable[[], SubscriptionSimulation]
) -> Subscription:
    """Simulate an action of the payer or the bank, and return the subscription as saved. A payer who confirms or
    refuses opens the link first.

    Raises: Refusal SUBSCRIPTION_NOT_FOUND, VALIDATION_ERROR; INVALID_STATE if the action is impossible now;
    PROVIDER_UNAVAILABLE while the bank has no binding.
    """
    subscription = await get_subscription(ports, caller, subscription_id)
    event = _event(read_wish().outcome)
    if not _MAKES_SENSE[event](subscription):
        raise Refusal("INVALID_STATE", f"The subscription is {subscription.status}; {event} cannot happen to it now")
    return await simulate_event(ports, subscription, event)


def _event(outcome: str) -> MandateEvent:
    for event in _MAKES_SENSE:
        if event.value == outcome:
            return event
    raise shape_error("outcome", f"must be one of: {', '.join(_MAKES_SENSE)}")


async def simulate_event(
    ports: Ports, subscription: Subscription, event: MandateEvent, *, failure: str | None = None
) -> Subscription:
    """Set the event at the simulated bank, and handle its notifications. Raises: Refusal NOT_FOUND for a real bank;
    PROVIDER_UNAVAILABLE, PAYMENT_ROUTE_UNAVAILABLE.
    """
    if event in _OF_BINDING:
        await open_binding(ports, subscription.id)
    async with ports.storage.unit() as unit:
        subscription = await any_subscription(unit, subscription.id) or subscription
        binding = subscription.binding
        if event in _OF_BINDING:
            bank, operation = (None, None) if binding is None else (binding.bank, binding.operation)
        else:
            bank, operation = subscription.mandate_bank, await mandate_operation(unit, subscription)
    await _play(ports, bank, operation, MandateSimulation(event=event, failure=failure))
    async with ports.storage.unit() as unit:
        return await any_subscription(unit, subscription.id) or subscription


async def simulate_binding(ports: Ports, payment: Payment, *, outcome: str, failure: str | None) -> None:
    """Simulate the payer of a binding payment: `paid` confirms and `failed` refuses, even after the QR has lapsed.
    Raises: Refusal INVALID_STATUS for all other outcomes; as `simulate_event`.
    """
    event = {"paid": MandateEvent.CONFIRM, "failed": MandateEvent.REFUSE}.get(outcome)
    if event is None:
        raise Refusal("INVALID_STATUS", "A payer who binds pays or refuses: paid, failed")
    await _play(ports, payment.bank, binding_operation(payment.id), MandateSimulation(event=event, failure=failure))


async def _play(ports: Ports, bank: str | None, operation: str | None, simulation: MandateSimulation) -> None:
    simulator = simulator_of(ports, bank)
    if simulator is None:
        raise Refusal("NOT_FOUND", "Endpoint not found")
    if operation is None:
        raise Refusal("PROVIDER_UNAVAILABLE", "The bank has no binding yet", retry_after=10)
    try:
        notifications = await simulator.simulate_mandate(operation, simulation)
    except Refused:
        raise Refusal("PROVIDER_UNAVAILABLE", "The bank has no binding yet", retry_after=10) from None
    for notification in notifications:
        await on_binding_notification(ports, notification.operation)


def simulator_of(ports: Ports, name: str | None) -> MandateSimulator | None:
    """Return the bank if it is a configured simulator; None otherwise."""
    try:
        bank = None if name is None else ports.banks.named(name)
    except NotConfigured:
        return None
    return bank if isinstance(bank, MandateSimulator) and bank.capabilities.simulated else None

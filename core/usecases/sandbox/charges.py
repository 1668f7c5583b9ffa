"""Simulation of a charge's bank in test mode (docs/sandbox.md "The calls")."""

from collections.abc import Callable, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from ....ports.bundle import Ports
from ....ports.faults import Refused
from ....ports.mandates import (
    NEXT_PAID,
    NEXT_PENDING,
    NEXT_UNAVAILABLE,
    ChargeSimulation,
    ChargeStatus,
    MandateSimulator,
)
from ...domain.accounts.accounts import Caller
from ...domain.errors import Refusal, shape_error
from ...domain.payments.payments import FailureReason, Payment
from ...domain.subscriptions.subscriptions import Subscription
from ..operations.engine import receive
from ..payments.recurring import mandate_operation, no_subscription, own_subscription
from ..subscriptions.charge_progress import CHARGES
from .subscriptions import simulator_of

RESULTS = (NEXT_PAID, NEXT_PENDING, NEXT_UNAVAILABLE, *FailureReason)

_OUTCOMES: Mapping[str, ChargeStatus] = {
    "processing": ChargeStatus.PROCESSING,
    "paid": ChargeStatus.PAID,
    "failed": ChargeStatus.FAILED,
}


class NextChargeWish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /sandbox/subscriptions/{id}/next-charge."""

    result: Annotated[str, Meta(description="`paid`, `pending`, `unavailable`, or a failure reason")] = NEXT_PAID


async def wish_next_charge(
    ports: Ports, caller: Caller, subscription_id: str, read_wish: Callable[[], NextChargeWish]
) -> NextChargeWish:
    """Set the simulated bank's answer to the next charge, and return it. A later call replaces it, and it applies to
    one charge.

    Raises: Refusal SUBSCRIPTION_NOT_FOUND, VALIDATION_ERROR; INVALID_STATE before the binding; NOT_FOUND with a real
    bank.
    """
    async with ports.storage.unit() as unit:
        subscription = await own_subscription(unit, caller, subscription_id)
        operation = None if subscription is None else await mandate_operation(unit, subscription)
    if subscription is None:
        raise no_subscription()
    wish = read_wish()
    if wish.result not in RESULTS:
        raise shape_error("result", f"must be one of: {', '.join(RESULTS)}")
    if operation is None:
        raise _unbound(subscription)
    simulator = _simulator(ports, subscription.mandate_bank)
    try:
        await simulator.simulate_next_charge(operation, wish.result)
    except Refused:
        raise _unbound(subscription) from None
    return wish


def _unbound(subscription: Subscription) -> Refusal:
    return Refusal("INVALID_STATE", f"The subscription is {subscription.status} and has no mandate to be charged")


def _simulator(ports: Ports, name: str | None) -> MandateSimulator:
    simulator = simulator_of(ports, name)
    if simulator is None:
        raise Refusal("NOT_FOUND", "Endpoint not found")
    return simulator


async def simulate_charge(
    ports: Ports, payment: Payment, *, outcome: str, failure: str | None, payer_name: str | None
) -> Payment:
    """Give a pending charge its outcome, as the bank would report it; a finished charge stays unchanged.

    Raises: Refusal VALIDATION_ERROR for an outcome that charges do not have; PROVIDER_UNAVAILABLE while the bank does
    not know the charge.
    """
    if outcome not in _OUTCOMES:
        raise shape_error("outcome", f"must be one of, for a charge: {', '.join(_OUTCOMES)}")
    simulation = ChargeSimulation(status=_OUTCOMES[outcome], failure=failure, payer_name=payer_name)
    try:
        notifications = await _simulator(ports, payment.bank).simulate_charge(payment.id, simulation)
    except Refused:
        raise Refusal("PROVIDER_UNAVAILABLE", "The bank has no such charge yet", retry_after=10) from None
    for _ in notifications:
        heard = (await receive(CHARGES, ports, payment.id)).subject
        payment = payment if heard is None else heard.payment
    return payment

"""Operators' work on payments: review of a mismatch, and the list of suspended transfers (docs/payments.md "How it
ends")."""

from typing import Annotated, Any

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain import ids
from ...domain import shared_fields as shared
from ...domain.accounts.accounts import Caller
from ...domain.errors import Refusal, shape_error
from ...domain.ledger import BalanceType
from ...domain.money import Rub
from ...domain.payments.payments import FailureReason, Payment, PaymentStatus, PaymentTrigger
from ...domain.payments.reports import Decision
from ...domain.payments.suspense import Suspense, new_suspense
from ..actions.four_eyes import gated
from ..common.account_time import in_test_time
from ..common.units import retrying
from ..payments.moves import move, suspend
from ..payments.payments import get_payment
from ..refunds.suspense_return import plan_return

OUTCOMES = ("paid", "failed")


class Review(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of POST /sandbox/payments/{id}/resolve."""

    outcome: Annotated[str, shared.OUTCOME, shared.among(("paid", "failed"))]


@in_test_time(Payment)
async def resolve_mismatch(ports: Ports, payment_id: str, outcome: str, *, amount: Rub | None = None) -> Payment:
    """End the review of a payment. `paid` credits the received amount. `failed` credits nothing and sends the money
    back from suspense.

    `amount` is the received amount, needed only when the bank could not report it.
    Raises: Refusal PAYMENT_NOT_FOUND, INVALID_STATUS, VALIDATION_ERROR; Waits when a second operator has to confirm.
    """
    if outcome not in OUTCOMES:
        raise shape_error("outcome", f"must be one of: {', '.join(OUTCOMES)}")
    given = None if amount is None else str(amount)
    ports = gated(ports, "resolve_mismatch", payment_id, outcome=outcome, amount=given)

    async def work(unit: Unit) -> Payment:
        payment = await unit[Payment].get(payment_id) if ids.is_prefixed(ids.PAYMENT, payment_id) else None
        if payment is None:
            raise Refusal("PAYMENT_NOT_FOUND", "No payment of this id")
        if payment.status is not PaymentStatus.AMOUNT_MISMATCH:
            raise Refusal("INVALID_STATUS", f"The payment is {payment.status}, not amount_mismatch")
        came = _came(payment, amount)
        if outcome == "paid":
            if came is None:
                raise Refusal("VALIDATION_ERROR", "The bank could not report the received amount; give it")
            payment = msgspec.structs.replace(payment, actual_amount=came)
            return await move(ports, unit, payment, Decision(trigger=PaymentTrigger.ACCEPTED))
        if came is not None:
            source = BalanceType.REVIEW if payment.transfer_id is not None else BalanceType.BANK
            suspended = new_suspense(
                payment,
                payment.transfer_id,
                came,
                at=payment.transfer_at or ports.clock.now(),
                reason="mismatch_rejected",
            )
            await suspend(ports, unit, suspended, source=source)
            await plan_return(ports, unit, suspended.id)
            # Save the amount, so that a later report of this transfer by the bank is recognised.
            payment = msgspec.structs.replace(payment, actual_amount=came)
        decision = Decision(trigger=PaymentTrigger.SENT_BACK, failure=FailureReason.UNKNOWN)
        return await move(ports, unit, payment, decision)

    return await retrying(ports.storage, work, again_on=("suspense_id",))


def _came(payment: Payment, amount: Rub | None) -> Rub | None:
    if amount is None:
        return payment.actual_amount
    if payment.actual_amount not in (None, amount):
        raise Refusal("VALIDATION_ERROR", f"The bank reports {payment.actual_amount} as received")
    if amount <= Rub(0):
        raise Refusal("VALIDATION_ERROR", "The amount must be above zero")
    return amount


async def resolve_own_mismatch(ports: Ports, caller: Caller, payment_id: str, outcome: str) -> Payment:
    """Simulate the review for an integrator in test mode (docs/sandbox.md "The calls"). Raises: as
    `resolve_mismatch`."""
    payment = await get_payment(ports, caller, payment_id)
    # When the bank could not report the amount, the simulated operator finds the requested one.
    amount = payment.amount if payment.actual_amount is None else None
    return await resolve_mismatch(ports, payment.id, outcome, amount=amount)


async def list_suspense(ports: Ports, account_id: str | None = None, *, limit: int = 1000) -> list[Suspense]:
    """List suspended transfers that wait for an operator, oldest first, of one account or of all."""
    criteria: dict[str, Any] = {} if account_id is None else {"account_id": account_id}
    async with ports.storage.unit() as unit:
        return await unit[Suspense].find(order="received_at", limit=limit, resolved_at=None, readable=True, **criteria)

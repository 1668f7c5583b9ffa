"""Simulation of a payment's bank in test mode (docs/sandbox.md "The calls")."""

from typing import Annotated

import msgspec

from ....ports.bank import InvoiceStatus
from ....ports.bank_simulator import BankSimulator, Simulation
from ....ports.bundle import Ports
from ....ports.faults import Refused
from ...domain import shared_fields as shared
from ...domain.accounts.accounts import Caller
from ...domain.errors import Refusal, shape_error
from ...domain.money import Rub
from ...domain.payments.payments import FailureReason, Payment
from ..notifications import on_notification
from ..payments.payments import get_payment
from .charges import simulate_charge
from .subscriptions import simulate_binding

_OUTCOMES = {
    "processing": InvoiceStatus.PROCESSING,
    "paid": InvoiceStatus.PAID,
    "failed": InvoiceStatus.FAILED,
    "cancelled": InvoiceStatus.CANCELLED,
    "amount_mismatch": InvoiceStatus.PAID,
    "expired": InvoiceStatus.EXPIRED,
}


class PaymentSimulation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /sandbox/payments/{id}/simulate."""

    outcome: Annotated[
        str, shared.OUTCOME, shared.among(("processing", "paid", "failed", "cancelled", "amount_mismatch", "expired"))
    ]
    actual_amount_rub: Annotated[shared.RubText | None, shared.ACTUAL_AMOUNT_RUB] = None
    failure_reason: Annotated[Annotated[str, shared.among(FailureReason)] | None, shared.FAILURE_REASON] = None
    payer_name: Annotated[str | None, shared.PAYER_NAME] = None


async def simulate(ports: Ports, caller: Caller, payment_id: str, wanted: PaymentSimulation) -> Payment:
    """Let the simulated bank report `wanted`, and return the payment as saved.

    Raises: Refusal PAYMENT_NOT_FOUND, VALIDATION_ERROR; PROVIDER_UNAVAILABLE while the creation is not finished.
    """
    payment = await get_payment(ports, caller, payment_id)
    simulation = _simulation(payment, wanted)
    if payment.is_charge:
        if wanted.actual_amount_rub is not None:
            raise shape_error("actual_amount_rub", "is not for charges, which debit what was asked")
        return await simulate_charge(
            ports, payment, outcome=wanted.outcome, failure=wanted.failure_reason, payer_name=wanted.payer_name
        )
    if payment.binding is not None:
        await simulate_binding(ports, payment, outcome=wanted.outcome, failure=wanted.failure_reason)
        return await get_payment(ports, caller, payment_id)
    return await simulate_payment(ports, payment, simulation)


def _simulation(payment: Payment, wanted: PaymentSimulation) -> Simulation:
    status = _OUTCOMES.get(wanted.outcome)
    if status is None:
        raise shape_error("outcome", f"must be one of: {', '.join(_OUTCOMES)}")
    amount = None
    if wanted.actual_amount_rub is not None:
        try:
            amount = Rub.parse(wanted.actual_amount_rub)
        except ValueError as error:
            raise shape_error("actual_amount_rub", str(error)) from None
        if amount <= Rub(0):
            raise shape_error("actual_amount_rub", "must be above zero")
    elif wanted.outcome == "amount_mismatch":
        amount = payment.amount - Rub(1)
    if wanted.outcome == "amount_mismatch" and amount == payment.amount:
        raise shape_error("actual_amount_rub", "must differ from the payment's amount")
    if wanted.failure_reason is not None and wanted.failure_reason not in tuple(FailureReason):
        raise shape_error("failure_reason", f"must be one of: {', '.join(FailureReason)}")
    if wanted.payer_name is not None and len(wanted.payer_name) > 255:
        raise shape_error("payer_name", "has at most 255 characters")
    return Simulation(
        status=status,
        amount_kopecks=None if amount is None else amount.kopecks,
        failure=wanted.failure_reason,
        payer_name=wanted.payer_name,
    )


async def simulate_payment(ports: Ports, payment: Payment, simulation: Simulation) -> Payment:
    """Set the outcome at the payment's simulated bank, and handle its notifications.

    Raises: Refusal NOT_FOUND for a real bank; PROVIDER_UNAVAILABLE while the bank has no invoice yet.
    """
    bank = None if payment.bank is None else ports.banks.named(payment.bank)
    if not isinstance(bank, BankSimulator) or not bank.capabilities.simulated:
        raise Refusal("NOT_FOUND", "Endpoint not found")
    try:
        notifications = await bank.simulate(payment.id, simulation, reference=payment.bank_reference)
    except Refused:
        raise Refusal("PROVIDER_UNAVAILABLE", "The bank has no invoice of this payment", retry_after=10) from None
    for notification in notifications:
        payment = await on_notification(ports, notification) or payment
    return payment

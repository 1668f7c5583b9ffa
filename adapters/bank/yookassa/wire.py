"""YooKassa's objects, reduced to the fields used here, and tables from its statuses to the ports'. This module makes no
calls. Unknown fields and values are ignored."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, Literal

import msgspec

from ....ports.bank import (
    InvoiceState,
    InvoiceStatus,
    RefundState,
    RefundStatus,
    Transfer,
)
from ....ports.faults import Refused
from ....ports.mandates import MANDATE_REVOKED, ChargeState, ChargeStatus
from ....ports.remittances import RemittanceState, RemittanceStatus

LIFETIME = timedelta(hours=1)
"""Lifetime of an SBP link, fixed for payments and bindings."""

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
_Id = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class Amount(msgspec.Struct, frozen=True):
    """An amount of roubles, as text."""

    value: Annotated[str, msgspec.Meta(pattern=r"\A[0-9]{1,13}(\.[0-9]{1,2})?\Z")]
    currency: Literal["RUB"]

    @property
    def kopecks(self) -> int:
        return int(Decimal(self.value) * 100)


class PayerBank(msgspec.Struct, frozen=True):
    bank_id: str | None = None
    bic: str | None = None


class Confirmation(msgspec.Struct, frozen=True):
    """How the payer continues. It is present while the payment waits for the payer."""

    confirmation_data: str | None = None
    """Content of the QR."""
    confirmation_url: str | None = None
    """A page of YooKassa."""

    @property
    def link(self) -> str | None:
        return self.confirmation_data or self.confirmation_url


class Method(msgspec.Struct, frozen=True):
    """Method of a payment, and whether it may be charged again."""

    id: str | None = None
    saved: bool = False
    status: str | None = None
    sbp_operation_id: str | None = None
    payer_bank_details: PayerBank | None = None


class Cancellation(msgspec.Struct, frozen=True):
    reason: str | None = None


Metadata = dict[str, str | None]


class Seen(msgspec.Struct, frozen=True):
    """Any object of a list, reduced to the fields that identify it."""

    id: _Id
    metadata: Metadata = {}
    description: str | None = None
    created_at: Moment | None = None


class Payment(msgspec.Struct, frozen=True):
    id: _Id
    status: str
    amount: Amount
    created_at: Moment
    income_amount: Amount | None = None
    """Amount that remains after YooKassa's fee and the VAT on it."""
    captured_at: Moment | None = None
    payment_method: Method | None = None
    confirmation: Confirmation | None = None
    cancellation_details: Cancellation | None = None
    metadata: Metadata = {}


class SavedMethod(msgspec.Struct, frozen=True):
    """A binding without a payment, or any saved method read by its id."""

    id: _Id
    status: str
    saved: bool = False
    confirmation: Confirmation | None = None


class Refund(msgspec.Struct, frozen=True):
    id: _Id
    status: str
    amount: Amount
    payment_id: _Id
    cancellation_details: Cancellation | None = None
    metadata: Metadata = {}


class Payout(msgspec.Struct, frozen=True):
    id: _Id
    status: str
    amount: Amount
    cancellation_details: Cancellation | None = None
    metadata: Metadata = {}


class Page(msgspec.Struct, frozen=True):
    """A page of a list, newest first. Items are decoded one by one, so an unknown item does not hide the others."""

    items: list[msgspec.Raw]
    next_cursor: str | None = None


class Currency(msgspec.Struct, frozen=True):
    currency: str


class Priced(msgspec.Struct, frozen=True):
    """Any object of a list, reduced to its currency."""

    amount: Currency


class Me(msgspec.Struct, frozen=True):
    """A shop or a gateway of payouts."""

    account_id: str
    status: str
    test: bool = False


class SbpBank(msgspec.Struct, frozen=True):
    bank_id: str
    name: str
    bic: str | None = None


class SbpBanks(msgspec.Struct, frozen=True):
    items: list[SbpBank]


class Noticed(msgspec.Struct, frozen=True):
    """A notification: an object at the time of the event."""

    type: Literal["notification"]
    event: str
    object: Seen


FAILURES: Mapping[str, str] = {
    "insufficient_funds": "insufficient_funds",
    "permission_revoked": MANDATE_REVOKED,
    "expired_on_confirmation": "expired",
    "expired_on_capture": "expired",
    "canceled_by_merchant": "cancelled_by_bank",
    "fraud_suspected": "cancelled_by_bank",
    "issuer_unavailable": "cancelled_by_bank",
    "internal_timeout": "cancelled_by_bank",
    "country_forbidden": "declined_by_bank",
    "general_decline": "declined_by_bank",
    "identification_required": "declined_by_bank",
    "payment_method_limit_exceeded": "declined_by_bank",
    "payment_method_restricted": "declined_by_bank",
}
"""Our failure reason by YooKassa's reason for cancelling a payment. An unlisted reason is `unknown`."""

_INVOICES: Mapping[str, InvoiceStatus] = {"pending": InvoiceStatus.OPEN, "succeeded": InvoiceStatus.PAID}
_CANCELLED: Mapping[str | None, InvoiceStatus] = {
    "expired_on_confirmation": InvoiceStatus.EXPIRED,
    "canceled_by_merchant": InvoiceStatus.CANCELLED,
}
_REFUNDS: Mapping[str, RefundStatus] = {"succeeded": RefundStatus.DONE, "canceled": RefundStatus.FAILED}
_PAYOUTS: Mapping[str, RemittanceStatus] = {"succeeded": RemittanceStatus.DONE, "canceled": RemittanceStatus.FAILED}

OURS_TO_MEND = frozenset(("insufficient_funds", "periodic_limit_exceeded", "issuer_unavailable"))
"""Reasons for cancelling a payout that pass: our balance, a daily or monthly limit, or an unavailable bank. The
operation is sent again under its next key."""

REFUND_CHECK = 900.0
"""Seconds. The money arrives the next day, and no notification is sent of a failed refund."""
PAYOUT_CHECK = 30.0
CHARGE_CHECK = 10.0


def roubles(kopecks: int) -> dict[str, str]:
    """Build an amount for a request. Raises: Refused (`amount`) for zero and less."""
    if kopecks <= 0:
        raise Refused("yookassa: an amount must be above zero", reason="amount")
    return {"value": f"{kopecks // 100}.{kopecks % 100:02d}", "currency": "RUB"}


def reason_of(details: Cancellation | None) -> str | None:
    return None if details is None else details.reason


def failure_of(payment: Payment) -> str:
    """Return our failure reason of a cancelled payment."""
    return FAILURES.get(reason_of(payment.cancellation_details) or "", "unknown")


def transfers_of(payment: Payment) -> tuple[Transfer, ...]:
    """Return the money of a succeeded payment: one transfer with the payment's id."""
    if payment.status != "succeeded":
        return ()
    method, income = payment.payment_method or Method(), payment.income_amount
    bank = method.payer_bank_details or PayerBank()
    fee = None if income is None else payment.amount.kopecks - income.kopecks
    transfer = Transfer(
        id=payment.id,
        amount_kopecks=payment.amount.kopecks,
        at=payment.captured_at or payment.created_at,
        fee_kopecks=fee if fee is not None and fee >= 0 else None,
        payer_bank=bank.bic or bank.bank_id,
        sbp_operation_id=method.sbp_operation_id,
    )
    return (transfer,)


def invoice_state(reference: str, payment: Payment) -> InvoiceState:
    if payment.status == "canceled":
        status = _CANCELLED.get(reason_of(payment.cancellation_details), InvoiceStatus.FAILED)
        failure = failure_of(payment) if status is InvoiceStatus.FAILED else None
        return InvoiceState(reference=reference, status=status, failure=failure)
    status = _INVOICES.get(payment.status, InvoiceStatus.PROCESSING)
    return InvoiceState(reference=reference, status=status, transfers=transfers_of(payment))


def charge_state(reference: str, payment: Payment) -> ChargeState:
    if payment.status == "canceled":
        return ChargeState(reference=reference, status=ChargeStatus.FAILED, failure=failure_of(payment))
    if payment.status == "succeeded":
        [transfer] = transfers_of(payment)
        return ChargeState(reference=reference, status=ChargeStatus.PAID, transfer=transfer)
    return ChargeState(reference=reference, status=ChargeStatus.PROCESSING, check_after=CHARGE_CHECK)


def refund_state(refund: Refund) -> RefundState:
    status = _REFUNDS.get(refund.status, RefundStatus.PROCESSING)
    if status is RefundStatus.FAILED:
        return RefundState(status=status, failure=reason_of(refund.cancellation_details) or "unknown")
    return RefundState(status=status, check_after=None if status is RefundStatus.DONE else REFUND_CHECK)


def remittance_state(payout: Payout) -> RemittanceState:
    status = _PAYOUTS.get(payout.status, RemittanceStatus.PROCESSING)
    if status is RemittanceStatus.FAILED:
        return RemittanceState(status=status, failure=reason_of(payout.cancellation_details) or "unknown")
    return RemittanceState(status=status, check_after=None if status is RemittanceStatus.DONE else PAYOUT_CHECK)


def is_ours_to_mend(payout: Payout) -> bool:
    """Report whether the payout was cancelled for a reason that passes, so that no money moved and the operation may be
    sent again."""
    return payout.status == "canceled" and reason_of(payout.cancellation_details) in OURS_TO_MEND

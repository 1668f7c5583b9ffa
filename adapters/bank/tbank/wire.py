"""T-Bank's answers, and the port's statuses for its own."""

from collections.abc import Mapping
from decimal import Decimal

import msgspec

from ....ports.bank import InvoiceStatus

_I = InvoiceStatus


class OrderPayment(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """One payment of an order, from CheckOrder."""

    payment_id: str | int
    status: str
    amount: Decimal | None = None
    error_code: str | int | None = None
    sbp_payment_id: str | None = None

    @property
    def id(self) -> str:
        return str(self.payment_id)


class Said(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """Any answer, reduced to the fields used here. The repr hides it, because it may contain the token of a payer's
    account."""

    success: bool
    error_code: str | int
    message: str | None = None
    status: str | None = None
    order_id: str | None = None
    payment_id: str | int | None = None
    amount: Decimal | None = None
    data: str | None = None
    request_key: str | int | None = None
    account_token: str | None = None
    payments: list[OrderPayment] = []
    qr_cancel_code: str | None = None

    @property
    def code(self) -> str:
        """Return the error code; `0` means success."""
        return str(self.error_code)

    @property
    def is_done(self) -> bool:
        return self.success and self.code == "0"

    def __repr__(self) -> str:
        return f"<answer {self.code} {self.status}>"


def kopecks_of(amount: Decimal | None) -> int | None:
    """Return the amount as whole kopecks, or None if it is anything else."""
    if amount is None or not amount.is_finite() or abs(amount) >= 10**15 or amount != amount.to_integral_value():
        return None
    return int(amount)


STATUSES: Mapping[str, InvoiceStatus] = {
    "NEW": _I.OPEN,
    "FORM_SHOWED": _I.OPEN,
    "AUTHORIZING": _I.PROCESSING,
    "PREAUTHORIZING": _I.PROCESSING,
    "PAY_CHECKING": _I.PROCESSING,
    "AUTHORIZED": _I.PROCESSING,
    "CONFIRMING": _I.PROCESSING,
    "CONFIRM_CHECKING": _I.PROCESSING,
    "CONFIRMED": _I.PAID,
    "REFUNDING": _I.PAID,
    "ASYNC_REFUNDING": _I.PAID,
    "CANCEL_REFUNDED": _I.PAID,
    "PARTIAL_REFUNDED": _I.PAID,
    "REFUNDED": _I.PAID,
    "REJECTED": _I.FAILED,
    "AUTH_FAIL": _I.FAILED,
    "CANCELED": _I.CANCELLED,
    "REVERSING": _I.PROCESSING,
    "PARTIAL_REVERSED": _I.PROCESSING,
    "REVERSED": _I.CANCELLED,
    "DEADLINE_EXPIRED": _I.EXPIRED,
    "ATTEMPTS_EXPIRED": _I.EXPIRED,
}
"""Payment statuses. SBP never holds money: AUTHORIZED is a step towards CONFIRMED."""


def status_of(text: str | None) -> InvoiceStatus:
    """Convert a payment's status. An unknown status means PROCESSING, which ends nothing."""
    return STATUSES.get(text or "", _I.PROCESSING)

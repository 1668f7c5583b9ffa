"""JSON of Raiffeisenbank's requests and answers, and tables from its statuses to the port's. Pure.

docs/providers/raiffeisen.md "Where the wire facts are from" names the source of each fact.
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from decimal import Decimal, localcontext
from typing import Any
from unicodedata import normalize

import msgspec

from ....ports.bank import InvoiceStatus, RefundStatus
from ....ports.mandates import ChargeStatus, MandateStatus
from ....ports.operations import short_operation
from ....ports.remittances import RemittanceStatus

MOSCOW = timezone(timedelta(hours=3))
"""Time zone of moments without one, and of the moments that the bank writes."""

_ORDER = re.compile(r"[A-Za-z0-9_.-]{1,40}\Z")
_RUB = "RUB"

STATEMENT_MOST = 185
"""Maximum characters of a payment's `paymentDetails` and of a subscription's purpose."""
INFO_MOST = 140
"""Maximum characters of `additionalInfo`, and of `paymentDetails` of outgoing money."""

_SPELLED = str.maketrans(
    {"Ё": "Е", "ё": "е", "«": '"', "»": '"', "“": '"', "”": '"', "„": '"', "’": "'", "‘": "'"}
    | dict.fromkeys("–—−‑", "-")
    | {"…": "...", "₽": "руб.", "\u00a0": " ", "\t": " ", "\n": " "}
)
"""Replacements for characters that the bank's alphabet lacks."""

_encoder = msgspec.json.Encoder(decimal_format="number")


class Qr(msgspec.Struct, frozen=True, rename="camel"):
    """A registered QR."""

    qr_id: str
    payload: str
    qr_status: str = ""
    """Missing from registration answers of the first API version."""


class QrState(msgspec.Struct, frozen=True, rename="camel"):
    """State of a registered QR."""

    qr_id: str
    qr_status: str
    payload: str


class PaymentInfo(msgspec.Struct, frozen=True, rename="camel"):
    """Payment made by a QR."""

    payment_status: str
    qr_id: str
    order: str
    amount: Decimal | None = None
    currency: str | None = _RUB
    transaction_date: Any = None
    qr_expiration_date: Any = None


class Named(msgspec.Struct, frozen=True):
    """An object of which the answer contains only the id."""

    id: str


class Order(msgspec.Struct, frozen=True):
    """An order, read by its number."""

    id: str
    qr: Named


class RefundInfo(msgspec.Struct, frozen=True, rename="camel"):
    refund_status: str
    amount: Decimal


class SubscriptionQr(msgspec.Struct, frozen=True):
    id: str
    payload: str


class Subscription(msgspec.Struct, frozen=True):
    id: str
    status: str
    qr: SubscriptionQr


class ChargeInfo(msgspec.Struct, frozen=True, rename="camel"):
    """A payment of a subscription."""

    order: str
    payment_status: str
    amount: Decimal
    qr_id: str | None = None
    currency: str | None = _RUB


class PayoutStatus(msgspec.Struct, frozen=True, rename="camel"):
    value: str
    decline_reason: str | None = None


class PayoutParams(msgspec.Struct, frozen=True, rename="camel"):
    phone: str
    bank_alias: str

    def __repr__(self) -> str:
        return "<receiver of a payout>"


class Payout(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    amount: Decimal
    payout_params: PayoutParams
    status: PayoutStatus


class PayoutBank(msgspec.Struct, frozen=True):
    alias: str
    name: str


_QR_STATUSES: Mapping[str, InvoiceStatus] = {
    "NEW": InvoiceStatus.OPEN,
    "INACTIVE": InvoiceStatus.OPEN,
    "IN_PROGRESS": InvoiceStatus.PROCESSING,
    "PAID": InvoiceStatus.PROCESSING,  # its money is about to appear
    "EXPIRED": InvoiceStatus.EXPIRED,
    "CANCELLED": InvoiceStatus.CANCELLED,
}
_OVER = (InvoiceStatus.EXPIRED, InvoiceStatus.CANCELLED)

_REFUNDS: Mapping[str, RefundStatus] = {"COMPLETED": RefundStatus.DONE, "DECLINED": RefundStatus.FAILED}
_CHARGES: Mapping[str, ChargeStatus] = {"SUCCESS": ChargeStatus.PAID, "DECLINED": ChargeStatus.FAILED}
_PAYOUTS: Mapping[str, RemittanceStatus] = {"COMPLETED": RemittanceStatus.DONE, "DECLINED": RemittanceStatus.FAILED}
_MANDATES: Mapping[str, MandateStatus] = {
    "INACTIVE": MandateStatus.OPEN,
    "SUBSCRIBED": MandateStatus.ACTIVE,
    "UNSUBSCRIBED": MandateStatus.ENDED,
}


def settled_by_payment(payment_status: str) -> InvoiceStatus | None:
    """Derive an invoice's status from the payment alone, or return None if its QR must be read too. After a declined
    payment the payer may try again while the QR is valid."""
    if payment_status == "SUCCESS":
        return InvoiceStatus.PAID
    return None if payment_status in ("NO_INFO", "DECLINED") else InvoiceStatus.PROCESSING


def settled_by_qr(payment_status: str, qr_status: str) -> InvoiceStatus:
    """Derive the status of an invoice without money from its payment and QR."""
    status = _QR_STATUSES.get(qr_status, InvoiceStatus.PROCESSING)
    return InvoiceStatus.FAILED if payment_status == "DECLINED" and status in _OVER else status


def refund_status(said: str) -> RefundStatus:
    """Convert a refund's status. An unknown status means in processing."""
    return _REFUNDS.get(said, RefundStatus.PROCESSING)


def charge_status(said: str) -> ChargeStatus:
    """Convert a charge's status. An unknown status means in processing."""
    return _CHARGES.get(said, ChargeStatus.PROCESSING)


def payout_status(said: str) -> RemittanceStatus:
    """Convert a payout's status. An unknown status means in processing."""
    return _PAYOUTS.get(said, RemittanceStatus.PROCESSING)


def mandate_status(said: str) -> MandateStatus:
    """Convert a mandate's status. An unknown status means open, so that it is not charged."""
    return _MANDATES.get(said, MandateStatus.OPEN)


def encoded(body: Mapping[str, Any]) -> bytes:
    """Encode a request as JSON, with amounts as numbers of two decimals and without None values."""
    return _encoder.encode({name: value for name, value in body.items() if value is not None})


def roubles(kopecks: int) -> Decimal:
    return Decimal(kopecks).scaleb(-2)


def kopecks(amount: Decimal) -> int | None:
    """Convert roubles to kopecks. Return None if the amount is no whole number of kopecks."""
    if not amount.is_finite() or not -20 <= amount.adjusted() <= 15:
        return None
    with localcontext(prec=40):
        exact = amount.scaleb(2)
        return int(exact) if exact == exact.to_integral_value() else None


def wire_moment(moment: datetime) -> str:
    """Format a moment for the bank: whole seconds, rounded up, with an offset."""
    local = moment.astimezone(MOSCOW)
    whole = local.replace(microsecond=0)
    return (whole if whole == local else whole + timedelta(seconds=1)).isoformat()


def read_moment(said: Any) -> datetime | None:
    """Parse a moment of the bank: ISO 8601 in any spelling, in Moscow time if no zone is given.

    Return None for an unreadable moment, because that is no reason to doubt the money beside it.
    """
    try:
        moment = datetime.fromisoformat(said.partition("[")[0])
    except (AttributeError, ValueError):
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=MOSCOW)


def number_of(operation: str) -> str:
    """Return the number by which the bank knows our order or refund: the operation id, or a digest if the bank does not
    accept the id."""
    return operation if _ORDER.match(operation) else short_operation(operation)


def spelled(text: str, most: int) -> str | None:
    """Convert the text to the bank's alphabet (ASCII, Russian letters without Ё, №) and truncate it. Return None if
    nothing is left."""
    kept = "".join(
        letter if _is_allowed(letter) else "".join(filter(_is_allowed, normalize("NFKD", letter)))
        for letter in text.translate(_SPELLED)
    )
    return " ".join(kept.split())[:most].rstrip() or None


def _is_allowed(letter: str) -> bool:
    return " " <= letter <= "~" or "А" <= letter <= "я" or letter == "№"

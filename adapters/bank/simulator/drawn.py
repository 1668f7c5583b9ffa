"""Invoices whose whole content is encoded in their reference. The caller of a simulated bank creates them, so the bank
writes nothing until a payer or an operator acts on the invoice."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import blake2b

from ....ports.bank import InvoiceRequest
from .pages import InvoiceEntry

DRAWN = "!"
"""Separates the operation from the other parts of the reference. None of our operation ids contains it."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def drawn_reference(request: InvoiceRequest, now: datetime) -> str:
    """Encode the reference, without the bank's name: operation, kopecks, creation and expiry in microseconds since
    1970."""
    drawn, ends = (now - _EPOCH) // _MICROSECOND, (request.expires_at - _EPOCH) // _MICROSECOND
    return f"{request.operation}{DRAWN}{request.amount_kopecks}.{drawn}.{ends}"


def drawn_entry(reference: str, payload: Callable[[int, str], str]) -> InvoiceEntry | None:
    """Decode the initial record of an invoice from its reference, given without the bank's name.

    Return None if the reference encodes no invoice. `payload` builds the QR content from the kopecks and the 16 digits
    of `drawn_chance`.
    """
    operation, drawn, told = reference.partition(DRAWN)
    if not drawn:
        return None
    try:
        kopecks, made, ends = (int(part) for part in told.split("."))
        created_at, expires_at = (_EPOCH + timedelta(microseconds=moment) for moment in (made, ends))
    except (ValueError, OverflowError):
        return None
    return InvoiceEntry(
        operation=operation,
        amount_kopecks=kopecks,
        purpose="",
        payload=payload(kopecks, drawn_chance(operation)),
        created_at=created_at,
        expires_at=expires_at,
    )


def drawn_chance(operation: str) -> str:
    """Return 16 hexadecimal digits for the operation's QR. The same operation always gets the same digits."""
    return blake2b(operation.encode(), digest_size=8).hexdigest()

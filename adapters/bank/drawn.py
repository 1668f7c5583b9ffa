"""Invoices that the caller of a simulated bank draws up: all that the bank's page will say of one stands in its
reference, so that nothing is written before somebody does something with it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import blake2b

from ...ports.bank import InvoiceRequest
from .pages import InvoiceEntry

DRAWN = "!"
"""Between the operation and the rest; in no operation of ours."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def drawn_reference(request: InvoiceRequest, now: datetime) -> str:
    """The reference, without the bank's name: operation, kopecks, creation and end in microseconds since 1970."""
    drawn, ends = (now - _EPOCH) // _MICROSECOND, (request.expires_at - _EPOCH) // _MICROSECOND
    return f"{request.operation}{DRAWN}{request.amount_kopecks}.{drawn}.{ends}"


def drawn_entry(reference: str, payload: Callable[[int, str], str]) -> InvoiceEntry | None:
    """The page of an invoice by its reference, without the bank's name, as nobody has touched it; None: it was not
    drawn. `payload` makes what the QR says of kopecks and a chance."""
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
    """16 hexadecimal digits, always the same for an operation, for its QR."""
    return blake2b(operation.encode(), digest_size=8).hexdigest()

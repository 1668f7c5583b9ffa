"""Bodies of YooKassa's calls, and metadata that identifies objects as ours."""

from collections.abc import Mapping
from typing import Any

from ....ports.operations import short_operation
from ....ports.receipts import Receipt
from ....ports.remittances import RemittanceRequest
from .receipts import receipt_of
from .wire import Seen, roubles

INVOICE, BINDING, CHARGE, REFUND, PAYOUT = "invoice", "binding", "charge", "refund", "payout"
"""Kinds of our objects. The kind is part of the metadata, because charges and bindings are payments as well."""

_VALUE = 512
"""Maximum characters of a metadata value."""
_DESCRIPTION = 128
_RETURN_URL = 2048
_COMMENT = 250


def key_of(operation: str, attempt: int = 0) -> str:
    """Return the idempotence key of an operation: 36 characters, at most 64 are allowed. `attempt` counts earlier
    attempts that certainly did nothing."""
    return short_operation(operation if attempt == 0 else f"{operation}\0{attempt}")


def marks(kind: str, operation: str, **more: str) -> dict[str, str]:
    """Build the metadata of our object. An operation has at most 600 characters and a value at most 512, so a long
    operation takes two values."""
    told = {"cambist": key_of(operation), "kind": kind, "operation": operation[:_VALUE], **more}
    if len(operation) > _VALUE:
        told["operation_2"] = operation[_VALUE : 2 * _VALUE]
    return told


def is_of(seen: Seen, kind: str, operation: str) -> bool:
    """Report whether the object was created by this operation. Refunds may lack metadata, which YooKassa added later;
    their description is compared instead."""
    if not seen.metadata and kind == REFUND:
        return seen.description == comment(operation)
    return seen.metadata.get("cambist") == key_of(operation) and seen.metadata.get("kind") == kind


def operation_of(seen: Seen) -> str | None:
    """Return the operation that created the object, or None if it is not ours."""
    told = seen.metadata
    operation = f"{told.get('operation') or ''}{told.get('operation_2') or ''}"
    if operation:
        return operation if told.get("cambist") == key_of(operation) else None
    _, ours, operation = (seen.description or "").partition(_OURS)
    return operation if ours else None


_OURS = "cambist "


def comment(operation: str) -> str:
    """Build the description of a refund."""
    told = f"{_OURS}{operation}"
    return told if len(told) <= _COMMENT else f"{_OURS}{key_of(operation)}"


def confirmation(return_url: str | None, *, page: str | None) -> dict[str, str]:
    """Build the confirmation field: a QR that we show, or a page of YooKassa. `page` is the default address to which
    the payer returns from that page."""
    asked = {"type": "qr"} if page is None else {"type": "redirect", "return_url": page}
    if return_url is not None and len(return_url) <= _RETURN_URL:
        asked["return_url"] = return_url
    return asked


def payment(
    kopecks: int, purpose: str, metadata: Mapping[str, str], receipt: Receipt | None, **more: Any
) -> dict[str, Any]:
    """Build the body of a payment that is captured at once, because SBP has no second step. Raises: Refused
    (`amount`)."""
    body = {"amount": roubles(kopecks), "capture": True, "metadata": metadata, **receipt_of(receipt), **more}
    return {**body, "description": purpose[:_DESCRIPTION]} if purpose else body


def payout(request: RemittanceRequest, phone: str, bank_id: str) -> dict[str, Any]:
    """Build the body of a payout to a person. Raises: Refused (`amount`)."""
    return {
        "amount": roubles(request.amount_kopecks),
        "payout_destination_data": {"type": "sbp", "phone": phone, "bank_id": bank_id},
        "metadata": marks(PAYOUT, request.operation),
    }

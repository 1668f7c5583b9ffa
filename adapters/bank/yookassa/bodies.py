"""What is sent: the bodies of YooKassa's calls, and the marks by which objects are known again as ours."""

from collections.abc import Mapping
from typing import Any

from ....ports.operations import short_operation
from ....ports.receipts import Receipt
from ....ports.remittances import RemittanceRequest
from .receipts import receipt_of
from .wire import Seen, roubles

INVOICE, BINDING, CHARGE, REFUND, PAYOUT = "invoice", "binding", "charge", "refund", "payout"
"""What an object of ours is, beside its operation: charges and bindings are payments, too."""

_VALUE = 512
"""Characters of a value of metadata."""
_DESCRIPTION = 128
_RETURN_URL = 2048
_COMMENT = 250


def key_of(operation: str, attempt: int = 0) -> str:
    """The idempotence key of an operation, 36 characters of the 64 that it may have. `attempt`: counts what was
    certainly not done before."""
    return short_operation(operation if attempt == 0 else f"{operation}\0{attempt}")


def marks(kind: str, operation: str, **more: str) -> dict[str, str]:
    """The metadata of an object of ours: all ids are at most 600 characters, and a value at most 512."""
    told = {"cambist": key_of(operation), "kind": kind, "operation": operation[:_VALUE], **more}
    if len(operation) > _VALUE:
        told["operation_2"] = operation[_VALUE : 2 * _VALUE]
    return told


def is_of(seen: Seen, kind: str, operation: str) -> bool:
    """Whether an object was made of this operation. A refund may have come without metadata: they are new there."""
    if not seen.metadata and kind == REFUND:
        return seen.description == comment(operation)
    return seen.metadata.get("cambist") == key_of(operation) and seen.metadata.get("kind") == kind


def operation_of(seen: Seen) -> str | None:
    """The operation that an object of ours was made of; None: it is none of ours."""
    told = seen.metadata
    operation = f"{told.get('operation') or ''}{told.get('operation_2') or ''}"
    if operation:
        return operation if told.get("cambist") == key_of(operation) else None
    _, ours, operation = (seen.description or "").partition(_OURS)
    return operation if ours else None


_OURS = "cambist "


def comment(operation: str) -> str:
    """The description of a refund."""
    told = f"{_OURS}{operation}"
    return told if len(told) <= _COMMENT else f"{_OURS}{key_of(operation)}"


def confirmation(return_url: str | None, *, page: str | None) -> dict[str, str]:
    """How the payer shall confirm: by a QR that we draw, or on a page of YooKassa's, from which `page` is where the
    payer comes back when nothing else is said."""
    asked = {"type": "qr"} if page is None else {"type": "redirect", "return_url": page}
    if return_url is not None and len(return_url) <= _RETURN_URL:
        asked["return_url"] = return_url
    return asked


def payment(
    kopecks: int, purpose: str, metadata: Mapping[str, str], receipt: Receipt | None, **more: Any
) -> dict[str, Any]:
    """A payment, captured at once: SBP knows no second step. Raises: Refused (`amount`)."""
    body = {"amount": roubles(kopecks), "capture": True, "metadata": metadata, **receipt_of(receipt), **more}
    return {**body, "description": purpose[:_DESCRIPTION]} if purpose else body


def payout(request: RemittanceRequest, phone: str, bank_id: str) -> dict[str, Any]:
    """Money to a person. Raises: Refused (`amount`)."""
    return {
        "amount": roubles(request.amount_kopecks),
        "payout_destination_data": {"type": "sbp", "phone": phone, "bank_id": bank_id},
        "metadata": marks(PAYOUT, request.operation),
    }

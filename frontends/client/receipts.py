"""Receipts (docs/receipts.md "State")."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from .model import OpenEnum, Page, Record
from .operations import Face, Group, operation, walk
from .requests import Request, at, create, get, post


class ReceiptKind(OpenEnum):
    """What a receipt is for."""

    SALE = "sale"
    REFUND = "refund"
    SECOND = "second"
    SALE_CORRECTION = "sale_correction"
    REFUND_CORRECTION = "refund_correction"


class ReceiptStatus(OpenEnum):
    """Status of a receipt."""

    PENDING = "pending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class Fiscal(Record, frozen=True, kw_only=True):
    """Numbers by which a written receipt is found, as far as the bank or the cash register tells them."""

    storage_number: str | None
    document_number: str | None
    fiscal_sign: str | None
    register_number: str | None
    url: str | None
    registered_at: datetime | None


class Receipt(Record, frozen=True, kw_only=True):
    """A receipt and its status."""

    id: str
    payment_id: str
    refund_id: str | None
    kind: ReceiptKind
    status: ReceiptStatus
    failure_reason: str | None
    amount_rub: Decimal
    attempt: int
    due_at: datetime | None
    """End of the shift by which it must be written."""
    fiscal: Fiscal | None
    shop_id: str
    created_at: datetime
    updated_at: datetime
    sandbox: bool = False


class Receipts(Group[Face]):
    """`client.receipts`"""

    @operation
    def create(
        self,
        *,
        payment_id: str,
        receipt: Mapping[str, Any] | None = None,
        idempotency_key: str | UUID | None = None,
    ) -> Request[Receipt]:
        """Write the second receipt of a prepaid payment, at delivery."""
        return create("/receipts", Receipt, {"payment_id": payment_id, "receipt": receipt}, idempotency_key)

    @operation
    def get(self, receipt_id: str) -> Request[Receipt]:
        """Return the current state of a receipt."""
        return get(at("receipts", receipt_id), Receipt)

    @operation
    def list(
        self,
        *,
        payment_id: str | None = None,
        status: ReceiptStatus | str | None = None,
        shop_id: str | None = None,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
        page: int | None = None,
        per_page: int | None = None,
    ) -> Request[Page[Receipt]]:
        """List receipts, newest first. `created_from` is inclusive, `created_to` exclusive."""
        return get(
            "/receipts",
            Page[Receipt],
            payment_id=payment_id,
            status=status,
            shop_id=shop_id,
            created_from=created_from,
            created_to=created_to,
            page=page,
            per_page=per_page,
        )

    iterate = walk(list)

    @operation
    def retry(self, receipt_id: str) -> Request[Receipt]:
        """Try a failed receipt again, or ask for a pending one now."""
        return post(at("receipts", receipt_id, "retry"), Receipt)

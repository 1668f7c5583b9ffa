"""Refunds (docs/refunds.md "Refunds")."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from .model import OpenEnum, Page, Record
from .operations import Face, Group, operation, walk
from .requests import Amount, Request, amount_or_none, at, create, get, get_csv, post


class RefundStatus(OpenEnum):
    """Status of a refund."""

    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETED = "completed"
    REVERSED = "reversed"
    REJECTED = "rejected"
    CANCELLED = "cancelled"
    FAILED = "failed"


class PendingReason(OpenEnum):
    """Why a refund is still pending."""

    AWAITING_APPROVAL = "awaiting_approval"
    INSUFFICIENT_BALANCE = "insufficient_balance"


class Refund(Record, frozen=True, kw_only=True):
    """A refund request and its status."""

    id: str
    refund_id: str
    payment_id: str
    amount_rub: Decimal
    amount_usdt: Decimal | None
    """USDT taken from the available balance, if the payment was settled."""
    rate_market: Decimal | None
    status: RefundStatus
    pending_reason: PendingReason | None
    external_id: str | None
    reason: str | None
    failure_reason: str | None
    metadata: dict[str, Any] | None
    shop_id: str
    created_at: datetime
    completed_at: datetime | None
    sandbox: bool = False


class Refunds(Group[Face]):
    """`client.refunds`"""

    @operation
    def create(
        self,
        *,
        payment_id: str,
        amount_rub: Amount | None = None,
        external_id: str | None = None,
        reason: str | None = None,
        receipt: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | UUID | None = None,
    ) -> Request[Refund]:
        """Request a refund, by default of the remaining amount. The outcome arrives by webhook."""
        body = {
            "payment_id": payment_id,
            "amount_rub": amount_or_none(amount_rub),
            "external_id": external_id,
            "reason": reason,
            "receipt": receipt,
            "metadata": metadata,
        }
        return create("/refunds", Refund, body, idempotency_key)

    @operation
    def get(self, refund_id: str) -> Request[Refund]:
        """Return the current state of a refund."""
        return get(at("refunds", refund_id), Refund)

    @operation
    def list(
        self,
        *,
        payment_id: str | None = None,
        status: RefundStatus | str | None = None,
        shop_id: str | None = None,
        external_id: str | None = None,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
        page: int | None = None,
        per_page: int | None = None,
    ) -> Request[Page[Refund]]:
        """List refunds, newest first. `created_from` is inclusive, `created_to` exclusive."""
        return get(
            "/refunds",
            Page[Refund],
            payment_id=payment_id,
            status=status,
            shop_id=shop_id,
            external_id=external_id,
            created_from=created_from,
            created_to=created_to,
            page=page,
            per_page=per_page,
        )

    iterate = walk(list)

    @operation
    def csv(
        self,
        *,
        payment_id: str | None = None,
        status: RefundStatus | str | None = None,
        shop_id: str | None = None,
        external_id: str | None = None,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
    ) -> Request[str]:
        """Return all filtered refunds in one CSV file, newest first."""
        return get_csv(
            "/refunds",
            payment_id=payment_id,
            status=status,
            shop_id=shop_id,
            external_id=external_id,
            created_from=created_from,
            created_to=created_to,
        )

    @operation
    def cancel(self, refund_id: str) -> Request[Refund]:
        """Cancel a refund while it is pending."""
        return post(at("refunds", refund_id, "cancel"), Refund)

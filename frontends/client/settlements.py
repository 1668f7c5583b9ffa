"""Statements of settlements, and their lines (docs/settlement.md "Reconciling")."""

from datetime import datetime
from decimal import Decimal

from .model import OpenEnum, Page, Record
from .operations import Face, Group, operation, walk
from .requests import Request, at, get, get_csv


class ItemKind(OpenEnum):
    """Kind of a line of a settlement."""

    PAYMENT = "payment"
    REFUND = "refund"
    CORRECTION = "correction"


class Settlement(Record, frozen=True, kw_only=True):
    """A statement. `completed_at` is None until it is complete."""

    id: str
    cutoff: datetime
    started_at: datetime
    completed_at: datetime | None
    rate_market: Decimal
    payments: int
    amount_rub: Decimal
    fee_usdt: Decimal
    credit_usdt: Decimal
    withdrawal_id: str | None
    sandbox: bool = False


class SettlementItem(Record, frozen=True, kw_only=True):
    """One line of a statement. The lines add up to its credit."""

    payment_id: str
    refund_id: str | None
    """Set for refunds and corrections."""
    shop_id: str
    kind: ItemKind
    amount_rub: Decimal
    rate_market: Decimal
    rate_merchant: Decimal
    fee_usdt: Decimal
    credit_usdt: Decimal


class Settlements(Group[Face]):
    """`client.settlements`"""

    @operation
    def get(self, settlement_id: str) -> Request[Settlement]:
        """Return a statement."""
        return get(at("settlements", settlement_id), Settlement)

    @operation
    def list(
        self,
        *,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
        page: int | None = None,
        per_page: int | None = None,
    ) -> Request[Page[Settlement]]:
        """List statements, newest first. `created_from` is inclusive, `created_to` exclusive."""
        return get(
            "/settlements",
            Page[Settlement],
            created_from=created_from,
            created_to=created_to,
            page=page,
            per_page=per_page,
        )

    iterate = walk(list)

    @operation
    def items(
        self, settlement_id: str, *, page: int | None = None, per_page: int | None = None
    ) -> Request[Page[SettlementItem]]:
        """List the lines of a statement."""
        return get(at("settlements", settlement_id, "items"), Page[SettlementItem], page=page, per_page=per_page)

    iterate_items = walk(items)

    @operation
    def csv(self, settlement_id: str) -> Request[str]:
        """Return all lines of a statement as one CSV file, with a header row and CRLF."""
        return get_csv(at("settlements", settlement_id, "items"))

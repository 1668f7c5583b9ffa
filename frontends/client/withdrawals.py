"""Payouts and their lines (docs/settlement.md "Payouts")."""

from datetime import datetime
from decimal import Decimal

from .model import OpenEnum, Page, Record
from .movements import MovementObject
from .operations import Face, Group, operation, walk
from .requests import Request, at, get, get_csv


class WithdrawalStatus(OpenEnum):
    """Status of a payout."""

    PENDING = "pending"
    PROCESSING = "processing"
    SENT = "sent"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class WithdrawalItemKind(OpenEnum):
    """Kind of a line of a payout."""

    CARRIED_IN = "carried_in"
    CARRIED_OUT = "carried_out"
    CORRECTED = "corrected"
    RECEIPT = "receipt"
    REVIEW_ACCEPTED = "review_accepted"
    SETTLEMENT = "settlement"
    REFUND_TAKEN = "refund_taken"
    REFUND_RETURNED = "refund_returned"
    REFUND_REVERSED = "refund_reversed"
    PAYOUT_RESERVED = "payout_reserved"
    PAYOUT_SENT = "payout_sent"
    PAYOUT_RELEASED = "payout_released"
    EXCHANGE_COMPLETED = "exchange_completed"
    EXCHANGE_FAILED = "exchange_failed"
    SANDBOX_CLEARED = "sandbox_cleared"


class Withdrawal(Record, frozen=True, kw_only=True):
    """A payout to the merchant's wallet."""

    id: str
    withdrawal_id: str
    status: WithdrawalStatus
    amount_usdt: Decimal
    wallet_address: str
    tx_hash: str | None
    network: str
    settlement_id: str | None
    created_at: datetime
    sent_at: datetime | None
    completed_at: datetime | None
    sandbox: bool = False


class WithdrawalItem(Record, frozen=True, kw_only=True):
    """One line of a payout. The lines add up to its amount."""

    kind: WithdrawalItemKind
    amount_usdt: Decimal
    object_type: MovementObject | None
    object_id: str | None
    converted_rub: Decimal | None
    rate: Decimal | None
    settlement_id: str | None
    number: int | None
    """Number of the movement, or None for carried amounts."""
    created_at: datetime


class Withdrawals(Group[Face]):
    """`client.withdrawals`. Payouts are automatic; there is nothing to create."""

    @operation
    def get(self, withdrawal_id: str) -> Request[Withdrawal]:
        """Return a payout."""
        return get(at("withdrawals", withdrawal_id), Withdrawal)

    @operation
    def list(
        self,
        *,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
        page: int | None = None,
        per_page: int | None = None,
    ) -> Request[Page[Withdrawal]]:
        """List payouts, newest first. `created_from` is inclusive, `created_to` exclusive."""
        return get(
            "/withdrawals",
            Page[Withdrawal],
            created_from=created_from,
            created_to=created_to,
            page=page,
            per_page=per_page,
        )

    iterate = walk(list)

    @operation
    def items(
        self, withdrawal_id: str, *, page: int | None = None, per_page: int | None = None
    ) -> Request[Page[WithdrawalItem]]:
        """List the lines of a payout."""
        return get(at("withdrawals", withdrawal_id, "items"), Page[WithdrawalItem], page=page, per_page=per_page)

    iterate_items = walk(items)

    @operation
    def csv(self, withdrawal_id: str) -> Request[str]:
        """Return all lines of a payout as one CSV file, with a header row and CRLF."""
        return get_csv(at("withdrawals", withdrawal_id, "items"))

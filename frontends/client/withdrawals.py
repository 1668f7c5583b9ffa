"""Payouts, and what they are made of (docs/settlement.md "Payouts")."""

from datetime import datetime
from decimal import Decimal

from .model import OpenEnum, Page, Record
from .movements import MovementObject
from .operations import Face, Group, operation, walk
from .requests import Request, at, get, get_csv


class WithdrawalStatus(OpenEnum):
    PENDING = "pending"
    PROCESSING = "processing"
    SENT = "sent"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class WithdrawalItemKind(OpenEnum):
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
    """One line of what a payout is made of; the lines sum to its amount."""

    kind: WithdrawalItemKind
    amount_usdt: Decimal
    object_type: MovementObject | None
    object_id: str | None
    converted_rub: Decimal | None
    rate: Decimal | None
    settlement_id: str | None
    number: int | None
    """Of the movement; None of what is carried over."""
    created_at: datetime


class Withdrawals(Group[Face]):
    """`client.withdrawals`. Payouts are automatic; there is nothing to create."""

    @operation
    def get(self, withdrawal_id: str) -> Request[Withdrawal]:
        """A payout."""
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
        """Payouts, the newest first. `created_from` is inclusive, `created_to` exclusive."""
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
        """What a payout is made of."""
        return get(at("withdrawals", withdrawal_id, "items"), Page[WithdrawalItem], page=page, per_page=per_page)

    iterate_items = walk(items)

    @operation
    def csv(self, withdrawal_id: str) -> Request[str]:
        """All lines of a payout as one CSV file: a header row, CRLF."""
        return get_csv(at("withdrawals", withdrawal_id, "items"))

"""Movements of the balance (docs/settlement.md "Movements"). `client.money` lists them."""

from datetime import datetime
from decimal import Decimal

from .model import OpenEnum, Record


class MovementKind(OpenEnum):
    """Cause of a movement of the balance."""

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


class MovementObject(OpenEnum):
    """Kind of the object that caused a movement."""

    PAYMENT = "payment"
    REFUND = "refund"
    WITHDRAWAL = "withdrawal"
    EXCHANGE = "exchange"


class BalancePart(OpenEnum):
    """A part of the balance."""

    AVAILABLE = "available"
    RESERVED = "reserved"
    PENDING = "pending"


class Movement(Record, frozen=True, kw_only=True):
    """One change of the balance, with its cause and the balance after it."""

    id: str
    number: int
    kind: MovementKind
    object_type: MovementObject
    object_id: str
    available_usdt: Decimal
    reserved_usdt: Decimal
    pending_rub: Decimal
    converted_rub: Decimal | None
    rate: Decimal | None
    settlement_id: str | None
    balance_available_usdt: Decimal
    balance_reserved_usdt: Decimal
    balance_pending_rub: Decimal
    created_at: datetime

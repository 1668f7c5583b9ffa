"""Balance, rate, turnover, settlements, payouts and gateways (docs/settlement.md "The rate", "Payouts";
docs/webhooks.md "Gateways")."""

from datetime import date, datetime
from decimal import Decimal

from .model import OpenEnum, Page, Record
from .operations import Face, Group, operation, walk
from .requests import Request, at, get, get_csv

_MOVEMENTS = "/balance/movements"


class WithdrawalStatus(OpenEnum):
    PENDING = "pending"
    PROCESSING = "processing"
    SENT = "sent"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class GatewayStatus(OpenEnum):
    OPERATIONAL = "operational"
    DEGRADED = "degraded"
    DOWN = "down"


class ItemKind(OpenEnum):
    PAYMENT = "payment"
    REFUND = "refund"
    CORRECTION = "correction"


class MovementKind(OpenEnum):
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


class MovementObject(OpenEnum):
    PAYMENT = "payment"
    REFUND = "refund"
    WITHDRAWAL = "withdrawal"
    EXCHANGE = "exchange"


class BalancePart(OpenEnum):
    AVAILABLE = "available"
    RESERVED = "reserved"
    PENDING = "pending"


class Balance(Record, frozen=True, kw_only=True):
    available_usdt: Decimal
    reserved_usdt: Decimal
    pending_rub: Decimal
    total_settled_usdt: Decimal
    total_withdrawn_usdt: Decimal
    updated_at: datetime


class Movement(Record, frozen=True, kw_only=True):
    """One change of the balance, with what caused it and what the balance is after it."""

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


class Rate(Record, frozen=True, kw_only=True):
    """RUB for 1 USDT; `rate_merchant` is with all fees, for calculators. The real credit is computed at settlement."""

    pair: str
    rate_market: Decimal
    rate_merchant: Decimal
    updated_at: datetime
    note: str


class ShopDay(Record, frozen=True, kw_only=True):
    """What one shop took on one day (UTC)."""

    date: date
    shop_id: str
    shop_name: str | None
    payments: int
    amount_rub: Decimal


class TurnoverSum(Record, frozen=True, kw_only=True):
    payments: int
    amount_rub: Decimal


class Turnover(Record, frozen=True, kw_only=True):
    """Days and shops that had payments, and their sum."""

    data: list[ShopDay]
    total: TurnoverSum


class Gateway(Record, frozen=True, kw_only=True):
    """A payment gateway and how it is."""

    gateway_id: str
    payment_method: str | None
    status: GatewayStatus
    reason: str | None
    since: datetime | None


Gateways = list[Gateway]


class Settlement(Record, frozen=True, kw_only=True):
    """A statement. `completed_at` is None while it is being made."""

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
    """One line of a statement; the lines sum to its credit."""

    payment_id: str
    refund_id: str | None
    """Of refunds and corrections."""
    shop_id: str
    kind: ItemKind
    amount_rub: Decimal
    rate_market: Decimal
    rate_merchant: Decimal
    fee_usdt: Decimal
    credit_usdt: Decimal


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


class Money(Group[Face]):
    """`client.money`"""

    @operation
    def balance(self) -> Request[Balance]:
        """The balance."""
        return get("/balance", Balance)

    @operation
    def movements(
        self,
        *,
        kind: MovementKind | str | None = None,
        object_type: MovementObject | str | None = None,
        object_id: str | None = None,
        balance: BalancePart | str | None = None,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
        page: int | None = None,
        per_page: int | None = None,
    ) -> Request[Page[Movement]]:
        """Every change of the balance, the newest first. `created_from` is inclusive, `created_to` exclusive."""
        return get(
            _MOVEMENTS,
            Page[Movement],
            kind=kind,
            object_type=object_type,
            object_id=object_id,
            balance=balance,
            created_from=created_from,
            created_to=created_to,
            page=page,
            per_page=per_page,
        )

    iterate_movements = walk(movements)

    @operation
    def movements_csv(
        self,
        *,
        kind: MovementKind | str | None = None,
        object_type: MovementObject | str | None = None,
        object_id: str | None = None,
        balance: BalancePart | str | None = None,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
    ) -> Request[str]:
        """The same as one CSV file, the oldest first: a header row, CRLF."""
        return get_csv(
            _MOVEMENTS,
            kind=kind,
            object_type=object_type,
            object_id=object_id,
            balance=balance,
            created_from=created_from,
            created_to=created_to,
        )

    @operation
    def rates(self, *, shop_id: str | None = None) -> Request[Rate]:
        """The rate, with the markup of a shop; without one, of the default shop."""
        return get("/rates", Rate, shop_id=shop_id)

    @operation
    def turnover(self, *, since: date | None = None, until: date | None = None) -> Request[Turnover]:
        """What shops took per day (UTC), both days included."""
        return get("/shops/turnover", Turnover, from_=since, to=until)

    @operation
    def gateways(self) -> Request[Gateways]:
        """The payment gateways and how each is."""
        return get("/gateways", Gateways)


class Settlements(Group[Face]):
    """`client.settlements`"""

    @operation
    def get(self, settlement_id: str) -> Request[Settlement]:
        """A statement."""
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
        """Statements, the newest first. `created_from` is inclusive, `created_to` exclusive."""
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
        """The lines of a statement."""
        return get(at("settlements", settlement_id, "items"), Page[SettlementItem], page=page, per_page=per_page)

    iterate_items = walk(items)

    @operation
    def csv(self, settlement_id: str) -> Request[str]:
        """All lines of a statement as one CSV file: a header row, CRLF."""
        return get_csv(at("settlements", settlement_id, "items"))


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

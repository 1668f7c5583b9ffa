"""Balance, rate, turnover and gateways (docs/settlement.md "The rate"; docs/webhooks.md "Gateways")."""

import datetime as dt
from datetime import date, datetime
from decimal import Decimal

from .model import OpenEnum, Page, Record
from .movements import BalancePart, Movement, MovementKind, MovementObject
from .operations import Face, Group, operation, walk
from .requests import Request, get, get_csv

_MOVEMENTS = "/balance/movements"


class GatewayStatus(OpenEnum):
    """Status of a payment gateway."""

    OPERATIONAL = "operational"
    DEGRADED = "degraded"
    DOWN = "down"


class Balance(Record, frozen=True, kw_only=True):
    """The balance: USDT available for payouts, USDT reserved for them, and RUB that wait for settlement."""

    available_usdt: Decimal
    reserved_usdt: Decimal
    pending_rub: Decimal
    total_settled_usdt: Decimal
    total_withdrawn_usdt: Decimal
    updated_at: datetime


class Rate(Record, frozen=True, kw_only=True):
    """RUB for 1 USDT. `rate_merchant` includes all fees and suits calculators; the actual credit is computed at
    settlement."""

    pair: str
    rate_market: Decimal
    rate_merchant: Decimal
    updated_at: datetime
    note: str


class ShopDay(Record, frozen=True, kw_only=True):
    """Turnover of one shop on one day (UTC)."""

    date: dt.date  # a plain `date` means the field itself from Python 3.14 on
    shop_id: str
    shop_name: str | None
    payments: int
    amount_rub: Decimal


class TurnoverSum(Record, frozen=True, kw_only=True):
    payments: int
    amount_rub: Decimal


class Turnover(Record, frozen=True, kw_only=True):
    """Turnover per day and shop, without empty days, and the total."""

    data: list[ShopDay]
    total: TurnoverSum


class Gateway(Record, frozen=True, kw_only=True):
    """A payment gateway and its status."""

    gateway_id: str
    payment_method: str | None
    status: GatewayStatus
    reason: str | None
    since: datetime | None


Gateways = list[Gateway]


class Money(Group[Face]):
    """`client.money`"""

    @operation
    def balance(self) -> Request[Balance]:
        """Return the balance."""
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
        """List all changes of the balance, newest first. `created_from` is inclusive, `created_to` exclusive."""
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
        """Return the same list as one CSV file, oldest first, with a header row and CRLF."""
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
        """Return the rate with the markup of a shop, by default the default shop."""
        return get("/rates", Rate, shop_id=shop_id)

    @operation
    def turnover(self, *, since: date | None = None, until: date | None = None) -> Request[Turnover]:
        """Return the shops' turnover per day (UTC), including both days."""
        return get("/shops/turnover", Turnover, from_=since, to=until)

    @operation
    def gateways(self) -> Request[Gateways]:
        """List the payment gateways with their statuses."""
        return get("/gateways", Gateways)

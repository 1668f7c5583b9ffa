"""The daily settlement: its payments and their value in USDT (docs/settlement.md "When"). Pure functions with integers
only: a rate is a fraction here, so that no digit is lost."""

from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum

import msgspec

from ..accounts.accounts import Mode
from ..money import Rub, Usdt

AT = time(9, 0)
"""When the settlement of a day starts, in UTC (12:00 in Moscow)."""

_DAY = "day-"

_KOPECKS_TO_UNITS = 1_000_000
"""Units of 0.00000001 USDT for one kopeck at a rate of one."""


def last_run(now: datetime) -> datetime:
    """Return the latest start of a settlement that is not after `now`."""
    at = datetime.combine(now.astimezone(UTC).date(), AT, UTC)
    return at if at <= now else at - timedelta(days=1)


def next_run(now: datetime) -> datetime:
    """Return the first start of a settlement after `now`."""
    return last_run(now) + timedelta(days=1)


def cutoff_of(run: datetime) -> datetime:
    """Return the cutoff: 00:00 UTC of the run's day. Payments paid before it belong to the run."""
    return datetime.combine(run.astimezone(UTC).date(), time(), UTC)


def own_daily_id(mode: Mode, account_id: str, run: datetime) -> str:
    """Return the batch id of one account's own daily settlement."""
    return f"{mode}:{account_id}:{_DAY}{run.date().isoformat()}"


class SettlementBatch(msgspec.Struct, frozen=True, kw_only=True):
    """One run over the payments of a mode: one market rate for all of them, read before the first."""

    id: str
    """Identifies the run: `live:2026-11-21` for a daily one, so that each day has only one."""
    mode: Mode
    account_id: str | None
    """The only account that it settles; null: all accounts."""
    cutoff: datetime
    rate_market: str
    """RUB per 1 USDT at full precision, as text so that no digit is lost."""
    started_at: datetime
    completed_at: datetime | None = None
    payments: int = 0
    amount: Rub = Rub(0)
    fee: Usdt = Usdt(0)
    credit: Usdt = Usdt(0)
    version: int = 0

    @property
    def was_asked_for(self) -> bool:
        """Whether it was requested, so that a statement is expected even if nothing is due. A daily run then makes
        none."""
        return self.account_id is not None and not self.id.rpartition(":")[2].startswith(_DAY)


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a batch for one merchant: the statement. Its sums are those of its items."""

    id: str
    batch_id: str
    account_id: str
    mode: Mode
    cutoff: datetime
    rate_market: str
    started_at: datetime
    completed_at: datetime | None = None
    withdrawal_id: str | None = None
    payments: int = 0
    items: int = 0
    amount: Rub = Rub(0)
    fee: Usdt = Usdt(0)
    credit: Usdt = Usdt(0)
    version: int = 0


class ItemKind(StrEnum):
    """Kind of a statement line (docs/settlement.md "Reconciling")."""

    PAYMENT = "payment"
    """The whole paid amount."""
    REFUND = "refund"
    """Deduction of a refund that was taken before the settlement."""
    CORRECTION = "correction"
    """Amount that a refund took before the settlement of its payment, and that was returned after it."""


class SettlementItem(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a statement, written once. Its id begins with the statement's, so that a range of ids is the list."""

    id: str
    settlement_id: str
    payment_id: str
    shop_id: str
    kind: ItemKind
    amount: Rub
    markup: str
    """The shop's fraction at that time: together with the statement's market rate it gives the merchant's rate."""
    fee: Usdt
    credit: Usdt
    version: int = 0

    @property
    def refund_id(self) -> str | None:
        """Id of the line's refund, for refunds and corrections, from the line's id."""
        place = self.id.removeprefix(f"{self.settlement_id}:{self.payment_id}:")
        return None if self.kind is ItemKind.PAYMENT else place.removeprefix("1:")


class Correction(msgspec.Struct, frozen=True, kw_only=True):
    """RUB of a payment that is already settled, returned by a refund that failed or was reversed. It waits for the next
    settlement, like a payment. Its id is the refund's."""

    id: str
    account_id: str
    mode: Mode
    payment_id: str
    shop_id: str
    amount: Rub
    since: datetime
    settlement_id: str | None = None
    version: int = 0


class Worth(msgspec.Struct, frozen=True, kw_only=True):
    """Value of RUB in USDT. `market` is the total that the service gives: fee, credit, and the rounding difference."""

    market: Usdt
    fee: Usdt
    credit: Usdt

    @property
    def rounding(self) -> Usdt:
        """Amount for the service's rounding account: at most one unit for each payment."""
        return self.market - self.fee - self.credit


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """A market rate and a shop's markup, as integers: computed once for each shop of a run."""

    rate: tuple[int, int]
    """Numerator and denominator of the market rate, RUB per 1 USDT."""
    markup: tuple[int, int]

    def worth(self, amount: Rub) -> Worth:
        """Return the value of `amount` at market rate / (1 - markup), each part rounded down at 8 decimals."""
        (rate, whole), (part, of) = self.rate, self.markup
        units = amount.kopecks * _KOPECKS_TO_UNITS * whole
        return Worth(
            market=Usdt(units // rate),
            fee=Usdt(units * part // (rate * of)),
            credit=Usdt(units * (of - part) // (rate * of)),
        )


def terms_of(rate_market: str, markup: str) -> Terms:
    """Return the terms from decimal texts. Raises ValueError for a rate that is not above zero, or a markup that is not
    from 0 to below 1."""
    rate, part = Decimal(rate_market), Decimal(markup)
    if not (rate.is_finite() and rate > 0 and part.is_finite() and 0 <= part < 1):
        raise ValueError("a rate is above zero, a markup from 0 to below 1")
    return Terms(rate=rate.as_integer_ratio(), markup=part.as_integer_ratio())


def at_market(amount: Rub, rate_market: str) -> Usdt:
    """Return the amount that a refund takes after the settlement of its payment: the market value, so that the fee is
    not returned, rounded down like every amount in USDT (docs/refunds.md "The money")."""
    return terms_of(rate_market, "0").worth(amount).market


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a statement in preparation."""

    kind: ItemKind
    object_id: str
    amount: Rub
    fee: Usdt
    credit: Usdt


def lines_of(payment_id: str, paid: Rub, taken: Sequence[tuple[str, Rub]], terms: Terms) -> list[Line]:
    """Return the lines of a payment from which refunds (`taken`: id and amount) took a part before its settlement.

    Each refund's line is the difference that it makes to the value of the rest, so that the lines add up exactly to
    that value. Raises ValueError if more was taken than was paid.
    """
    left, before = paid, terms.worth(paid)
    lines = [
        Line(kind=ItemKind.PAYMENT, object_id=payment_id, amount=paid, fee=before.fee, credit=before.credit),
    ]
    for refund_id, amount in taken:
        left = left - amount
        if left < Rub(0):
            raise ValueError(f"{payment_id}: refunds took more than was paid")
        after = terms.worth(left)
        lines.append(
            Line(
                kind=ItemKind.REFUND,
                object_id=refund_id,
                amount=Rub(-amount.kopecks),
                fee=after.fee - before.fee,
                credit=after.credit - before.credit,
            )
        )
        before = after
    return lines


def item_ids(settlement_id: str) -> tuple[str, str]:
    """Return the range of ids of a statement's items."""
    return f"{settlement_id}:", f"{settlement_id};"


def item_id(settlement_id: str, line: Line, payment_id: str) -> str:
    """Return the id of a line. It groups the lines of a payment, the payment's own first."""
    return line_id(settlement_id, payment_id, None if line.kind is ItemKind.PAYMENT else line.object_id)


def line_id(settlement_id: str, payment_id: str, refund_id: str | None = None) -> str:
    """Return the id of a payment's own line of a statement, or of the line of one of its refunds."""
    return f"{settlement_id}:{payment_id}:{'0' if refund_id is None else f'1:{refund_id}'}"

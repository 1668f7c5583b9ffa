"""The daily settlement: which payments it takes, and what they are worth in USDT (docs/settlement.md "When"). Pure, and
whole numbers throughout: a rate is a fraction here, so that no digit is lost."""

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
"""Units of 0.00000001 USDT for a kopeck at a rate of one."""


def last_run(now: datetime) -> datetime:
    """The latest moment, not after `now`, at which a settlement starts."""
    at = datetime.combine(now.astimezone(UTC).date(), AT, UTC)
    return at if at <= now else at - timedelta(days=1)


def next_run(now: datetime) -> datetime:
    """The first such moment after `now`."""
    return last_run(now) + timedelta(days=1)


def cutoff_of(run: datetime) -> datetime:
    """Payments paid before this moment belong to the run: 00:00 UTC of its day."""
    return datetime.combine(run.astimezone(UTC).date(), time(), UTC)


def own_daily_id(mode: Mode, account_id: str, run: datetime) -> str:
    """The batch of one account's own day."""
    return f"{mode}:{account_id}:{_DAY}{run.date().isoformat()}"


class SettlementBatch(msgspec.Struct, frozen=True, kw_only=True):
    """One run over the payments of a mode: one market rate for all of them, read before the first."""

    id: str
    """Says what it is: `live:2026-11-21` for a daily one, so that a day has one."""
    mode: Mode
    account_id: str | None
    """Of the one account that it settles; null: of all."""
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
        """Somebody waits for its statement, even where nothing is due. A daily one makes none then."""
        return self.account_id is not None and not self.id.rpartition(":")[2].startswith(_DAY)


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch brought one merchant: the statement. Its sums are those of its items."""

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
    """What a line of the statement is (docs/settlement.md "Reconciling")."""

    PAYMENT = "payment"
    """All that was paid."""
    REFUND = "refund"
    """Less what a refund took back before the settlement."""
    CORRECTION = "correction"
    """What a refund took back before the settlement of its payment, and that came back after it."""


class SettlementItem(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a statement, written once. Its id begins with the statement's, so that a range of ids is the list."""

    id: str
    settlement_id: str
    payment_id: str
    shop_id: str
    kind: ItemKind
    amount: Rub
    markup: str
    """The shop's fraction as it stood: with the statement's market rate it gives the merchant's rate."""
    fee: Usdt
    credit: Usdt
    version: int = 0

    @property
    def refund_id(self) -> str | None:
        """The refund that the line is about: of refunds and corrections, as its id has it."""
        place = self.id.removeprefix(f"{self.settlement_id}:{self.payment_id}:")
        return None if self.kind is ItemKind.PAYMENT else place.removeprefix("1:")


class Correction(msgspec.Struct, frozen=True, kw_only=True):
    """RUB of a payment that is settled already, given back by a refund that failed or was reversed; it waits for the
    next settlement, as a payment does. Its id is the refund's."""

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
    """RUB in USDT. `market` is what the service gives for them in all: fee, credit, and what rounding left over."""

    market: Usdt
    fee: Usdt
    credit: Usdt

    @property
    def rounding(self) -> Usdt:
        """Goes to the service's rounding account: one unit at most for each payment."""
        return self.market - self.fee - self.credit


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """A market rate and a shop's markup, as whole numbers: made once for each shop of a run."""

    rate: tuple[int, int]
    """Numerator and denominator of the market rate, RUB per 1 USDT."""
    markup: tuple[int, int]

    def worth(self, amount: Rub) -> Worth:
        """What `amount` is worth at market rate / (1 - markup), each part rounded down at 8 decimals."""
        (rate, whole), (part, of) = self.rate, self.markup
        units = amount.kopecks * _KOPECKS_TO_UNITS * whole
        return Worth(
            market=Usdt(units // rate),
            fee=Usdt(units * part // (rate * of)),
            credit=Usdt(units * (of - part) // (rate * of)),
        )


def terms_of(rate_market: str, markup: str) -> Terms:
    """The terms of decimal texts. Raises ValueError for a rate that is not above zero, or a markup of one or more."""
    rate, part = Decimal(rate_market), Decimal(markup)
    if not (rate.is_finite() and rate > 0 and part.is_finite() and 0 <= part < 1):
        raise ValueError("a rate is above zero, a markup from 0 to below 1")
    return Terms(rate=rate.as_integer_ratio(), markup=part.as_integer_ratio())


def at_market(amount: Rub, rate_market: str) -> Usdt:
    """What a refund takes after the settlement of its payment: the market value, so that the fee is not given back,
    rounded down as every amount in USDT (docs/refunds.md "The money")."""
    return terms_of(rate_market, "0").worth(amount).market


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the statement in the making."""

    kind: ItemKind
    object_id: str
    amount: Rub
    fee: Usdt
    credit: Usdt


def lines_of(payment_id: str, paid: Rub, taken: Sequence[tuple[str, Rub]], terms: Terms) -> list[Line]:
    """The lines of a payment of which refunds (`taken`: id and amount) took a part before its settlement.

    Each refund's line is the difference that it makes to what is left, so that the lines sum to the worth of that, to
    the last decimal. Raises ValueError when more was taken than was paid.
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
    """The range of ids of a statement's items."""
    return f"{settlement_id}:", f"{settlement_id};"


def item_id(settlement_id: str, line: Line, payment_id: str) -> str:
    """Puts the lines of a payment together, the payment's own first."""
    return line_id(settlement_id, payment_id, None if line.kind is ItemKind.PAYMENT else line.object_id)


def line_id(settlement_id: str, payment_id: str, refund_id: str | None = None) -> str:
    """The id of a payment's own line of a statement, or of the line of a refund of it."""
    return f"{settlement_id}:{payment_id}:{'0' if refund_id is None else f'1:{refund_id}'}"

"""Figures of one account and mode for the people of its merchant: a period beside the one before it, and open work
(docs/dashboard.md "Home").

The cost does not grow with the number of payments. Counts and amounts come from tallies and turnover; only the reasons
of failures are read from payments, and at most FAILURES_READ of them.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Between, Snapshot
from ...domain.accounts.accounts import Caller
from ...domain.accounts.shops import Shop
from ...domain.days import MOSCOW, moscow_start
from ...domain.money import Rub
from ...domain.payments.payments import FailureReason, Payment, PaymentStatus
from ...domain.payments.tallies import TOOK_MONEY, Tally, Turnover, day_ids, ever_ids
from ...domain.refunds.refunds import PendingReason, Refund, RefundStatus
from ...domain.settlement.settlement import next_run
from ...domain.webhooks.breaker import Breaker
from ...domain.webhooks.endpoints import EndpointKey
from ...domain.webhooks.events import Delivery, DeliveryStatus

FAILURES_READ = 500
"""Failed payments of a period whose reasons are read, the newest first."""
COUNTED_TO = 1000
"""Open work is counted up to this number."""

_ROWS = 200_000
"""Tallies that are read at most: those of 60 days and some hundred shops, in two rows a day."""
_ENDED = (*TOOK_MONEY, PaymentStatus.FAILED, PaymentStatus.CANCELLED, PaymentStatus.EXPIRED)


class Period(StrEnum):
    """A period of whole Moscow days that ends with today or yesterday, beside an equally long one before it."""

    TODAY = "today"
    YESTERDAY = "yesterday"
    WEEK = "7-days"
    MONTH = "30-days"

    def days(self, today: date) -> tuple[date, date]:
        """Return its first and last day."""
        match self:
            case Period.TODAY:
                return today, today
            case Period.YESTERDAY:
                return today - timedelta(days=1), today - timedelta(days=1)
            case Period.WEEK:
                return today - timedelta(days=6), today
            case Period.MONTH:
                return today - timedelta(days=29), today


class Sums(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a period. Money counts on the day it came, created payments on the day they were created."""

    taken: Rub = Rub(0)
    """Received for payments, refunds not deducted."""
    paid: int = 0
    """Payments that took this money."""
    created: int = 0
    succeeded: int = 0
    """Of the created payments, those that were paid."""
    ended: int = 0
    """Of the created payments, those that are paid, failed, cancelled or expired."""

    @property
    def average(self) -> Rub | None:
        """Average amount of a paid payment, rounded down to kopecks; None without one."""
        return Rub(self.taken.kopecks // self.paid) if self.paid else None

    @property
    def success_percent(self) -> int | None:
        """Share of ended payments that succeeded, in percent, rounded half up; None if none has ended."""
        return (200 * self.succeeded + self.ended) // (2 * self.ended) if self.ended else None


class ShopSums(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one shop in the period and in the one before."""

    shop_id: str
    name: str | None
    now: Sums
    before: Sums


class DaySums(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one day, for a chart. Days without payments are present, too."""

    day: str
    sums: Sums


class Failures(msgspec.Struct, frozen=True, kw_only=True):
    """Reasons why payments of the period failed, the most frequent first."""

    reasons: tuple[tuple[str, int], ...]
    read: int
    """Number of payments that these counts cover: the newest ones, at most FAILURES_READ."""
    total: int


class OpenWork(msgspec.Struct, frozen=True, kw_only=True):
    """Work that waits for a person. Each count ends at COUNTED_TO."""

    refunds_to_approve: int
    refunds_without_money: int
    amount_mismatches: int
    failed_webhooks: int
    """Events that the account's own endpoint did not accept in all attempts."""
    endpoints_down: int
    """Endpoints whose breaker is open."""

    @property
    def total(self) -> int:
        return sum(msgspec.structs.astuple(self))


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """One reading."""

    at: datetime
    period: Period
    first: str
    last: str
    now: Sums
    before: Sums
    shops: tuple[ShopSums, ...]
    days: tuple[DaySums, ...]
    by_status: tuple[tuple[str, int], ...]
    """Payments created in the period by present status."""
    failures: Failures
    work: OpenWork
    next_settlement: datetime


async def read_overview(ports: Ports, caller: Caller, period: Period = Period.TODAY) -> Overview:
    """Return the figures of the caller's account and mode, limited to the caller's shops. Raises: Unavailable."""
    now = ports.clock.now()
    first, last = period.days(now.astimezone(MOSCOW).date())
    length = (last - first).days + 1
    earlier = first - timedelta(days=length)
    async with ports.storage.snapshot() as seen:
        figures = await _figures(seen, caller, earlier, last)
        failures = await _failures(seen, caller, first, last, figures)
        work = await _work(seen, caller, figures)
        shops = await seen[Shop].find(account_id=caller.account_id, order="id", limit=1000, readable=True)
    names = {shop.id: shop.name for shop in shops}
    now_days, before_days = _days(first, last), _days(earlier, first - timedelta(days=1))
    ranked = sorted(figures.shops(before_days + now_days), key=lambda each: -figures.sums(now_days, each).taken.kopecks)
    return Overview(
        at=now,
        period=period,
        first=first.isoformat(),
        last=last.isoformat(),
        now=figures.sums(now_days),
        before=figures.sums(before_days),
        shops=tuple(
            ShopSums(
                shop_id=shop_id,
                name=names.get(shop_id),
                now=figures.sums(now_days, shop_id),
                before=figures.sums(before_days, shop_id),
            )
            for shop_id in ranked
        ),
        days=tuple(DaySums(day=day, sums=figures.sums((day,))) for day in now_days),
        by_status=tuple(sorted(figures.statuses(now_days).items())),
        failures=failures,
        work=work,
        next_settlement=next_run(now),
    )


def _days(first: date, last: date) -> tuple[str, ...]:
    return tuple((first + timedelta(days=number)).isoformat() for number in range((last - first).days + 1))


class _Figures:
    """Tallies and turnover of some days, by day and shop."""

    def __init__(self, tallies: Iterable[Tally], turnover: Iterable[Turnover], ever: Iterable[Tally]) -> None:
        self._money: Counter[tuple[str, str]] = Counter()
        self._paid: Counter[tuple[str, str]] = Counter()
        self._created: Counter[tuple[str, str, str]] = Counter()
        self.mismatches = sum(each.count for each in ever)
        for each in turnover:
            self._money[each.moscow_day, each.shop_id] += each.amount.kopecks
            self._paid[each.moscow_day, each.shop_id] += each.payments
        for tally in tallies:
            self._created[tally.moscow_day, tally.shop_id, tally.status] += tally.count

    def shops(self, days: tuple[str, ...]) -> set[str]:
        """Return the shops with a payment on any of the days."""
        return {shop for (day, shop), count in self._paid.items() if count and day in days} | {
            shop for (day, shop, _), count in self._created.items() if count and day in days
        }

    def statuses(self, days: tuple[str, ...]) -> dict[str, int]:
        """Return the number of payments created on these days, by status."""
        found: Counter[str] = Counter()
        for (day, _, status), count in self._created.items():
            if day in days:
                found[status] += count
        return {status: count for status, count in found.items() if count}

    def sums(self, days: tuple[str, ...], shop_id: str | None = None) -> Sums:
        """Return the figures of these days, of one shop or of all."""
        paid = [key for key in self._paid if key[0] in days and shop_id in (None, key[1])]
        created = [key for key in self._created if key[0] in days and shop_id in (None, key[1])]
        return Sums(
            taken=Rub(sum(self._money[key] for key in paid)),
            paid=sum(self._paid[key] for key in paid),
            created=sum(self._created[key] for key in created),
            succeeded=sum(self._created[key] for key in created if key[2] in TOOK_MONEY),
            ended=sum(self._created[key] for key in created if key[2] in _ENDED),
        )


async def _figures(seen: Snapshot, caller: Caller, first: date, last: date) -> _Figures:
    # A Moscow day begins in the UTC day before it. The further UTC hours that this reads are days of nobody's sums.
    begin = (first - timedelta(days=1)).isoformat()
    low, high = day_ids(caller.account_id, caller.mode, begin, last.isoformat())
    days = Between(low, high)
    ever = Between(*ever_ids(caller.account_id, caller.mode))
    tallies = await seen[Tally].find(id=days, limit=_ROWS, order="id")
    turnover = await seen[Turnover].find(id=days, limit=_ROWS, order="id")
    mismatches = await seen[Tally].find(id=ever, status=PaymentStatus.AMOUNT_MISMATCH, limit=_ROWS, order="id")
    return _Figures(
        (each for each in tallies if caller.sees_shop(each.shop_id)),
        (each for each in turnover if caller.sees_shop(each.shop_id)),
        (each for each in mismatches if caller.sees_shop(each.shop_id)),
    )


async def _failures(seen: Snapshot, caller: Caller, first: date, last: date, figures: _Figures) -> Failures:
    total = figures.statuses(_days(first, last)).get(PaymentStatus.FAILED, 0)
    made = Between(moscow_start(first), moscow_start(last + timedelta(days=1)))
    found = await seen[Payment].find(
        account_id=caller.account_id,
        mode=caller.mode,
        status=PaymentStatus.FAILED,
        created_at=made,
        order="-created_at",
        limit=FAILURES_READ,
        readable=True,
    )
    reasons = Counter(
        str(each.failure_reason or FailureReason.UNKNOWN) for each in found if caller.sees_shop(each.shop_id)
    )
    return Failures(reasons=tuple(reasons.most_common()), read=reasons.total(), total=total)


async def _work(seen: Snapshot, caller: Caller, figures: _Figures) -> OpenWork:
    owner: dict[str, Any] = {"account_id": caller.account_id, "mode": caller.mode}
    pending = await seen[Refund].find(
        **owner, status=RefundStatus.PENDING, order="-created_at", limit=COUNTED_TO, readable=True
    )
    reasons = Counter(each.pending_reason for each in pending if caller.sees_shop(each.shop_id))
    failed = await seen[Delivery].find(
        **owner, status=DeliveryStatus.FAILED, order="due", limit=COUNTED_TO, readable=True
    )
    keys = [EndpointKey(caller.account_id, caller.mode)]
    keys += [EndpointKey(caller.account_id, caller.mode, each.id) for each in caller.account.further(caller.mode)]
    breakers = [await seen[Breaker].get(key.id) for key in keys]
    return OpenWork(
        refunds_to_approve=reasons[PendingReason.AWAITING_APPROVAL],
        refunds_without_money=reasons[PendingReason.INSUFFICIENT_BALANCE],
        amount_mismatches=figures.mismatches,
        failed_webhooks=len(failed),
        endpoints_down=sum(each is not None and each.is_open for each in breakers),
    )

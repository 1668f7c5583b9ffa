"""Figures about the service at a cost that does not grow with the number of payments. They come from tallies, running
balances, and records that are new since the last reading."""

from datetime import datetime, timedelta
from decimal import Decimal

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import AtLeast, Between, OneOf, R, Snapshot
from ...domain.accounts.accounts import Mode
from ...domain.ledger import BalanceType, LedgerAccount
from ...domain.money import Rub
from ...domain.payments.payments import Payment
from ...domain.payments.tallies import TOOK_MONEY, Tally, Turnover, day_of
from ...domain.settlement.rates import KnownRate
from ...domain.settlement.settlement import cutoff_of, next_run
from ...domain.webhooks.events import Attempt, Delivery, EndpointDelivery, Event
from ..accounts.limit_hits import Hits, read_hits

DAYS = 30
WEBHOOKS_OF = 60
"""Number of readings whose events' webhooks are counted. At a reading every two seconds, they cover the last two
minutes."""


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """Amount that the next settlement of a mode will take."""

    mode: Mode
    pending: Rub
    """Everything that waits for a settlement."""
    expected: Rub
    """The part that the next settlement takes: payments before its cutoff."""
    about_usdt: Decimal | None
    """At the last market rate, before fees. None when no rate is known."""


class Dashboard(msgspec.Struct, frozen=True, kw_only=True):
    """One reading."""

    at: datetime
    by_status: dict[str, int]
    """Number of today's payments by status."""
    taken_today: Rub
    """Today's turnover of both modes."""
    days: list[int]
    """Payments per day of the last DAYS days. The last one is today."""
    hits: Hits
    """Requests that rate limits refused."""
    next_run: datetime
    due: tuple[Due, ...]
    payments_since: int
    """New payments since the reading before, or 0 at the first reading. Live charges are not counted, because their ids
    do not rise with time."""
    events_since: int
    delivered_since: int = 0
    """Webhooks that receivers accepted, for events of the last WEBHOOKS_OF readings. For older events no index is in
    the order of time."""
    refused_since: int = 0
    """Webhooks of the same events that receivers did not accept."""
    last_payment: str | None = None
    last_event: str | None = None
    marks: tuple[str, ...] = ()
    """The newest event at each earlier reading."""

    @property
    def today(self) -> int:
        return sum(self.by_status.values())

    @property
    def paid_today(self) -> int:
        return sum(self.by_status.get(status, 0) for status in TOOK_MONEY)


async def read_dashboard(ports: Ports, before: Dashboard | None = None) -> Dashboard:
    """Take a reading. New records are counted since `before`, the previous reading. Raises: Unavailable."""
    now = ports.clock.now()
    days = [day_of(now - timedelta(days=back)) for back in reversed(range(DAYS))]
    run = next_run(now)
    async with ports.storage.snapshot() as seen:
        by_status = await seen[Tally].sums("count", by="status", period=days[-1])
        by_day = await _by_day(seen, days, before)
        taken = await seen[Turnover].sums("amount", by="day", day=days[-1])
        waiting = await pending_before(seen, cutoff_of(run), now)
        dues = []
        for mode in Mode:
            rate = await seen[KnownRate].get(mode)
            about = None if rate is None else about_usdt(waiting[mode].expected, rate.rate)
            dues.append(Due(mode=mode, **msgspec.structs.asdict(waiting[mode]), about_usdt=about))
        last_payment, payments = await _since(seen, Payment, None if before is None else before.last_payment)
        last_event, events = await _since(seen, Event, None if before is None else before.last_event)
        hits = await read_hits(seen, now)
        delivered, refused = (0, 0) if before is None else await _webhooks(seen, before)
    return Dashboard(
        at=now,
        by_status={str(status): count for status, count in by_status.items() if count},
        taken_today=Rub(taken.get(days[-1], 0)),
        days=by_day,
        hits=hits,
        next_run=run,
        due=tuple(dues),
        payments_since=payments if before is not None else 0,
        events_since=events if before is not None else 0,
        delivered_since=delivered,
        refused_since=refused,
        last_payment=last_payment,
        last_event=last_event,
        marks=(*(() if before is None else before.marks), last_event or "")[-WEBHOOKS_OF:],
    )


async def _by_day(seen: Snapshot, days: list[str], before: Dashboard | None) -> list[int]:
    """Return the number of payments of each day. Another reading of the same day reads only this day's tallies.
    The past days have 29 times as many, and change only when test data are deleted."""
    past = [] if before is None or day_of(before.at) != days[-1] else before.days[:-1]
    counts = await seen[Tally].sums("count", by="period", period=OneOf(tuple(days[len(past) :])))
    return [*past, *(counts.get(day, 0) for day in days[len(past) :])]


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """RUB of one mode that wait for a settlement."""

    pending: Rub
    expected: Rub
    """Without payments from the days after the settlement's cutoff."""


async def pending_before(seen: Snapshot, cutoff: datetime, now: datetime) -> dict[Mode, Pending]:
    """Return the amounts that wait for a settlement with this cutoff. Turnover is known by day, so only whole days
    after the cutoff are left out."""
    whole = await seen[LedgerAccount].sums("balance", by="mode", balance_type=BalanceType.PENDING)
    first = cutoff + timedelta(days=1) - timedelta.resolution
    days = tuple(day_of(first + timedelta(days=number)) for number in range((now.date() - first.date()).days + 1))
    late = await seen[Turnover].sums("amount", by="mode", day=OneOf(days)) if days else {}
    return {
        mode: Pending(pending=Rub(whole.get(mode, 0)), expected=Rub(max(0, whole.get(mode, 0) - late.get(mode, 0))))
        for mode in Mode
    }


def about_usdt(amount: Rub, rate: str) -> Decimal:
    """Return the USDT value of RUB at a rate, before fees, for people."""
    return (Decimal(amount.kopecks) / 100 / Decimal(rate)).quantize(Decimal("0.01"))


async def _webhooks(seen: Snapshot, before: Dashboard) -> tuple[int, int]:
    """Return the numbers of accepted and of failed webhooks since the reading before."""
    asked = {"id": AtLeast(before.marks[0] if before.marks else ""), "sent_at": AtLeast(before.at)}
    taken = await seen[Attempt].total(**asked, status=Between(200, 300))
    refused = await seen[Attempt].total(**asked) - taken
    # Deliveries store the good answers to their first webhooks.
    first = {"id": asked["id"], "first_sent_at": asked["sent_at"]}
    return taken + sum([await seen[kind].total(**first) for kind in (Delivery, EndpointDelivery)]), refused


async def _since(seen: Snapshot, kind: type[R], last: str | None) -> tuple[str | None, int]:
    """Return the newest id and the number of records after `last`. Ids rise with time, so only new records are read."""
    newest = await seen[kind].find(order="-id", limit=1)
    if not newest:
        return last, 0
    # `!` sorts before every character that an id contains. If there was no record before, few can have been added.
    count = await seen[kind].total(id=AtLeast(f"{last}!")) if last is not None else 1
    return newest[0].id, count

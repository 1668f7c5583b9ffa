"""Stored counts of payments and daily turnover.

A count in SQL reads every row that it counts, and so does an offset; both would make lists slower with every payment.
Tallies change in the unit that adds, moves or deletes a payment, and are therefore always exact. Their ids begin with
the fields of a query, so that a range of ids is the only index they need.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from zlib import crc32

import msgspec
from msgspec.structs import replace

from ..accounts.accounts import Mode
from ..days import MOSCOW, iso
from ..money import Rub
from .payments import Payment, PaymentStatus

EVER = "ever"
"""The period of a tally that counts payments of all days."""

STRIPES = 4
"""Number of rows over which each sum is spread. A database that locks a row until the commit is on disk lets only one
unit at a time change it: on Postgres a single row halved the rate of creations of one account, four rows cost almost
nothing."""


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """Number of payments of one shop, status and method, created on one day or ever; one stripe of it."""

    id: str
    account_id: str
    mode: Mode
    period: str
    """A calendar day in UTC (`2026-11-21`), or EVER."""
    moscow_day: str
    """The same moments by the calendar of Moscow, or EVER. Each UTC day has rows of two Moscow days, so that both
    calendars can be summed."""
    shop_id: str
    status: PaymentStatus
    payment_method: str
    count: int
    version: int = 0


class Turnover(msgspec.Struct, frozen=True, kw_only=True):
    """Turnover of one shop on one day: every payment counts on the UTC day of its `paid_at`, with the received amount;
    one stripe of it.

    It counts received money: neither a refund nor its reversal changes it.
    """

    id: str
    account_id: str
    mode: Mode
    day: str
    moscow_day: str
    """As in Tally."""
    shop_id: str
    payments: int
    amount: Rub
    version: int = 0


def day_of(moment: datetime) -> str:
    """Return the calendar day in UTC, as text that sorts by time (docs/settlement.md "Turnover")."""
    return iso(moment)[:10]


def moscow_day_of(moment: datetime) -> str:
    """Return the calendar day in Moscow, in the same form."""
    return moment.astimezone(MOSCOW).date().isoformat()


def day_start(day: str) -> datetime:
    """Return the first moment of the day."""
    return datetime.combine(datetime.fromisoformat(day), time(), UTC)


def day_end(day: str) -> datetime:
    """Return the first moment after the day; for the last possible day, its last moment."""
    start = day_start(day)
    return datetime.max.replace(tzinfo=UTC) if start.date() == date.max else start + timedelta(days=1)


def _stripe(payment: Payment) -> int:
    """Return the payment's stripe. It is constant for one payment, so that no row falls below zero."""
    return crc32(payment.id.encode()) % STRIPES


def _ahead(day: str, moscow_day: str) -> str:
    """Return the end of an id: a row of the hours in which Moscow has the next day has an id of its own."""
    return "" if day == moscow_day else "+"


def tallies_of(payment: Payment, count: int) -> tuple[Tally, Tally]:
    """Return the increments of the tallies for `count` such payments: one for their day, one for all days."""
    # Joined, because formatting an enumeration member takes ten times as long.
    owner = payment.account_id, payment.mode
    kind = payment.shop_id, payment.status, payment.payment_method, str(_stripe(payment))
    day, moscow_day = day_of(payment.created_at), moscow_day_of(payment.created_at)
    of_day = Tally(
        id=":".join((*owner, day, *kind)) + _ahead(day, moscow_day),
        account_id=payment.account_id,
        mode=payment.mode,
        period=day,
        moscow_day=moscow_day,
        shop_id=payment.shop_id,
        status=payment.status,
        payment_method=payment.payment_method,
        count=count,
    )
    return of_day, replace(of_day, id=":".join((*owner, EVER, *kind)), period=EVER, moscow_day=EVER)


def turnover_of(payment: Payment, count: int) -> Turnover:
    """Return the increment of the shop's turnover for `count` such payments. Raises ValueError for an unpaid
    payment."""
    if payment.paid_at is None or payment.actual_amount is None:
        raise ValueError(f"{payment.id} is not paid")
    day, moscow_day = day_of(payment.paid_at), moscow_day_of(payment.paid_at)
    place = f"{payment.account_id}:{payment.mode}:{day}:{payment.shop_id}"
    return Turnover(
        id=f"{place}:{_stripe(payment)}{_ahead(day, moscow_day)}",
        account_id=payment.account_id,
        mode=payment.mode,
        day=day,
        moscow_day=moscow_day,
        shop_id=payment.shop_id,
        payments=count,
        amount=Rub(payment.actual_amount.kopecks * count),
    )


def took_money(before: PaymentStatus, after: PaymentStatus) -> bool:
    """Return whether a payment starts to count as turnover with this move, which each payment makes at most once. A
    reversed refund also returns to `paid`, but its money was counted when it came."""
    return after is PaymentStatus.PAID and before is not PaymentStatus.REFUNDED


TOOK_MONEY = (PaymentStatus.PAID, PaymentStatus.SETTLED, PaymentStatus.REFUNDED)
"""The statuses of all payments that count as turnover."""

IdRange = tuple[str, str]
"""A range of ids; the end is excluded."""

# Every part of an id is followed by `:`. The next character, `;`, ends a range; `:` itself follows the digits.


def ever_ids(account_id: str, mode: Mode) -> IdRange:
    """Return the ids of the tallies of all days together."""
    return f"{account_id}:{mode}:{EVER}:", f"{account_id}:{mode}:{EVER};"


def day_ids(account_id: str, mode: Mode, first: str | None = None, last: str | None = None) -> IdRange:
    """Return the ids of daily tallies or turnover from `first` to `last`, both included; None leaves that end open."""
    start = f"{account_id}:{mode}:"
    return f"{start}{first or '0'}", f"{start}:" if last is None else f"{start}{last};"


class Stretch(msgspec.Struct, frozen=True):
    """Position of a page in a list ordered by time: within the days from `first` to `last`, after `skipped` records
    counted from their newest, or before `left` counted from their oldest."""

    first: str
    last: str
    skipped: int
    taken: int
    left: int


def stretch(counts: Mapping[str, int], offset: int, size: int) -> Stretch | None:
    """Find the page that begins `offset` records after the newest, given the number of records of each day. None past
    the end."""
    newest: str | None = None
    skipped = seen = 0
    oldest = ""
    # From the newest day: skip whole days up to the offset, then collect days until the page is full.
    for day in sorted((day for day, count in counts.items() if count > 0), reverse=True):
        if newest is None and counts[day] <= offset:
            offset -= counts[day]
            continue
        if newest is None:
            newest, skipped = day, offset
        oldest, seen = day, seen + counts[day]
        if seen >= skipped + size:
            break
    if newest is None:
        return None
    taken = min(size, seen - skipped)
    return Stretch(oldest, newest, skipped, taken, seen - skipped - taken)

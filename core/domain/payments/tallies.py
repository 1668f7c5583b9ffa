"""Counts that are kept instead of being counted: how many payments there are, and what they brought per day.

A count in SQL walks every row that it counts, and so does an offset; both would make lists slower with every payment.
Tallies move in the unit that adds, moves or removes a payment, and are therefore exact at every moment. Their ids begin
with what they are asked by, so that a range of ids is the one index they need.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from zlib import crc32

import msgspec
from msgspec.structs import replace

from ..accounts.accounts import Mode
from ..days import iso
from ..money import Rub
from .payments import Payment, PaymentStatus

EVER = "ever"
"""The period of a tally that counts payments of all days."""

STRIPES = 4
"""Over how many rows each sum is spread. A database that locks a row until the commit is on disk lets only one unit at
a time move it: on Postgres one row halved what one account could create at once, four came close to none at all."""


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """How many payments there are of one shop, status and method, created on one day, or ever; one stripe of it."""

    id: str
    account_id: str
    mode: Mode
    period: str
    """A calendar day in UTC (`2026-11-21`), or EVER."""
    shop_id: str
    status: PaymentStatus
    payment_method: str
    count: int
    version: int = 0


class Turnover(msgspec.Struct, frozen=True, kw_only=True):
    """What one shop took on one day: every payment counts on the UTC day of its `paid_at`, with the amount that came;
    one stripe of it.

    It is money received: neither a refund nor its reversal changes it.
    """

    id: str
    account_id: str
    mode: Mode
    day: str
    shop_id: str
    payments: int
    amount: Rub
    version: int = 0


def day_of(moment: datetime) -> str:
    """The calendar day in UTC, as text that sorts by time (docs/settlement.md "Turnover")."""
    return iso(moment)[:10]


def day_start(day: str) -> datetime:
    """The day's first moment."""
    return datetime.combine(datetime.fromisoformat(day), time(), UTC)


def day_end(day: str) -> datetime:
    """The first moment that is not of the day any more; of the last day there is, its last one."""
    start = day_start(day)
    return datetime.max.replace(tzinfo=UTC) if start.date() == date.max else start + timedelta(days=1)


def _stripe(payment: Payment) -> int:
    """Always the same for one payment, so that a row is never below zero."""
    return crc32(payment.id.encode()) % STRIPES


def tallies_of(payment: Payment, count: int) -> tuple[Tally, Tally]:
    """What `count` such payments add to the tallies: to the one of their day, and to that of all days."""
    # Joined: to format a member of an enumeration takes ten times as long.
    owner = payment.account_id, payment.mode
    kind = payment.shop_id, payment.status, payment.payment_method, str(_stripe(payment))
    day = day_of(payment.created_at)
    of_day = Tally(
        id=":".join((*owner, day, *kind)),
        account_id=payment.account_id,
        mode=payment.mode,
        period=day,
        shop_id=payment.shop_id,
        status=payment.status,
        payment_method=payment.payment_method,
        count=count,
    )
    return of_day, replace(of_day, id=":".join((*owner, EVER, *kind)), period=EVER)


def turnover_of(payment: Payment, count: int) -> Turnover:
    """What `count` such payments add to their shop's turnover. Raises ValueError for one that no money came for."""
    if payment.paid_at is None or payment.actual_amount is None:
        raise ValueError(f"{payment.id} is not paid")
    day = day_of(payment.paid_at)
    return Turnover(
        id=f"{payment.account_id}:{payment.mode}:{day}:{payment.shop_id}:{_stripe(payment)}",
        account_id=payment.account_id,
        mode=payment.mode,
        day=day,
        shop_id=payment.shop_id,
        payments=count,
        amount=Rub(payment.actual_amount.kopecks * count),
    )


def took_money(before: PaymentStatus, after: PaymentStatus) -> bool:
    """Whether a move is the one by which a payment counts as turnover: each payment makes at most one. A reversed
    refund comes back to `paid` too, but its money was counted when it came."""
    return after is PaymentStatus.PAID and before is not PaymentStatus.REFUNDED


TOOK_MONEY = (PaymentStatus.PAID, PaymentStatus.SETTLED, PaymentStatus.REFUNDED)
"""The statuses of all payments that count as turnover."""

IdRange = tuple[str, str]
"""Ids from the first up to, and without, the second."""

# Ids go on with `:` after every part; `;` is the character that follows it, as `:` follows the digits.


def ever_ids(account_id: str, mode: Mode) -> IdRange:
    """The tallies of all days together."""
    return f"{account_id}:{mode}:{EVER}:", f"{account_id}:{mode}:{EVER};"


def day_ids(account_id: str, mode: Mode, first: str | None = None, last: str | None = None) -> IdRange:
    """The tallies, or the turnover, of single days: from `first` to `last`, both with them, or open."""
    start = f"{account_id}:{mode}:"
    return f"{start}{first or '0'}", f"{start}:" if last is None else f"{start}{last};"


class Stretch(msgspec.Struct, frozen=True):
    """Where in a list that is ordered by time a page lies: within the days from `first` to `last`, after `skipped`
    records counted from their newest, or before `left` counted from their oldest."""

    first: str
    last: str
    skipped: int
    taken: int
    left: int


def stretch(counts: Mapping[str, int], offset: int, size: int) -> Stretch | None:
    """Find the page that begins `offset` records after the newest, given how many each day has. None past the end."""
    newest: str | None = None
    skipped = seen = 0
    oldest = ""
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

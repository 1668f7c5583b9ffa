"""Reports: registers of a Moscow day, a month or an ordered period (docs/reports.md "What you get").

A report covers a range of the numbers of movements (core/domain/movements.py), which never change, and a day begins at
the number where the day before ended. So every movement is in exactly one day, and a late one is in the day that wrote
it. The rows are stored once, as CSV in encrypted chunks of exports, with their digest. Other formats are made of it.
"""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from .. import shared_fields as shared
from ..accounts.accounts import Mode
from ..days import MOSCOW
from ..errors import Refusal, shape_error
from ..ids import derived

REPORT: Final = "rep_"

DAYS_MOST = 366
"""Days of an ordered period."""
ROWS_MOST = 1_000_000
"""Rows of an ordered period, and of a workbook."""
ORDERED_KEPT = timedelta(days=30)
ORDERED_MOST = 50
"""Ordered periods of an account and mode that are kept at the same time."""


class ReportKind(StrEnum):
    DAY = "day"
    """Made when the Moscow day is over, also if it is empty."""
    MONTH = "month"
    """Made with its last day."""
    PERIOD = "period"
    """Ordered by the merchant."""


class ReportFormat(StrEnum):
    CSV = "csv"
    """For programs: the stored text, whose digest is known."""
    ACCOUNTING = "accounting"
    """CSV for Russian spreadsheets, with totals."""
    XLSX = "xlsx"


class Sums(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of rows in kopecks and units of 0.00000001 USDT."""

    count: int = 0
    rub: int = 0
    """Amounts of the operations, all above zero."""
    fee_usdt: int = 0
    fee_rub: int = 0
    pending: int = 0
    available: int = 0
    reserved: int = 0
    """Changes of the balance."""

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(**{name: getattr(self, name) + getattr(other, name) for name in Sums.__struct_fields__})


ZERO: Final = Sums()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A register. Once it is ready, nothing of it changes."""

    id: str
    account_id: str
    mode: Mode
    kind: ReportKind
    first_day: str
    last_day: str
    """Moscow days, both inclusive: `2026-11-26`."""
    low: int
    high: int
    """Numbers of its movements: from `low` to below `high`."""
    position: int
    """The next movement to be written."""
    created_at: datetime
    opening: Sums
    closing: Sums
    """Balance before and after, in `pending`, `available` and `reserved`."""
    totals: dict[str, Sums] = msgspec.field(default_factory=dict)
    """Sums by kind of movement."""
    before: str = ""
    link: str = ""
    """Links of the chain of rows (proofs.py) before the first row and after the last one written, in hex. Only days
    have them."""
    chunks: int = 0
    size: int = 0
    """Bytes of the CSV."""
    digest: str | None = None
    """SHA-256 of the CSV, in hex."""
    ready_at: datetime | None = None
    expires_at: datetime | None = None
    """When an ordered period is deleted. Days and months stay."""
    version: int = 0

    @property
    def rows(self) -> int:
        return self.high - self.low

    @property
    def sums(self) -> Sums:
        """Sums of all rows."""
        return sum(self.totals.values(), ZERO)

    @property
    def file_name(self) -> str:
        """Name of its files without an ending."""
        days = self.first_day if self.first_day == self.last_day else f"{self.first_day}_{self.last_day}"
        return f"register_{self.account_id}_{self.mode}_{days}"


class ReportOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /reports, field by field."""

    first_day: Annotated[
        str, Meta(description="First Moscow day of the period"), shared.limits(minLength=10, maxLength=10)
    ]
    last_day: Annotated[str, Meta(description="Last day, inclusive"), shared.limits(minLength=10, maxLength=10)]

    def read(self, now: datetime) -> tuple[date, date]:
        """Return the days. Raises: Refusal VALIDATION_ERROR for days in the future, or too many."""
        first, last = read_day("first_day", self.first_day), read_day("last_day", self.last_day)
        if not first <= last <= moscow_today(now):
            raise Refusal("VALIDATION_ERROR", "The last day is not before the first, and not in the future")
        if (last - first).days >= DAYS_MOST:
            raise shape_error("last_day", f"must be within {DAYS_MOST} days of the first")
        return first, last


def moscow_today(now: datetime) -> date:
    """Return the Moscow day of a moment."""
    return now.astimezone(MOSCOW).date()


def read_day(name: str, text: str) -> date:
    """Read a value of a request as a day. Raises: Refusal VALIDATION_ERROR."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or day.isoformat() != text or day.year < 2000:
        raise shape_error(name, "must be a day such as 2026-11-21")
    return day


def report_id(account_id: str, mode: Mode, *causes: str) -> str:
    """Return the id of a report. Its causes are the kind and first day of a day or month, and the key of an order."""
    return derived(REPORT, account_id, mode, *causes)


def columns_chosen(known: Sequence[str], text: str | None) -> tuple[str, ...]:
    """Return the columns that a request names, in its order; all where it names none. Raises: Refusal
    VALIDATION_ERROR."""
    names = tuple(text.split(",")) if text else tuple(known)
    if len(set(names)) != len(names) or not set(names) <= set(known):
        raise shape_error("columns", f"must be different columns of: {', '.join(known)}")
    return names

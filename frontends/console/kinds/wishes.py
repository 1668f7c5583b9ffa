"""Filters that most kinds share, and their translation into queries (docs/console.md "Filters")."""

from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from ....core.domain.accounts.accounts import Mode
from ....core.domain.errors import shape_error
from ....core.usecases.browse.browse import Wanted
from .kinds import Filter, Wish

_MOMENT = "2026-11-21 or 2026-11-21 09:00, UTC"
_DAY = len("2026-11-21")

DATES = (
    Filter(name="from", hint=_MOMENT),
    Filter(name="to", hint=f"{_MOMENT}; a day is included"),
)
ORDER = Filter(name="order", hint="the merchant's own id")


def wanted(wish: Wish) -> Wanted:
    """Return the shared filters of a wish as a query. Raises: Refusal VALIDATION_ERROR."""
    mode = wish.of("mode")
    return Wanted(
        account_id=wish.of("account"),
        mode=None if mode is None else Mode(mode),
        status=wish.of("status"),
        external_id=wish.of("order"),
        since=moment_from(wish),
        until=moment_to(wish),
        newest_first=wish.order != "oldest",
    )


def by_status(asked: Wanted, statuses: type[Enum]) -> dict[str, Any]:
    """Return the status criterion, if the filter is set."""
    return {} if asked.status is None else {"status": statuses(asked.status)}


def moment_from(wish: Wish) -> datetime | None:
    """Return the start of the period. Raises: Refusal VALIDATION_ERROR."""
    return _moment("from", wish)


def moment_to(wish: Wish) -> datetime | None:
    """Return the end of the period; a day without a time is included. Raises: Refusal VALIDATION_ERROR."""
    return _moment("to", wish, timedelta(days=len(wish.of("to") or "") == _DAY))


def _moment(name: str, wish: Wish, more: timedelta = timedelta()) -> datetime | None:
    text = wish.of(name)
    if text is None:
        return None
    try:
        read = datetime.fromisoformat(text)
        return more + (read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC))
    except (ValueError, OverflowError):
        raise shape_error(name, f"must be a moment, such as {_MOMENT}") from None

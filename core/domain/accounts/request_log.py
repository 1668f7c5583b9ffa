"""The requests of a merchant, for thirty days: what was asked, what was answered, by which key and how fast
(docs/concepts.md "Your requests").

Nothing of a body, a query or an answer is kept, and of a path its form, with the object's id where it is one of ours.
Ids begin with whose they are and the moment, so a range of ids is a span of time, and the only index that is needed.
"""

import re
from datetime import UTC, datetime, timedelta

import msgspec

from .accounts import Mode

KEPT = timedelta(days=30)
NOT_KEPT = 0
"""Stands for a status in the counts: requests that could not be written down."""

ID_LENGTH = 42
"""Of the longest id: nothing longer waits in memory."""
_OBJECT = re.compile(r"[a-z]{2,5}_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


class RequestEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """One request that was answered."""

    at: datetime
    """When the answer began."""
    method: str
    path: str
    """Its form: `/api/v1/payments/{payment_id}`."""
    object_id: str | None
    """What the path named, where that has the form of an id of ours."""
    status: int
    code: str | None
    """Of the error, where there was one."""
    key_id: str
    took_ms: int
    request_id: str


class RequestBatch(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Requests of one account and mode that one process answered within one hour and wrote together: a row for each of
    them would cost a read a seventh of its time."""

    id: str
    account_id: str
    mode: Mode
    entries: tuple[RequestEntry, ...]
    """In the order of time; the id tells the moment of the first."""
    version: int = 0


class FirstBatch(RequestBatch, frozen=True, kw_only=True, gc=False):
    """The first batch that a process writes of an account and mode in an hour, all of one status. It counts itself: who
    asks once costs one row and not two, and of an hour there are no more of these than processes."""

    hour: str
    """Of UTC: `2026-11-21T09`."""
    status: int
    count: int


BATCHES: tuple[type[RequestBatch], ...] = (FirstBatch, RequestBatch)
"""Where requests are."""


class RequestCount(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How many requests of one hour were answered with one status, those of first batches left out."""

    id: str
    account_id: str
    mode: Mode
    hour: str
    """Of UTC: `2026-11-21T09`."""
    status: int
    """Or NOT_KEPT."""
    count: int = 0
    version: int = 0


def owner_prefix(account_id: str, mode: Mode) -> str:
    """What all ids of an account's requests in a mode begin with."""
    return f"{account_id}:{mode.value}:"


def hour_of(moment: datetime) -> str:
    """The hour of a moment, as counts have it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H")


def hour_start(hour: str) -> datetime:
    """The first moment of an hour."""
    return datetime.strptime(hour, "%Y-%m-%dT%H").replace(tzinfo=UTC)


def ids_from(account_id: str, mode: Mode, moment: datetime) -> str:
    """What no id of a request at `moment` or later is below, and every earlier one is."""
    since = moment.astimezone(UTC)
    return f"{owner_prefix(account_id, mode)}{since:%Y-%m-%dT%H:%M:%S}.{since.microsecond:06}"


def batch_id(account_id: str, mode: Mode, moment: datetime, told_apart: str) -> str:
    """The id of a batch whose first request is of this moment, by a text that tells it from others of it."""
    return f"{ids_from(account_id, mode, moment)}:{told_apart}"


def count_ids(account_id: str, mode: Mode, first: datetime, last: datetime) -> tuple[str, str]:
    """The range of ids of the counts of hours, the hours of both moments among them."""
    prefix = owner_prefix(account_id, mode)
    return f"{prefix}{hour_of(first)}", f"{prefix}{hour_of(last)};"  # ; follows : in ASCII


def request_count(account_id: str, mode: Mode, hour: str, status: int, count: int) -> RequestCount:
    """So many requests of an hour with a status."""
    return RequestCount(
        id=f"{owner_prefix(account_id, mode)}{hour}:{status}",
        account_id=account_id,
        mode=mode,
        hour=hour,
        status=status,
        count=count,
    )


def shown_object(values: tuple[str, ...]) -> str | None:
    """What a path named, where it has the form of an id of ours: anything else may tell of a person."""
    return values[0] if values and _OBJECT.match(values[0]) else None

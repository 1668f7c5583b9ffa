"""The requests of a merchant, for thirty days: request, answer, key and duration (docs/concepts.md "Your requests").

No part of a body, a query or an answer is stored. A path is stored as its pattern, plus the object's id if it is one of
ours. Ids begin with the owner and the moment, so that a range of ids is a period of time, and the only index needed.
"""

import re
from datetime import UTC, datetime, timedelta

import msgspec

from .accounts import Mode

KEPT = timedelta(days=30)
NOT_KEPT = 0
"""Stands for a status in the counts: requests that could not be stored."""

ID_LENGTH = 42
"""Length of the longest id: nothing longer waits in memory."""
_OBJECT = re.compile(r"[a-z]{2,5}_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


class RequestEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """One answered request."""

    at: datetime
    """When the answer began."""
    method: str
    path: str
    """Pattern of the path: `/api/v1/payments/{payment_id}`."""
    object_id: str | None
    """The object in the path, if it has the form of our ids."""
    status: int
    code: str | None
    """Code of the error, if there was one."""
    key_id: str
    took_ms: int
    request_id: str


class RequestBatch(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Requests of one account and mode that one process answered within one hour and stored together: a row for each
    request would cost a read a seventh of its time."""

    id: str
    account_id: str
    mode: Mode
    entries: tuple[RequestEntry, ...]
    """In the order of time; the id contains the moment of the first."""
    version: int = 0


class FirstBatch(RequestBatch, frozen=True, kw_only=True, gc=False):
    """The first batch that a process writes for an account and mode in an hour, all with one status. It contains its
    own count: a single request costs one row and not two, and an hour has no more of these than there are processes."""

    hour: str
    """UTC hour: `2026-11-21T09`."""
    status: int
    count: int


BATCHES: tuple[type[RequestBatch], ...] = (FirstBatch, RequestBatch)
"""The record types that contain requests."""


class RequestCount(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Number of requests of one hour with one status, except those in first batches."""

    id: str
    account_id: str
    mode: Mode
    hour: str
    """UTC hour: `2026-11-21T09`."""
    status: int
    """A status or NOT_KEPT."""
    count: int = 0
    version: int = 0


def owner_prefix(account_id: str, mode: Mode) -> str:
    """Return the prefix of all ids of an account's requests in a mode."""
    return f"{account_id}:{mode.value}:"


def hour_of(moment: datetime) -> str:
    """Return the hour of a moment, in the form of the counts."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H")


def hour_start(hour: str) -> datetime:
    """Return the first moment of an hour."""
    return datetime.strptime(hour, "%Y-%m-%dT%H").replace(tzinfo=UTC)


def ids_from(account_id: str, mode: Mode, moment: datetime) -> str:
    """Return a lower bound for ids of requests at `moment` and later; all earlier ids are below it."""
    since = moment.astimezone(UTC)
    return f"{owner_prefix(account_id, mode)}{since:%Y-%m-%dT%H:%M:%S}.{since.microsecond:06}"


def batch_id(account_id: str, mode: Mode, moment: datetime, told_apart: str) -> str:
    """Return the id of a batch whose first request has this moment; `told_apart` distinguishes it from others."""
    return f"{ids_from(account_id, mode, moment)}:{told_apart}"


def batch_name(made: str) -> str:
    """Return the part of a batch's id that distinguishes it from others of the same moment."""
    return made.rpartition(":")[2]


def count_ids(account_id: str, mode: Mode, first: datetime, last: datetime) -> tuple[str, str]:
    """Return the range of ids of the hourly counts, including the hours of both moments."""
    prefix = owner_prefix(account_id, mode)
    return f"{prefix}{hour_of(first)}", f"{prefix}{hour_of(last)};"  # ; follows : in ASCII


def request_count(account_id: str, mode: Mode, hour: str, status: int, count: int) -> RequestCount:
    """Return the count of an hour's requests with a status."""
    return RequestCount(
        id=f"{owner_prefix(account_id, mode)}{hour}:{status}",
        account_id=account_id,
        mode=mode,
        hour=hour,
        status=status,
        count=count,
    )


def shown_object(values: tuple[str, ...]) -> str | None:
    """Return the object in a path, if it has the form of our ids: anything else may be personal data."""
    return values[0] if values and _OBJECT.match(values[0]) else None

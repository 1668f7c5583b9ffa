"""Marks of this process's commits, by which it learns that a promoted server lacks some of them (ports/witnesses.py).

Each durable commit raises the number of one row, its slot. A slot belongs to one commit at a time, so commits do not
wait for one another. The statement compares the row with the last confirmed number of the slot, and clears `is_whole`
if the row is older or missing: then this server lacks a confirmed commit. This works although processes write to the
promoted server before anybody has noticed the failover, and although it gives out transaction ids again.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from functools import lru_cache
from secrets import token_hex
from typing import Any

import asyncpg

from ....ports.witnesses import Witness
from ..sql.schema import MARKS
from ..table.codec import moment

_PLACE = """
CASE WHEN pg_is_in_recovery() THEN NULL ELSE
'system ' || (SELECT system_identifier FROM pg_control_system())
|| ' timeline ' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
|| ' table ' || coalesce(to_regclass('installations')::oid::text, 'None')
END
"""
"""Location of the database: cluster, timeline and table. Null on a replica."""
_HIDDEN = (asyncpg.InsufficientPrivilegeError, asyncpg.FeatureNotSupportedError, asyncpg.UndefinedFunctionError)
"""Errors of hosted services that hide the inside of the server."""
_PARTS = re.compile(r"system (?P<system>\S+) timeline (?P<timeline>[0-9A-F]{8}) table (?P<table>\S+)")

FORGOTTEN_AFTER = timedelta(days=1)
"""Age from which the marks of a process that died are removed."""
_FORGETS_EVERY = 3600
"""Number of marks between two removals."""

_NOW = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_SLOTS_OF = "slot.id > mark.id || '/' AND slot.id < mark.id || '0'"
"""The slots of a process have its id, a slash and a number; `0` is the character after the slash."""

_COMMIT = f"""INSERT INTO {MARKS} AS mark (id, number, is_whole)
VALUES (${{0}}::text, ${{1}}::bigint, ${{2}}::bigint = 0) ON CONFLICT (id) DO UPDATE
SET number = greatest(mark.number, excluded.number), is_whole = mark.is_whole AND mark.number >= ${{2}}::bigint"""  # noqa: S608
"""Id of the slot, number of this commit, last confirmed number. A former commit of the slot may arrive late."""

_MARK = f"""
WITH confirmed AS (SELECT * FROM unnest($4::text[], $5::bigint[]) AS confirmed (id, number)),
missing AS (
    SELECT 1 FROM confirmed LEFT JOIN {MARKS} AS slot ON slot.id = confirmed.id COLLATE "C"
    WHERE slot.number IS NULL OR slot.number < confirmed.number OR NOT slot.is_whole
)
INSERT INTO {MARKS} AS mark (id, number, is_whole, since, place, marked_at, is_synchronous, has_left, is_accepted)
SELECT $1, $2, $3::bigint = 0 AND NOT EXISTS (SELECT FROM missing), place, place, {_NOW},
    current_setting('synchronous_standby_names') <> '', false, false FROM (SELECT {_PLACE} AS place) AS present
ON CONFLICT (id) DO UPDATE SET number = greatest(mark.number, excluded.number),
    is_whole = mark.is_whole AND mark.number >= $3::bigint AND NOT EXISTS (SELECT FROM missing),
    place = excluded.place, marked_at = excluded.marked_at, is_synchronous = excluded.is_synchronous
"""  # noqa: S608
_WITNESSES = f"""
SELECT id, number, is_whole AND NOT EXISTS (SELECT FROM {MARKS} AS slot WHERE {_SLOTS_OF} AND NOT slot.is_whole),
    since, place, marked_at, is_synchronous, has_left, is_accepted
FROM {MARKS} AS mark WHERE marked_at IS NOT NULL ORDER BY id
"""  # noqa: S608
_LEAVE = f"UPDATE {MARKS} SET has_left = true WHERE id = $1"  # noqa: S608
_FORGET_OLD = f"""
WITH old AS (SELECT id FROM {MARKS} WHERE marked_at < {_NOW} - $1::bigint)
DELETE FROM {MARKS} AS slot USING old AS mark WHERE slot.id = mark.id OR ({_SLOTS_OF})
"""  # noqa: S608
ACCEPT = f"""
UPDATE {MARKS} AS mark SET is_accepted = true WHERE marked_at IS NOT NULL AND (NOT is_whole
OR EXISTS (SELECT FROM {MARKS} AS slot WHERE {_SLOTS_OF} AND NOT slot.is_whole) OR place IS DISTINCT FROM {_PLACE})
"""  # noqa: S608
"""Accept the gaps of all processes, also of those that did not look yet."""

Fetch = Callable[[str, Sequence[Any]], Awaitable[Sequence[Any]]]


class CommitMark:
    """The mark of one commit."""

    __slots__ = ("confirmed", "number", "slot", "used")

    def __init__(self, slot: str, confirmed: int) -> None:
        self.slot = slot
        self.confirmed = confirmed
        self.number = confirmed + 1
        self.used = False

    def added(self, text: str, parameters: Sequence[Any]) -> tuple[str, list[Any]]:
        """Return the statement with this mark."""
        self.used = True
        return _added(text, len(parameters)), [*parameters, self.slot, self.number, self.confirmed]


class Marks:
    """The marks of this process. Until the first `mark`, commits carry none. For one event loop."""

    def __init__(self) -> None:
        self.location: str | None = None
        """Location that the newest connection reached."""
        self._examined: str | None = None
        """Location at which the last mark found every confirmed commit."""
        self._marks = 0
        self._is_on = False
        self.begin_anew()

    def begin_anew(self) -> None:
        """Take another id, under which nothing is confirmed yet."""
        self.process = token_hex(8)
        self._tried = self._confirmed_mark = 0
        self._slots = 0
        self._free: list[str] = []
        self._confirmed: dict[str, int] = {}
        """Last confirmed number of each slot."""

    def examined(self) -> str | None:
        """Return the location; empty while this process has not looked for its commits there."""
        return "" if self._is_on and self.location != self._examined else self.location

    def of_commit(self) -> CommitMark | None:
        """Return the mark of a new commit. The caller returns it by `end`. None: this process does not mark."""
        if not self._is_on:
            return None
        if not self._free:
            self._slots += 1
            self._free.append(f"{self.process}/{self._slots}")
        slot = self._free.pop()
        return CommitMark(slot, self._confirmed.get(slot, 0))

    def end(self, mark: CommitMark | None, *, done: bool, again: bool) -> None:
        """Take the mark back. `done`: the commit was confirmed. `again`: its slot may be used again, because the server
        ended the commit. On a connection that broke, the server may still be writing it."""
        if mark is None or not mark.slot.startswith(self.process):
            return
        if done and mark.used:
            self._confirmed[mark.slot] = mark.number
        if again:
            self._free.append(mark.slot)

    async def mark(self, fetch: Fetch) -> Sequence[Witness]:
        """Mark the process and return all marks. Raises: the driver's faults."""
        if not self._is_on:
            self._is_on, self._examined = True, self.location
        process, self._tried = self.process, self._tried + 1
        confirmed = dict(self._confirmed)
        number = self._tried
        given = (process, number, self._confirmed_mark, list(confirmed), list(confirmed.values()))
        await fetch(_MARK, given)
        if process == self.process:
            self._confirmed_mark = number
        self._marks += 1
        if self._marks % _FORGETS_EVERY == 0:
            await fetch(_FORGET_OLD, (FORGOTTEN_AFTER // timedelta(microseconds=1),))
        found = await self.witnesses(fetch)
        self._examined = next((each.place for each in found if each.process == process and each.is_whole), None)
        return found

    async def witnesses(self, fetch: Fetch) -> Sequence[Witness]:
        """Return all marks. Raises: the driver's faults."""
        return [
            Witness(
                process=row[0],
                number=row[1],
                is_whole=row[2],
                since=row[3],
                place=row[4],
                marked_at=moment(row[5]),
                is_synchronous=row[6],
                has_left=row[7],
                is_accepted=row[8],
            )
            for row in await fetch(_WITNESSES, ())
        ]

    async def leave(self, fetch: Fetch) -> None:
        """Say that this process ended in order. Raises: the driver's faults."""
        if self._is_on:
            self._is_on = False
            await fetch(_LEAVE, (self.process,))


async def place_of(connection: Any) -> str | None:
    """Return the location of the connection's database; None if the server hides it or is a replica. Raises: the
    driver's faults."""
    try:
        place: str | None = (await connection.fetchrow(f"SELECT {_PLACE}"))[0]
    except _HIDDEN:
        return None
    return place


def follows(former: str, present: str) -> bool:
    """Return whether `present` is a later timeline of the same cluster and table."""
    before, after = _PARTS.fullmatch(former), _PARTS.fullmatch(present)
    if before is None or after is None:
        return False
    same = (before["system"], before["table"]) == (after["system"], after["table"])
    return same and int(after["timeline"], 16) > int(before["timeline"], 16)


@lru_cache(maxsize=512)
def _added(text: str, parameters: int) -> str:
    """Return the statement with the mark as a first part. Its parameters follow the present ones."""
    mark = f"WITH mark AS ({_COMMIT.format(parameters + 1, parameters + 2, parameters + 3)})"
    return f"{mark}, {text.removeprefix('WITH ')}" if text.startswith("WITH ") else f"{mark} {text}"

"""Group commit for Postgres: the writes of waiting units share one statement, and so one fsync.

Rows of one table go as arrays (bulk.py). A unit commits alone, at once, while few commits are under way. Units of a
group must not affect each other. Units that write the same row go in separate groups. When a part is refused (a
stale row, a broken rule, a deadlock with another process), nothing of the group is written, and each of its units
is committed alone, which finds out what is wrong with it.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context
from typing import Any

import asyncpg
import msgspec

from ....ports.faults import Unavailable
from ..table.writes import Accrue, Add, Save, Write
from .bulk import Bulk
from .commits import Broken, Commits
from .joined import Targets, targets_of, unawaited

QUEUE = 10_000
"""Units that may wait. Beyond that the storage counts as stuck and refuses new ones."""
_AT_ONCE = 2
"""Commits under way. Units that arrive meanwhile form the next group."""
_MOST_UNITS = 64
_MOST_WRITES = 16
"""Writes of a unit that may join a group.

Longer units go alone: they are background work, which must not delay requests.
"""
_USUAL = frozenset({Add, Save, Accrue})


class _Waiting(msgspec.Struct, eq=False):
    """Unit in the queue, and the future that its caller awaits.

    `late` is called when it was written after the caller was cancelled.
    """

    writes: Sequence[Write]
    targets: Targets
    done: "asyncio.Future[None]"
    late: Callable[[], None]
    durable: bool

    __repr__ = object.__repr__  # the default of a struct would show the written values

    def succeed(self) -> None:
        if self.done.done():
            self.late()
        else:
            self.done.set_result(None)

    def fail(self, fault: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(fault)


class Groups:
    """Writer of units, which groups the waiting units. For one event loop."""

    def __init__(self, commits: Commits, bulk: Bulk) -> None:
        self._commits = commits
        self._bulk = bulk
        self._waiting: list[_Waiting] = []
        self._under_way = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._rest: asyncio.Future[None] | None = None

    async def carry_out(self, writes: Sequence[Write], late: Callable[[], None], *, durable: bool = True) -> None:
        """Make all writes of a unit or none, and return once they are on disk.

        A unit that need not be `durable` and is one statement is only committed by then. If the caller is cancelled
        while others write the unit, `late` is called. Raises: the errors of Commits; Unavailable when too many
        units wait.
        """
        targets = targets_of(writes)
        # Case 1: the unit cannot be grouped, so it goes alone.
        if not (targets.apart and _may_be_grouped(writes)):
            await self._commits.carry_out(writes)
        elif self._under_way < _AT_ONCE:
            # Case 2: a commit slot is free, so the unit goes alone, at once.
            self._under_way += 1
            try:
                await self._commits.carry_out(writes, durable=durable)
            finally:
                self._under_way -= 1
                self._go_on()
        else:
            # Case 3: all slots are busy. Queue the unit; `_go_on` puts it into a group when a slot becomes free.
            if len(self._waiting) >= QUEUE:
                raise Unavailable("too many units wait to be written")
            waiting = _Waiting(writes, targets, asyncio.get_running_loop().create_future(), late, durable)
            self._waiting.append(waiting)
            await waiting.done

    async def close(self) -> None:
        """Wait until the commits under way and all waiting units are written."""
        while self._under_way:
            self._rest = asyncio.get_running_loop().create_future()
            await self._rest

    def _go_on(self) -> None:
        while self._waiting and self._under_way < _AT_ONCE:
            group = self._take()
            if not group:
                continue
            self._under_way += 1
            # Run the group in a new context, because it belongs to no single request.
            task = asyncio.get_running_loop().create_task(self._carry_out(group), context=Context())
            self._tasks.add(task)
            task.add_done_callback(self._end)
        if not self._under_way and self._rest is not None and not self._rest.done():
            self._rest.set_result(None)

    def _end(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._under_way -= 1
        self._go_on()

    def _take(self) -> list[_Waiting]:
        """Return the next group: the first waiting unit, and every later one that shares no row with a unit before it
        in the group.
        """
        group, left = list[_Waiting](), list[_Waiting]()
        written, accrued, by_id = set[tuple[str, str]](), set[str](), set[str]()
        for number, waiting in enumerate(self._waiting):
            if len(group) == _MOST_UNITS:
                left += self._waiting[number:]
                break
            if waiting.done.done():  # the caller was cancelled while the unit waited
                continue
            at = waiting.targets
            # The unit shares a row with the group, or may do so, so it waits for the next group.
            if not (written.isdisjoint(at.rows) and accrued.isdisjoint(at.tables) and by_id.isdisjoint(at.sums)):
                left.append(waiting)
                continue
            group.append(waiting)
            written |= at.rows
            accrued |= at.sums
            by_id |= at.tables
        self._waiting = left
        return group

    async def _carry_out(self, group: Sequence[_Waiting]) -> None:
        try:
            # Write the whole group in one statement. If that is refused, nothing was written, and each unit goes alone.
            if len(group) > 1 and await self._together(group):
                return
            await asyncio.gather(*(self._alone(waiting) for waiting in group))
        except BaseException as fault:
            for waiting in group:
                waiting.fail(fault if isinstance(fault, Exception) else Unavailable("the commit was broken off"))
            if not isinstance(fault, Exception):
                raise

    async def _together(self, group: Sequence[_Waiting]) -> bool:
        """Write a group in one statement. Return False if it was refused and nothing was written.

        Raises: the driver's faults, after which the outcome is unknown.
        """
        try:
            text, parameters = self._bulk.statement(write for waiting in group for write in waiting.writes)
        except ValueError:  # sums that only together are beyond 64 bits
            return False
        # If no unit of the group needs the disk, the commit does not wait for it.
        durable = any(waiting.durable for waiting in group)
        if not durable:
            text = unawaited(text)
        try:
            async with self._commits.connection() as (connection, mark):
                if mark is not None and durable:
                    text, parameters = mark.added(text, parameters)
                await connection.fetchval(text, *parameters)
        except Broken as broken:
            # The outcome is unknown. Each unit finds out for itself whether it was committed.
            await asyncio.gather(*(self._find_out(waiting, broken) for waiting in group))
        except asyncpg.PostgresError:
            return False
        else:
            for waiting in group:
                waiting.succeed()
        return True

    async def _alone(self, waiting: _Waiting) -> None:
        if not waiting.done.done():  # cancelled meanwhile
            await _told(waiting, self._commits.carry_out(waiting.writes, durable=waiting.durable))

    async def _find_out(self, waiting: _Waiting, broken: Broken) -> None:
        await _told(waiting, self._commits.recover(waiting.writes, broken))


def _may_be_grouped(writes: Sequence[Write]) -> bool:
    return len(writes) <= _MOST_WRITES and _USUAL.issuperset(map(type, writes))


async def _told(waiting: _Waiting, work: Coroutine[Any, Any, None]) -> None:
    """Pass the outcome of the work to the waiting caller."""
    try:
        await work
    except Exception as fault:  # noqa: BLE001 - passed to the waiting caller
        waiting.fail(fault)
    else:
        waiting.succeed()

"""Group commit for Postgres: the writes of units that wait together in one statement, and so in one fsync.

Rows of one table go as arrays (bulk.py). Who commits while nobody else does goes alone, at once.

No unit of a group may stand in the way of another: those that write one row go one after the other, and when a part
is refused (a row that is stale, a rule that is broken, a deadlock with another process) nothing of the group is
written, and each of its units goes alone, to hear what is the matter with it.
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
"""Units that may wait; beyond it the storage is taken to be stuck, and refuses."""
_AT_ONCE = 2
"""Commits under way; what comes meanwhile gathers for the next one."""
_MOST_UNITS = 64
_MOST_WRITES = 16
"""Longer units go alone: work in the background, which shall not keep requests waiting."""
_USUAL = frozenset({Add, Save, Accrue})


class _Waiting(msgspec.Struct, eq=False):
    """A unit, and the future of whoever waits for it; `late` is called when it was written and nobody waits."""

    writes: Sequence[Write]
    targets: Targets
    done: "asyncio.Future[None]"
    late: Callable[[], None]
    durable: bool

    __repr__ = object.__repr__  # a struct's own would show what is written

    def succeed(self) -> None:
        if self.done.done():
            self.late()
        else:
            self.done.set_result(None)

    def fail(self, fault: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(fault)


class Groups:
    """Carries out units, together where several wait. For one event loop."""

    def __init__(self, commits: Commits, bulk: Bulk) -> None:
        self._commits = commits
        self._bulk = bulk
        self._waiting: list[_Waiting] = []
        self._under_way = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._rest: asyncio.Future[None] | None = None

    async def carry_out(self, writes: Sequence[Write], late: Callable[[], None], *, durable: bool = True) -> None:
        """All writes of a unit or none; on disk, or, where it need not be `durable` and comes to one statement,
        committed. Where the caller is cancelled while others write his unit, `late` is called in
        his stead. Raises: what Commits raises; Unavailable when too many wait.
        """
        targets = targets_of(writes)
        if not (targets.apart and _may_be_grouped(writes)):
            await self._commits.carry_out(writes)
        elif self._under_way < _AT_ONCE:
            self._under_way += 1
            try:
                await self._commits.carry_out(writes, durable=durable)
            finally:
                self._under_way -= 1
                self._go_on()
        else:
            if len(self._waiting) >= QUEUE:
                raise Unavailable("too many units wait to be written")
            waiting = _Waiting(writes, targets, asyncio.get_running_loop().create_future(), late, durable)
            self._waiting.append(waiting)
            await waiting.done

    async def close(self) -> None:
        """Let what is under way and what waits be written."""
        while self._under_way:
            self._rest = asyncio.get_running_loop().create_future()
            await self._rest

    def _go_on(self) -> None:
        while self._waiting and self._under_way < _AT_ONCE:
            group = self._take()
            if not group:
                continue
            self._under_way += 1
            # In a context of its own: a group is nobody's request.
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
        """Those that go next: the first, and all that meet none of those before them in a row."""
        group, left = list[_Waiting](), list[_Waiting]()
        written, accrued, by_id = set[tuple[str, str]](), set[str](), set[str]()
        for number, waiting in enumerate(self._waiting):
            if len(group) == _MOST_UNITS:
                left += self._waiting[number:]
                break
            if waiting.done.done():  # cancelled while it waited: nobody asks for it any more
                continue
            at = waiting.targets
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
            if len(group) > 1 and await self._together(group):
                return
            await asyncio.gather(*(self._alone(waiting) for waiting in group))
        except BaseException as fault:
            for waiting in group:
                waiting.fail(fault if isinstance(fault, Exception) else Unavailable("the commit was broken off"))
            if not isinstance(fault, Exception):
                raise

    async def _together(self, group: Sequence[_Waiting]) -> bool:
        """Whether all of it was written; else nothing was. Raises: the driver's faults, after which it is unknown."""
        try:
            text, parameters = self._bulk.statement(write for waiting in group for write in waiting.writes)
        except ValueError:  # sums that only together are beyond 64 bits
            return False
        if not any(waiting.durable for waiting in group):
            text = unawaited(text)
        try:
            async with self._commits.connection() as connection:
                await connection.fetchval(text, *parameters)
        except Broken as broken:
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
    """Tell the waiter what comes of the work."""
    try:
        await work
    except Exception as fault:  # noqa: BLE001 - it is the waiter's
        waiting.fail(fault)
    else:
        waiting.succeed()

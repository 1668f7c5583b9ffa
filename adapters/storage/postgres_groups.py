"""Group commit for Postgres: the writes of units that wait together in one statement, and so in one fsync.

Rows of one table go as arrays, whatever units they are from, so there are few forms of such a statement, and Postgres
plans each of them once. What moves sums is added up first. Who commits while nobody else does goes alone, at once.

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

from ...ports.faults import Unavailable
from .codec import Storing
from .kept import Kept
from .nulls import Nulls
from .postgres_arrays import TYPES, array
from .postgres_commits import Broken, Commits
from .postgres_joined import Places, all_or_nothing, places_of
from .unit import Accrue, Add, Save, Write, added

QUEUE = 10_000
"""Units that may wait; beyond it the storage is taken to be stuck, and refuses."""
_AT_ONCE = 2
"""Commits under way; what comes meanwhile gathers for the next one."""
_MOST_UNITS = 64
_MOST_WRITES = 16
"""Longer units go alone: work in the background, which shall not keep requests waiting."""
_USUAL = frozenset({Add, Save, Accrue})
_FORMS = 256
"""Statements that are remembered: what waits together by chance makes forms without end."""

_Form = tuple[str, str, tuple[str, ...]]
"""What is done (`add`, `save`, `accrue`), to which table, and which fields a save sets or an add writes (none: all)."""


class _Waiting(msgspec.Struct, eq=False):
    """A unit, and the future of whoever waits for it; `late` is called when it was written and nobody waits."""

    writes: Sequence[Write]
    places: Places
    done: "asyncio.Future[None]"
    late: Callable[[], None]

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

    def __init__(self, commits: Commits) -> None:
        self._commits = commits
        self._texts: dict[tuple[_Form, ...], str] = {}
        self._storing: dict[_Form, list[Storing]] = {}
        self._nulls = Nulls()
        self._waiting: list[_Waiting] = []
        self._under_way = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._rest: asyncio.Future[None] | None = None

    async def carry_out(self, writes: Sequence[Write], late: Callable[[], None]) -> None:
        """All writes of a unit or none. Where the caller is cancelled while others write his unit, `late` is called in
        his stead. Raises: what Commits raises; Unavailable when too many wait.
        """
        places = places_of(writes)
        if not (places.apart and _may_be_grouped(writes)):
            await self._commits.carry_out(writes)
        elif self._under_way < _AT_ONCE:
            self._under_way += 1
            try:
                await self._commits.carry_out(writes)
            finally:
                self._under_way -= 1
                self._go_on()
        else:
            if len(self._waiting) >= QUEUE:
                raise Unavailable("too many units wait to be written")
            waiting = _Waiting(writes, places, asyncio.get_running_loop().create_future(), late)
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
            at = waiting.places
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
            text, parameters = self._statement(group)
        except ValueError:  # sums that only together are beyond 64 bits
            return False
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
            await _told(waiting, self._commits.carry_out(waiting.writes))

    async def _find_out(self, waiting: _Waiting, broken: Broken) -> None:
        await _told(waiting, self._commits.recover(waiting.writes, broken))

    def _statement(self, group: Sequence[_Waiting]) -> tuple[str, list[Any]]:
        """The one statement of a group, with an array for each column and the number of rows of each part."""
        parts: dict[_Form, tuple[Kept[Any], list[Sequence[Any]]]] = {}
        sums: dict[tuple[str, str], Accrue] = {}
        for waiting in group:
            for write in waiting.writes:
                kept = write.kept
                if isinstance(write, Add):
                    parts.setdefault(("add", kept.name, ()), (kept, []))[1].append(write.row)
                elif isinstance(write, Save):
                    setting = kept.setting(write.changed)
                    values = (*(write.row[kept.codec.place[name]] for name in setting), write.id, write.version)
                    parts.setdefault(("save", kept.name, setting), (kept, []))[1].append(values)
                elif isinstance(write, Accrue):
                    known = sums.get((kept.name, write.id))
                    moved = write if known is None else Accrue(kept, write.id, added(write, known.row))
                    sums[kept.name, write.id] = moved
        # Sums last and in the order of ids, as in every unit, so that no two lock them crosswise.
        for (name, _), accrual in sorted(sums.items()):
            parts.setdefault(("accrue", name, ()), (accrual.kept, []))[1].append(accrual.row)
        forms, arrays, counts = list[tuple[_Form, Kept[Any]]](), list[Any](), list[int]()
        for form in sorted(parts, key=lambda form: (form[0] == "accrue", form)):
            (what, name, setting), (kept, rows) = form, parts[form]
            columns = list(zip(*rows, strict=True))
            if what == "add":
                places = self._nulls.written(kept, columns)
                setting = tuple(kept.codec.names[place] for place in places)
                columns = [columns[place] for place in places]
            form = what, name, setting
            forms.append((form, kept))
            storing = self._storing.get(form) or self._storing.setdefault(form, _stored_as(form, kept))
            arrays += map(array, storing, columns)
            counts.append(len(rows))
        known_as = tuple(form for form, _ in forms)
        text = self._texts.get(known_as)
        if text is None:
            if len(self._texts) >= _FORMS:
                self._texts.clear()
            text = self._texts[known_as] = _text(forms)
        return text, [*arrays, *counts]


def _may_be_grouped(writes: Sequence[Write]) -> bool:
    return len(writes) <= _MOST_WRITES and _USUAL.issuperset(map(type, writes))


def _text(parts: Sequence[tuple[_Form, Kept[Any]]]) -> str:
    # Nothing from outside is in a text: names are the catalogue's.
    changes, first = list[str](), 1
    for number, (form, kept) in enumerate(parts):
        change, parameters = _change(form, kept, first)
        changes.append(f"w{number} AS ({change} RETURNING 1)")
        first += parameters
    counts = [f"(SELECT count(*) FROM w{number}) = ${first + number}::bigint" for number in range(len(parts))]  # noqa: S608
    return all_or_nothing(changes, counts)


def _change(form: _Form, kept: Kept[Any], first: int) -> tuple[str, int]:
    """One part, whose parameters are counted from `first` on, and their number."""
    what, table, setting = form
    names = _names(form, kept)
    types = [TYPES[storing] for storing in _stored_as(form, kept)]
    arrays = ", ".join(f"${first + place}::{of}" for place, of in enumerate(types))
    columns = ", ".join(f'"{name}"' for name in names)
    given = f"unnest({arrays}) AS given ({columns})"
    if what == "save":
        values = ", ".join(f'"{name}" = given."{name}"' for name in setting)
        guard = f'{table}.id = given.id_ COLLATE "C" AND {table}.version = given.version_'
        return f"UPDATE {table} SET {values} FROM {given} WHERE {guard}", len(names)  # noqa: S608
    change = f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {given}"  # noqa: S608
    if what == "accrue":
        totals = [kept.codec.names[place] for place in kept.sums_in_order]
        moved = ", ".join(f'"{name}" = {table}."{name}" + excluded."{name}"' for name in totals)
        change = f"{change} ON CONFLICT (id) DO UPDATE SET {moved}"
    return change, len(names)


def _names(form: _Form, kept: Kept[Any]) -> tuple[str, ...]:
    """What the columns of a part are called there."""
    what, _, setting = form
    return (*setting, "id_", "version_") if what == "save" else setting or kept.codec.names


def _stored_as(form: _Form, kept: Kept[Any]) -> list[Storing]:
    return [kept.codec.column(name.rstrip("_")).storing for name in _names(form, kept)]


async def _told(waiting: _Waiting, work: Coroutine[Any, Any, None]) -> None:
    """Tell the waiter what comes of the work."""
    try:
        await work
    except Exception as fault:  # noqa: BLE001 - it is the waiter's
        waiting.fail(fault)
    else:
        waiting.succeed()

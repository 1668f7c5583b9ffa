"""Run a history in one storage and collect the answer of each step, in a normal form in which equal answers are
equal."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from cambist.adapters.clock import VirtualClock
from cambist.ports.faults import Conflict, Stale
from cambist.ports.jobs import Job
from cambist.ports.storage import Storage, Unit
from tests.histories.steps import Ask, Both, Claim, End, History, Keep, Pass, Seen, Step, Work, Write, after

Answer = Any
REFUSALS = (Conflict, Stale, ValueError, TypeError)
"""Errors that the contract allows for an invalid call; each counts as an answer."""
_NEVER = 1_000_000
"""A version that no record reaches."""
replaced: Any = msgspec.structs.replace


class Runner:
    """One history in one storage. `woken_up`: the ids of jobs that were woken up, commit by commit."""

    def __init__(self, storage: Storage, clock: VirtualClock, woken_up: list[list[str]]) -> None:
        self._storage = storage
        self._clock = clock
        self._woken_up = woken_up
        self._claimed: list[Job] = []

    async def run(self, history: History) -> list[Answer]:
        """The answers, step by step, and at the end all that is left."""
        answers = []
        for step in history.steps:
            self._woken_up.clear()
            answer = await self._step(step)
            answers.append([answer, sorted(sorted(ids) for ids in self._woken_up)])
        return answers

    async def _step(self, step: Step) -> Answer:
        match step:
            case Ask():
                return await self._asked(self._storage, step)
            case Work():
                async with self._storage.unit() as unit:
                    return [*await self._prepared(unit, step), await self._committed(unit, step)]
            case Both():
                return await self._both(step)
            case Seen():
                return await self._seen(step)
            case Claim(limit, lease, which):
                return await _tried(self._claim, limit, lease, **which)
            case Keep(lease):
                return await _tried(self._storage.renew, self._claimed, lease)
            case End():
                return await self._end(step)
            case Pass(seconds):
                await self._clock.advance(seconds)
                return None

    async def _prepared(self, unit: Unit, work: Work) -> list[Answer]:
        """Return the answers of a unit before its commit."""
        known: dict[tuple[type[Any], str], Any] = {}
        told = [await _tried(self._put, unit, write, known) for write in work.writes]
        return [*told, *[await self._asked(unit, ask) for ask in work.asks]]

    async def _committed(self, unit: Unit, work: Work) -> Answer:
        return "left" if work.is_left else await _tried(unit.commit, durable=work.durable)

    async def _both(self, step: Both) -> Answer:
        async with self._storage.unit() as one, self._storage.unit() as other:
            before = [*await self._prepared(one, step.one), *await self._prepared(other, step.other)]
            if not step.at_once:
                return [*before, await self._committed(one, step.one), await self._committed(other, step.other)]
            ends = await asyncio.gather(self._committed(one, step.one), self._committed(other, step.other))
        # They are the same, so it does not matter which of them was first.
        return [*before, *sorted(ends, key=repr)]

    async def _seen(self, step: Seen) -> Answer:
        async with self._storage.snapshot() as snapshot:
            before = [await self._asked(snapshot, ask) for ask in step.asks]
            between = await self._step(step.work)
            return [before, between, [await self._asked(snapshot, ask) for ask in step.asks]]

    async def _put(self, unit: Unit, write: Write, known: dict[tuple[type[Any], str], Any]) -> None:
        kind = type(write.record)
        repository: Any = unit[kind]
        place = kind, write.record.id
        stored = known.get(place) or await repository.get(write.record.id)
        base = write.record if stored is None else stored
        base = replaced(base, version=base.version + write.offset)
        if stored is None and write.verb == "change":
            # A change names a stored record. Without one it must be stale, even if another unit adds it meanwhile.
            base = replaced(base, version=_NEVER)
        match write.verb:
            case "add":
                known[place] = repository.add(write.record)
            case "save":
                known[place] = repository.save(replaced(base, **write.changes))
            case "change":
                known[place] = repository.change(base, **write.changes)
            case "remove":
                repository.remove(base)
            case "increase":
                repository.increase(write.record.id, *write.changes, write.by)
            case "accrue":
                repository.accrue(write.record)

    async def _asked(self, where: Any, ask: Ask) -> Answer:
        """A question to a unit, a snapshot, or, where it knows such questions, the storage itself."""
        storage = self._storage
        match ask.verb:
            case "next_due":
                return await _tried(storage.next_due)
            case "recent":
                return await _tried(storage.recent, ask.kind, *ask.given)
            case "scan":
                return await _tried(self._scanned, ask)
            case "get" if where is storage:
                return await _tried(storage.get, ask.kind, *ask.given)
        if where is storage:
            async with storage.unit() as unit:
                return await self._asked(unit, ask)
        return await _tried(getattr(where[ask.kind], ask.verb), *ask.given, **ask.named)

    async def _scanned(self, ask: Ask) -> list[Any]:
        return [list(batch) async for batch in self._storage.scan(ask.kind, **ask.named)]

    async def _claim(self, *given: Any, **named: Any) -> list[Job]:
        self._claimed = await self._storage.claim(*given, **named)
        return self._claimed

    async def _end(self, step: End) -> Answer:
        ends = []
        for job in self._claimed:
            async with self._storage.unit() as unit:
                if step.removes:
                    unit[Job].remove(job)
                else:
                    unit[Job].save(replaced(job, leased_until=None, due=job.due + after(step.later)))
                ends.append(await _tried(unit.commit))
        return ends


async def _tried(call: Callable[..., Awaitable[Any]], *given: Any, **named: Any) -> Answer:
    try:
        return normal(await call(*given, **named))
    except REFUSALS as refused:
        # An encoding that fails is a ValueError, which is all that the contract says.
        kind = next(each for each in REFUSALS if isinstance(refused, each))
        return [kind.__name__, refused.rule if isinstance(refused, Conflict) else None]


def normal(value: Any) -> Any:
    """Return an answer as JSON, with the types that JSON does not distinguish."""
    if isinstance(value, dict):
        return sorted([_told(key), _told(amount)] for key, amount in value.items())
    if isinstance(value, list):
        return [normal(each) for each in value]
    return None if value is None else _told(value)


def _told(value: Any) -> str:
    return f"{type(value).__name__} {msgspec.json.encode(value).decode()}"

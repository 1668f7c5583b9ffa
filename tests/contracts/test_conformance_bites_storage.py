"""Bugs of authors of storages: each fails the shipped suite, which names its rule. All are planted into the storage in
memory."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import datetime
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import msgspec

from cambist.adapters.clock import VirtualClock
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.adapters.storage.memory.rows import Reader, TableRows
from cambist.adapters.storage.table.codec import Row
from cambist.adapters.storage.table.criteria import Condition, Query, Relation
from cambist.adapters.storage.table.unit import WorkUnit, snapshot_over, wake_up_safely
from cambist.adapters.storage.table.writes import Accrue, Increase, Pending, Remove, Save, Write
from cambist.frontends.conformance.storage import (
    asking,
    jobs,
    leases,
    races,
    reads,
    recent,
    rules,
    snapshots,
    sums,
    tallies,
    units,
    values,
)
from cambist.frontends.conformance.storage.kit import KIT_CATALOGUE, StorageLocation
from cambist.ports.faults import Conflict
from cambist.ports.jobs import Job
from cambist.ports.storage import Snapshot, Storage, Unit
from cambist.ports.tools import WakeUp
from tests.contracts.biting import Planted, check_bite, named
from tests.tables import table

_EVER = 2**62
_SECOND = 1_000_000


class Broken(MemoryStorage):
    """A storage with other rows or another reader."""

    rows: ClassVar[type[TableRows]] = TableRows
    reader: ClassVar[type[Reader]] = Reader

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._tables = {mapped.name: self.rows(mapped) for mapped in self._table_maps.values()}
        self._reader = self.reader(self._rows_of)


# Jobs


class GivesLeasedJobsAway(MemoryStorage):
    def _free(self, now: int, until: int, kind: str | None = None, but_kind: str | None = None) -> Any:
        return super()._free(_EVER, until, kind, but_kind)


class ReadsAndThenClaims(MemoryStorage):
    """Another worker reads the same jobs before this one leases them."""

    async def claim(self, limit: int, lease: float, *, kind: str | None = None, but_kind: str | None = None) -> Any:
        now = int((await self.now()).timestamp() * _SECOND)
        found = super()._free(now, now, kind, but_kind)
        await asyncio.sleep(0)
        self._found = found
        try:
            return await super().claim(limit, lease, kind=kind, but_kind=but_kind)
        finally:
            del self._found

    def _free(self, now: int, until: int, kind: str | None = None, but_kind: str | None = None) -> Any:
        return self.__dict__.get("_found") or super()._free(now, until, kind, but_kind)


class ClaimsInOrderOfIds(MemoryStorage):
    def _free(self, now: int, until: int, kind: str | None = None, but_kind: str | None = None) -> Any:
        return [(0, job_id) for _, job_id in super()._free(now, until, kind, but_kind)]


class ClaimsBeforeTheDueTime(MemoryStorage):
    def _free(self, now: int, until: int, kind: str | None = None, but_kind: str | None = None) -> Any:
        return super()._free(now, until + 60 * _SECOND, kind, but_kind)


class ClaimsOneMore(MemoryStorage):
    async def claim(self, limit: int, lease: float, *, kind: str | None = None, but_kind: str | None = None) -> Any:
        return await super().claim(limit + 1, lease, kind=kind, but_kind=but_kind)


class LeasesTwiceAsLong(MemoryStorage):
    async def claim(self, limit: int, lease: float, *, kind: str | None = None, but_kind: str | None = None) -> Any:
        return await super().claim(limit, lease * 2, kind=kind, but_kind=but_kind)


class TakesKindsByPrefix(MemoryStorage):
    def _free(self, now: int, until: int, kind: str | None = None, but_kind: str | None = None) -> Any:
        found = super()._free(now, until, None, but_kind)
        return [each for each in found if kind is None or each[1].startswith(kind)]


class RenewsForeignLeases(MemoryStorage):
    async def renew(self, jobs: Sequence[Job], lease: float) -> None:
        present = [await self.get(Job, each.id) for each in jobs]
        await super().renew([each for each in present if each is not None], lease)


class RaisesVersionsWhenItRenews(MemoryStorage):
    async def renew(self, jobs: Sequence[Job], lease: float) -> None:
        await super().renew(jobs, lease)
        table = self._tables[self._jobs.name]
        for each in jobs:
            row = list(table.rows[each.id])
            row[self._jobs.codec.index["version"]] += 1
            table.put(each.id, row)


class ExtendsLeasesFromTheirEnd(MemoryStorage):
    async def renew(self, jobs: Sequence[Job], lease: float) -> None:
        await super().renew(jobs, lease * 2)


class CountsLeasedJobsAsDue(MemoryStorage):
    async def next_due(self) -> datetime | None:
        async with self.unit() as unit:
            return min((each.due for each in await unit[Job].find()), default=None)


class WakesBeforeTheCommit(MemoryStorage):
    async def _apply(self, pending: Pending) -> None:
        await wake_up_safely(self._wake_up, pending.jobs)
        woken, pending.jobs = pending.jobs, []
        await super()._apply(pending)
        pending.jobs = woken


class WakesNobody(MemoryStorage):
    async def _apply(self, pending: Pending) -> None:
        pending.jobs = []
        await super()._apply(pending)


# Units


class KeepsRowsAfterARollback(MemoryStorage):
    async def _apply(self, pending: Pending) -> None:
        await asyncio.sleep(0)
        for write in pending.all_writes():
            self._tables[write.mapped.name].apply(write)
        await wake_up_safely(self._wake_up, pending.jobs)


class WritesBeforeTheCommit(MemoryStorage):
    """Each write is applied at once, so that readers see what is not committed."""

    def unit(self) -> AbstractAsyncContextManager[Unit]:
        storage = self

        class Eager(Pending, eq=False):
            def put(self, write: Write) -> None:
                storage._tables[write.mapped.name].apply(write)

        return WorkUnit(self._table_maps, self._reader, Eager(), self._apply)


class AppliesWritesInOrderOfIds(MemoryStorage):
    async def _apply(self, pending: Pending) -> None:
        pending.writes = sorted(pending.writes, key=lambda write: write.id, reverse=True)
        await super()._apply(pending)


class AnswersAfterItsClose(MemoryStorage):
    def _refuse_when_closed(self) -> None:
        """Answer as before."""


class OldReads(MemoryStorage):
    def get(self, kind: type[Any], record_id: str, /) -> Any:
        return self._kept(kind, record_id)

    async def _kept(self, kind: type[Any], record_id: str) -> Any:
        kept: dict[str, Any] = self.__dict__.setdefault("kept", {})
        if kept.get(record_id) is None:
            kept[record_id] = await super().get(kind, record_id)
        return kept[record_id]


class OldRecentReads(MemoryStorage):
    async def recent(self, kind: type[Any], record_id: str, /, *, within: float = 0.0) -> Any:
        kept: dict[str, Any] = self.__dict__.setdefault("kept", {})
        if kept.get(record_id) is None:
            kept[record_id] = await super().recent(kind, record_id, within=within)
        return kept[record_id]


# Rows


class LastWriteWins(Broken):
    class rows(TableRows):  # noqa: N801 - the attribute of Broken
        def at(self, record_id: str, version: int | None) -> Row:
            return super().at(record_id, None)


class KeepsNoUniqueRules(Broken):
    class rows(TableRows):  # noqa: N801
        def put(self, record_id: str, row: Row | None) -> None:
            try:
                super().put(record_id, row)
            except Conflict:
                assert row is not None
                self.rows[record_id] = row


class ReplacesTakenIds(Broken):
    class rows(TableRows):  # noqa: N801
        def apply(self, write: Write) -> None:
            try:
                super().apply(write)
            except Conflict as conflict:
                if conflict.rule != self.mapped.id_rule or isinstance(write, Remove | Increase):
                    raise
                self.put(write.id, write.row)


class NamesNoUniqueRule(Broken):
    class rows(TableRows):  # noqa: N801
        def apply(self, write: Write) -> None:
            try:
                super().apply(write)
            except Conflict:
                raise Conflict("unique") from None


class QuotesValuesInConflicts(Broken):
    class rows(TableRows):  # noqa: N801
        def apply(self, write: Write) -> None:
            try:
                super().apply(write)
            except Conflict as conflict:
                raise Conflict(conflict.rule) from ValueError(repr(write))


class RemovesRequestedJobs(Broken):
    class rows(TableRows):  # noqa: N801
        def apply(self, write: Write) -> None:
            if isinstance(write, Remove):
                self.at(write.id, write.version)
                self.put(write.id, None)
            else:
                super().apply(write)


class SavesOldSums(Broken):
    class rows(TableRows):  # noqa: N801
        def apply(self, write: Write) -> None:
            super().apply(write)
            if isinstance(write, Save):
                self.put(write.id, write.row)


class RaisesVersionsByIncreases(Broken):
    class rows(TableRows):  # noqa: N801
        def apply(self, write: Write) -> None:
            super().apply(write)
            if isinstance(write, Increase):
                row = list(self.rows[write.id])
                row[self.mapped.codec.index["version"]] += 1
                self.put(write.id, row)


class AccruesByOverwriting(Broken):
    class rows(TableRows):  # noqa: N801
        def apply(self, write: Write) -> None:
            if isinstance(write, Accrue):
                self.put(write.id, write.row)
            else:
                super().apply(write)


class LosesIncreasesAtOnce(MemoryStorage):
    """Reads the sum, adds to it, and writes it."""

    async def _apply(self, pending: Pending) -> None:
        increases = [write for write in pending.writes if isinstance(write, Increase)]
        before = [self._value(each) for each in increases]
        await super()._apply(pending)
        for each, value in zip(increases, before, strict=True):
            row = list(self._tables[each.mapped.name].rows[each.id])
            row[each.mapped.codec.index[each.field]] = value + each.by
            self._tables[each.mapped.name].put(each.id, row)

    def _value(self, write: Increase) -> int:
        value: int = self._tables[write.mapped.name].rows[write.id][write.mapped.codec.index[write.field]]
        return value


class ChangesColumns(Broken):
    """Stores one column of each record otherwise."""

    class rows(TableRows):  # noqa: N801
        column = ""

        def changed(self, value: Any) -> Any:
            raise NotImplementedError

        def put(self, record_id: str, row: Row | None) -> None:
            index = self.mapped.codec.index.get(self.column)
            if row is not None and index is not None and row[index] is not None:
                row = [self.changed(value) if place == index else value for place, value in enumerate(row)]
            super().put(record_id, row)


class CutsMicroseconds(ChangesColumns):
    class rows(ChangesColumns.rows):  # noqa: N801
        column = "moment"

        def changed(self, value: int) -> int:
            return value - value % _SECOND


class StripsText(ChangesColumns):
    class rows(ChangesColumns.rows):  # noqa: N801
        column = "text"

        def changed(self, value: str) -> str:
            return value.strip()


class KeepsMoneyAsFloats(ChangesColumns):
    class rows(ChangesColumns.rows):  # noqa: N801
        column = "rub"

        def changed(self, value: int) -> int:
            return int(float(value))


# Reads


class Finds(Broken):
    """Reads by another query."""

    class reader(Reader):  # noqa: N801 - the attribute of Broken
        def changed(self, asked: Query) -> Query:
            raise NotImplementedError

        async def find(self, mapped: Any, asked: Query) -> Any:
            return await super().find(mapped, self.changed(asked))


class RepeatsTheRowBetweenPages(Finds):
    class reader(Finds.reader):  # noqa: N801
        def changed(self, asked: Query) -> Query:
            return msgspec.structs.replace(asked, offset=max(0, asked.offset - 1))


class LosesTheRowBetweenPages(Finds):
    class reader(Finds.reader):  # noqa: N801
        def changed(self, asked: Query) -> Query:
            return msgspec.structs.replace(asked, offset=asked.offset + (asked.offset > 0))


class IgnoresTheLimit(Finds):
    class reader(Finds.reader):  # noqa: N801
        def changed(self, asked: Query) -> Query:
            return msgspec.structs.replace(asked, limit=1000)


class IgnoresTheDirection(Finds):
    class reader(Finds.reader):  # noqa: N801
        def changed(self, asked: Query) -> Query:
            return msgspec.structs.replace(asked, descending=False)


class ExcludesTheBound(Finds):
    class reader(Finds.reader):  # noqa: N801
        def changed(self, asked: Query) -> Query:
            conditions = tuple(
                msgspec.structs.replace(each, relation=Relation.BELOW) if each.relation is Relation.AT_MOST else each
                for each in asked.conditions
            )
            return msgspec.structs.replace(asked, conditions=conditions)


class CountsEverything(Broken):
    class reader(Reader):  # noqa: N801
        async def total(self, mapped: Any, asked: tuple[Condition, ...]) -> int:
            return await super().total(mapped, ())


class AddsUpEverything(Broken):
    class reader(Reader):  # noqa: N801
        async def sums(self, mapped: Any, field: str, by: str, asked: tuple[Condition, ...]) -> Any:
            return await super().sums(mapped, field, by, ())


class Scans(MemoryStorage):
    """Gives the batches of a scan otherwise."""

    def changed(self, batches: list[list[Any]]) -> list[list[Any]]:
        raise NotImplementedError

    async def scan(
        self, kind: type[Any], *, batch: int = 1000, readable: bool = False, **criteria: Any
    ) -> AsyncIterator[Sequence[Any]]:
        found = [list(each) async for each in super().scan(kind, batch=batch, readable=readable, **criteria)]
        for each in self.changed(found):
            yield each


class LosesTheLastBatch(Scans):
    def changed(self, batches: list[list[Any]]) -> list[list[Any]]:
        return batches[:-1] if len(batches) > 1 else batches


class RepeatsTheRowBetweenBatches(Scans):
    def changed(self, batches: list[list[Any]]) -> list[list[Any]]:
        return [[*batches[place - 1][-1:], *each] if place else each for place, each in enumerate(batches)]


class ScansAnEarlierMoment(Scans):
    def changed(self, batches: list[list[Any]]) -> list[list[Any]]:
        return batches


class SnapshotsOfNow(MemoryStorage):
    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        yield snapshot_over(self._table_maps, self._reader)


class SnapshotsThatWrite(MemoryStorage):
    def snapshot(self) -> Any:
        return self.unit()


_ONCE = "no job may be given to two workers"
_PAGES = "continue without a gap or a repeat"
_WOKEN = "the workers must be woken once after a commit"
_LEAST = "the oldest due first, at most `limit`, each once"

BUGS = (
    Planted(GivesLeasedJobsAway, jobs, "test_claim_takes_due", _LEAST),
    Planted(ReadsAndThenClaims, jobs, "test_ten_claimers", _ONCE),
    Planted(ReadsAndThenClaims, leases, "test_many_workers", _ONCE),
    Planted(ClaimsInOrderOfIds, jobs, "test_claim_takes_due", _LEAST),
    Planted(ClaimsBeforeTheDueTime, jobs, "test_due_is_judged", "must decide which jobs are due"),
    Planted(ClaimsOneMore, jobs, "test_claim_takes_due", _LEAST),
    Planted(LeasesTwiceAsLong, jobs, "test_a_job_is_free_again", "exactly when its lease ends"),
    Planted(TakesKindsByPrefix, leases, "test_a_kind_is_all", "a kind must be compared as a whole", ("ba:1",)),
    Planted(RenewsForeignLeases, leases, "test_a_job_that_changed", "the lease is another worker's"),
    Planted(RaisesVersionsWhenItRenews, leases, "test_renewing_keeps", "and not the version"),
    Planted(ExtendsLeasesFromTheirEnd, leases, "test_a_renewed_lease", "`lease` seconds from the renewal"),
    Planted(CountsLeasedJobsAsDue, jobs, "test_next_due", "without a living lease"),
    Planted(WakesBeforeTheCommit, jobs, "test_jobs_are_woken", _WOKEN),
    Planted(WakesNobody, jobs, "test_jobs_are_woken", _WOKEN),
    Planted(RemovesRequestedJobs, asking, "test_removing_a_job", "requested meanwhile must be Stale"),
    Planted(KeepsRowsAfterARollback, units, "test_all_writes", "must apply, or none", ("stale",)),
    Planted(WritesBeforeTheCommit, units, "test_reads_do_not_see", "what no unit has committed"),
    Planted(WritesBeforeTheCommit, units, "test_a_unit_left_without", "without a commit must write nothing"),
    Planted(AppliesWritesInOrderOfIds, units, "test_writes_apply", "in the order in which the unit made them"),
    Planted(AnswersAfterItsClose, units, "test_a_closed_storage", "a closed storage must be Unavailable"),
    Planted(OldReads, asking, "test_asking_writes", "without a unit must agree"),
    Planted(OldRecentReads, recent, "test_writes_of_this", "must show writes of this process at once"),
    Planted(LastWriteWins, units, "test_save_of_another", "must be Stale, and change nothing", (7,)),
    Planted(LastWriteWins, races, "test_simultaneous_saves", "exactly one must win"),
    Planted(KeepsNoUniqueRules, rules, "test_a_broken_unique", "must be a Conflict that names it"),
    Planted(KeepsNoUniqueRules, rules, "test_a_partial_rule", "a partial unique rule must bind"),
    Planted(ReplacesTakenIds, rules, "test_a_taken_id", "a taken id must be a Conflict"),
    Planted(ReplacesTakenIds, races, "test_200_units", "with one key exactly one must win"),
    Planted(NamesNoUniqueRule, rules, "test_an_id_added_twice", "must be a Conflict"),
    Planted(QuotesValuesInConflicts, rules, "test_a_conflict_does", "quote no value"),
    Planted(SavesOldSums, sums, "test_save_leaves", "must leave the sums as they are stored"),
    Planted(RaisesVersionsByIncreases, sums, "test_increase_adds", "and leave the version"),
    Planted(LosesIncreasesAtOnce, races, "test_50_increases", "each increase must count"),
    Planted(AccruesByOverwriting, tallies, "test_accrue_writes", "add to the sums of one that is"),
    Planted(CutsMicroseconds, values, "test_every_value", "must be read and found as it was written", ("moment",)),
    Planted(StripsText, values, "test_every_value", "must be read and found as it was written", ("text",)),
    Planted(KeepsMoneyAsFloats, values, "test_every_value", "must be read and found as it was written", ("rub",)),
    Planted(RepeatsTheRowBetweenPages, reads, "test_pages_count", _PAGES),
    Planted(LosesTheRowBetweenPages, reads, "test_pages_count", _PAGES),
    Planted(LosesTheRowBetweenPages, tallies, "test_find_begins", "after the first `offset` records"),
    Planted(IgnoresTheLimit, reads, "test_find_returns", "at most `limit`"),
    Planted(IgnoresTheDirection, reads, "test_order_goes", "in the order of the field"),
    Planted(ExcludesTheBound, reads, "test_find_total", "exactly the records that meet all criteria"),
    Planted(CountsEverything, reads, "test_find_total", "exactly the records that meet all criteria"),
    Planted(AddsUpEverything, tallies, "test_sums_are", "add up the records that meet the criteria"),
    Planted(LosesTheLastBatch, snapshots, "test_scan_gives", "each record once"),
    Planted(RepeatsTheRowBetweenBatches, snapshots, "test_scan_gives", "each record once"),
    Planted(ScansAnEarlierMoment, snapshots, "test_records_may_be", "as it is when its batch is read"),
    Planted(SnapshotsOfNow, snapshots, "test_a_snapshot_sees", "as it was at its first read"),
    Planted(SnapshotsThatWrite, snapshots, "test_a_snapshot_refuses", "must refuse writes"),
)


def on_places(suite: ModuleType) -> SimpleNamespace:
    """Return the tests of a suite, each of which takes a place and opens the storage that it needs."""

    def on_place(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        async def run(place: StorageLocation, *given: Any) -> None:
            takes_place = "place" in inspect.signature(test).parameters
            await test(place if takes_place else await place.open(), *given)

        return run

    return SimpleNamespace(**{name: on_place(each) for name, each in vars(suite).items() if name.startswith("test_")})


async def opened(stack: AsyncExitStack, adapter: type[Any] | None) -> StorageLocation:
    async def in_memory(clock: VirtualClock, wake_up: WakeUp) -> Storage:
        made: Storage = (adapter or MemoryStorage)(clock, wake_up, catalogue=KIT_CATALOGUE)
        return made

    place = StorageLocation(in_memory, is_shared=False)
    stack.push_async_callback(place.close)
    return place


@table("bug", BUGS, ids=named)
async def test_storage_with_a_planted_bug_fails_by_its_rule(bug: Planted) -> None:
    await check_bite(msgspec.structs.replace(bug, suite=on_places(bug.suite)), opened)

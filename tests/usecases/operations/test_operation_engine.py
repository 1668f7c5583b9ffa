"""The engine that follows operations at providers, tested with a made-up subject: its rules hold for every subject
(ARCHITECTURE.md "Three outcomes"; docs/contributing/operation.md)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from cambist.core.usecases.jobs import LEASE, Ended
from cambist.core.usecases.operations import engine
from cambist.ports.bundle import Ports
from cambist.ports.faults import (
    NO_ANSWER,
    Fault,
    Held,
    NotConfigured,
    NotSupported,
    OutcomeUnknown,
    Refused,
    Unavailable,
)
from cambist.ports.forwarding import ForwardingStorage
from cambist.ports.notes import ProviderNote
from cambist.ports.storage import Storage, Unit
from tests.apps import open_test_app
from tests.crash_points import CrashPoint, Killed, fused
from tests.errands import ID, ErrandApp, Page
from tests.race_barriers import BarrierStorage, OtherCommit
from tests.tables import table

FIRST = f"{ID}#1"
SENT = ("taken", "done")


@pytest.fixture
async def errands() -> AsyncIterator[ErrandApp]:
    async with open_test_app(receiver=False) as app:
        yield ErrandApp(app)


Sends = list[tuple[type[Fault], bool]]


@pytest.mark.parametrize(
    ("sends", "finds", "asked", "end"),
    [
        ([], [], ["send"], "done"),
        ([(Refused, False)], [], ["send"], "failed"),
        ([(NotSupported, False)], [], ["send"], "failed"),
        ([(OutcomeUnknown, True)], [], ["send", "find"], "done"),
        ([(OutcomeUnknown, False)], [], ["send", "find", "send"], "done"),
        ([(Unavailable, False)], [], ["send", "find", "send"], "done"),
        ([(Held, False)], [], ["send", "find", "send"], "done"),
        ([(NotConfigured, False)], [], ["send", "find", "send"], "done"),
        ([(OutcomeUnknown, False), (Refused, False)], [], ["send", "find", "send"], "failed"),
        *(([(OutcomeUnknown, True)], [fault], ["send", "find", "find"], "done") for fault in NO_ANSWER),
        *(([(OutcomeUnknown, False)], [fault], ["send", "find", "find", "send"], "done") for fault in NO_ANSWER),
    ],
)
async def test_three_ends(
    errands: ErrandApp, sends: Sends, finds: list[type[Fault]], asked: list[str], end: str
) -> None:
    """Done, refused for certain, unknown. The provider is queried before the operation is sent again, and a failed or
    refused query proves nothing."""
    errands.carrier.sends, errands.carrier.finds = sends, finds
    await errands.planned()
    await errands.run_out()
    assert errands.asked() == asked
    assert await errands.page() == Page(status=end, effects=("taken", end))
    assert errands.carrier.done[FIRST] == (end == "done")


async def test_a_refusal_that_is_no_end_waits(errands: ErrandApp) -> None:
    errands.row.is_no_end = True
    errands.carrier.sends = [(Refused, False)]
    await errands.planned()
    await errands.run()
    assert (await errands.page()).status == "sending"
    await errands.run_out()
    assert errands.asked() == ["send", "find", "send"]


async def test_operation_under_way_is_polled_and_not_sent_again(errands: ErrandApp) -> None:
    errands.carrier.becomes = "processing"
    await errands.planned()
    for _ in range(3):
        await errands.run()
    assert errands.asked() == ["send", "find", "find"]
    errands.carrier.knows[FIRST] = "done"
    await errands.run_out()
    assert (await errands.page()).effects == SENT


@pytest.mark.parametrize(("status", "asked"), [("failed", []), ("done", ["find"])])
async def test_ended_operation_is_never_sent(errands: ErrandApp, status: str, asked: list[str]) -> None:
    """Also where the provider never saw it, as one of a restored database."""
    await errands.planned(status)
    await errands.run_out()
    assert (errands.asked(), await errands.page()) == (asked, Page(status=status))


@pytest.mark.parametrize(("waits", "asked"), [(0, ["send"]), (1, ["send"]), (2, []), (3, [])])
async def test_operation_that_cannot_be_prepared_is_not_sent(errands: ErrandApp, waits: int, asked: list[str]) -> None:
    """After the wait is recorded, the engine checks once more, because the event may have arrived just before."""
    errands.row.waits = waits
    await errands.planned()
    told = await engine.bring(errands.row, errands.ports, ID)
    assert (errands.asked(), told.is_new) == (asked, False)
    assert (await errands.page()).status == ("done" if asked else "planned and waits")


async def test_simultaneous_beginnings_prepare_once(errands: ErrandApp) -> None:
    await errands.planned()
    begun = await asyncio.gather(*(engine.begin(errands.row, errands.ports, ID) for _ in range(5)))
    assert sorted(each.is_new for each in begun) == [False] * 4 + [True]
    assert (errands.asked(), (await errands.page()).effects) == ([], ("taken",))


async def test_operation_that_a_restored_copy_may_lack_is_polled_first(errands: ErrandApp) -> None:
    """The database may be a restored one: the provider may have operations that it lacks (forgotten.py)."""
    await errands.planned()
    errands.carrier.knows[FIRST] = "done"
    later = msgspec.structs.replace(errands.ports, started=errands.app.clock.now() + timedelta(seconds=1))
    await errands.run(ports=later)
    assert (errands.asked(), (await errands.page()).effects) == (["find"], SENT)


@pytest.mark.parametrize(
    ("fault", "doubt"), [(OutcomeUnknown, True), (Unavailable, True), (Held, True), (NotConfigured, False)]
)
async def test_doubt_is_written_down_where_the_record_says_so(
    errands: ErrandApp, fault: type[Fault], doubt: bool
) -> None:
    """After a write without an outcome: the request that made it may undo an operation that was certainly never
    sent."""
    errands.row.marks_doubt = True
    errands.carrier.sends = [(fault, False)]
    await errands.planned()
    await errands.run()
    assert (await errands.page()).effects == (("taken", "doubt") if doubt else ("taken",))
    await errands.run_out()
    assert (await errands.page()).effects == ("taken", "doubt", "done")


async def test_doubt_is_written_down_before_it_is_sent_again(errands: ErrandApp) -> None:
    """A process that dies between the two leaves the mark."""
    errands.row.marks_doubt = True
    await errands.planned("sending")
    errands.carrier.fuse = CrashPoint(2, after=False)
    with suppress(Killed):
        await errands.run()
    assert (errands.asked(), (await errands.page()).effects) == (["find", "send"], ("doubt",))


async def test_operation_never_seen_by_the_provider_may_wait_or_be_abandoned(errands: ErrandApp) -> None:
    errands.row.sends_unseen = False
    await errands.planned("sending")
    await errands.run()
    assert (errands.asked(), (await errands.page()).status) == (["find"], "sending")
    errands.row.gives_up = True
    await errands.run_out()
    assert (errands.asked(), (await errands.page()).status) == (["find"] * 2, "given up")


class TestWords:
    """Outcomes come by answers and notifications, late, twice and at once."""

    @pytest.fixture
    async def errands(self, url: str, tmp_path: Path) -> AsyncIterator[ErrandApp]:
        async with open_test_app(receiver=False, database_url=url, data_dir=tmp_path) as app:
            yield ErrandApp(app)

    @pytest.mark.parametrize("words", [["done"] * 5, ["done", "processing", "done"], ["done", "failed", "done"]])
    async def test_outcome_reported_repeatedly_counts_once(self, errands: ErrandApp, words: list[str]) -> None:
        await errands.planned("sending")
        for word in words:
            await engine.conclude(errands.row, errands.ports, FIRST, word)
        assert (await errands.page()).effects == ("done",)

    @pytest.mark.parametrize("words", [["done"] * 4, ["done", "failed", "done", "failed"]])
    async def test_simultaneous_outcomes_count_once(self, errands: ErrandApp, words: list[str]) -> None:
        await errands.planned("sending")
        at_once = msgspec.structs.replace(errands.ports, storage=BarrierStorage(errands.ports.storage, len(words)))
        await asyncio.gather(*(engine.conclude(errands.row, at_once, FIRST, word) for word in words))
        [effect] = (await errands.page()).effects
        assert effect in words

    async def test_notification_job_and_request_at_once_are_one_operation(self, errands: ErrandApp) -> None:
        await errands.planned()
        await asyncio.gather(
            errands.run(),
            *(engine.bring(errands.row, errands.ports, ID) for _ in range(3)),
            *(engine.receive(errands.row, errands.ports, FIRST) for _ in range(3)),
        )
        await errands.run_out()
        assert ((await errands.page()).effects, errands.carrier.done[FIRST]) == (SENT, 1)

    async def test_one_of_an_earlier_attempt_moves_nothing(self, errands: ErrandApp) -> None:
        """The engine polls the earlier operation, and the later one does not change."""
        await errands.planned("sending", attempt=2)
        errands.carrier.knows[FIRST] = "done"
        await engine.receive(errands.row, errands.ports, FIRST)
        await engine.conclude(errands.row, errands.ports, FIRST, "failed")
        assert (errands.carrier.calls, await errands.page()) == (
            [f"find {FIRST}"],
            Page(status="sending", attempt=2),
        )

    async def test_one_of_what_nobody_knows_moves_nothing(self, errands: ErrandApp) -> None:
        assert (await engine.receive(errands.row, errands.ports, FIRST)).subject is None
        assert (await engine.conclude(errands.row, errands.ports, FIRST, "done")).subject is None
        assert (await engine.bring(errands.row, errands.ports, ID)).subject is None
        assert errands.asked() == []


@pytest.mark.parametrize("status", ["sending", "done", "failed"])
async def test_a_notification_asks_and_never_sends(errands: ErrandApp, status: str) -> None:
    """A second sender might be refused where the first one is not."""
    await errands.planned(status)
    heard = await engine.receive(errands.row, errands.ports, FIRST)
    assert (errands.asked(), heard.word, await errands.page()) == (["find"], None, Page(status=status))


@pytest.mark.parametrize("fault", NO_ANSWER)
async def test_a_notification_raises_the_fault_so_that_it_is_repeated(errands: ErrandApp, fault: type[Fault]) -> None:
    await errands.planned("sending")
    errands.carrier.finds = [fault]
    with pytest.raises(fault):
        await engine.receive(errands.row, errands.ports, FIRST)


@pytest.mark.parametrize("fault", [Refused, NotSupported, OutcomeUnknown, Unavailable, NotConfigured])
async def test_caller_that_sends_reads_the_fault(errands: ErrandApp, fault: type[Fault]) -> None:
    errands.carrier.sends = [(fault, False)]
    await errands.planned()
    told = await engine.bring(errands.row, errands.ports, ID)
    assert isinstance(told.fault, fault)
    assert told.subject is not None
    assert told.subject.page == await errands.page()


class Failing(ForwardingStorage):
    """A storage that once gives no answer to the commit of a given number."""

    def __init__(self, storage: Storage, at: int) -> None:
        super().__init__(storage)
        self._left = at

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[Unit]:
        async with self.inner.unit() as unit:

            async def commit() -> None:
                self._left -= 1
                if self._left == 0:
                    raise Unavailable("the storage gives no answer")
                await unit.commit()

            yield OtherCommit(unit, commit)


@pytest.mark.parametrize("at", [1, 2])
async def test_a_storage_that_fails_is_no_provider_that_is_away(errands: ErrandApp, at: int) -> None:
    """It is raised, before and after the send, and the operation is found again."""
    errands.row.marks_doubt = True
    await errands.planned()
    failing = msgspec.structs.replace(errands.ports, storage=Failing(errands.ports.storage, at))
    with pytest.raises(Unavailable, match="the storage"):
        await engine.bring(errands.row, failing, ID)
    assert errands.asked() == ([] if at == 1 else ["send"])
    await errands.run_out()
    assert ((await errands.page()).effects, errands.carrier.done[FIRST]) == (SENT, 1)


class TestOwnership:
    """Ownership of the job while two runs work on it (schedule.py)."""

    async def test_late_runner_leaves_the_job_to_its_successor(self, errands: ErrandApp) -> None:
        errands.carrier.becomes = "processing"
        await errands.planned()
        first = await errands.claimed()
        await errands.app.clock.advance(LEASE + 1)
        second = await errands.claimed()
        await errands.run(first)
        assert await errands.job() == second
        await errands.run(second)
        job = await errands.job()
        assert job is not None
        assert job.leased_until is None
        assert job.due > errands.app.clock.now()

    async def test_outcome_learnt_by_a_late_runner_counts(self, errands: ErrandApp) -> None:
        await errands.planned()
        first = await errands.claimed()
        await errands.app.clock.advance(LEASE + 1)
        second = await errands.claimed()
        await errands.run(first)
        assert ((await errands.page()).effects, await errands.job()) == (SENT, second)
        await errands.run(second)
        assert (await errands.job(), errands.carrier.done[FIRST]) == (None, 1)

    async def test_a_job_that_was_planned_anew_meanwhile_stays_as_planned(self, errands: ErrandApp) -> None:
        await errands.planned()
        first = await errands.claimed()
        now = errands.app.clock.now()
        async with errands.ports.storage.unit() as unit:
            await errands.row.follow_up.plan(unit, ID, now + timedelta(days=1), now, anew=True)
            await unit.commit()
        planned = await errands.job()
        await errands.run(first)
        assert await errands.job() == planned

    async def test_the_job_of_what_is_gone_goes(self, errands: ErrandApp) -> None:
        await errands.planned()
        async with errands.ports.storage.unit() as unit:
            note = await unit[ProviderNote].get(ID)
            assert note is not None
            unit[ProviderNote].remove(note)
            await unit.commit()
        assert await errands.run() is Ended.DONE
        assert (await errands.job(), errands.asked()) == (None, [])

    async def test_the_backoff_counts_the_runs(self, errands: ErrandApp) -> None:
        errands.carrier.becomes = "processing"
        await errands.planned()
        for asked in (1, 2, 3):
            await errands.run()
            job = await errands.job()
            assert job is not None
            assert (job.due - errands.app.clock.now()).total_seconds() == 10 * asked


@table("after", [False, True], ids=["before", "after"])
@table("lost", [None, True, False], ids=["answered", "answer lost", "request lost"])
@table("marks_doubt", [False, True])
async def test_a_crash_between_any_two_steps_ends_as_if_there_had_been_none(
    after: bool, lost: bool | None, marks_doubt: bool
) -> None:
    """Killed at each commit and call, before and after it took effect: the operation is executed once, and nothing is
    sent a second time without a query before."""
    points, at = 1, 0
    while at <= points:
        async with open_test_app(receiver=False) as app:
            errands = ErrandApp(app)
            errands.row.marks_doubt = marks_doubt
            errands.carrier.sends = [] if lost is None else [(OutcomeUnknown, lost)]
            await errands.planned()
            fuse = errands.carrier.fuse = CrashPoint(at, after=after)
            with suppress(Killed):
                await _twice(errands, fused(errands.ports, fuse))
            points = fuse.commits if at == 0 else points
            errands.carrier.fuse = CrashPoint(0, after=False)
            await app.clock.advance(LEASE + 1)
            await errands.run_out()
            page, asked = await errands.page(), errands.asked()
            assert [each for each in page.effects if each != "doubt"] == list(SENT)
            assert errands.carrier.done[FIRST] == 1
            again = [number for number, call in enumerate(asked) if call == "send"][1:]
            assert all(asked[number - 1] == "find" for number in again), asked
        at += 1
    assert points >= (4 if lost is None else 6)


async def _twice(errands: ErrandApp, ports: Ports) -> None:
    """Run the job twice; the second run continues where the first stopped."""
    for _ in range(2):
        if await errands.job() is not None:
            await errands.run(ports=ports)

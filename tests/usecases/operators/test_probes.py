"""Probes of the service's state (core/usecases/operators/probes.py), for metrics and `/health`."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.gateways.gateways import GatewayStatus
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.suspense import Suspense
from cambist.core.domain.settlement.settlement import SettlementBatch
from cambist.core.domain.webhooks.breaker import Breaker
from cambist.core.usecases.gateways.gateways import ShownGateway
from cambist.core.usecases.operators import probes
from cambist.core.usecases.operators.doctor import check_jobs
from cambist.core.usecases.operators.health import Question
from cambist.core.usecases.operators.probes import SettlementSigns, Waiting
from cambist.core.usecases.recurring_jobs import start_recurring_jobs
from cambist.ports.forwarding import ForwardingStorage
from cambist.ports.jobs import Job
from tests.apps import TestApp
from tests.invariants import everything
from tests.planting import beneath
from tests.quiesce import at_rest
from tests.tables import table


async def write(app: TestApp, *records: Any) -> None:
    async with beneath(app.ports).unit() as unit:
        for record in records:
            unit[type(record)].add(record)
        await unit.commit()


def job(app: TestApp, kind: str, number: int, age: float, leased: float | None = None) -> Job:
    now = app.clock.now()
    until = None if leased is None else now + timedelta(seconds=leased)
    due = now - timedelta(seconds=age)
    return Job(id=f"{kind}:{number}", kind=kind, argument="", due=due, created_at=due, leased_until=until)


async def test_jobs_in_hand_do_not_wait_and_those_of_later_are_not_due(app: TestApp) -> None:
    await write(
        app,
        job(app, "a", 1, 30),
        job(app, "a", 2, 10),
        job(app, "b", 1, 90, leased=5),
        job(app, "b", 2, 20, leased=-1),
        job(app, "b", 3, 10, leased=0),
        job(app, "c", 1, -60),
    )
    assert await probes.waiting_jobs(app.ports) == (
        5,
        (Waiting(kind="a", jobs=2, lateness=30.0), Waiting(kind="b", jobs=2, lateness=20.0)),
    )
    assert await probes.lateness(app.ports) == 30.0


async def test_all_jobs_behind_the_longest_due_are_counted(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "COUNTED", 2)
    await write(app, *(job(app, "a", number, 10 - number) for number in range(5)))
    assert await probes.waiting_jobs(app.ports) == (5, (Waiting(kind="a", jobs=2, lateness=10.0),))


async def test_nothing_due_is_not_late(app: TestApp) -> None:
    async with app.ports.storage.unit() as unit:
        for each in await unit[Job].find():
            unit[Job].remove(each)
        await unit.commit()
    for _ in range(2):
        assert (await check_jobs(app.ports)).message == "no job is late"
        assert await probes.lateness(app.ports) == 0.0
        assert {signs.lateness for signs in await probes.settlements(app.ports)} == {0.0}
        if not await everything(app.ports, Job):
            await write(app, job(app, "a", 1, -60))


@pytest.mark.parametrize("ahead", [0, 7, -7])
async def test_the_storages_clock_is_held_against_the_middle_of_the_question(app: TestApp, ahead: int) -> None:
    """The time of the round trip does not count as a difference."""
    storage, began = SlowClock(app, ahead), app.clock.now()
    ports = msgspec.structs.replace(app.ports, storage=storage)
    assert await probes.clock_offset(ports) == timedelta(seconds=ahead)
    assert app.clock.now() - began == timedelta(seconds=6)


class SlowClock(ForwardingStorage):
    """A clock whose readings take three seconds."""

    def __init__(self, app: TestApp, ahead: int) -> None:
        super().__init__(app.ports.storage)
        self._clock = app.clock
        self._ahead = timedelta(seconds=ahead)

    async def now(self) -> datetime:
        await self._clock.advance(3)
        now = self._clock.now() + self._ahead
        await self._clock.advance(3)
        return now


async def test_only_open_breakers_and_open_sums_count(app: TestApp) -> None:
    now = app.clock.now()
    breakers = [
        Breaker(id=f"acc_{number}:test", account_id=f"acc_{number}", mode=Mode.TEST, failures=9, next_probe_at=probe)
        for number, probe in enumerate((None, now - timedelta(hours=1), now + timedelta(hours=1)))
    ]
    sums = [
        Suspense(
            id=f"sus_{number}",
            account_id="acc_1",
            mode=Mode.LIVE,
            payment_id="pay_1",
            amount=Rub(100),
            reason="late",
            received_at=now,
            resolved_at=resolved,
        )
        for number, resolved in enumerate((None, now, None))
    ]
    await write(app, *breakers, *sums)
    app.made_up = True
    assert await probes.open_breakers(app.ports) == 2
    assert await probes.waiting_suspense(app.ports) == 2


UP, POOR, DOWN = GatewayStatus.OPERATIONAL, GatewayStatus.DEGRADED, GatewayStatus.DOWN


@table(
    ("live", "test", "without"),
    [
        ([UP], [UP], ()),
        ([DOWN], [UP], (Mode.LIVE,)),
        ([DOWN, POOR], [UP], ()),
        ([DOWN, DOWN], [DOWN], tuple(Mode)),
        ([], [DOWN], (Mode.TEST,)),
        ([], [], ()),
    ],
)
def test_a_mode_is_without_a_gateway_when_all_of_its_are_down(
    live: list[GatewayStatus], test: list[GatewayStatus], without: tuple[Mode, ...]
) -> None:
    shown = [
        ShownGateway(gateway_id="g", mode=mode, payment_method=None, status=status, reason=None, since=None)
        for mode, statuses in ((Mode.LIVE, live), (Mode.TEST, test))
        for status in statuses
    ]
    assert set(probes.without_gateway(shown)) == set(without)


NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


def batch(batch_id: str, hours_ago: float, completed_ago: float | None = None) -> SettlementBatch:
    mode = Mode(batch_id.partition(":")[0])
    return SettlementBatch(
        id=batch_id,
        mode=mode,
        account_id=None,
        cutoff=NOW,
        rate_market="80",
        started_at=NOW - timedelta(hours=hours_ago),
        completed_at=None if completed_ago is None else NOW - timedelta(hours=completed_ago),
    )


@pytest.mark.parametrize(
    ("batches", "completed_ago", "late"),
    [
        ([], None, 0),
        ([batch("live:2026-01-04", 27, 26), batch("live:2026-01-05", 3, 2)], 2, 0),
        ([batch("live:2026-01-04", 27, 26), batch("live:2026-01-05", 3)], 26, 3),
        ([batch("live:2026-01-05T10:00:00Z", 2, 1)], 1, 0),
        ([batch("live:2025-12-20", 400, 399)], None, 0),
        ([batch("live:acc_1:01a1", 2), batch("test:2026-01-05", 3)], None, 0),
    ],
)
async def test_how_settlements_do(
    app: TestApp, batches: list[SettlementBatch], completed_ago: float | None, late: float
) -> None:
    await app.clock.advance((NOW - app.clock.now()).total_seconds())
    await start_recurring_jobs(app.ports)
    await write(app, *batches)
    live = next(signs for signs in await probes.settlements(app.ports) if signs.mode is Mode.LIVE)
    completed = None if completed_ago is None else NOW - timedelta(hours=completed_ago)
    assert live == SettlementSigns(mode=Mode.LIVE, completed_at=completed, lateness=late * 3600)


async def test_a_settlement_that_is_not_opened_is_late(app: TestApp) -> None:
    """No rate, or no worker: the recurring job is due and nothing is open."""
    await start_recurring_jobs(app.ports)
    await app.clock.advance(10 * 3600)
    assert [signs.lateness for signs in await probes.settlements(app.ports)] == [3600.0, 3600.0]


async def test_hanging_question_refuses_all_others_at_once_until_it_ends() -> None:
    gate, asked = asyncio.Event(), list[int]()

    async def ask() -> int:
        asked.append(len(asked))
        await gate.wait()
        return asked[-1]

    question = Question(ask)
    with pytest.raises(TimeoutError, match="no answer in time"):
        await question.answer(0)
    other = asyncio.ensure_future(question.answer(3600))
    await at_rest()
    assert other.done()
    with pytest.raises(TimeoutError, match="no answer in time"):
        await other
    assert (asked, question.is_under_way) == ([0], True)
    gate.set()
    await at_rest()
    assert not question.is_under_way
    assert await question.answer(3600) == 1

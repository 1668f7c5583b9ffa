"""The rules of /health (docs/operations.md "Health rules")."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any, NoReturn

import msgspec
import pytest

from cambist.core.domain.gateways.gateways import GatewayStatus
from cambist.core.domain.installation import INSTALLATION, Installation
from cambist.core.domain.ledger import LedgerAccount
from cambist.core.usecases.common.encrypted import tag_hold
from cambist.core.usecases.gateways.gateways import set_gateway
from cambist.core.usecases.jobs import run_due
from cambist.core.usecases.operators.health import EVERY, NO_WORKER
from cambist.core.usecases.recurring_jobs import start_recurring_jobs
from cambist.core.usecases.settlement.settlement import DAILY
from cambist.core.usecases.vault_checks import PEPPER
from cambist.frontends.http import health
from cambist.ports.faults import Unavailable
from cambist.ports.jobs import Job
from tests.apps import TestApp
from tests.planting import beneath
from tests.quiesce import at_rest


@pytest.fixture
async def app(app: TestApp) -> TestApp:
    """Add the jobs that a worker writes when it starts; none is due within a day."""
    await start_recurring_jobs(app.ports)
    await run_due(app.ports)
    return app


async def degraded(app: TestApp) -> list[str]:
    """Return the parts that /health names, and check its answer against the contract."""
    response = await app.http.get("/health")
    said = response.json()
    named: list[str] = said.get("degraded", [])
    assert (response.status_code, said["status"]) == ((503, "degraded") if named else (200, "ok"))
    assert said["core"] == ("degraded" if "storage" in named else "ok")
    assert set(said) <= {"status", "timestamp", "core", "degraded"}
    return named


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/health", "/api/v1/health"])
async def test_monitors_may_ask_by_head(app: TestApp, path: str) -> None:
    """Many monitors do so by default."""
    asked, told = await app.http.head(path), await app.http.get(path)
    assert (asked.status_code, told.status_code) == (200, 200)
    assert asked.headers["content-type"] == told.headers["content-type"]
    assert (await app.http.head("/api/v1/payments")).status_code == 405


async def add_job(app: TestApp, age: float, *, leased: bool) -> None:
    now = app.clock.now()
    due = now - timedelta(seconds=age)
    until = now + timedelta(seconds=8) if leased else None
    async with app.ports.storage.unit() as unit:
        unit[Job].add(Job(id="feed.tidy:1", kind="feed.tidy", argument="", due=due, created_at=due, leased_until=until))
        await unit.commit()


@pytest.mark.parametrize(
    ("age", "leased", "named"),
    [(NO_WORKER - 1, False, []), (NO_WORKER, False, ["worker"]), (10 * NO_WORKER, True, [])],
)
async def test_jobs_that_nobody_takes_say_that_no_worker_works(
    app: TestApp, age: float, leased: bool, named: list[str]
) -> None:
    await add_job(app, age, leased=leased)
    assert await degraded(app) == named


async def test_missing_recurring_job_is_reported(app: TestApp) -> None:
    async with app.ports.storage.unit() as unit:
        daily = await unit[Job].get(DAILY)
        assert daily is not None
        unit[Job].remove(daily)
        await unit.commit()
    assert await degraded(app) == ["standing"]
    await start_recurring_jobs(app.ports)
    await app.clock.advance(EVERY)
    assert await degraded(app) == []


@pytest.mark.parametrize(
    ("down", "named"),
    [
        ([], []),
        (["simulator-live"], ["gateways"]),
        (["simulator-test"], ["gateways"]),
    ],
)
async def test_a_mode_without_a_gateway_is_degraded(app: TestApp, down: list[str], named: list[str]) -> None:
    for gateway in down:
        await set_gateway(app.ports, gateway, GatewayStatus.DOWN)
    assert await degraded(app) == named


async def test_a_ledger_that_does_not_hold_is_degraded(app: TestApp) -> None:
    app.made_up = True
    payment = await app.created()
    await app.simulate(payment["id"], outcome="paid")
    assert await degraded(app) == []
    async with beneath(app.ports).unit() as unit:
        row = (await unit[LedgerAccount].find(limit=1))[0]
        unit[LedgerAccount].increase(row.id, "balance", 1)
        await unit.commit()
    assert await degraded(app) == [], "the ledger is looked at once a minute"
    await app.clock.advance(61)
    assert "ledger" in await degraded(app)


@pytest.mark.parametrize(("seconds", "named"), [(29, []), (-29, []), (31, ["clock"]), (-31, ["clock"])])
async def test_a_clock_that_is_not_the_databases_is_named(
    app: TestApp, monkeypatch: pytest.MonkeyPatch, seconds: float, named: list[str]
) -> None:
    """Due work starts late by as much as this machine's clock is ahead."""

    async def databases() -> datetime:
        return app.clock.now() + timedelta(seconds=seconds)

    monkeypatch.setattr(beneath(app.ports), "now", databases)
    assert await degraded(app) == named


class Hanging:
    """A dependency that never answers and ignores cancellation, as a driver does that waits for its server to confirm
    one."""

    def __init__(self) -> None:
        self.asked = 0
        self.over = asyncio.Event()

    async def __call__(self) -> bool:
        self.asked += 1
        while not self.over.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await self.over.wait()
        return True


@pytest.mark.parametrize(("part", "named"), [("storage", ["storage"]), ("counters", ["meter"]), ("queue", ["queue"])])
async def test_hanging_part_delays_no_probe_and_is_asked_once(
    app: TestApp, monkeypatch: pytest.MonkeyPatch, part: str, named: list[str]
) -> None:
    """ "Nothing is waited for longer than 2 s" (docs/operations.md), nor does what hangs gather."""
    hanging = Hanging()
    monkeypatch.setattr(health, "PATIENCE", 0.01)
    monkeypatch.setattr(getattr(app.ports, part), "check" if part == "storage" else "works", hanging)
    for _ in range(3):
        assert await degraded(app) == named
        assert (await app.http.get("/readyz")).status_code == (503 if part == "storage" else 200)
        assert (await app.http.get("/livez")).status_code == 200
        await app.clock.advance(EVERY + 0.1)
    assert hanging.asked == 1
    hanging.over.set()
    await at_rest()
    assert await degraded(app) == []
    assert (await app.http.get("/readyz")).status_code == 200


@contextlib.asynccontextmanager
async def hanging_sign(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """The question behind `worker` gives no answer inside."""
    hanging = Hanging()
    monkeypatch.setattr(health, "PATIENCE", 0.2)
    monkeypatch.setattr(app.ports.storage, "next_due", hanging)
    try:
        yield
    finally:
        hanging.over.set()
        await at_rest()


async def test_sign_without_an_answer_in_time_is_unknown(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    async with hanging_sign(app, monkeypatch):
        assert await degraded(app) == ["unknown"]


@pytest.mark.parametrize(("age", "named"), [(0.0, []), (10 * NO_WORKER, ["worker"])])
async def test_last_answer_of_a_sign_counts_for_a_minute(
    app: TestApp, monkeypatch: pytest.MonkeyPatch, age: float, named: list[str]
) -> None:
    if age:
        await add_job(app, age, leased=False)
    assert await degraded(app) == named
    await app.clock.advance(EVERY + 0.1)
    async with hanging_sign(app, monkeypatch):
        assert await degraded(app) == named
        await app.clock.advance(health.STALE)
        assert await degraded(app) == ["unknown"]


async def test_parts_that_hang_leave_the_signs_their_time(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """While Redis hangs, `/health` names the parts that need it, and nothing else."""
    hanging = Hanging()
    monkeypatch.setattr(health, "PATIENCE", 0.2)
    monkeypatch.setattr(app.ports.counters, "works", hanging)
    monkeypatch.setattr(app.ports.queue, "works", hanging)
    try:
        await add_job(app, 10 * NO_WORKER, leased=False)
        assert await degraded(app) == ["meter", "queue", "worker"]
    finally:
        hanging.over.set()
        await at_rest()


async def test_sign_that_breaks_is_unknown(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken() -> NoReturn:
        raise ValueError("a slip")

    monkeypatch.setattr(app.ports.storage, "next_due", broken)
    assert await degraded(app) == ["unknown"]


async def test_keys_that_stop_fitting_are_named_and_the_process_is_not_ready(app: TestApp) -> None:
    assert await degraded(app) == []
    async with beneath(app.ports).unit() as unit:
        present = await unit[Installation].get(INSTALLATION)
        checks = {PEPPER: "00" * 32}
        if present is None:
            unit[Installation].add(
                tag_hold(app.ports.vault, Installation(mark="m", marked_at=app.clock.now(), vault_checks=checks))
            )
        else:
            unit[Installation].save(msgspec.structs.replace(present, vault_checks=checks))
        await unit.commit()
    await app.clock.advance(EVERY + 0.1)
    assert await degraded(app) == ["vault"]
    assert (await app.http.get("/readyz")).status_code == 503


@pytest.mark.parametrize("problem", ["fails", "hangs", "breaks"])
async def test_failing_or_hanging_storage_is_reported_in_time_and_not_queried(
    app: TestApp, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    async def away() -> None:
        if problem == "hangs":
            await asyncio.Event().wait()
        raise Unavailable("no connection") if problem == "fails" else ValueError("a slip")

    async def must_not_be_asked() -> NoReturn:
        raise AssertionError

    monkeypatch.setattr(health, "PATIENCE", 0.01)
    monkeypatch.setattr(app.ports.storage, "check", away)
    monkeypatch.setattr(app.ports.storage, "next_due", must_not_be_asked)
    assert await degraded(app) == ["storage"]


async def test_however_many_ask_the_storage_is_asked_once_a_second(
    app: TestApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    check = app.ports.storage.check

    async def counted() -> None:
        nonlocal asked
        asked += 1
        await check()

    monkeypatch.setattr(app.ports.storage, "check", counted)
    await asyncio.gather(*(degraded(app) for _ in range(5)))
    assert asked == 1
    await app.clock.advance(EVERY + 0.1)
    await degraded(app)
    assert asked == 2


async def test_readyz_goes_by_the_storage_alone(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    await add_job(app, 10 * NO_WORKER, leased=False)
    await set_gateway(app.ports, "simulator-live", GatewayStatus.DOWN)
    assert await degraded(app) == ["worker", "gateways"]
    assert (await app.http.get("/readyz")).status_code == 200

    async def away(*_: Any) -> None:
        raise Unavailable("no connection")

    monkeypatch.setattr(app.ports.storage, "check", away)
    await app.clock.advance(EVERY)
    response = await app.http.get("/readyz")
    assert (response.status_code, msgspec.json.decode(response.content)) == (503, {"status": "degraded"})

"""Metrics, their labels, and the scrape (docs/operations.md "Metrics")."""

import asyncio
import contextlib
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any, NoReturn

import httpx
import msgspec
import pytest

from cambist.adapters.ids import SystemIds
from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.idempotency import IdempotencyKey
from cambist.core.domain.days import moscow_day
from cambist.core.domain.gateways.gateways import GatewayStatus
from cambist.core.domain.installation import Because
from cambist.core.domain.notifications import NotificationAddress
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.payments.tallies import Tally, tallies_of
from cambist.core.domain.reconciliation.reconciliation import last_comparable
from cambist.core.usecases.common.quarantine import hold
from cambist.core.usecases.gateways.gateways import set_gateway
from cambist.core.usecases.installation.resume import resume
from cambist.core.usecases.notification_addresses import make_addresses
from cambist.core.usecases.payments import tallies
from cambist.core.usecases.reconciliation.reconciliation import reconcile
from cambist.core.usecases.recurring_jobs import start_recurring_jobs
from cambist.frontends.http.edge.crowd import Crowd
from cambist.frontends.process.observed import observed, scraped
from cambist.frontends.settings.settings import Settings, SettingsError
from cambist.frontends.telemetry import signs
from cambist.frontends.telemetry.catalogue import METRICS, SHARED
from cambist.frontends.telemetry.exposition import exposed
from cambist.frontends.telemetry.signs import Reader
from cambist.ports.faults import Unavailable
from cambist.ports.jobs import Job
from cambist.ports.reporting import ReportedEntry, ReportedKind, ReportedState
from tests.apps import open_test_app
from tests.planting import beneath
from tests.telemetry.kit import Traced, sample, samples, traced_app

OUR_IDS = re.compile(r"(?:pay|acc|sub|ref|wd|exch|evt)_|svc_|[0-9a-f]{8}-[0-9a-f]{4}")


@pytest.fixture
async def app() -> AsyncIterator[Traced]:
    async with traced_app() as opened:
        yield opened


async def test_a_payment_s_life_is_counted_and_no_label_is_an_id(app: Traced) -> None:
    app.script.create.append(Twist())  # makes the service ask the bank
    payment = (await app.pay()).json()["id"]
    await app.simulate(payment, outcome="paid")
    await app.http.get(f"/p/{payment}")
    await app.work()
    found = await app.scrape()
    assert found[sample("http_requests_total", method="POST", route="/api/v1/payments", code="201")] == 1
    simulated = "/api/v1/sandbox/payments/{payment_id}/simulate"
    assert found[sample("http_requests_total", method="POST", route=simulated, code="200")] == 1
    assert found[sample("http_request_seconds_count", route="/p/{payment_id}")] == 1
    bank = {"port": "bank", "provider": "simulator-test", "operation": "create_invoice"}
    assert found[sample("provider_calls_total", **bank, outcome="done")] == 1
    assert found[sample("provider_call_seconds_count", **bank)] == 1
    assert found[sample("jobs_total", kind="webhook.deliver", outcome="done")] == 1
    assert found[sample("deliveries_total", outcome="2xx")] == len(app.postman.webhooks) == 1
    assert found[sample("http_requests_in_progress")] == found[sample("jobs_in_progress")] == 0
    assert [series for series in found if OUR_IDS.search(str(series))] == []


async def test_impossible_write_is_answered_500_counted_and_rolled_back(
    app: Traced, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A slip that counts each new payment twice (docs/operations.md "Impossible writes")."""
    count = tallies_of
    monkeypatch.setattr(tallies, "tallies_of", lambda payment, by: count(payment, by * 2))
    refused = await app.pay()
    assert (refused.status_code, refused.json()["error"]["code"]) == (500, "INTERNAL_ERROR")
    assert app.account.account_id not in refused.text
    async with app.ports.storage.unit() as unit:
        assert (await unit[Payment].total(), await unit[Tally].total(), await unit[IdempotencyKey].total()) == (0, 0, 0)
    assert (await app.scrape())[sample("assertions_total", rule="tally")] == 1
    assert "break a rule: tally: " in caplog.text
    monkeypatch.undo()
    assert (await app.pay()).status_code == 201


async def test_made_up_paths_get_no_series_of_their_own(app: Traced) -> None:
    for method, path, labels in (
        ("GET", "/api/v1/made-up", {"method": "GET", "route": "none", "code": "404"}),
        ("POST", "/wp-login.php", {"method": "POST", "route": "none", "code": "404"}),
        ("GET", "/api/v1/payments", {"method": "GET", "route": "/api/v1/payments", "code": "401"}),
        ("BREW", "/api/v1/payments", {"method": "other", "route": "none", "code": "405"}),
    ):
        await app.http.request(method, path)
        assert (await app.scrape())[sample("http_requests_total", **labels)] == 1, path
    await _flood_is_counted(app)


async def _flood_is_counted(app: Traced) -> None:
    """Requests refused by the edge are counted too."""
    await app.http.post("/api/v1/payments", content=b"x" * 102_401)
    for _ in range(61):
        await app.http.get("/api/v1/rates", headers={"X-Api-Key": "nobody"})
    found = await app.scrape()
    assert found[sample("http_requests_total", method="POST", route="none", code="413")] == 1
    assert found[sample("http_requests_total", method="GET", route="none", code="429")] == 1
    assert found[sample("limit_hits_total", counter="general:key")] == 1
    assert found[sample("requests_not_logged_total")] == 0


async def test_jobs_count_by_how_they_ended_and_how_late_they_began(app: Traced) -> None:
    app.postman.send = _break  # type: ignore[assignment, method-assign]
    await app.simulate((await app.pay()).json()["id"], outcome="paid")
    await app.clock.advance(20)
    await app.work()
    found = await app.scrape()
    assert found[sample("jobs_total", kind="webhook.deliver", outcome="failed")] == 1
    assert found[sample("deliveries_total", outcome="error")] == 1
    late = {"kind": "webhook.deliver"}
    assert found[sample("job_lateness_seconds_bucket", **late, le="15.0")] == 0
    assert found[sample("job_lateness_seconds_bucket", **late, le="60.0")] == 1
    assert found[sample("job_lateness_seconds_sum", **late)] == pytest.approx(20)


async def _break(_: Any) -> NoReturn:
    raise RuntimeError("a slip of the notifier")


async def test_gauges_are_read_from_the_storage(app: Traced) -> None:
    """Each sign is brought about, and seen."""
    await set_gateway(app.ports, "simulator-live", GatewayStatus.DOWN)
    await start_recurring_jobs(app.ports)
    now = app.clock.now()
    async with app.ports.storage.unit() as unit:
        for number in (1, 2):
            due = now - timedelta(seconds=100 * number)
            job_id = f"feed.tidy:{number}"
            unit[Job].add(Job(id=job_id, kind="feed.tidy", argument="", due=due, created_at=due))
        await unit.commit()
    found = await app.scrape()
    assert {part: found[sample("up", part=part)] for part in ("storage", "meter", "queue")} == {
        "storage": 1,
        "meter": 1,
        "queue": 1,
    }
    assert found[sample("queue_age_seconds")] == 200
    assert found[sample("jobs_waiting", kind="feed.tidy")] >= 2
    assert found[sample("jobs_waiting_seconds", kind="feed.tidy")] == 200
    assert found[sample("gateway_status", gateway="simulator-live", mode="live", status="down")] == 1
    assert found[sample("gateway_status", gateway="simulator-live", mode="live", status="operational")] == 0
    assert found[sample("outcomes_unknown", mode="live", operation="charge")] == 0
    assert found[sample("ledger_faults")] == 0
    assert found[sample("settlement_late_seconds", mode="live")] == 0


async def test_comparisons_with_a_banks_list_are_seen(app: Traced) -> None:
    bank = sample("reconciliation_last_success_seconds", bank="simulator-live")
    before = await app.scrape()
    assert bank not in before
    assert before[sample("reconciliation_failed")] == 0
    await app.clock.advance(86400)
    day = last_comparable(app.clock.now())
    noon = moscow_day(day)[0] + timedelta(hours=12)
    made_up = ReportedEntry(
        id="b-1", kind=ReportedKind.PAYMENT, state=ReportedState.DONE, moment=noon, amount_kopecks=1
    )
    app.script.entries.invented.append(made_up)
    await reconcile(app.ports, day)
    found = await app.scrape()
    assert found[bank] == app.clock.now().timestamp()
    assert found[sample("reconciliation_differences", bank="simulator-live", difference="extra")] == 1
    assert found[sample("reconciliation_differences", bank="simulator-live", difference="missing")] == 0
    app.script.entries.calls.append(Twist(ending=Ending.UNAVAILABLE))
    await reconcile(app.ports, day)
    assert (await app.scrape())[sample("reconciliation_failed")] == 1


async def test_metrics_show_the_clock_skew_against_the_database(app: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below zero where ours is ahead."""

    async def databases() -> datetime:
        return app.clock.now() - timedelta(seconds=2.5)

    assert (await app.scrape())[sample("clock_offset_seconds")] == 0
    monkeypatch.setattr(beneath(app.ports), "now", databases)
    assert (await app.scrape())[sample("clock_offset_seconds")] == -2.5


async def test_a_hold_is_seen_while_it_lasts(app: Traced) -> None:
    seen = [(await app.scrape())[sample("held")]]
    await hold(app.ports, Because.BY_HAND)
    seen.append((await app.scrape())[sample("held")])
    await resume(app.ports)
    seen.append((await app.scrape())[sample("held")])
    assert seen == [0, 1, 0]


async def handle_notification(app: Traced) -> None:
    """Act as an adapter that received a notification."""
    hearing = msgspec.structs.replace(app.ports, notification_networks={"example": ()})
    await make_addresses(hearing)
    async with hearing.storage.unit() as unit:
        address = await unit[NotificationAddress].get("example")
        assert address is not None
        unit[NotificationAddress].change(address, received_at=app.clock.now())
        await unit.commit()
    app.reader = Reader(hearing)
    app.telemetry.counters.notifications.add("example", "heard")
    app.telemetry.counters.notification_operations.add("example", "asked_about")


async def test_every_metric_of_the_catalogue_is_exposed_with_its_labels(app: Traced) -> None:
    payment = (await app.pay()).json()["id"]
    await app.simulate(payment, outcome="paid")
    await app.work()
    await app.http.post("/api/v1/sandbox/settlements", headers=app.headers())
    await start_recurring_jobs(app.ports)
    await app.clock.advance(2 * 86_400)
    await app.work()
    await app.clock.advance(3600)
    for _ in range(61):
        await app.http.get("/api/v1/rates", headers={"X-Api-Key": "nobody"})
    Crowd(most=0, of_an_address=0, ids=SystemIds(), counters=app.telemetry.counters).enter("192.0.2.1")
    await handle_notification(app)
    app.telemetry.counters.assertions.add("tally")
    await reconcile(app.ports, last_comparable(app.clock.now()))
    found = await app.scrape()
    for metric in METRICS.values():
        for series in metric.series:
            labels = {name for found_series, pairs in found if found_series == series for name, _ in pairs}
            assert labels - {"le"} == set(metric.labels), series
    exposed_names = {name for name, _ in found if name.startswith("cambist_")}
    assert exposed_names == {series for metric in METRICS.values() for series in metric.series}


@pytest.mark.parametrize("problem", ["fails", "hangs"])
async def test_a_scrape_answers_while_the_storage_is_away(
    app: Traced, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    await app.scrape()

    async def away() -> None:
        if problem == "hangs":
            await asyncio.Event().wait()
        raise Unavailable("no connection")

    monkeypatch.setattr(app.ports.storage, "check", away)
    monkeypatch.setattr(signs, "PATIENCE", 0.01)
    found = await app.scrape()
    assert found[sample("up", part="storage")] == 0
    assert found[sample("up", part="meter")] == 1
    read = {name for name, _ in found} & SHARED
    assert read == {"cambist_up", "cambist_signs_age_seconds"}, "what cannot be read is absent, not old"


async def test_probe_that_ignores_cancellation_is_abandoned_and_asked_once(
    app: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, over = 0, asyncio.Event()

    async def hangs() -> bool:
        nonlocal asked
        asked += 1
        while not over.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await over.wait()
        return True

    monkeypatch.setattr(app.ports.queue, "works", hangs)
    monkeypatch.setattr(signs, "PATIENCE", 0.01)
    for _ in range(2):
        assert (await app.scrape())[sample("up", part="queue")] == 0
    over.set()
    assert asked == 1


async def test_prometheus_scrapes_a_port_of_its_own(app: Traced) -> None:
    """From a thread, so that the answer comes though the event loop is busy: here it waits for it."""
    await app.reader.read()
    with exposed(app.telemetry, app.reader, "127.0.0.1", 0) as port:
        answer = httpx.get(f"http://127.0.0.1:{port}/metrics")
    assert answer.status_code == 200
    found = samples(answer.text)
    assert found[sample("up", part="storage")] == 1
    assert ("process_resident_memory_bytes", ()) in found


async def test_nothing_is_watched_unless_it_is_asked_for() -> None:
    async with (
        open_test_app() as plain,
        observed(Settings(), plain.clock) as telemetry,
        scraped(Settings(), telemetry, plain.ports),
    ):
        assert telemetry is None


async def test_a_port_asked_for_is_served_until_the_end() -> None:
    async with open_test_app() as plain:
        settings = Settings(metrics_port=0)
        async with observed(settings, plain.clock) as telemetry:
            assert telemetry is not None
            async with scraped(settings, telemetry, plain.ports):
                await asyncio.sleep(0)


async def test_port_in_use_is_reported_by_its_name() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = Settings(metrics_port=taken.getsockname()[1])
        async with open_test_app() as plain, observed(settings, plain.clock) as telemetry:
            with pytest.raises(SettingsError, match="CAMBIST_METRICS_PORT: cannot be listened on"):
                async with scraped(settings, telemetry, plain.ports):
                    pass


def test_libraries_of_metrics_and_traces_are_imported_only_when_asked_for() -> None:
    script = """
import sys
import cambist.frontends.app.compose, cambist.frontends.server.server, cambist.frontends.worker.process
print(*[name for name in ("prometheus_client", "opentelemetry") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []

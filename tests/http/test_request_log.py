"""The log of a merchant's requests: its contents, data that it never holds, its bounds, and how it is followed and
deleted (docs/concepts.md "Your requests")."""

import asyncio
import random
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.accounts.request_log import BATCHES, KEPT, FirstBatch, RequestBatch, RequestCount, shown_object
from cambist.core.usecases.accounts import request_log, request_pruning
from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.accounts.request_list import RequestFilter, browse_requests, follow_requests, list_requests
from cambist.core.usecases.accounts.request_log import Noted, RequestLog
from cambist.core.usecases.accounts.request_pruning import PRUNE, first_pruning, prune
from cambist.core.usecases.common.keyset import Cursor
from cambist.frontends.server.app import create_app
from cambist.frontends.telemetry.limit_hits import REQUESTS_EVERY, requests_kept
from cambist.frontends.telemetry.requests import RequestWatch
from cambist.ports.faults import Unavailable
from cambist.ports.jobs import Job
from tests.apps import TestApp, open_test_app
from tests.invariants import everything
from tests.tables import table

PAYMENT = "/api/v1/payments/{payment_id}"


class Watched:
    """An app of which each request is noted."""

    def __init__(self, app: TestApp) -> None:
        self.app = app
        self.log = RequestLog()
        watch = RequestWatch(app.ports.clock, requests=self.log)
        asgi: Any = create_app(app.ports, watch=watch)
        self.http = httpx.AsyncClient(transport=httpx.ASGITransport(asgi), base_url="https://pay.example")

    async def ask(self, method: str, path: str, mode: str = "test", **more: Any) -> httpx.Response:
        headers = {**self.app.headers(mode), **more.pop("headers", {})}
        return await self.http.request(method, f"/api/v1{path}", headers=headers, **more)

    async def listed(self, mode: str = "test", **query: Any) -> dict[str, Any]:
        """Return the entries of GET /requests once the buffered ones are written."""
        await self.log.flush(self.app.ports)
        response = await self.app.get(f"/requests?{urlencode(query)}", mode=mode)
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found


@pytest.fixture
async def watched(app: TestApp) -> AsyncIterator[Watched]:
    opened = Watched(app)
    yield opened
    await opened.http.aclose()


async def test_request_is_recorded_with_exactly_these_fields(watched: Watched) -> None:
    payment = (await watched.app.created())["id"]
    answer = await watched.ask("GET", f"/payments/{payment}", headers={"X-Request-Id": "mine-1"})
    assert answer.status_code == 200
    found = await watched.listed()
    assert found["data"] == [
        {
            "request_id": "mine-1",
            "method": "GET",
            "path": PAYMENT,
            "object_id": payment,
            "status": 200,
            "code": None,
            "api_key": watched.app.account.test.api_key,
            "took_ms": 0,
            "created_at": "2026-01-01T00:00:00.000Z",
            "sandbox": True,
        }
    ]
    assert found["pagination"] == {"page": 1, "per_page": 20, "total": 1, "total_pages": 1}
    assert found["not_kept"] == 0
    assert (await watched.listed("live"))["data"] == []


async def test_request_is_logged_at_its_answer_time_and_not_its_write_time(watched: Watched) -> None:
    now = watched.app.clock.monotonic()
    of = watched.app.account.account_id, Mode.TEST
    watched.log.note(Noted(*of, "key", "GET", PAYMENT, (), 200, None, now - 0.25, now + 7.5, "r"))
    await watched.app.clock.advance(50)
    [found] = (await watched.listed())["data"]
    assert (found["created_at"], found["took_ms"]) == ("2026-01-01T00:00:07.500Z", 7750)


async def test_refusals_have_their_code_and_paths_of_others_their_form_alone(watched: Watched) -> None:
    await watched.ask("GET", "/payments/+79001234567")
    await watched.ask("POST", "/payments", json={"amount_rub": "1.00", "metadata": {"phone": "+79001234567"}})
    await watched.ask("GET", "/exchange-clients?q=9001234567")
    await watched.ask("DELETE", "/payments")
    await watched.ask("GET", "/no-such-path/+79001234567")
    await watched.http.get("/api/v1/balance", headers={"X-Api-Key": watched.app.account.test.api_key})
    found = (await watched.listed())["data"]
    told = [(each["method"], each["path"], each["status"], each["code"], each["object_id"]) for each in found]
    assert sorted(told, key=str) == [
        ("GET", "/api/v1/exchange-clients", 200, None, None),
        ("GET", PAYMENT, 404, "PAYMENT_NOT_FOUND", None),
        ("POST", "/api/v1/payments", 400, "MISSING_IDEMPOTENCY_KEY", None),
    ]
    kept = [await everything(watched.app.ports, kind) for kind in BATCHES]
    assert "9001234567" not in str([msgspec.structs.astuple(each) for rows in kept for each in rows])


@table(
    ("value", "shown"),
    [
        ("pay_01a1b2c3-0000-7000-8000-000000000000", True),
        ("svc_test_0", False),
        ("+79001234567", False),
        ("pay_79001234567", False),
        ("ivan_01a1b2c3-0000-7000-8000-000000000000x", False),
        ("", False),
    ],
)
def test_only_what_has_the_form_of_an_id_of_ours_is_kept_of_a_path(value: str, shown: bool) -> None:
    kept = value if shown else None
    assert (shown_object((value,)), shown_object((value, "1"))) == (kept, kept)
    assert shown_object(()) is None


async def test_pages_are_those_that_sorting_gives(url: str, tmp_path: Path) -> None:
    """Pages go by hours, from either end, on every storage. Requests of other accounts and modes never appear."""
    async with open_test_app(database_url=url, data_dir=tmp_path) as app:
        chance, log = random.Random(3), RequestLog()
        account_id = app.account.account_id
        async with app.ports.storage.unit() as unit:
            account = await unit[Account].get(account_id)
        assert account is not None
        for made in range(60):
            for number in range(chance.choice([0, 1, 2, 7])):
                now = app.clock.monotonic() - (9 - number) / 1000
                of = chance.choice([(account_id, Mode.TEST)] * 3 + [(account_id, Mode.LIVE), ("acc_0", Mode.TEST)])
                status = chance.choice([200, 201, 404, 409])
                log.note(Noted(*of, "key", "GET", PAYMENT, (), status, None, now, now, f"r{made}-{number}"))
            await log.flush(app.ports)
            await app.clock.advance(chance.choice([60, 1800, 3600, 7 * 3600]))
        firsts = await everything(app.ports, FirstBatch)
        every = [*firsts, *await everything(app.ports, RequestBatch)]
        assert len(every) > len(firsts) > 0
        caller = Caller(account=account, mode=Mode.TEST, key_id="k")
        mine = [
            entry
            for each in sorted(every, key=lambda each: each.id)
            if (each.account_id, each.mode) == (account_id, Mode.TEST)
            for entry in each.entries
        ]
        moments = [mine[0].at, mine[len(mine) // 2].at, mine[-1].at, mine[-1].at + timedelta(hours=1)]
        asked_status: int | None
        for asked_status in (None, 200, 409):
            for low in (None, *moments):
                for high in (None, *moments):
                    wanted = [
                        each.request_id
                        for each in reversed(mine)
                        if asked_status in (None, each.status)
                        and (low is None or each.at >= low)
                        and (high is None or each.at < high)
                    ]
                    asked = RequestFilter(
                        status=None if asked_status is None else str(asked_status),
                        created_from=None if low is None else low.isoformat(),
                        created_to=None if high is None else high.isoformat(),
                    )
                    walked = await _walked(app, caller, asked, size=5)
                    assert sorted(walked) == sorted(wanted), (asked_status, low, high)
                    for number, size in ((1, 5), (2, 5), (3, 20), (9, 9)):
                        page = await list_requests(app.ports, caller, asked, number, size)
                        assert page.total == len(wanted), (asked_status, low, high)
                        expected = wanted[(number - 1) * size : number * size]
                        assert [each.request_id for each in page.records] == expected, (
                            asked_status,
                            low,
                            high,
                            number,
                            size,
                        )


async def _walked(app: TestApp, caller: Caller, asked: RequestFilter, size: int) -> list[str]:
    """Return the ids of all requests, read by cursor to the end and back to the top."""
    down, cursor = list[str](), None
    pages = list[list[str]]()
    while True:
        page, _ = await browse_requests(app.ports, caller, asked, cursor, size)
        pages.append([each.request_id for each in page.records])
        down += pages[-1]
        assert len(page.records) == size or page.older is None
        if page.older is None:
            break
        cursor = Cursor(page.older)
    for expected in reversed(pages[:-1]):
        assert page.newer is not None
        page, _ = await browse_requests(app.ports, caller, asked, Cursor(page.newer, newer=True), size)
        assert [each.request_id for each in page.records] == expected
    assert page.newer is None
    return down


async def test_requests_of_one_moment_and_id_are_all_listed_once(app: TestApp) -> None:
    """A caller may send many requests under one X-Request-Id, and several processes answer at the same microsecond."""
    account = await app.ports.storage.get(Account, app.account.account_id)
    assert account is not None
    caller = Caller(account=account, mode=Mode.TEST, key_id="")
    now = app.clock.monotonic()
    for process in range(3):
        log = RequestLog()
        for number in range(7):
            path = f"/api/v1/{process}/{number}"
            log.note(Noted(caller.account_id, Mode.TEST, "key", "GET", path, (), 200, None, now, now, "one-id"))
        await log.flush(app.ports)
    for size in (1, 2, 5, 20, 21):
        seen, cursor = list[str](), None
        while True:
            page, _ = await browse_requests(app.ports, caller, RequestFilter(), cursor, size)
            seen += [each.path for each in page.records]
            if page.older is None:
                break
            cursor = Cursor(page.older)
        assert len(seen) == len(set(seen)) == 21, size
        assert await _walked(app, caller, RequestFilter(), size) == ["one-id"] * 21
        pages = [await list_requests(app.ports, caller, RequestFilter(), number, size) for number in range(1, 23)]
        assert [each.path for page in pages for each in page.records] == seen, size


async def test_filter_value_that_no_request_has_is_refused(app: TestApp) -> None:
    for text in ("100", "599"):
        assert (await app.get(f"/requests?status={text}")).status_code == 200
    bad = [*(("status", text) for text in ("abc", "4xx", "99", "099", "600", "²00", "")), ("created_from", "now")]
    for name, text in bad:
        response = await app.get(f"/requests?{urlencode({name: text})}")
        assert (response.status_code, response.json()["error"]["code"]) == (400, "VALIDATION_ERROR"), (name, text)


async def test_a_test_accounts_clock_does_not_hide_its_requests(watched: Watched) -> None:
    """They are of the machine's time, whatever that of the account is."""
    response = await watched.app.http.post(
        "/api/v1/sandbox/clock/advance", json={"seconds": 90 * 86400}, headers=watched.app.headers()
    )
    assert response.status_code == 200, response.text
    await watched.ask("GET", "/balance")
    [found] = (await watched.listed())["data"]
    assert found["created_at"] == "2026-01-01T00:00:00.000Z"


async def test_follower_gets_the_requests_answered_since_a_moment(app: TestApp) -> None:
    """The answer includes the hour's first batch, even if it began before, and covers one mode."""
    log, moments = RequestLog(), []
    for number in range(4):
        moments.append(app.clock.now())
        for mode in Mode:
            now = app.clock.monotonic()
            of = app.account.account_id, mode
            log.note(Noted(*of, "key", "GET", PAYMENT, (), 200, None, now, now, f"{mode}-{number}"))
        await app.clock.advance(5)
        if number % 2:
            await log.flush(app.ports)
    assert len(await everything(app.ports, FirstBatch)) == len(Mode)
    for number, moment in enumerate(moments):
        found = await follow_requests(app.ports, app.account.account_id, Mode.TEST, moment)
        assert [each.request_id for each in found] == [f"test-{later}" for later in range(number, 4)]


class TestBounds:
    async def test_waiting_requests_are_bounded_and_dropped_ones_are_counted(
        self, watched: Watched, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(request_log, "WAITING", 3)
        for _ in range(5):
            await watched.ask("GET", "/balance")
        found = await watched.listed()
        assert (len(found["data"]), found["pagination"]["total"], found["not_kept"]) == (3, 3, 2)
        assert (await watched.listed(created_from="2026-01-01T02:00:00Z"))["not_kept"] == 0

    async def test_single_request_in_an_hour_costs_one_row(self, app: TestApp) -> None:
        """A first batch counts itself. Later batches of the hour, and batches of several statuses, are counted
        separately."""
        log, ports = RequestLog(), app.ports
        for number in range(100):
            log.note(_noted(app, f"acc_{number}"))
        await log.flush(ports)
        assert (len(await everything(ports, FirstBatch)), await everything(ports, RequestCount)) == (100, [])
        log.note(_noted(app, "acc_0"))
        await log.flush(ports)
        assert [each.count for each in await everything(ports, RequestCount)] == [1]
        await app.clock.advance(3600)
        log.note(_noted(app, "acc_0"))
        log.note(msgspec.structs.replace(_noted(app, "acc_1"), status=404))
        log.note(_noted(app, "acc_1"))
        await log.flush(ports)
        assert len(await everything(ports, FirstBatch)) == 101
        assert sorted(each.status for each in await everything(ports, RequestCount)) == [200, 200, 404]

    async def test_dropped_requests_of_tracked_accounts_are_all_counted(
        self, app: TestApp, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also if there are too many accounts to notify each."""
        monkeypatch.setattr(request_log, "WAITING", 0)
        monkeypatch.setattr(request_log, "MOST_OWNERS", 2)
        log = RequestLog()
        for number in (0, 1, 2, 1):
            log.note(_noted(app, f"acc_{number}"))
        await log.flush(app.ports)
        told = {each.account_id: each.count for each in await everything(app.ports, RequestCount)}
        assert (told, log.lost) == ({"acc_0": 1, "acc_1": 2}, 4)

    async def test_requests_are_written_in_units_of_250_and_later_ones_wait(
        self, app: TestApp, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        log, units, unit = RequestLog(), 0, app.ports.storage.unit
        for number in range(600):
            log.note(_noted(app, f"acc_{number}"))

        def counted() -> Any:
            nonlocal units
            units += 1
            if units == 3:
                raise Unavailable("away")
            log.note(_noted(app, f"acc_meanwhile_{units}"))
            return unit()

        monkeypatch.setattr(app.ports.storage, "unit", counted)
        with pytest.raises(Unavailable):
            await log.flush(app.ports)
        assert len(log._waiting) == 100 + 2
        await log.flush(app.ports)
        assert (units, len(log._waiting)) == (4, 1)
        assert len({each.account_id for each in await everything(app.ports, FirstBatch)}) == 602

    @pytest.mark.parametrize(("most", "kept"), [(request_log.WAITING, 1), (0, 0)], ids=["it", "that it was not kept"])
    async def test_log_waits_while_the_storage_is_away(
        self, watched: Watched, monkeypatch: pytest.MonkeyPatch, most: int, kept: int
    ) -> None:
        """And how many found no place, as well."""
        monkeypatch.setattr(request_log, "WAITING", most)
        await watched.ask("GET", "/balance")

        def away() -> None:
            raise Unavailable("away")

        with monkeypatch.context() as patched:
            patched.setattr(watched.app.ports.storage, "unit", away)
            with pytest.raises(Unavailable):
                await watched.log.flush(watched.app.ports)
        listed = await watched.listed()
        assert (listed["pagination"]["total"], listed.get("not_kept", 0)) == (kept, 1 - kept)

    async def test_a_process_writes_by_itself_and_once_more_at_its_end(self, watched: Watched) -> None:
        ports = watched.app.ports
        async with requests_kept(ports, watched.log):
            await watched.ask("GET", "/balance")
            await watched.app.clock.advance(REQUESTS_EVERY + 0.1)
            assert await _batches(watched.app) == 1
            await watched.ask("GET", "/balance")
        assert await _batches(watched.app) == 2

    async def test_nothing_longer_than_an_id_waits_of_a_path(self, watched: Watched) -> None:
        await watched.ask("GET", f"/payments/{'9' * 2000}")
        assert [each.values for each in watched.log._waiting] == [()]

    @table(
        ("waiting", "seconds", "due"),
        [
            (0, 1, True),
            (50, 1, True),
            (51, 1, False),
            (1999, 9, False),
            (51, 10, True),
            (2000, 1, True),
        ],
    )
    async def test_few_are_written_at_once_and_more_of_them_together(
        self, app: TestApp, waiting: int, seconds: float, due: bool
    ) -> None:
        for is_new in (False, True):
            log = RequestLog()
            if not is_new:
                await log.flush(app.ports)
            await app.clock.advance(seconds)
            for number in range(waiting):
                log.note(_noted(app, f"acc_{number}"))
            assert log.is_due(app.ports) is (due or is_new)

    async def test_the_end_of_a_process_waits_for_no_more_of_them(self, app: TestApp) -> None:
        log = RequestLog()
        await log.flush(app.ports)
        async with requests_kept(app.ports, log):
            for _ in range(100):
                log.note(_noted(app))
            await app.clock.advance(REQUESTS_EVERY)
            assert len(log._waiting) == 100
        assert await _batches(app) == 1

    async def test_requests_of_an_account_written_together_are_one_row(self, app: TestApp) -> None:
        log = RequestLog()
        for _ in range(3):
            for number in range(100):
                log.note(_noted(app, f"acc_{number}"))
        await log.flush(app.ports)
        # At most one account's requests lie on both sides of a unit's end.
        assert 100 <= await _batches(app) <= 101


def _noted(app: TestApp, account_id: str = "acc_0") -> Noted:
    now = app.clock.monotonic()
    return Noted(account_id, Mode.TEST, "key", "GET", PAYMENT, (), 200, None, now, now, "r")


async def _batches(app: TestApp) -> int:
    async with app.ports.storage.unit() as unit:
        return sum([await unit[kind].total() for kind in BATCHES])


class TestPruning:
    async def test_after_thirty_days_nothing_is_left_and_nothing_younger_goes(self, url: str, tmp_path: Path) -> None:
        async with open_test_app(database_url=url, data_dir=tmp_path) as app:
            log, ports = RequestLog(), app.ports
            for _ in range(3):
                now = app.clock.monotonic()
                for _ in range(2):
                    for mode in Mode:
                        of = (app.account.account_id, mode)
                        log.note(Noted(*of, "key", "GET", PAYMENT, (), 200, None, now, now, "r"))
                    await log.flush(ports)
                await app.clock.advance(3600)
            await app.clock.advance(30 * 86400 - 2 * 3600)
            await self.pruned(app)
            assert await _batches(app) == 8
            for kind in (FirstBatch, RequestCount):
                hours = {each.hour for each in await everything(ports, kind)}
                assert hours == {"2026-01-01T01", "2026-01-01T02"}
            await app.clock.advance(86400)
            job = await self.pruned(app)
            assert (await _batches(app), await everything(ports, RequestCount)) == (0, [])
            assert job.due - app.clock.now() == first_pruning(ports).due - app.clock.now() == timedelta(days=1)

    async def test_many_are_deleted_in_turns(self, app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(request_pruning, "_BATCH", 2)
        monkeypatch.setattr(request_pruning, "_PORTION", 4)
        log, now = RequestLog(), app.clock.monotonic()
        for _ in range(9):
            log.note(Noted(app.account.account_id, Mode.TEST, "key", "GET", PAYMENT, (), 200, None, now, now, "r"))
            await log.flush(app.ports)
        await app.clock.advance(KEPT.total_seconds() + 7200)
        job = await self.pruned(app)
        assert await _batches(app) == 5
        assert job.due - app.clock.now() == timedelta(seconds=1), "it comes back at once"
        for _ in range(3):
            await self.pruned(app)
        assert await _batches(app) == 0

    async def test_a_turn_deletes_no_more_where_many_accounts_have_a_little(
        self, app: TestApp, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(request_pruning, "_PORTION", 3)
        log = RequestLog()
        for number in range(9):
            log.note(_noted(app, (await create_account(app.ports, f"Merchant {number}")).account_id))
        await log.flush(app.ports)
        await app.clock.advance(KEPT.total_seconds() + 7200)
        job = await self.pruned(app)
        assert await _batches(app) == 6
        assert job.due - app.clock.now() == timedelta(seconds=1)
        for _ in range(3):
            await self.pruned(app)
        assert await _batches(app) == 0

    async def pruned(self, app: TestApp) -> Job:
        async with app.ports.storage.unit() as unit:
            if await unit[Job].get(PRUNE) is None:
                unit[Job].add(first_pruning(app.ports))
            await unit.commit()
        job = await app.ports.storage.get(Job, PRUNE)
        assert job is not None
        await prune(app.ports, job)
        after = await app.ports.storage.get(Job, PRUNE)
        assert after is not None
        return after


async def test_two_flushes_at_once_write_each_request_once(app: TestApp) -> None:
    log, now = RequestLog(), app.clock.monotonic()
    for number in range(600):
        name = str(number)
        log.note(Noted(app.account.account_id, Mode.TEST, "key", "GET", PAYMENT, (), 200, None, now, now, name))
    await asyncio.gather(log.flush(app.ports), log.flush(app.ports))
    async with app.ports.storage.unit() as unit:
        rows = [row for kind in BATCHES for row in await unit[kind].find(limit=1000)]
    written = [entry.request_id for row in rows for entry in row.entries]
    assert sorted(written) == sorted(map(str, range(600)))

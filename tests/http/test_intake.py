"""Too much new work at once (docs/limits.md "Overload"). New requests wait, and a request that would wait too long is
refused before any work. Reads and health never wait."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import httpx
import msgspec
import pytest

from cambist.core.usecases.accounts.accounts import create_account
from cambist.frontends.http.edge import intake as rules
from cambist.frontends.http.edge.gated import GatedProtocol
from cambist.frontends.http.edge.intake import HOPE, LEAST_ROOM, PATIENCE, POLL, REFUSALS, ROOM, Intake
from cambist.frontends.server.server import running
from cambist.frontends.settings.settings import Settings
from cambist.frontends.telemetry.counters import Counters
from tests.patience import HANGS


class Clock:
    """A clock that advances only on request."""

    def __init__(self) -> None:
        self.time = 1000.0

    def monotonic(self) -> float:
        return self.time


class Cycle:
    """A request, as the server has it."""

    disconnected = False

    def __init__(self) -> None:
        self.scope = {"method": "POST"}


class Line:
    """A connection that notes what becomes of its requests."""

    def __init__(self, rested: float | None = None) -> None:
        self.begun: list[Cycle] = []
        self.refused: list[Cycle] = []
        self.ends: list[Callable[[Any], None]] = []
        self.woken = 0
        self._rested = rested

    def begin(self, cycle: Cycle, asgi: Any) -> Any:
        self.begun.append(cycle)
        return self

    def add_done_callback(self, end: Callable[[Any], None]) -> None:
        self.ends.append(end)

    def refuse(self, cycle: Cycle) -> None:
        self.refused.append(cycle)

    def wake(self) -> None:
        self.woken += 1

    def heard_since(self, now: float) -> float:
        return now if self._rested is None else self._rested


class Rush:
    """An intake, and one connection that asks for everything."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.counters = Counters()
        self.intake = Intake(self.clock, self.counters)  # type: ignore[arg-type]  # as much of it as is used
        self.line = Line()

    def ask(self, count: int) -> list[Cycle]:
        asked = [Cycle() for _ in range(count)]
        for cycle in asked:
            self.intake.take(self.line, cycle, None)
        return asked

    def end(self, count: int) -> None:
        """Answer `count` of the running requests."""
        for _ in range(count):
            self.line.ends.pop()(None)

    def look(self, after: float = POLL) -> None:
        self.clock.time += after
        self.intake.look()


@pytest.fixture
async def rush() -> Rush:
    return Rush()


async def test_request_without_room_waits_and_begins_in_order(rush: Rush) -> None:
    asked = rush.ask(ROOM + 3)
    assert (rush.line.begun, rush.line.refused) == (asked[:ROOM], [])
    rush.end(2)
    assert rush.line.begun == asked[: ROOM + 2]
    rush.end(1)
    assert rush.line.begun == asked


async def test_request_that_waited_too_long_is_refused_and_counted(rush: Rush) -> None:
    asked = rush.ask(ROOM + 1)
    rush.clock.time += PATIENCE - POLL - 0.001
    rush.look()
    assert rush.line.refused == []
    rush.look()
    assert rush.line.refused == asked[ROOM:]
    assert dict(rush.counters.requests.read()) == {("POST", "none", "503"): 1}


async def test_request_is_refused_at_once_if_it_could_not_begin_in_time(rush: Rush) -> None:
    turn = 2 * POLL  # in which room neither grows nor shrinks
    rush.ask(ROOM)
    for _ in range(20):
        rush.look(after=turn)
    rush.ask(250)
    room = len(rush.line.begun)
    rush.ask(room - ROOM)  # 250 wait
    for _ in range(40):
        rush.end(5)
        rush.look(after=turn)
    assert (rush.line.refused, len(rush.line.begun)) == ([], room + 200)
    rush.ask(1000)
    assert 50 + 1000 - len(rush.line.refused) == pytest.approx(5 / turn * HOPE, rel=0.1)
    rush.line.refused.clear()
    rush.end(10)
    rush.ask(10)
    assert rush.line.refused == [], "as soon as there is room again"


async def test_client_that_left_while_waiting_costs_nothing(rush: Rush) -> None:
    asked = rush.ask(ROOM + 2)
    asked[ROOM].disconnected = True
    rush.end(1)
    assert rush.line.begun == [*asked[:ROOM], asked[ROOM + 1]]


async def test_request_counts_from_when_its_connection_was_left_unread(rush: Rush) -> None:
    rush.ask(ROOM + 1)
    rested = Line(rested=rush.clock.time - HOPE - 0.001)
    rush.intake.take(rested, Cycle(), None)
    assert len(rested.refused) == 1


async def test_connections_that_were_refused_are_read_on_some_at_a_time(rush: Rush) -> None:
    for _ in range(REFUSALS + 1):
        rush.intake.rest(rush.line)
    rush.look()
    assert rush.line.woken == REFUSALS
    rush.look()
    assert rush.line.woken == REFUSALS + 1


async def test_slow_event_loop_lowers_the_limit_and_waiting_raises_it(rush: Rush) -> None:
    rush.ask(ROOM)
    for _ in range(200):
        rush.look(after=0.3)
    rush.end(ROOM)
    assert len(rush.ask(ROOM)) == ROOM
    assert rush.intake.under_way == LEAST_ROOM
    calm = Rush()
    calm.ask(ROOM)
    for _ in range(50):  # all of them wait for a bank, and the loop is at rest
        calm.look()
        calm.ask(1)
    assert calm.intake.under_way > ROOM


async def test_a_refusal_is_an_answer_like_any_other_and_its_connection_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules.Intake, "take", lambda intake, line, cycle, asgi: intake._refuse(line, cycle))
    async with running(Settings(database_url="memory://", port=0), works=False) as service:
        account = await create_account(service.app.ports, "Merchant")
        keys = {"X-Api-Key": account.test.api_key, "X-Api-Secret": account.test.api_secret}
        key = {"Idempotency-Key": str(uuid4())}
        async with (
            httpx.AsyncClient(base_url=service.app.settings.base_url, timeout=HANGS) as client,
            asyncio.timeout(HANGS),
        ):
            for body in (b'{"amount_rub": "100.00"}', b" " * 90_000):
                answer = await client.post(
                    "/api/v1/payments", content=body, headers=keys | key | {"X-Request-Id": "mine"}
                )
                assert (answer.status_code, answer.headers["Retry-After"]) == (503, str(rules.RETRY_AFTER))
                assert answer.headers["Link"].endswith('/docs/errors#PROVIDER_UNAVAILABLE>; rel="help"')
                assert answer.headers["Content-Type"] == "application/json"
                assert answer.headers["X-Request-Id"] == "mine"
                assert answer.json()["error"]["code"] == "PROVIDER_UNAVAILABLE"
            assert (await client.post("/api/v1/payments", headers=keys)).headers["X-Request-Id"]
            for path in ("/livez", "/readyz", "/api/v1/payments"):
                assert (await client.get(path, headers=keys)).status_code == 200
            monkeypatch.undo()
            made = await client.post("/api/v1/payments", json={"amount_rub": "100.00"}, headers=keys | key)
            assert made.status_code == 201, "the key is not used up"
            assert msgspec.json.decode(made.content)["id"]


async def test_a_connection_that_rests_keeps_next_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """In an overload thousands of connections rest, and their memory is freed only slowly."""
    lines: list[GatedProtocol] = []

    def refuse(intake: Any, line: GatedProtocol, cycle: Any, asgi: Any) -> None:
        lines.append(line)
        intake._refuse(line, cycle)

    monkeypatch.setattr(rules.Intake, "take", refuse)
    async with asyncio.timeout(HANGS), running(Settings(database_url="memory://", port=0), works=False) as service:
        port = int(service.app.settings.base_url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(2):
            writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
            assert (await reader.readuntil(b"}}")).startswith(b"HTTP/1.1 503 ")
            line: Any = lines[-1]
            assert (line.parser, line.cycle, line.scope, line.headers) == (None, None, None, None)
            assert vars(line) == vars(line.flow) == {}, "a name that the server has beside its slots costs a dict"
        writer.close()


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_an_idle_connection_keeps_nothing_of_what_it_asked_for(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Neither a parser from when the request is whole, nor the request once it is answered, nor a timer."""
    lines: list[Any] = []
    began = GatedProtocol.begin

    def begin(line: GatedProtocol, cycle: Any, asgi: Any) -> "asyncio.Task[None]":
        lines.append(line)
        return began(line, cycle, asgi)

    monkeypatch.setattr(GatedProtocol, "begin", begin)
    async with asyncio.timeout(60), running(Settings(database_url="memory://", port=0), works=False) as service:
        port = int(service.app.settings.base_url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(2):
            writer.write(f"{method} /api/v1/payments HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx".encode())
            assert (await reader.readuntil(b"}}")).startswith(b"HTTP/1.1 401 ")
            line = lines.pop()
            assert (line.parser, line.cycle, line.scope, line.headers) == (None, None, None, None)
            assert line.timeout_keep_alive_task is None
        writer.close()


async def test_a_request_that_waits_to_be_begun_keeps_no_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting: list[tuple[Any, ...]] = []
    monkeypatch.setattr(rules.Intake, "take", lambda *given: waiting.append(given[1:]))
    async with asyncio.timeout(60), running(Settings(database_url="memory://", port=0), works=False) as service:
        port = int(service.app.settings.base_url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n1")
        while not waiting:
            await asyncio.sleep(0)
        line, cycle, asgi = waiting[0]
        assert line.parser is not None, "its body is still to come"
        writer.write(b"2")
        while cycle.more_body:
            await asyncio.sleep(0)
        assert line.parser is None
        line.begin(cycle, asgi)
        assert (await reader.readuntil(b"}}")).startswith(b"HTTP/1.1 404 ")
        writer.close()


async def test_a_head_that_has_begun_behind_a_refused_request_is_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting: list[tuple[Any, ...]] = []
    monkeypatch.setattr(rules.Intake, "take", lambda *given: waiting.append(given[:3]))
    async with asyncio.timeout(HANGS), running(Settings(database_url="memory://", port=0), works=False) as service:
        port = int(service.app.settings.base_url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\nGET /livez HTTP/1.1\r\nHost: x\r\n")
        while not waiting:
            await asyncio.sleep(0)
        intake, line, cycle = waiting[0]
        intake._refuse(line, cycle)
        writer.write(b"Accept: */*\r\n\r\n")
        assert (await reader.readuntil(b"}}")).startswith(b"HTTP/1.1 503 ")
        assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 200 ")
        writer.close()

"""`cambist listen` over real sockets: forwarding, resuming and output (docs/cli.md "Commands")."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import uvicorn

from cambist.adapters.clock import SystemClock
from cambist.core.domain.errors import Refusal
from cambist.core.domain.webhooks.signing import verify_signature
from cambist.frontends.cli import listening
from cambist.frontends.cli.listen import usual_file
from cambist.frontends.cli.listening import BETWEEN, RECONNECT, WAIT, CursorFile, Follower, Handed, Wish
from cambist.frontends.http.edge.streams import WindowStreams
from cambist.frontends.server.app import create_app
from cambist.frontends.server.server import listen as listening_socket
from cambist.ports.faults import Fault, Unavailable
from tests.apps import WEBHOOK_SECRET, TestApp
from tests.cli.conftest import Call
from tests.patience import HANGS
from tests.receivers import Receiver, reply, reset

QUICK = 0.01


class QuickClock(SystemClock):
    """Long pauses are short here, and remembered."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(QUICK)


class Served:
    """An app on a port of its own, which may go away and come back."""

    def __init__(self, app: TestApp) -> None:
        self.app = app
        self.port = 0
        self._server: uvicorn.Server | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        listener = listening_socket("127.0.0.1", self.port)
        self.port = listener.getsockname()[1]
        streams = WindowStreams(limit=0)  # no question waits: the app's clock stands still
        asgi = create_app(self.app.ports, streams=streams)
        config = uvicorn.Config(asgi, log_config=None, lifespan="off", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._task = asyncio.create_task(self._server.serve(sockets=[listener]))

    async def stop(self) -> None:
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            await self._task


@pytest.fixture
async def served(app: TestApp) -> AsyncIterator[Served]:
    made = Served(app)
    await made.start()
    yield made
    await made.stop()


async def eventually(look: Callable[[], bool]) -> None:
    async with asyncio.timeout(HANGS):
        while not look():
            await asyncio.sleep(QUICK)


class Listening:
    """A running follower and its output."""

    def __init__(self) -> None:
        self.handed: list[Handed] = []
        self.said: list[str] = []
        self.clock = QuickClock()

    @property
    def objects(self) -> list[str]:
        return [each.letter.object_id for each in self.handed]


def follower(served: Served, file: Path, running: Listening, **wish: Any) -> Follower:
    pair = served.app.account.test
    wanted = Wish(base_url=served.base_url, api_key=pair.api_key, api_secret=pair.api_secret, **wish)
    return Follower(wanted, CursorFile(file), running.clock, tell=running.handed.append, say=running.said.append)


@asynccontextmanager
async def following(served: Served, file: Path, start: str | None = None, **wish: Any) -> AsyncIterator[Listening]:
    """Follow in the background, from the stored cursor unless `start` says otherwise."""
    running = Listening()
    begin = start or CursorFile(file).read() or "now"
    task = asyncio.create_task(follower(served, file, running, **wish).follow(begin))
    try:
        yield running
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def failed(app: TestApp) -> str:
    payment: str = (await app.created())["id"]
    await app.simulate(payment, outcome="failed")
    return payment


async def test_every_webhook_is_forwarded_unchanged_and_verifies(served: Served, tmp_path: Path) -> None:
    async with Receiver() as local, following(served, tmp_path / "c", "beginning", forward_to=local.url) as running:
        payment = await failed(served.app)
        [request] = await local.arrived(1)
        sent = int(request.headers["x-webhook-timestamp"])
        assert verify_signature(request.headers, request.body, [WEBHOOK_SECRET], sent) == request.headers["webhook-id"]
        assert [msgspec.json.decode(request.body)] == await served.app.events(payment)
        await eventually(lambda: len(running.handed) == 1)
        [handed] = running.handed
        assert (handed.status, handed.error, handed.object_status) == (200, None, "failed")


async def test_a_restart_loses_none_and_repeats_none(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "deep" / "c"
    async with Receiver() as local:
        async with following(served, file, "beginning", forward_to=local.url) as running:
            first = await failed(served.app)
            await eventually(lambda: running.objects == [first])
            await eventually(lambda: CursorFile(file).read() == "1")
        missed = [await failed(served.app) for _ in range(3)]
        async with following(served, file, forward_to=local.url) as running:
            await eventually(lambda: running.objects == missed)


async def test_event_in_flight_at_a_kill_comes_again(served: Served, tmp_path: Path) -> None:
    """The cursor moves only after a letter was handed over."""
    file = tmp_path / "c"
    CursorFile(file).write("0")
    payment = await failed(served.app)
    async with Receiver() as local:
        held = asyncio.Event()

        async def hold(_: Receiver, __: asyncio.StreamWriter) -> bool:
            await held.wait()
            return False

        local.answer_with(hold)
        async with following(served, file, forward_to=local.url):
            await local.arrived(1)
        assert CursorFile(file).read() == "0"
        held.set()
        local.answer_with(200)
        async with following(served, file, forward_to=local.url) as running:
            await eventually(lambda: running.objects == [payment])


async def test_a_dropped_service_is_waited_for_with_growing_pauses(served: Served, tmp_path: Path) -> None:
    async with Receiver() as local, following(served, tmp_path / "c", "beginning", forward_to=local.url) as running:
        first = await failed(served.app)
        await eventually(lambda: running.objects == [first])
        await served.stop()
        await eventually(lambda: running.clock.pauses.count(RECONNECT[-1]) >= 2)
        second = await failed(served.app)
        await served.start()
        await eventually(lambda: running.objects == [first, second])
        broken = [pause for pause in running.clock.pauses if pause != BETWEEN]
        assert tuple(broken[: len(RECONNECT)]) == RECONNECT
        assert len(running.said) == 2, running.said


async def test_resent_event_is_forwarded_again(served: Served, tmp_path: Path) -> None:
    app = served.app
    payment = await failed(app)
    async with Receiver() as local, following(served, tmp_path / "c", "beginning", forward_to=local.url) as running:
        await eventually(lambda: running.objects == [payment])
        [event_id] = [each.letter.id for each in running.handed]
        resent = await app.http.post(f"/api/v1/events/{event_id}/resend", headers=app.headers())
        assert resent.status_code == 200
        await eventually(lambda: running.objects == [payment, payment])
        one, two = await local.arrived(2)
        assert (one.body, one.headers["x-webhook-id"]) == (two.body, two.headers["x-webhook-id"])


async def test_answers_of_the_local_address_are_shown_and_delay_nothing(served: Served, tmp_path: Path) -> None:
    app = served.app
    for _ in range(4):
        await failed(app)
    async with Receiver() as local:
        local.answer_with(500, reset(), reply(302, headers={"Location": "http://127.0.0.1:1/"}), 204)
        async with following(served, tmp_path / "c", "beginning", forward_to=local.url) as running:
            await eventually(lambda: len(running.handed) == 4)
    assert [each.status for each in running.handed] == [500, None, 302, 204]
    assert [bool(each.error) for each in running.handed] == [False, True, False, False]


async def test_now_is_from_now_on(served: Served, tmp_path: Path) -> None:
    await failed(served.app)
    file = tmp_path / "c"
    async with following(served, file) as running:
        await eventually(lambda: CursorFile(file).read() == "1")
        payment = await failed(served.app)
        await eventually(lambda: running.objects == [payment])
        [handed] = running.handed
        assert (handed.status, handed.error) == (None, None)


async def test_rejected_credentials_end_the_listener(served: Served, tmp_path: Path) -> None:
    served.app.account = msgspec.structs.replace(
        served.app.account, test=msgspec.structs.replace(served.app.account.test, api_secret="0" * 64)
    )
    with pytest.raises(Refusal) as raised:
        await follower(served, tmp_path / "c", Listening()).follow("now")
    assert raised.value.code == "Unauthorized"


async def test_a_cursor_of_another_installation_ends_it(served: Served, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="beyond the end"):
        await follower(served, tmp_path / "c", Listening()).follow("7")


async def test_other_server_ends_the_listener_or_is_retried(served: Served, tmp_path: Path) -> None:
    async with Receiver() as other:
        served.port = other.port
        other.answer_with(reply(404, b"<html>"))
        with pytest.raises(Fault, match="not the service"):
            await follower(served, tmp_path / "c", Listening()).follow("now")
        other.answer_with(reply(429, b"{}"), reply(200, b"<html>"), reply(503), reply(404))
        running = Listening()
        with pytest.raises(Fault):
            await follower(served, tmp_path / "c", running).follow("now")
        assert running.clock.pauses == list(RECONNECT[:3])


def test_the_key_keeps_room_for_the_merchants_own_program() -> None:
    """60 requests a minute per key (docs/limits.md "Requests"); listening takes at most two thirds of them."""
    assert 60 / BETWEEN <= 40
    assert 60 / WAIT < 3


def test_a_cursor_file_of_something_else_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "c"
    file.write_text("{}")
    with pytest.raises(Unavailable):
        CursorFile(file).read()


def test_the_secret_is_in_no_repr() -> None:
    assert "abc" not in repr(Wish(base_url="http://x", api_key="svc_test_1", api_secret="abc"))


def test_files_differ_by_service_and_key() -> None:
    files = {usual_file(base, key) for base in ("http://a", "http://b") for key in ("svc_test_1", "svc_test_2")}
    assert len(files) == 4
    assert all(file.parent.parts[-2:] == (".config", "cambist") for file in files)


def test_wrong_usage_is_reported_without_a_call(call: Call) -> None:
    pair = ("--api-key", "svc_test_1", "--api-secret", "x")
    for arguments, word in (
        ((), "--api-key"),
        (("--api-key", "svc_live_1", "--api-secret", "x"), "test key"),
        ((*pair, "--forward-to", "ftp://x"), "http"),
        ((*pair, "--types", "payment.gone"), "types"),
        ((*pair, "--from", "yesterday"), "cursor"),
    ):
        done = call("listen", *arguments)
        assert done.status == 2
        assert word in done.err


def test_the_pair_may_come_from_the_environment(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    followed: list[tuple[Wish, str]] = []

    async def follow(self: Follower, start: str) -> None:
        followed.append((self._wish, start))
        raise Refusal("Unauthorized", "The API key or secret is not valid")

    monkeypatch.setattr(listening.Follower, "follow", follow)
    environment = {"CAMBIST_API_KEY": "svc_test_1", "CAMBIST_API_SECRET": "a-secret", "HOME": str(Path.cwd())}
    done = call("listen", "--forward-to", "http://127.0.0.1:3000/hook", "--json", env=environment)
    [(wish, start)] = followed
    assert (wish.api_key, wish.api_secret, start) == ("svc_test_1", "a-secret", "now")
    assert wish.base_url == "http://127.0.0.1:8080"
    assert done.status == 1
    assert done.document["error"]["code"] == "Unauthorized"
    assert "a-secret" not in done.err + done.out
    assert "no setting" not in done.err

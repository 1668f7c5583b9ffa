"""The payer window's event stream: the live status of a payment."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any
from uuid import uuid4

import httpx
import msgspec
from litestar import Litestar

from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.usecases.accounts import accounts
from cambist.frontends.http.edge.streams import HEARTBEAT, STREAM_LIFETIME, Seat, WindowStreams, follow
from cambist.frontends.http.payer.window import look, window_router
from cambist.frontends.server.server import running
from cambist.frontends.settings.settings import Settings
from cambist.ports.bundle import Ports
from cambist.ports.faults import Unavailable
from tests.apps import TestApp
from tests.patience import HANGS
from tests.planting import beneath


class Listener:
    """Reads a stream under the virtual clock and returns the text since the last call."""

    def __init__(self, stream: AsyncGenerator[bytes, None]) -> None:
        self.said: list[bytes] = []
        self.task = asyncio.create_task(self._read(stream))

    async def _read(self, stream: AsyncGenerator[bytes, None]) -> None:
        async for chunk in stream:
            self.said.append(chunk)

    def news(self) -> list[str]:
        """Return the faces that the stream sent, and `alive` for a heartbeat."""
        said, self.said = self.said, []
        return ["alive" if chunk.startswith(b":") else _face(chunk) for chunk in said]

    @property
    def over(self) -> bool:
        return self.task.done()


NOBODY = Seat(page="", address="")


def _face(chunk: bytes) -> str:
    data = chunk.decode().split("data: ")[1]
    assert data.endswith("\n\n")
    face: str = msgspec.json.decode(data)["face"]
    return face


async def listening(
    app: TestApp, payment: dict[str, Any], streams: WindowStreams, ports: Ports | None = None
) -> Listener:
    seat, seen = Seat(page=payment["id"], address="192.0.2.1"), await look(app.ports, payment["id"])
    assert seen is not None
    at = ports or app.ports
    listener = Listener(follow(at.clock, streams, seat, seen, lambda: look(at, payment["id"])))
    await app.clock.advance(0)
    return listener


async def test_stream_sends_the_state_at_once_and_changes_within_a_second(app: TestApp) -> None:
    streams = WindowStreams()
    payment = await app.created()
    listener = await listening(app, payment, streams)
    assert listener.said[0].startswith(b"retry: 3000\n\nevent: state\n")
    assert listener.news() == ["waiting"]
    assert streams.open == 1
    await app.simulate(payment["id"], outcome="processing")
    await app.clock.advance(1)
    assert listener.news() == ["processing"]
    await app.simulate(payment["id"], outcome="paid")
    await app.clock.advance(1)
    assert listener.news() == ["paid"]
    assert listener.over, "nothing comes after success"
    assert streams.open == 0


async def test_stream_reports_the_passed_deadline_and_waits_for_late_money(app: TestApp) -> None:
    payment = await app.created()
    listener = await listening(app, payment, WindowStreams())
    await app.clock.advance(15 * 60)
    assert [news for news in listener.news() if news != "alive"] == ["waiting", "checking"]
    await app.work(60)
    assert "expired" in listener.news()
    await app.simulate(payment["id"], outcome="paid")
    await app.clock.advance(5)
    assert listener.news()[-1] == "paid"


async def test_a_quiet_stream_says_that_it_is_alive_every_fifteen_seconds(app: TestApp) -> None:
    listener = await listening(app, await app.created(), WindowStreams())
    listener.news()
    await app.clock.advance(HEARTBEAT - 1)
    assert listener.news() == []
    await app.clock.advance(1)
    assert listener.news() == ["alive"]
    await app.clock.advance(2 * HEARTBEAT)
    assert listener.news() == ["alive", "alive"]


async def test_a_stream_ends_when_the_window_closes_and_after_its_lifetime(app: TestApp) -> None:
    streams = WindowStreams()
    payment = await app.created()
    listener = await listening(app, payment, streams)
    async with beneath(app.ports).unit() as unit:
        stored = await unit[Payment].get(payment["id"])
        assert stored is not None
        unit[Payment].save(msgspec.structs.replace(stored, status=PaymentStatus.REFUNDED))
        await unit.commit()
    await app.clock.advance(1)
    assert (listener.news(), listener.over) == (["waiting", "closed"], True)
    other = await listening(app, await app.created({"ttl_minutes": 60}), streams)
    await app.clock.advance(STREAM_LIFETIME - 1)
    assert not other.over
    await app.clock.advance(1)
    assert other.over
    assert streams.open == 0


async def test_stream_reads_once_a_second_and_rarely_during_long_waits(app: TestApp) -> None:
    reads = 0
    storage = app.ports.storage

    class Counting:
        def unit(self) -> Any:
            nonlocal reads
            reads += 1
            return storage.unit()

    counting = msgspec.structs.replace(app.ports, storage=Counting())
    payment = await app.created()
    await listening(app, payment, WindowStreams(), counting)
    await app.clock.advance(10)
    assert reads == 10
    await app.work(15 * 60)
    await app.clock.advance(10)
    reads = 0
    await app.clock.advance(60)
    assert reads == 12


async def test_a_stream_keeps_still_while_the_storage_is_away(app: TestApp) -> None:
    storage, away = app.ports.storage, False

    class Shaky:
        def unit(self) -> Any:
            if away:
                raise Unavailable("the database is away")
            return storage.unit()

    payment = await app.created()
    listener = await listening(app, payment, WindowStreams(), msgspec.structs.replace(app.ports, storage=Shaky()))
    away = True
    await app.clock.advance(14)
    assert (listener.news(), listener.over) == (["waiting"], False)
    await app.simulate(payment["id"], outcome="paid")
    away = False
    await app.clock.advance(1)
    assert listener.news() == ["paid"]


async def test_streams_end_at_once_on_request_and_none_begins_then(app: TestApp) -> None:
    streams = WindowStreams()
    listener = await listening(app, await app.created(), streams)
    assert streams.is_free(NOBODY)
    streams.end()
    await app.clock.advance(0)
    assert (listener.over, streams.open, streams.is_free(NOBODY)) == (True, 0, False)


async def test_a_reader_who_leaves_frees_the_stream(app: TestApp) -> None:
    streams = WindowStreams()
    listener = await listening(app, await app.created(), streams)
    listener.task.cancel()
    await asyncio.wait([listener.task])
    assert streams.open == 0
    assert app.clock.next_wake() is None, "nothing of it sleeps on"


async def test_pages_above_the_limit_are_asked_to_poll(app: TestApp) -> None:
    streams = WindowStreams(limit=1)
    payment = await app.created()
    asgi = Litestar([window_router(app.ports, streams)], openapi_config=None, logging_config=None)
    await listening(app, payment, streams)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(asgi), base_url="https://pay.example") as client:  # type: ignore[arg-type]  # litestar's and httpx's ASGI types differ in name only
        answer = await client.get(f"/p/{payment['id']}/events")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")


async def test_an_open_stream_does_not_hold_a_service_that_stops() -> None:
    """Over a real socket. The server waits for open answers, so it ends the streams before it waits: were it not so,
    this would take the minute that the service is given."""
    async with asyncio.timeout(HANGS), httpx.AsyncClient(timeout=HANGS) as client:
        async with running(Settings(database_url="memory://", port=0, shutdown_seconds=60)) as service:
            account = await accounts.create_account(service.app.ports, "Merchant")
            keys = {"X-Api-Key": account.test.api_key, "X-Api-Secret": account.test.api_secret}
            made = await client.post(
                f"{service.app.settings.base_url}/api/v1/payments",
                json={"amount_rub": "100.00"},
                headers={**keys, "Idempotency-Key": str(uuid4())},
            )
            asked = client.build_request("GET", f"{made.json()['payment_url']}/events")
            answer = await client.send(asked, stream=True)
            assert answer.headers["content-type"].startswith("text/event-stream")
            assert answer.headers["X-Accel-Buffering"] == "no"
            heard = answer.aiter_text()
            assert '"face":"waiting"' in await anext(heard)
        assert [text async for text in heard] == []

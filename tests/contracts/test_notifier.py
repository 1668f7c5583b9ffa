"""Contract of every notifier (ports/notifier.py), on real sockets (docs/webhooks.md "When you do not answer")."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import TCPConnector
from yarl import URL

from cambist.adapters.clock import SystemClock, VirtualClock
from cambist.adapters.notifier import exchanges
from cambist.adapters.notifier.connections import ATTEMPT, Attempt, Connector
from cambist.adapters.notifier.exchanges import EXCHANGE, DirectExchange, SessionExchange
from cambist.adapters.notifier.http import HttpNotifier
from cambist.ports.notifier import Answer, WebhookRequest
from tests.contracts import webhooks
from tests.contracts.webhooks import Names, notifier, post, webhook
from tests.patience import HANGS
from tests.receivers import (
    Receiver,
    Script,
    drip,
    flood,
    half,
    raw,
    redirect,
    reply,
    reset,
    silence,
    slow_body,
)

SHORT = 0.2
"""Seconds that a receiver gets in the tests that wait for the limit."""
ANSWER_MAX = 4 * 1024


@pytest.fixture(params=[DirectExchange, SessionExchange], autouse=True)
def exchanged_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Webhooks arrive alike on connections themselves and by aiohttp's session, which is used with versions of it that
    are not known here."""
    monkeypatch.setattr(webhooks, "exchanged_by", request.param)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as entered:
        yield entered


# Requests


async def test_the_very_bytes_and_headers_arrive_by_post(receiver: Receiver) -> None:
    body = b'{ "name" : "\xd0\x98\xd0\xb2\xd0\xb0\xd0\xbd",\n\t"x":1}\r\n\r\n'
    headers = {"Content-Type": "application/json", "User-Agent": "cambist/1", "X-Webhook-Id": "evt_1"}
    async with notifier() as made:
        sent = WebhookRequest(url=f"{receiver.url}?a=1&b=%20c", headers=headers, body=body, open_network=True)
        result = await made.send(sent)
    [request] = receiver.requests
    assert (result.answer, result.status, result.note) == (Answer.RESPONDED, 200, "")
    assert (request.method, request.target, request.body) == ("POST", "/hook?a=1&b=%20c", body)
    assert {name: request.headers[name.lower()] for name in headers} == headers
    assert request.headers["accept-encoding"] == "identity"


async def test_letters_to_one_receiver_share_a_connection_one_after_another(receiver: Receiver) -> None:
    receiver.answer_with(reply(200, b"ok"), reply(500, b"sorry"), 204)
    async with notifier() as made:
        statuses = [(await made.send(webhook(receiver.url))).status for _ in range(3)]
    assert statuses == [200, 500, 204]
    assert receiver.connections == 1


@pytest.mark.parametrize("value", ["a\r\nX: b", "a\nb", "a\rb"])
async def test_a_header_of_several_lines_is_refused_before_anything_is_sent(receiver: Receiver, value: str) -> None:
    """The service sends no such header. If it did, the author of its value could inject headers or a body."""
    async with notifier() as made:
        with pytest.raises(ValueError, match=r"(?i)header|newline|line"):
            await made.send(webhook(receiver.url, headers={"X-Webhook-Id": value}))
        assert (await made.send(webhook(receiver.url))).status == 200
    assert len(receiver.requests) == 1


async def test_an_empty_body_and_one_of_a_megabyte_arrive_whole(receiver: Receiver) -> None:
    async with notifier() as made:
        for body in (b"", bytes(range(256)) * 4096):
            sent = WebhookRequest(url=receiver.url, headers={"X-Webhook-Id": "evt_1"}, body=body, open_network=True)
            assert (await made.send(sent)).status == 200
    assert [request.body for request in receiver.requests] == [b"", bytes(range(256)) * 4096]


async def test_webhook_on_an_open_connection_makes_no_task(receiver: Receiver) -> None:
    """Where aiohttp is of a known version (exchanges.py): below Python 3.12 its own requests write in a task."""
    loop, made_tasks = asyncio.get_running_loop(), list[str]()

    def factory(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> Any:
        made_tasks.append(str(work))
        return asyncio.Task(work, loop=loop, **options)

    async with notifier(exchange=EXCHANGE) as made:
        assert (await made.send(webhook(receiver.url))).status == 200
        loop.set_task_factory(factory)
        try:
            assert (await made.send(webhook(receiver.url))).status == 200
        finally:
            loop.set_task_factory(None)
    assert [work for work in made_tasks if "ClientRequest" in work] == []


async def test_cookies_are_not_kept(receiver: Receiver) -> None:
    receiver.answer_with(reply(200, headers={"Set-Cookie": "a=b"}))
    async with notifier(resolver=Names({"receiver.example": [["127.0.0.1"]]})) as made:
        for _ in range(2):
            await made.send(webhook(receiver.url_at("receiver.example")))
    assert len(receiver.requests) == 2
    assert "cookie" not in receiver.requests[1].headers


async def test_proxies_of_the_environment_are_not_used(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Receiver() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        assert (await post(webhook(receiver.url))).status == 200
        assert proxy.connections == 0


# Answers


@pytest.mark.parametrize("status", [200, 201, 204, 301, 404, 410, 429, 500, 503])
async def test_a_status_is_reported_and_not_judged(receiver: Receiver, status: int) -> None:
    receiver.answer_with(status)
    result = await post(webhook(receiver.url))
    assert (result.answer, result.status) == (Answer.RESPONDED, status)


async def test_final_answer_counts_after_interim_ones(receiver: Receiver) -> None:
    """RFC 9110, 15.2: a client reads interim answers and continues."""
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"
    receiver.answer_with(raw(interim + b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"))
    result = await post(webhook(receiver.url))
    assert (result.answer, result.status) == (Answer.RESPONDED, 202)


async def test_a_receiver_that_would_speak_another_protocol_has_answered(receiver: Receiver) -> None:
    """101 is final (RFC 9110, 15.2.2), and nothing else goes over its connection."""
    receiver.answer_with(raw(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), 200)
    async with notifier(limit=5) as made:
        first, second = [await made.send(webhook(receiver.url)) for _ in range(2)]
    assert (first.answer, first.status, second.status) == (Answer.RESPONDED, 101, 200)
    assert receiver.connections == 2


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(receiver: Receiver, status: int) -> None:
    """A redirect is a failure (docs/webhooks.md "When you do not answer")."""
    async with Receiver() as elsewhere:
        receiver.answer_with(redirect(elsewhere.url, status))
        result = await post(webhook(receiver.url))
        assert (result.answer, result.status) == (Answer.RESPONDED, status)
        assert elsewhere.connections == 0


@pytest.mark.parametrize(
    "script",
    [silence(), drip(b"HTTP/1.1 200 OK\r\nX: ")],
    ids=["silence", "slow head"],
)
async def test_a_head_that_is_not_whole_in_time_is_a_timeout(receiver: Receiver, script: Script) -> None:
    """A receiver has 10 seconds to answer (docs/webhooks.md "What a receiver does")."""
    receiver.answer_with(script)
    result = await post(webhook(receiver.url), limit=SHORT)
    assert (result.answer, result.status) == (Answer.TIMEOUT, None)


def test_limit_is_ten_seconds_by_default() -> None:
    assert HttpNotifier(SystemClock())._limit == 10.0


async def test_a_handshake_that_is_never_answered_is_a_timeout(receiver: Receiver) -> None:
    """The receiver waits for a request's end while we wait for its part of the TLS handshake."""
    result = await post(webhook(receiver.url_at("127.0.0.1", "https")), limit=SHORT)
    assert result.answer is Answer.TIMEOUT


@pytest.mark.parametrize(
    ("script", "note"),
    [
        (raw(b""), "the connection broke off"),
        (raw(b"HTTP/1.1 20"), ""),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"), ""),
        (raw(b"SSH-2.0-OpenSSH\r\n\r\n"), "the answer is not HTTP"),
        (raw(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 65_536 + b"\r\n\r\n"), "the head of the answer is longer"),
        (raw(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 201 + b"\r\n"), "the head of the answer is longer"),
        (raw(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 9 + b"HTTP/1.1 200 OK\r\n\r\n"), "interim answers"),
        (reset(), "the connection broke off"),
    ],
    ids=[
        "nothing",
        "half a head",
        "no end of head",
        "another protocol",
        "huge head",
        "201 headers",
        "interim",
        "reset",
    ],
)
async def test_an_answer_without_a_whole_head_is_no_answer(receiver: Receiver, script: Script, note: str) -> None:
    receiver.answer_with(script)
    result = await post(webhook(receiver.url))
    assert (result.answer, result.status) == (Answer.CONNECTION, None)
    assert note in result.note


OK_LINE = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("status", "script"),
    [
        (200, half()),
        (200, slow_body()),
        (200, flood(ANSWER_MAX - 1, promised=ANSWER_MAX)),
        (200, raw(OK_LINE + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")),
        (200, raw(OK_LINE + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhel")),
        (200, raw(OK_LINE + b"Content-Length: 2\r\nConnection: close\r\n\r\n\xef\xbb\xbfOK")),
        (200, raw(OK_LINE + b"Content-Length: 2\r\n\r\n\xef\xbb\xbfOK")),
        (200, raw(OK_LINE + b"Content-Length: 2\r\n\r\nOK\r\n\r\nbye")),
        (200, raw(OK_LINE + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nOK")),
        (200, raw(OK_LINE + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nOK")),
        (200, raw(OK_LINE + b"Content-Length: two\r\n\r\nOK")),
        (200, raw(OK_LINE + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nOK")),
        (200, raw(OK_LINE + b"no header at all\r\n\r\nOK")),
        (204, raw(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\nOK")),
        (204, raw(b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nOK")),
        (500, raw(b"HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\n\xef\xbb\xbfOK")),
        (200, raw(b"HTTP/1.1 100 Continue\r\n\r\n" + OK_LINE + b"Content-Length: 2\r\n\r\n12345")),
        (200, raw(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 8 + OK_LINE + b"Content-Length: 0\r\n\r\n")),
        (200, raw(OK_LINE + b"X: " + b"x" * 60_000 + b"\r\nContent-Length: 0\r\n\r\n")),
        (200, raw(OK_LINE + b"X: y\r\n" * 199 + b"Content-Length: 0\r\n\r\n")),
        (200, raw(b"HTTP/1.0 200 OK\n\nhello")),
    ],
)
async def test_a_whole_head_is_the_answer_whatever_follows(receiver: Receiver, status: int, script: Script) -> None:
    """Any 2xx closes the delivery (docs/webhooks.md "What a receiver does"): the body has no say in it."""
    receiver.answer_with(script, 202)
    async with notifier(limit=1) as made:
        result = await made.send(webhook(receiver.url))
        assert (result.answer, result.status, result.note) == (Answer.RESPONDED, status, "")
        assert (await made.send(webhook(receiver.url))).status == 202


async def test_a_head_may_come_byte_by_byte(receiver: Receiver) -> None:
    answer = b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\n123"

    async def bytewise(_receiver: Receiver, writer: asyncio.StreamWriter) -> bool:
        for byte in answer:
            writer.write(bytes((byte,)))
            await writer.drain()
            await asyncio.sleep(0)
        return False

    receiver.answer_with(bytewise)
    assert (await post(webhook(receiver.url))).status == 201


@pytest.mark.parametrize("script", [reset(), raw(b"")], ids=["reset", "closed"])
async def test_a_webhook_on_a_stale_connection_is_sent_once_more(receiver: Receiver, script: Script) -> None:
    receiver.answer_with(200, script, 200)
    async with notifier() as made:
        assert [(await made.send(webhook(receiver.url))).status for _ in range(2)] == [200, 200]
    assert [request.connection for request in receiver.requests] == [1, 1, 2]


async def test_a_webhook_is_never_sent_a_third_time(receiver: Receiver) -> None:
    receiver.answer_with(200, reset())
    async with notifier() as made:
        first, second = [await made.send(webhook(receiver.url)) for _ in range(2)]
    assert (first.status, second.answer) == (200, Answer.CONNECTION)
    assert [request.connection for request in receiver.requests] == [1, 1, 2]


async def test_a_webhook_on_a_new_connection_is_sent_once(receiver: Receiver) -> None:
    receiver.answer_with(reset())
    assert (await post(webhook(receiver.url))).answer is Answer.CONNECTION
    assert len(receiver.requests) == 1


async def test_a_webhook_with_a_byte_of_answer_is_sent_once(receiver: Receiver) -> None:
    receiver.answer_with(200, raw(b"H"))
    async with notifier() as made:
        first, second = [await made.send(webhook(receiver.url)) for _ in range(2)]
    assert (first.status, second.answer) == (200, Answer.CONNECTION)
    assert len(receiver.requests) == 2


async def test_a_retry_takes_no_other_kept_connection(receiver: Receiver) -> None:
    """A receiver that restarts has closed all of them."""
    async with notifier() as made:
        await asyncio.gather(*(made.send(webhook(receiver.url)) for _ in range(5)))
        kept = receiver.connections
        receiver.answer_with(reset(), 200)
        assert (await made.send(webhook(receiver.url))).status == 200
    assert receiver.requests[-1].connection == kept + 1


@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        (429, {"Retry-After": "120"}, 120),
        (503, {"retry-after": " 7 "}, 7),
        (503, {"Retry-After": "999999999999999999999999"}, 3600),
        (503, {"Retry-After": "Wed, 21 Oct 2026 07:30:00 GMT", "Date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 120),
        (503, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT", "Date": "Wed, 21 Oct 2026 07:30:00 GMT"}, 0),
        (503, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 -0000", "Date": "Wed, 21 Oct 2026 07:27:00 GMT"}, 60),
        (503, {"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"}, 3600),
        (503, {"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT", "Date": "soon"}, 0),
        (503, {"Retry-After": "-5"}, None),
        (503, {"Retry-After": "1.5"}, None),
        (503, {"Retry-After": "soon"}, None),
        (503, {"Retry-After": ""}, None),
        (503, {}, None),
        (500, {"Retry-After": "120"}, None),
        (200, {"Retry-After": "120"}, None),
    ],
)
async def test_retry_after_of_429_and_503_is_reported(
    receiver: Receiver, status: int, headers: dict[str, str], seconds: int | None
) -> None:
    receiver.answer_with(reply(status, headers=headers))
    assert (await post(webhook(receiver.url))).retry_after == seconds


TARGETS = (
    "/h?sp=%2Ftriggers%2Fmanual%2Frun&sig=a%2Fb%3D",
    "/h%2Fx/%7Euser",
    "/h?t=%7B%22a%22%3A1%7D",
    "/h%28x%29",
    "/h?a='b'|c",
    "/h?mail=a%40b.example",
    "/h?mail=a@b.example:80/",
    "/h?a=1&b=%20c+d",
    "/a//b/../c/./d",
    "//other.example/h",
    "/%zz?%",
    "/h?a?b",
    '/<>"{}^`[]',
    "/%D0%98",
)


@pytest.mark.parametrize("target", TARGETS)
async def test_an_address_is_called_as_it_was_written(receiver: Receiver, target: str) -> None:
    """Some are signed over their own spelling."""
    origin = receiver.url.removesuffix("/hook")
    assert (await post(webhook(f"{origin}{target}#never-sent"))).status == 200
    assert [request.target for request in receiver.requests] == [target]


@pytest.mark.parametrize(("rest", "target"), [("", "/"), ("?a=1", "/?a=1"), ("#f", "/")])
async def test_an_address_without_a_path_calls_the_root(receiver: Receiver, rest: str, target: str) -> None:
    origin = receiver.url.removesuffix("/hook")
    assert (await post(webhook(f"{origin}{rest}"))).status == 200
    assert [request.target for request in receiver.requests] == [target]


async def test_a_lone_question_mark_is_kept(receiver: Receiver) -> None:
    """aiohttp's session cannot send it, and drops it."""
    async with notifier(exchange=DirectExchange) as made:
        for rest in ("", "?"):
            assert (await made.send(webhook(f"{receiver.url}{rest}"))).status == 200
    assert [request.target for request in receiver.requests] == ["/hook", "/hook?"]


async def test_a_refused_connection_and_an_unknown_name_are_receipts() -> None:
    async with Receiver() as gone:
        url = gone.url
    refused = await post(webhook(url))
    assert refused.answer is Answer.CONNECTION
    assert "refused" in refused.note
    unknown = await post(webhook("https://nowhere.example/"), resolver=Names({}))
    assert (unknown.answer, unknown.note) == (Answer.CONNECTION, "the host's name was not found")


async def test_large_answer_is_read_to_4_kb_and_its_connection_closed(receiver: Receiver) -> None:
    receiver.answer_with(flood(10 * 1024 * 1024), 200)
    async with notifier() as made:
        first = await made.send(webhook(receiver.url))
        second = await made.send(webhook(receiver.url))
    assert (first.answer, first.status) == (Answer.RESPONDED, 200)
    assert (second.answer, second.status) == (Answer.RESPONDED, 200)
    assert [request.connection for request in receiver.requests] == [1, 2]
    assert receiver.flooded < 10 * 1024 * 1024


async def test_the_answer_is_taken_once_4_kb_of_it_are_there(receiver: Receiver) -> None:
    receiver.answer_with(flood(ANSWER_MAX, promised=10 * 1024 * 1024))
    result = await post(webhook(receiver.url), limit=60)
    assert (result.answer, result.status) == (Answer.RESPONDED, 200)


async def test_a_packed_answer_is_not_unpacked(receiver: Receiver) -> None:
    receiver.answer_with(reply(200, b"no gzip at all", {"Content-Encoding": "gzip"}))
    assert (await post(webhook(receiver.url))).status == 200


def late(clock: VirtualClock, seconds: float) -> Script:
    """A good answer, for which `clock` moves on."""

    async def script(receiver: Receiver, writer: asyncio.StreamWriter) -> bool:
        await clock.advance(seconds)
        return await reply(200)(receiver, writer)

    return script


async def test_the_time_is_measured_by_the_clock_of_the_port(receiver: Receiver) -> None:
    clock = VirtualClock()
    receiver.answer_with(late(clock, 1.5))
    made = HttpNotifier(clock, loopback=True)
    result = await made.send(webhook(receiver.url))
    await made.close()
    assert result.took_ms == 1500


@pytest.mark.parametrize("script", [silence(), half(), reset(), raw(b"garbage\r\n\r\n"), reply(302)])
async def test_no_receipt_shows_the_addresss_query(receiver: Receiver, script: Script) -> None:
    receiver.answer_with(script)
    async with notifier(limit=SHORT, resolver=Names({})) as made:
        for url in (receiver.url, "http://nowhere.example/", "http://10.0.0.1/", "http://me:pw@receiver.example/"):
            result = await made.send(webhook(f"{url}?token=tell-nobody"))
            assert "tell-nobody" not in repr(result)
            assert "pw" not in result.note
            assert len(result.note) <= 200


# Faulty receivers


class Odd(asyncio.Protocol):
    """A receiver that answers 200 as soon as the first bytes of a webhook are there."""

    def __init__(self, connections: list["Odd"], *, reads: bool) -> None:
        self._connections = connections
        self._reads = reads
        self.answered = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._connections.append(self)

    def data_received(self, data: bytes) -> None:
        if not self._reads:
            self.transport.pause_reading()
        self.answered += 1
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


@asynccontextmanager
async def odd_receiver(*, reads: bool) -> AsyncIterator[tuple[str, list[Odd]]]:
    connections: list[Odd] = []
    server = await asyncio.get_running_loop().create_server(lambda: Odd(connections, reads=reads), "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", connections
    finally:
        for each in connections:
            each.transport.abort()
        server.close()
        await server.wait_closed()


async def test_webhooks_that_a_receiver_does_not_read_are_not_buffered() -> None:
    """A receiver that answers without reading would make its webhooks pile up in the worker's memory."""
    async with odd_receiver(reads=False) as (url, connections), notifier(limit=5, exchange=DirectExchange) as made:
        body = b"x" * 16 * 1024 * 1024  # more than both sides' sockets hold
        sent = WebhookRequest(url=url, headers={}, body=body, open_network=True)
        assert [(await made.send(sent)).status for _ in range(2)] == [200, 200]
        assert [each.answered for each in connections] == [1, 1]


async def test_unrequested_answer_is_not_taken_for_the_next_webhooks() -> None:
    """Merchants behind one host share connections to it."""
    made_with: list[TCPConnector] = []

    def exchange(connector: TCPConnector) -> DirectExchange:
        made_with.append(connector)
        return DirectExchange(connector)

    async with odd_receiver(reads=True) as (url, connections), notifier(exchange=exchange) as made:
        assert (await made.send(webhook(url))).status == 200
        connections[0].transport.write(b"HTTP/1.1 299 OK\r\nContent-Length: 0\r\n\r\n")
        [[(resting, _)]] = made_with[0]._conns.values()
        async with asyncio.timeout(HANGS):
            while not resting.should_close:
                await asyncio.sleep(0)
        assert (await made.send(webhook(url))).status == 200
        assert [each.answered for each in connections] == [1, 1]


async def test_a_receiver_that_always_answers_first_is_not_connected_to_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed: list[str] = []
    spoken = SimpleNamespace(
        protocol=SimpleNamespace(should_close=True), transport=None, close=lambda: closed.append("1")
    )

    async def connect(*_: Any) -> Any:
        return spoken

    monkeypatch.setattr(TCPConnector, "connect", connect)
    result = await post(webhook("http://127.0.0.1/"))
    assert result.answer is Answer.CONNECTION
    assert len(closed) == 65  # 64 may have rested since they were used


async def test_remembered_addresses_are_bounded(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Merchants choose them, and may choose new ones for ever."""
    monkeypatch.setattr(exchanges, "_ADDRESSES", 2)
    exchange = DirectExchange(Connector())
    ATTEMPT.set(Attempt())
    for number in range(5):
        url = f"{receiver.url}?{number}"
        assert await exchange.send(URL(url), webhook(url)) == 200
        assert len(exchange._addresses) <= 2
    await exchange.close()
    assert [request.target for request in receiver.requests] == [f"/hook?{number}" for number in range(5)]


# Many webhooks, and the end


async def test_one_receiver_gets_no_more_connections_than_its_share(receiver: Receiver) -> None:
    async with notifier(per_host=3) as made:
        results = await asyncio.gather(*(made.send(webhook(receiver.url)) for _ in range(12)))
    assert [result.status for result in results] == [200] * 12
    assert receiver.most_at_once <= 3


async def test_receiver_without_webhooks_is_forgotten(receiver: Receiver) -> None:
    """Merchants come and go; a worker runs for months."""
    made = HttpNotifier(SystemClock(), loopback=True, per_host=1)
    await asyncio.gather(*(made.send(webhook(receiver.url)) for _ in range(3)))
    await made.close()
    assert not made._host_limit[True]._waitlists


async def test_waiting_for_a_free_connection_is_not_charged_to_the_receiver(receiver: Receiver) -> None:
    """Each of the three webhooks gets the whole limit; were the wait counted, the last two would end unsent."""
    receiver.answer_with(silence())
    async with notifier(per_host=1, limit=2 * SHORT) as made:
        results = await asyncio.gather(*(made.send(webhook(receiver.url)) for _ in range(3)))
    assert [result.answer for result in results] == [Answer.TIMEOUT] * 3
    assert len(receiver.requests) == 3


async def test_the_measured_time_does_not_hold_the_wait_for_a_free_connection(receiver: Receiver) -> None:
    clock = VirtualClock()
    receiver.answer_with(late(clock, 5), late(clock, 1))
    made = HttpNotifier(clock, loopback=True, per_host=1)
    results = await asyncio.gather(made.send(webhook(receiver.url)), made.send(webhook(receiver.url)))
    await made.close()
    assert [result.took_ms for result in results] == [5000, 1000]


async def test_a_dead_receiver_does_not_hold_up_another(receiver: Receiver) -> None:
    async with Receiver() as dead, notifier(per_host=2) as made:
        dead.answer_with(silence())
        stuck = [asyncio.create_task(made.send(webhook(dead.url))) for _ in range(10)]
        await dead.arrived(2)
        assert (await made.send(webhook(receiver.url))).status == 200
        assert not any(task.done() for task in stuck)
        for task in stuck:
            task.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)


async def test_cancelling_passes_through_and_leaves_the_notifier_sound(receiver: Receiver) -> None:
    receiver.answer_with(silence(), 200)
    async with notifier(per_host=1) as made:
        task = asyncio.create_task(made.send(webhook(receiver.url)))
        await receiver.arrived()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await made.send(webhook(receiver.url))).status == 200


async def test_closing_ends_webhooks_in_flight_with_a_receipt(receiver: Receiver) -> None:
    receiver.answer_with(silence())
    made = HttpNotifier(SystemClock(), loopback=True, per_host=1)
    task = asyncio.create_task(made.send(webhook(receiver.url)))
    await receiver.arrived()
    waiting = asyncio.create_task(made.send(webhook(receiver.url)))
    await made.close()
    assert (await task).answer is Answer.CONNECTION
    with pytest.raises(RuntimeError, match="closed"):
        await waiting  # never sent, so no receipt says that it was
    await made.close()
    with pytest.raises(RuntimeError, match="closed"):
        await made.send(webhook(receiver.url))


def test_notifier_needs_no_event_loop_before_the_first_webhook() -> None:
    made = HttpNotifier(SystemClock(), loopback=True)
    assert not made._exchanges
    asyncio.run(made.close())

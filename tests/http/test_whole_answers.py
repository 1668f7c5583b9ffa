"""An answer that is whole is one write, of the very bytes that the server would write in two; all others are the
server's (frontends/http/edge/whole_answers.py)."""

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from cambist.frontends.http.edge.whole_answers import answer_whole
from tests.quiesce import at_rest
from tests.tables import table

LOG = logging.getLogger("test")
LENGTH = (b"content-length", b"2")
JSON = (b"content-type", b"application/json")


class Transport(asyncio.Transport):
    """A transport that records the written bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closed = False
        self.ends = 0

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def close(self) -> None:
        self.closed = True

    def ended(self) -> None:
        """The server's request has ended."""
        self.ends += 1


def ask(
    messages: list[dict[str, Any]], *, whole: bool, method: str = "POST", keep_alive: bool = True, gone: bool = False
) -> tuple[Transport, RequestResponseCycle, Coroutine[Any, Any, None]]:
    """A connection, and its request that an application answers by these messages."""
    transport = Transport()
    scope: Any = {"type": "http", "method": method, "path": "/"}
    cycle = RequestResponseCycle(
        scope=scope, transport=transport, flow=FlowControl(transport), logger=LOG, access_logger=LOG, access_log=False,
        default_headers=[(b"date", b"Tue, 24 Nov 2026 23:00:00 GMT")], message_event=asyncio.Event(),
        expect_100_continue=False, keep_alive=keep_alive, on_response=transport.ended,
    )  # fmt: skip
    cycle.disconnected = gone

    async def asgi(_scope: Any, _receive: Any, send: Any) -> None:
        for message in messages:
            await send(message)

    answering: Any = partial(answer_whole, asgi, cycle) if whole else asgi
    return transport, cycle, cycle.run_asgi(answering)


async def answered(messages: list[dict[str, Any]], **given: Any) -> tuple[Transport, RequestResponseCycle]:
    """The same, once it was answered."""
    transport, cycle, answering = ask(messages, **given)
    await answering
    return transport, cycle


def start(*headers: tuple[bytes, bytes], status: int = 200) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": headers}


def body(said: bytes = b"ok", *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": said, "more_body": more}


ANSWERS: dict[str, tuple[list[dict[str, Any]], int]] = {
    "whole": ([start(JSON, LENGTH), body()], 1),
    "created": ([start(JSON, LENGTH, (b"x-request-id", b"a b\tc"), status=201), body()], 1),
    "empty": ([start((b"content-length", b"0")), body(b"")], 1),
    "a body that says nothing of more": ([start(LENGTH), {"type": "http.response.body", "body": b"ok"}], 1),
    "no body at all": ([start((b"content-length", b"0")), {"type": "http.response.body"}], 1),
    "in pieces": ([start(LENGTH), body(b"o", more=True), body(b"k")], 3),
    "of no length": ([start(JSON), body(more=True), body()], 3),
    "without headers": ([{"type": "http.response.start", "status": 200}, body()], 2),
    "too long": ([start(LENGTH), body(b"okay")], 1),
    "too short": ([start(LENGTH), body(b"o")], 2),
    "chunked": ([start(LENGTH, (b"transfer-encoding", b"chunked")), body()], 2),
    "the last of its connection": ([start(LENGTH, (b"connection", b"close")), body()], 2),
    "a header of another": ([start(LENGTH, (b"x-other", b"1")), body()], 2),
    "a name in capitals": ([start(LENGTH, (b"Link", b"<a>")), body()], 2),
    "a line break in a value": ([start(LENGTH, (b"link", b"a\r\nset-cookie: b")), body()], 0),
    "a control character": ([start(LENGTH, (b"link", b"a\x00")), body()], 0),
    "nothing comes of it": ([], 2),
    "no content": ([start(LENGTH, status=204), body(b"")], 1),
    "not modified": ([start(LENGTH, status=304), body(b"")], 1),
    "only begun": (
        [
            start(JSON),
        ],
        1,
    ),
}


def left(transport: Transport, cycle: RequestResponseCycle) -> tuple[Any, ...]:
    """Return the bytes sent to the connection, and the state in which it is left."""
    flags = cycle.response_started, cycle.response_complete, cycle.keep_alive, cycle.message_event.is_set()
    return b"".join(transport.written), transport.closed, transport.ends, *flags


@table("name", ANSWERS)
async def test_the_bytes_are_the_servers(name: str) -> None:
    messages, writes = ANSWERS[name]
    transport, cycle = await answered(messages, whole=True)
    assert left(transport, cycle) == left(*await answered(messages, whole=False))
    assert len([each for each in transport.written if each]) == writes


@table("given", [{"method": "HEAD"}, {"keep_alive": False}, {"gone": True}], ids=str)
async def test_unusual_requests_get_the_same_answer_whole_or_in_parts(given: dict[str, Any]) -> None:
    """HEAD gets no body, the last request closes, and a client that has gone gets nothing."""
    messages = ANSWERS["whole"][0]
    assert left(*await answered(messages, whole=True, **given)) == left(*await answered(messages, whole=False, **given))


async def test_a_client_that_does_not_read_is_waited_for() -> None:
    """Otherwise a client that sends requests and reads no answers would fill our memory."""
    transport, cycle, answering = ask(ANSWERS["whole"][0], whole=True)
    cycle.flow.pause_writing()
    task = asyncio.create_task(answering)
    await at_rest()
    assert transport.written == []
    cycle.flow.resume_writing()
    await task
    assert (len(transport.written), transport.closed) == (1, False)


async def test_stopping_server_closes_the_connection_after_the_answer() -> None:
    transport, cycle, answering = ask(ANSWERS["whole"][0], whole=True)
    cycle.flow.pause_writing()
    task = asyncio.create_task(answering)
    await at_rest()
    cycle.keep_alive = False
    cycle.flow.resume_writing()
    await task
    assert (len(transport.written), transport.closed) == (1, True)


async def test_an_application_that_fails_before_its_body_is_answered_for() -> None:
    """The head was not sent, so the client gets an error."""

    messages = [start(JSON, LENGTH), {"type": "http.response.body", "body": None}]
    transport, _ = await answered(messages, whole=True)
    assert transport.written[0].startswith(b"HTTP/1.1 500 ")

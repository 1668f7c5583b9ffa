"""Sending of a complete answer as one write. uvicorn makes two writes, head and body, each a packet that wakes the
client, and checks each of a dozen headers separately. Other answers, mainly streams, are left to uvicorn."""

from typing import Any

from litestar.types import ASGIApp, Receive, Scope, Send

from ...process.uvicorn_insides import STATUS_LINE

_NAMES = frozenset(
    (
        b"cache-control",
        b"content-length",
        b"content-type",
        b"date",
        b"idempotent-replayed",
        b"link",
        b"ratelimit-limit",
        b"ratelimit-policy",
        b"ratelimit-remaining",
        b"ratelimit-reset",
        b"retry-after",
        b"x-content-type-options",
        b"x-ratelimit-limit",
        b"x-ratelimit-remaining",
        b"x-ratelimit-reset",
        b"x-request-id",
    )
)
"""Headers without effect on the server, besides `content-length`."""
_CONTROL = bytes({*range(32), 127} - {9})
"""Bytes that no header value contains."""
_WITHOUT_BODY = frozenset((204, 304))


async def answer_whole(app: ASGIApp, cycle: Any, scope: Scope, receive: Receive, send: Send) -> None:
    """Have the application answer the request of this cycle. `send` is uvicorn's."""
    begun: Any = {}
    head = b""

    async def send_whole(message: Any) -> None:
        nonlocal begun, head
        if not begun and message["type"] == "http.response.start":
            head = _head_of(cycle, message)
            if head:
                begun = message
                return
        elif head:
            body, whole, head = message.get("body", b""), head, b""
            if not message.get("more_body", False) and len(body) == _length(begun):
                if cycle.flow.write_paused:
                    await cycle.flow.drain()
                _write(cycle, whole + body)
                return
            await send(begun)
        await send(message)

    await app(scope, receive, send_whole)


def _head_of(cycle: Any, message: Any) -> bytes:
    """Return the head as bytes; empty if uvicorn must write it."""
    status, headers = message["status"], [*cycle.default_headers, *message.get("headers", ())]
    if status in _WITHOUT_BODY or not (cycle.keep_alive and headers) or cycle.scope["method"] == "HEAD":
        return b""
    names, values = zip(*headers, strict=True)
    said = b"".join(values)
    if b"content-length" not in names or not _NAMES.issuperset(names) or said.translate(None, _CONTROL) != said:
        return b""
    return b"".join([STATUS_LINE[status], *[b"%b: %b\r\n" % header for header in headers], b"\r\n"])


def _length(begun: Any) -> int:
    return next(int(value) for name, value in begun["headers"] if name == b"content-length")


def _write(cycle: Any, answer: bytes) -> None:
    """Write the answer and end the request, as uvicorn does."""
    if cycle.disconnected:
        return
    cycle.response_started = cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    cycle.transport.write(answer)
    cycle.message_event.set()
    if not cycle.keep_alive:  # the server began to stop meanwhile
        cycle.transport.close()
    cycle.on_response()

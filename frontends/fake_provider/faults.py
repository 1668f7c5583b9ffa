"""Answers of a provider, and the ways in which an answer can fail on the wire."""

import json
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from http import HTTPStatus
from typing import Any

import msgspec

_PIECE = 65_536
_HUGE = 8 * 1024 * 1024
_ENDLESS = 16 * 1024 * 1024
"""Bytes after which the connection is closed in the middle of the body, so that a client that keeps reading does not
hang."""


class ProviderAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a FakeProvider's handler. The server adds the length and closes the connection."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {}

    @classmethod
    def of_json(cls, value: Any, status: int = 200) -> "ProviderAnswer":
        """Return an answer with this value as JSON."""
        return cls(status=status, body=json.dumps(value).encode(), headers={"Content-Type": "application/json"})

    def head(self, length: int | None = None) -> bytes:
        """Return status line and headers. `length`: value of Content-Length, if it should differ from the body's
        length."""
        told = {**self.headers, "Content-Length": str(len(self.body) if length is None else length)}
        lines = [
            f"HTTP/1.1 {self.status} {_phrase(self.status)}",
            *(f"{name}: {value}" for name, value in told.items()),
        ]
        return ("\r\n".join([*lines, "Connection: close"]) + "\r\n\r\n").encode("latin-1")

    def __repr__(self) -> str:
        return f"<ProviderAnswer {self.status}>"


Wire = Callable[[ProviderAnswer], Iterator[bytes]]
"""Yields the bytes sent for an answer before the connection is closed."""


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def whole(answer: ProviderAnswer) -> Iterator[bytes]:
    """Yield the answer unchanged."""
    yield answer.head() + answer.body


def _nothing(_: ProviderAnswer) -> Iterator[bytes]:
    return iter(())


def _half_a_head(answer: ProviderAnswer) -> Iterator[bytes]:
    head = answer.head()
    yield head[: len(head) // 2]


def _half_a_body(answer: ProviderAnswer) -> Iterator[bytes]:
    """Send half of the body. Even of an empty body at least one byte is missing."""
    yield answer.head(len(answer.body) + 1) + answer.body[: len(answer.body) // 2]


def _endless(answer: ProviderAnswer) -> Iterator[bytes]:
    head = answer.head().replace(b"Content-Length: %d" % len(answer.body), b"Transfer-Encoding: chunked")
    yield head
    for _ in range(_ENDLESS // _PIECE):
        yield b"%x\r\n%s\r\n" % (_PIECE, b" " * _PIECE)


def _huge(answer: ProviderAnswer) -> Iterator[bytes]:
    return _json(b"[" + b"0," * (_HUGE // 2) + b"0]")(answer)


def _instead(status: int, body: bytes = b"", **headers: str) -> Wire:
    """Return a wire that sends another answer. `_` in a header's name stands for a hyphen."""
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: whole(ProviderAnswer(status=status, body=body, headers=told))


def _json(body: bytes, charset: str = "utf-8") -> Wire:
    return _instead(200, body, Content_Type=f"application/json; charset={charset}")


class ProviderFault(Enum):
    """A failure of one call. Each member defines whether the provider executes the call, unless the test overrides
    it."""

    LOST_BEFORE = (False, _nothing)
    """The connection is closed and nothing is executed."""
    LOST_AFTER = (True, _nothing)
    """The call is executed, and the connection is closed without an answer."""
    CUT_IN_HEAD = (True, _half_a_head)
    CUT_IN_BODY = (True, _half_a_body)
    UNAUTHORIZED = (False, _instead(401, b'{"error": "unauthorized"}', Content_Type="application/json"))
    FORBIDDEN = (False, _instead(403, b'{"error": "forbidden"}', Content_Type="application/json"))
    BUSY = (False, _instead(429))
    """429 without a delay; `retry_after` adds one."""
    SERVER_ERROR = (False, _instead(500, b'{"error": "internal"}', Content_Type="application/json"))
    BAD_GATEWAY = (True, _instead(502, b"<html><h1>502 Bad Gateway</h1></html>", Content_Type="text/html"))
    OVERLOADED = (False, _instead(503))
    TIMED_OUT = (True, _instead(504))
    REDIRECT = (False, _instead(302, Location="/elsewhere"))
    REDIRECT_WITH_BODY = (False, _instead(307, Location="/elsewhere"))
    """A client that follows it sends the same write again."""
    HTML = (True, _instead(200, b"<html>Service works</html>", Content_Type="text/html"))
    NO_BODY = (True, _instead(200, Content_Type="application/json"))
    BROKEN_JSON = (True, _json(b'{"id": "1", "status": '))
    OTHER_JSON = (True, _json(b"[null, 1, {}]"))
    """Valid JSON of an unexpected shape."""
    JSON_WITHOUT_FIELDS = (True, _json(b"{}"))
    NULL_FIELDS = (True, _json(b'{"id": null, "status": null, "amount": null}'))
    WRONG_CHARSET = (True, _json('{"id": "счёт", "status": "оплачен"}'.encode("cp1251")))
    """The header says UTF-8, but the body is not."""
    HUGE = (True, _huge)
    """8 MB of JSON."""
    ENDLESS = (True, _endless)
    """A body without an end: the connection closes after 16 MB."""

    def __init__(self, done: bool, wire: Wire) -> None:
        self.done = done
        """Whether the handler runs, unless the test overrides it."""
        self.wire = wire

    def __repr__(self) -> str:
        """Return only the name. The wire's repr contains a memory address that differs between processes, and pytest
        uses the repr in test ids."""
        return str(self)


UNCLEAR = tuple(
    fault
    for fault in ProviderFault
    if fault not in (ProviderFault.UNAUTHORIZED, ProviderFault.FORBIDDEN, ProviderFault.BUSY)
)
"""Faults that leave the outcome of a write unknown and make a read fail."""

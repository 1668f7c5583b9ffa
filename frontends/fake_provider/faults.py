"""What a provider answers, and how its answer can go wrong on the wire."""

import json
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from http import HTTPStatus
from typing import Any

import msgspec

_PIECE = 65_536
_HUGE = 8 * 1024 * 1024
_ENDLESS = 16 * 1024 * 1024
"""After so much the connection is closed, without an end of the body: a client that reads on must not hang."""


class ProviderAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a handler of a FakeProvider returns. Length and end of connection are said by the server."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {}

    @classmethod
    def of_json(cls, value: Any, status: int = 200) -> "ProviderAnswer":
        """This value as JSON."""
        return cls(status=status, body=json.dumps(value).encode(), headers={"Content-Type": "application/json"})

    def head(self, length: int | None = None) -> bytes:
        """Status line and headers; `length`: what is said of the body's, where that is not the truth."""
        told = {**self.headers, "Content-Length": str(len(self.body) if length is None else length)}
        lines = [
            f"HTTP/1.1 {self.status} {_phrase(self.status)}",
            *(f"{name}: {value}" for name, value in told.items()),
        ]
        return ("\r\n".join([*lines, "Connection: close"]) + "\r\n\r\n").encode("latin-1")

    def __repr__(self) -> str:
        return f"<ProviderAnswer {self.status}>"


Wire = Callable[[ProviderAnswer], Iterator[bytes]]
"""What goes out for an answer, before the connection is closed."""


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def whole(answer: ProviderAnswer) -> Iterator[bytes]:
    """The answer as it is."""
    yield answer.head() + answer.body


def _nothing(_: ProviderAnswer) -> Iterator[bytes]:
    return iter(())


def _half_a_head(answer: ProviderAnswer) -> Iterator[bytes]:
    head = answer.head()
    yield head[: len(head) // 2]


def _half_a_body(answer: ProviderAnswer) -> Iterator[bytes]:
    """At least one byte is missing, of an empty body, too."""
    yield answer.head(len(answer.body) + 1) + answer.body[: len(answer.body) // 2]


def _endless(answer: ProviderAnswer) -> Iterator[bytes]:
    head = answer.head().replace(b"Content-Length: %d" % len(answer.body), b"Transfer-Encoding: chunked")
    yield head
    for _ in range(_ENDLESS // _PIECE):
        yield b"%x\r\n%s\r\n" % (_PIECE, b" " * _PIECE)


def _huge(answer: ProviderAnswer) -> Iterator[bytes]:
    return _json(b"[" + b"0," * (_HUGE // 2) + b"0]")(answer)


def _instead(status: int, body: bytes = b"", **headers: str) -> Wire:
    """Another answer; `_` of a header's name is its hyphen."""
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: whole(ProviderAnswer(status=status, body=body, headers=told))


def _json(body: bytes, charset: str = "utf-8") -> Wire:
    return _instead(200, body, Content_Type=f"application/json; charset={charset}")


class ProviderFault(Enum):
    """How one call goes wrong. Each says whether the provider has carried it out, where the test does not."""

    LOST_BEFORE = (False, _nothing)
    """The connection is closed, and nothing is done."""
    LOST_AFTER = (True, _nothing)
    """It is done, and the connection is closed without an answer."""
    CUT_IN_HEAD = (True, _half_a_head)
    CUT_IN_BODY = (True, _half_a_body)
    UNAUTHORIZED = (False, _instead(401, b'{"error": "unauthorized"}', Content_Type="application/json"))
    FORBIDDEN = (False, _instead(403, b'{"error": "forbidden"}', Content_Type="application/json"))
    BUSY = (False, _instead(429))
    """429 that does not say for how long; with `retry_after` it does."""
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
    """JSON of another kind than any answer."""
    JSON_WITHOUT_FIELDS = (True, _json(b"{}"))
    NULL_FIELDS = (True, _json(b'{"id": null, "status": null, "amount": null}'))
    WRONG_CHARSET = (True, _json('{"id": "счёт", "status": "оплачен"}'.encode("cp1251")))
    """It says UTF-8, and is none."""
    HUGE = (True, _huge)
    """8 MB of JSON."""
    ENDLESS = (True, _endless)
    """A body without an end: 16 MB, and then nothing more."""

    def __init__(self, done: bool, wire: Wire) -> None:
        self.done = done
        """Whether the handler runs, unless the test says otherwise."""
        self.wire = wire

    def __repr__(self) -> str:
        """The name alone: what it does to the wire has another address in every process, and pytest names tests so."""
        return str(self)


UNCLEAR = tuple(
    fault
    for fault in ProviderFault
    if fault not in (ProviderFault.UNAUTHORIZED, ProviderFault.FORBIDDEN, ProviderFault.BUSY)
)
"""What says nothing about a write, and makes a read fail."""

"""Answers of the interface: encoded once, by msgspec, as bytes."""

from collections.abc import Sequence
from typing import Any

import msgspec
from litestar import Response
from litestar.types import Send

_ENCODER = msgspec.json.Encoder()
encode = _ENCODER.encode
JSON = b"application/json"
_REPLAYED = ((b"idempotent-replayed", b"true"),)


class Answer(msgspec.Struct, frozen=True):
    """An answer in JSON that is not yet the framework's."""

    body: bytes
    status: int = 200
    headers: Sequence[tuple[bytes, bytes]] = ()

    def of_framework(self) -> Response[bytes]:
        """The same as a response."""
        headers = {name.decode(): value.decode() for name, value in self.headers}
        return Response(self.body, status_code=self.status, media_type=JSON.decode(), headers=headers)

    async def write(self, send: Send) -> None:
        """Send it without the framework."""
        headers = [(b"content-type", JSON), (b"content-length", b"%d" % len(self.body)), *self.headers]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": False})


def answer(view: Any, *, status: int = 200) -> Response[bytes]:
    """A JSON answer."""
    return Answer(encode(view), status).of_framework()


def made(view: Any, *, replayed: bool) -> Answer:
    """201 the first time; 200 and `Idempotent-Replayed` for a repeat (docs/concepts.md "Idempotency")."""
    return Answer(encode(view), 200, _REPLAYED) if replayed else Answer(encode(view), 201)


def created(view: Any, *, replayed: bool) -> Response[bytes]:
    """The same as a response."""
    return made(view, replayed=replayed).of_framework()

"""Answers of the API, encoded once by msgspec as bytes."""

from collections.abc import Sequence
from typing import Any

import msgspec
from litestar import Response
from litestar.types import Receive, Scope, Send

_ENCODER = msgspec.json.Encoder()
encode = _ENCODER.encode
JSON = b"application/json"
_REPLAYED = ((b"idempotent-replayed", b"true"),)


class Answer(msgspec.Struct, frozen=True):
    """An answer that sends itself as an ASGI application, with or without the framework."""

    body: bytes
    status: int = 200
    headers: Sequence[tuple[bytes, bytes]] = ()
    media_type: bytes = JSON
    code: str | None = None
    """Code of a refusal. The request's scope carries it to the request log."""

    async def __call__(self, scope: Scope, _: Receive, send: Send) -> None:
        """Send the answer."""
        if self.code is not None:
            scope["refusal_code"] = self.code  # type: ignore[typeddict-unknown-key]  # ours, beside the framework's
        headers = [(b"content-type", self.media_type), (b"content-length", b"%d" % len(self.body)), *self.headers]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": False})

    def of_framework(self, scope: Scope | None = None) -> Response[bytes]:
        """Return the same answer as a framework response, for pages that add headers. Pass the request's `scope` for a
        refusal."""
        if scope is not None:
            scope["refusal_code"] = self.code  # type: ignore[typeddict-unknown-key]  # as above
        headers = {name.decode(): value.decode() for name, value in self.headers}
        return Response(self.body, status_code=self.status, media_type=self.media_type.decode(), headers=headers)


class NoContent(msgspec.Struct, frozen=True):
    """A 204 answer: headers and no body."""

    headers: Sequence[tuple[bytes, bytes]]

    async def __call__(self, _: Scope, __: Receive, send: Send) -> None:
        """Send the answer."""
        await send({"type": "http.response.start", "status": 204, "headers": [*self.headers]})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def answer(view: Any, *, status: int = 200) -> Answer:
    """Return a JSON answer."""
    return Answer(encode(view), status)


def made(view: Any, *, replayed: bool) -> Answer:
    """Return 201 the first time; 200 and `Idempotent-Replayed` for a repeat (docs/concepts.md "Idempotency")."""
    return Answer(encode(view), 200, _REPLAYED) if replayed else Answer(encode(view), 201)

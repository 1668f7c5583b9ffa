"""Answers of the interface: encoded once, by msgspec, as bytes."""

from collections.abc import Sequence
from typing import Any

import msgspec
from litestar import Response

_ENCODER = msgspec.json.Encoder()
encode = _ENCODER.encode
REPLAYED = {"Idempotent-Replayed": "true"}
JSON = b"application/json"


class Answer(msgspec.Struct, frozen=True):
    """An answer in JSON that is not yet the framework's."""

    body: bytes
    status: int = 200
    headers: Sequence[tuple[bytes, bytes]] = ()

    def of_framework(self) -> Response[bytes]:
        """The same as a response."""
        headers = {name.decode(): value.decode() for name, value in self.headers}
        return Response(self.body, status_code=self.status, media_type=JSON.decode(), headers=headers)


def answer(view: Any, *, status: int = 200) -> Response[bytes]:
    """A JSON answer."""
    return Response(_ENCODER.encode(view), status_code=status, media_type="application/json")


def created(view: Any, *, replayed: bool) -> Response[bytes]:
    """201 the first time; 200 and `Idempotent-Replayed` for a repeat (docs/concepts.md "Idempotency")."""
    return Response(
        _ENCODER.encode(view),
        status_code=200 if replayed else 201,
        media_type="application/json",
        headers=REPLAYED if replayed else None,
    )

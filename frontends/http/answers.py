"""Answers of the interface: encoded once, by msgspec, as bytes."""

from typing import Any

import msgspec
from litestar import Response

_ENCODER = msgspec.json.Encoder()
REPLAYED = {"Idempotent-Replayed": "true"}


def answer(view: Any, *, status: int = 200) -> Response[bytes]:
    """A JSON answer."""
    return Response(_ENCODER.encode(view), status_code=status, media_type="application/json")


def created(view: Any, *, replayed: bool) -> Response[bytes]:
    """201 the first time; 200 and `Idempotent-Replayed` for a repeat (DECISIONS 1.7)."""
    return Response(
        _ENCODER.encode(view),
        status_code=200 if replayed else 201,
        media_type="application/json",
        headers=REPLAYED if replayed else None,
    )

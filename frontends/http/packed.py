"""What is the same for whoever asks, pages of the documentation and files that pages load: compressed for whoever takes
it so, and not sent again to who has it.

What differs by its reader is not sent so: beside what an attacker brings in, the length of what is compressed tells of
secrets in it (BREACH).
"""

import gzip
import hashlib
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from litestar import Request, Response

_GZIP = re.compile(r"(?:^|,)\s*(?:gzip|\*)\s*(?=[;,]|\Z)(?!;\s*q=0(?:\.0*)?\s*(?:,|\Z))", re.ASCII | re.IGNORECASE)
"""That Accept-Encoding takes it: named, or as anything, without the weight 0 (RFC 9110, 12.5.3)."""
_WORTH = 0.9
"""Of its length, at most: a picture is compressed already."""
_NOT_MODIFIED = 304

Asked = Request[Any, Any, Any]


class Packed(msgspec.Struct, frozen=True, kw_only=True):
    """Something to send. `tag` is a hash of what is in it."""

    body: bytes
    media_type: str
    tag: str
    small: bytes | None
    """The body in gzip; None where that saves nothing."""


def pack(body: bytes, media_type: str) -> Packed:
    """Make it ready: 0.3 ms of CPU for 12 KB, 8 ms for 750 KB."""
    small = gzip.compress(body, mtime=0)
    return Packed(
        body=body,
        media_type=media_type,
        tag=hashlib.sha256(body).hexdigest()[:16],
        small=small if len(small) < _WORTH * len(body) else None,
    )


def sent(request: Asked, packed: Packed, headers: Mapping[str, str]) -> Response[bytes]:
    """It, in the form that the reader takes; or 304, where the reader has it."""
    # Weak: the same is meant in either form.
    headers = {**headers, "ETag": f'W/"{packed.tag}"', "Vary": "Accept-Encoding"}
    if packed.tag in request.headers.get("if-none-match", ""):
        return Response(b"", status_code=_NOT_MODIFIED, media_type=packed.media_type, headers=headers)
    if packed.small is not None and _GZIP.search(request.headers.get("accept-encoding", "")):
        headers = {**headers, "Content-Encoding": "gzip"}
        return Response(packed.small, media_type=packed.media_type, headers=headers)
    return Response(packed.body, media_type=packed.media_type, headers=headers)


def asset(request: Asked, found: Packed | None) -> Response[bytes]:
    """A file that pages load; None: there is none of this name. Pages name it with `?v=` and its hash, so that browsers
    keep it for a year."""
    if found is None:
        return Response(b"", status_code=404, media_type="text/plain", headers={"Cache-Control": "no-store"})
    named = request.query_params.get("v") == found.tag
    headers = {
        "Cache-Control": "public, max-age=31536000, immutable" if named else "no-cache",
        "X-Content-Type-Options": "nosniff",
    }
    return sent(request, found, headers)

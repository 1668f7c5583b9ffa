"""Request headers by name, for code that runs before the framework."""

from typing import Any, cast

from litestar.types import Scope

_PLACE = "cambist.headers"


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    """Return the headers by lower-case name, read once per request. If a name repeats, the first value counts, as in
    the framework: rate limits and authentication must see the same key. Repeated X-Forwarded-For headers are joined to
    one list, as proxies write them."""
    room = cast("dict[str, Any]", scope)
    known: dict[bytes, bytes] | None = room.get(_PLACE)
    if known is None:
        known = room[_PLACE] = {}
        for name, value in scope["headers"]:
            if name not in known:
                known[name] = value
            elif name == b"x-forwarded-for":
                known[name] += b"," + value
    return known

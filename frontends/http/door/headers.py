"""The headers of a request by name, for rooms that stand before the framework."""

from typing import Any, cast

from litestar.types import Scope

_PLACE = "cambist.headers"


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    """Headers by lower-case name, read once for a request. Of several of a name the first counts, as for the framework:
    who is counted must be who is authorized. Several X-Forwarded-For are one list, as proxies write them."""
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

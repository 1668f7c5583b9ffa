"""`GET /openapi.json` and `GET /docs`: the interface, described (docs/versioning.md "The API").

They need no key and are not counted, like the health check. Most processes are never asked for them, so what makes them
is imported when they are: that and the making take some hundred milliseconds, once, in a thread.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from litestar import Request, Response, get, route
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from ....ports.bundle import Ports
from ..door.routing import Router
from ..payer.pages import HEADERS
from ..templates import read_asset

_ASSETS = {
    "docs.css": "text/css",
    "docs.js": "text/javascript",
    "front.css": "text/css",
    "mark.svg": "image/svg+xml",
}
_HEADERS = {**HEADERS, "Cache-Control": "no-cache"}
"""As the payer window's, so that nothing from elsewhere can run; but nothing on this page is private."""

Asked = Request[Any, Any, Any]


def openapi_handler(ports: Ports) -> HTTPRouteHandler:
    """GET /openapi.json."""

    def make() -> bytes:
        from .openapi import openapi_bytes

        return openapi_bytes(ports.urls.base_url)

    document = _Once(make)

    @get("/openapi.json")
    async def openapi() -> Response[bytes]:
        return Response(await document.body(), media_type="application/json")

    return openapi


def linked_assets(at: str) -> Callable[[str], str]:
    """The addresses of what `docs_router` serves below, for a page that finds it at this path."""
    tags = {name: read_asset(name, media_type).tag for name, media_type in _ASSETS.items()}
    return lambda name: f"{at}/assets/{name}?v={tags[name]}"


def docs_router(ports: Ports) -> Router:
    """The page, and what it loads."""
    assets = {name: read_asset(name, media_type) for name, media_type in _ASSETS.items()}

    def make() -> bytes:
        from .docs_page import docs_page

        return docs_page(ports.urls.base_url, linked_assets("docs"))

    page = _Once(make)

    @route("/", http_method=["GET", "HEAD"], include_in_schema=False)
    async def show() -> Response[bytes]:
        return Response(await page.body(), media_type="text/html", headers=_HEADERS)

    @route("/assets/{name:str}", http_method=["GET", "HEAD"], include_in_schema=False)
    async def asset(request: Asked, name: FromPath[str]) -> Response[bytes]:
        found = assets.get(name)
        if found is None:
            return Response(b"", status_code=404, media_type="text/plain", headers={"Cache-Control": "no-store"})
        named = request.query_params.get("v") == found.tag
        headers = {
            "Cache-Control": "public, max-age=31536000, immutable" if named else "no-cache",
            "X-Content-Type-Options": "nosniff",
        }
        return Response(found.body, media_type=found.media_type, headers=headers)

    return Router("/docs", route_handlers=[show, asset])


class _Once:
    """Bytes that are made when they are first asked for, and kept."""

    def __init__(self, make: Callable[[], bytes]) -> None:
        self._make = make
        self._made: bytes | None = None
        self._making = asyncio.Lock()

    async def body(self) -> bytes:
        """Those who ask while they are being made wait for the same."""
        if self._made is None:
            async with self._making:
                if self._made is None:
                    self._made = await asyncio.to_thread(self._make)
        return self._made

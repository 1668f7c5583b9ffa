"""`GET /openapi.json`, `GET /docs` and the guides below it: the interface, described (docs/versioning.md "The API").

They need no key and are not counted, like the health check. Most processes are never asked for them, so what makes them
is imported when they are: that and the making take some hundred milliseconds, once, in a thread.
"""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from litestar import Request, Response, get, route
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from ....ports.bundle import Ports
from ..door.routing import Router
from ..payer.pages import HEADERS, HTML
from ..templates import read_asset

_ASSETS = {
    "docs.css": "text/css",
    "docs.js": "text/javascript",
    "reference.js": "text/javascript",
    "front.css": "text/css",
    "mark.svg": "image/svg+xml",
}
_JSON = "application/json"
_IMAGES = {".svg": "image/svg+xml", ".png": "image/png"}
_HEADERS = {**HEADERS, "Cache-Control": "no-cache"}
"""As the payer window's, so that nothing from elsewhere can run; but nothing on this page is private."""
_REDIRECTS = 307
_NOT_MODIFIED = 304
_METHODS: Sequence[Literal["GET", "HEAD"]] = ("GET", "HEAD")
_FIRST = "quickstart"
_RUSSIAN = "ru"

Asked = Request[Any, Any, Any]


def openapi_handler(ports: Ports) -> HTTPRouteHandler:
    """GET /openapi.json."""

    def make() -> bytes:
        from .openapi import openapi_bytes

        return openapi_bytes(ports.urls.base_url)

    document = _once(make)

    @get("/openapi.json")
    async def openapi() -> Response[bytes]:
        return Response((await document.value()).body, media_type=_JSON)

    return openapi


def linked_assets(at: str) -> Callable[[str], str]:
    """The addresses of what `docs_router` serves below, for a page that finds it at this path."""
    tags = {name: read_asset(name, media_type).tag for name, media_type in _ASSETS.items()}
    return lambda name: f"{at}/assets/{name}?v={tags[name]}"


def docs_router(ports: Ports) -> Router:
    """The pages, what they load, and what their search finds."""
    assets = {name: read_asset(name, media_type) for name, media_type in _ASSETS.items()}
    shelf = _Shelf(ports)

    @route("/", http_method=_METHODS, include_in_schema=False)
    async def show(request: Asked) -> Response[bytes]:
        if request.query_params.get("lang") == _RUSSIAN:
            return _moved(f"docs/{_RUSSIAN}/{_FIRST}")
        return await shelf.answer(request, "reference")

    @route(f"/{_RUSSIAN}", http_method=_METHODS, include_in_schema=False)
    async def first() -> Response[bytes]:
        return _moved(f"{_RUSSIAN}/{_FIRST}")

    @route("/{name:str}", http_method=_METHODS, include_in_schema=False)
    async def guide(request: Asked, name: FromPath[str]) -> Response[bytes]:
        if request.query_params.get("lang") == _RUSSIAN and await shelf.has(f"{_RUSSIAN}/{name}"):
            return _moved(f"{_RUSSIAN}/{name}")
        return await shelf.answer(request, f"en/{name}")

    @route(f"/{_RUSSIAN}/{{name:str}}", http_method=_METHODS, include_in_schema=False)
    async def translated(request: Asked, name: FromPath[str]) -> Response[bytes]:
        if request.query_params.get("lang") == "en" and await shelf.has(f"en/{name}"):
            return _moved(f"../{name}")
        return await shelf.answer(request, f"{_RUSSIAN}/{name}")

    @route("/search/{language:str}", http_method=_METHODS, include_in_schema=False)
    async def index(request: Asked, language: FromPath[str]) -> Response[bytes]:
        return await shelf.answer(request, f"search/{language}", _JSON)

    @route("/images/{name:str}", http_method=_METHODS, include_in_schema=False)
    async def image(request: Asked, name: FromPath[str]) -> Response[bytes]:
        kind = _IMAGES.get(name[-4:])
        return await shelf.answer(request, f"images/{name}", kind or HTML)

    @route("/assets/{name:str}", http_method=_METHODS, include_in_schema=False)
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

    return Router("/docs", route_handlers=[show, first, guide, translated, index, image, asset])


def _moved(where: str) -> Response[bytes]:
    return Response(b"", status_code=_REDIRECTS, media_type=HTML, headers={**_HEADERS, "Location": where})


class _Shelf:
    """All that is drawn, by a name each."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._listed = _Kept(self._list)

    async def has(self, name: str) -> bool:
        """Whether there is something of this name."""
        return name in await self._listed.value()

    async def answer(self, request: Asked, name: str, media_type: str = HTML) -> Response[bytes]:
        """What has this name, or that it is as the reader has it. Raises: NotFoundException."""
        wanted = (await self._listed.value()).get(name)
        if wanted is None:
            raise NotFoundException
        made = await wanted.value()
        headers = {**_HEADERS, "ETag": f'"{made.tag}"'}
        if made.tag in request.headers.get("if-none-match", ""):
            return Response(b"", status_code=_NOT_MODIFIED, media_type=media_type, headers=headers)
        return Response(made.body, media_type=media_type, headers=headers)

    def _list(self) -> dict[str, "_Kept[_Made]"]:
        from .docs_page import Docs
        from .guides import GUIDES, NAMES

        docs = Docs(self._ports.urls.base_url, linked_assets)
        listed = {"reference": _once(docs.reference)}
        for language in docs.languages:
            listed[f"search/{language}"] = _once(partial(docs.index, language))
            names = [name for name in NAMES if docs.has(language, name)]
            listed |= {f"{language}/{name}": _once(partial(docs.guide, language, name)) for name in names}
        for path in sorted((GUIDES / "images").iterdir()):
            listed[f"images/{path.name}"] = _once(path.read_bytes)
        return listed


T = TypeVar("T")


class _Kept(Generic[T]):
    """A value that is made in a thread when it is first asked for, and kept."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: T | None = None
        self._making = asyncio.Lock()

    async def value(self) -> T:
        """Those who ask while it is being made wait for the same."""
        if self._made is None:
            async with self._making:
                if self._made is None:
                    self._made = await asyncio.to_thread(self._make)
        return self._made


class _Made(NamedTuple):
    body: bytes
    tag: str
    """A hash of it."""


def _once(make: Callable[[], bytes]) -> _Kept[_Made]:
    """Bytes that are made when they are first asked for, and kept."""

    def made() -> _Made:
        body = make()
        return _Made(body, hashlib.sha256(body).hexdigest()[:16])

    return _Kept(made)

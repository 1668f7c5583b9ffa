"""`GET /openapi.json`, `GET /llms.txt`, `GET /docs` and the guides below it (docs/versioning.md "The API").

They need no key and are not counted, like the health check. Most processes never serve them, so their modules are
imported on the first request. Import and rendering take some hundred milliseconds, once, in a thread.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

from litestar import Response, route
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from ....ports.bundle import Ports
from ..edge.kept import Kept
from ..edge.routing import Router
from ..packed import Asked, Packed, asset, pack, sent
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
_MARKDOWN = "text/markdown"
_TEXT = "text/plain"
_ZIP = "application/zip"
_IMAGES = {".svg": "image/svg+xml", ".png": "image/png"}
_HEADERS = {**HEADERS, "Cache-Control": "no-cache"}
"""Headers of the payer window, so that no foreign script can run. Caching is allowed, because nothing on this page is
private."""
_REDIRECTS = 307
_METHODS: Sequence[Literal["GET", "HEAD"]] = ("GET", "HEAD")
_FIRST = "quickstart"
_RUSSIAN = "ru"


def openapi_handler(ports: Ports) -> HTTPRouteHandler:
    """Return the handler of GET /openapi.json."""

    def make() -> bytes:
        from .openapi import openapi_bytes

        return openapi_bytes(ports.urls.base_url)

    document = _once(make, _JSON)

    @route("/openapi.json", http_method=_METHODS)
    async def openapi(request: Asked) -> Response[bytes]:
        return sent(request, await document.value(), {"Cache-Control": "no-cache"})

    return openapi


def llms_handler(ports: Ports) -> HTTPRouteHandler:
    """Return the handler of GET /llms.txt: the guides with a line each, for language models."""

    def make() -> bytes:
        from .guides import Library, contents

        return contents(Library(), ports.urls.base_url).encode()

    document = _once(make, _TEXT)

    @route("/llms.txt", http_method=_METHODS, include_in_schema=False)
    async def llms(request: Asked) -> Response[bytes]:
        return sent(request, await document.value(), _HEADERS)

    return llms


def linked_assets(at: str) -> Callable[[str], str]:
    """Return the addresses of the assets that `docs_router` serves, for a page that finds it at this path."""
    tags = {name: read_asset(name, media_type).tag for name, media_type in _ASSETS.items()}
    return lambda name: f"{at}/assets/{name}?v={tags[name]}"


def docs_router(ports: Ports) -> Router:
    """Return the router of the pages, their assets and their search index."""
    assets = {name: read_asset(name, media_type) for name, media_type in _ASSETS.items()}
    repository = _Repository(ports)

    @route("/", http_method=_METHODS, include_in_schema=False)
    async def show(request: Asked) -> Response[bytes]:
        if request.query_params.get("lang") == _RUSSIAN:
            return _moved(f"docs/{_RUSSIAN}/{_FIRST}")
        return await repository.answer(request, "reference")

    @route("/reference/{name:str}", http_method=_METHODS, include_in_schema=False)
    async def group(request: Asked, name: FromPath[str]) -> Response[bytes]:
        return await repository.answer(request, f"reference/{name}")

    @route(f"/{_RUSSIAN}", http_method=_METHODS, include_in_schema=False)
    async def first() -> Response[bytes]:
        return _moved(f"{_RUSSIAN}/{_FIRST}")

    @route("/{name:str}", http_method=_METHODS, include_in_schema=False)
    async def guide(request: Asked, name: FromPath[str]) -> Response[bytes]:
        if request.query_params.get("lang") == _RUSSIAN and await repository.has(f"{_RUSSIAN}/{name}"):
            return _moved(f"{_RUSSIAN}/{name}")
        return await repository.answer(request, f"en/{name}")

    @route(f"/{_RUSSIAN}/{{name:str}}", http_method=_METHODS, include_in_schema=False)
    async def translated(request: Asked, name: FromPath[str]) -> Response[bytes]:
        if request.query_params.get("lang") == "en" and await repository.has(f"en/{name}"):
            return _moved(f"../{name}")
        return await repository.answer(request, f"{_RUSSIAN}/{name}")

    @route("/search/{language:str}", http_method=_METHODS, include_in_schema=False)
    async def index(request: Asked, language: FromPath[str]) -> Response[bytes]:
        return await repository.answer(request, f"search/{language}")

    @route("/images/{name:str}", http_method=_METHODS, include_in_schema=False)
    async def image(request: Asked, name: FromPath[str]) -> Response[bytes]:
        return await repository.answer(request, f"images/{name}")

    @route("/assets/{name:str}", http_method=_METHODS, include_in_schema=False)
    async def file(request: Asked, name: FromPath[str]) -> Response[bytes]:
        return asset(request, assets.get(name))

    return Router("/docs", route_handlers=[show, group, first, guide, translated, index, image, file])


def _moved(where: str) -> Response[bytes]:
    return Response(b"", status_code=_REDIRECTS, media_type=HTML, headers={**_HEADERS, "Location": where})


class _Repository:
    """All rendered pages by name."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._listed = Kept(self._list)

    async def has(self, name: str) -> bool:
        """Return whether there is a page of this name."""
        return name in await self._listed.value()

    async def answer(self, request: Asked, name: str) -> Response[bytes]:
        """Return the page of this name, or 304 if the reader has it. Raises: NotFoundException."""
        wanted = (await self._listed.value()).get(name)
        if wanted is None:
            raise NotFoundException
        return sent(request, await wanted.value(), _HEADERS)

    def _list(self) -> dict[str, Kept[Packed]]:
        from .docs_page import Docs
        from .guides import GUIDES, NAMES

        docs = Docs(self._ports.urls.base_url, linked_assets)
        listed = {
            "reference": _once(docs.reference),
            "en/cambist.postman_collection.json": _once(docs.postman, _JSON),
            "en/cambist-bruno.zip": _once(docs.bruno, _ZIP),
        }
        listed |= {f"reference/{name}": _once(partial(docs.group, name)) for name in docs.groups}
        for language in docs.languages:
            listed[f"search/{language}"] = _once(partial(docs.index, language), _JSON)
            names = [name for name in NAMES if docs.has(language, name)]
            listed |= {f"{language}/{name}": _once(partial(docs.guide, language, name)) for name in names}
            sources = {name: GUIDES / language / f"{name}.md" for name in names}
            listed |= {f"{language}/{name}.md": _once(path.read_bytes, _MARKDOWN) for name, path in sources.items()}
        for path in sorted((GUIDES / "images").iterdir()):
            listed[f"images/{path.name}"] = _once(path.read_bytes, _IMAGES[path.suffix])
        return listed


def _once(make: Callable[[], bytes], media_type: str = HTML) -> Kept[Packed]:
    """Return bytes that are made on first use, and kept."""
    return Kept(lambda: pack(make(), media_type))

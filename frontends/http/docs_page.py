"""`GET /docs`: the OpenAPI document as a page to read. It is drawn here, once, and loads nothing from anybody else."""

import hashlib
from pathlib import Path
from typing import Any

import jinja2
from litestar import Request, Response, route
from litestar.params import FromPath
from markupsafe import Markup, escape

from ...ports.bundle import Ports
from .docs_model import Reference, reference
from .openapi import openapi_document
from .routing import Router
from .window_page import Asset
from .window_pages import HEADERS

_PAGES = Path(__file__).parent / "pages"
_ASSETS = {"docs.css": "text/css", "docs.js": "text/javascript", "mark.svg": "image/svg+xml"}
_HEADERS = {**HEADERS, "Cache-Control": "no-cache"}
"""As the payer window's, so that nothing from elsewhere can run; but nothing on this page is private."""

Asked = Request[Any, Any, Any]


def docs_router(ports: Ports) -> Router:
    """The page, and what it loads."""
    page = _Page(ports)

    @route("/", http_method=["GET", "HEAD"], include_in_schema=False)
    async def show() -> Response[bytes]:
        return Response(page.body(), media_type="text/html", headers=_HEADERS)

    @route("/assets/{name:str}", http_method=["GET", "HEAD"], include_in_schema=False)
    async def asset(request: Asked, name: FromPath[str]) -> Response[bytes]:
        return page.asset(request, name)

    return Router("/docs", route_handlers=[show, asset])


class _Page:
    def __init__(self, ports: Ports) -> None:
        self._base_url = ports.places.base_url
        self._body = b""
        self._assets = {name: _read(name, media_type) for name, media_type in _ASSETS.items()}

    def body(self) -> bytes:
        """Drawn when it is asked for first: most processes never show it."""
        if not self._body:
            drawn = draw(reference(openapi_document(self._base_url)), self._link)
            self._body = drawn.encode()
        return self._body

    def _link(self, name: str) -> str:
        return f"docs/assets/{name}?v={self._assets[name].tag}"

    def asset(self, request: Asked, name: str) -> Response[bytes]:
        asset = self._assets.get(name)
        if asset is None:
            return Response(b"", status_code=404, media_type="text/plain", headers={"Cache-Control": "no-store"})
        named = request.query_params.get("v") == asset.tag
        headers = {
            "Cache-Control": "public, max-age=31536000, immutable" if named else "no-cache",
            "X-Content-Type-Options": "nosniff",
        }
        return Response(asset.body, media_type=asset.media_type, headers=headers)


def draw(of: Reference, link: Any) -> str:
    """The page of a reference; `link` gives the address of an asset."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_PAGES), autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["ticks"] = _ticks
    return environment.get_template("docs.html").render(reference=of, asset=link)


def _ticks(text: str) -> Markup:
    """Text with `code` in it."""
    parts = [str(escape(part)) for part in text.split("`")]
    # Safe as it is: every part was escaped above.
    return Markup("".join(f"<code>{part}</code>" if odd % 2 else part for odd, part in enumerate(parts)))  # noqa: S704


def _read(name: str, media_type: str) -> Asset:
    body = (_PAGES / name).read_bytes()
    return Asset(body=body, media_type=media_type, tag=hashlib.sha256(body).hexdigest()[:16])

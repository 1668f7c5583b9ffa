"""`GET /` of a running service: the first page in a browser (docs/operations.md "The first page"). It discloses nothing
beyond `/docs` and a merchant's first request."""

import re
from urllib.parse import urlsplit

from litestar import Response, route

from ...core.domain.accounts.accounts import Mode
from ...ports.bundle import Ports
from .edge.errors import endpoint_not_found
from .edge.routing import Router
from .openapi.documentation import linked_assets
from .payer.page_limit import PageLimit
from .payer.pages import HEADERS, HTML, Asked
from .templates import Templates

_WISH = re.compile(
    r"(?:^|,)\s*(?P<type>[\w+*.-]+/[\w+*.-]+)\s*(?:;\s*q=(?P<q>[01](?:\.[0-9]{0,3})?)\s*)?(?=,|\Z)", re.ASCII
)
"""A media type of the header Accept with its weight (RFC 9110, 12.5.1). Entries of another form are ignored."""
_HEADERS = {
    **HEADERS,
    "Cache-Control": "public, max-age=60",
    "Content-Security-Policy": HEADERS["Content-Security-Policy"].replace("script-src 'self'", "script-src 'none'"),
    "Vary": "Accept",
}


def front_router(ports: Ports, limit: PageLimit) -> Router:
    """Return the router of the page. A program that accepts JSON or anything gets the envelope of an unknown path."""
    page = _Front(ports)

    def busy(_: Asked, wait: int) -> Response[str]:
        response = page.show(wait)
        response.status_code = 429
        response.headers.update({"Cache-Control": "no-store", "Retry-After": str(wait)})
        return response

    @route("/", http_method=["GET", "HEAD"], include_in_schema=False)
    async def show(request: Asked) -> Response[str]:
        if not _wants_page(request):
            raise endpoint_not_found()
        return page.show()

    return Router("/", route_handlers=[show], before_request=limit.before(busy, _wants_page))


def _wants_page(request: Asked) -> bool:
    """Whether the request prefers HTML to JSON and accepts it no less than anything else."""
    weights = {found["type"]: float(found["q"] or 1) for found in _WISH.finditer(request.headers.get("accept", ""))}
    html = weights.get(HTML, 0.0)
    return html > weights.get("application/json", 0.0) and html >= weights.get("*/*", 0.0)


class _Front:
    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._root = urlsplit(ports.urls.base_url).path.rstrip("/")
        self._templates = Templates(asset=linked_assets(f"{self._root}/docs"))

    def show(self, wait: int | None = None) -> Response[str]:
        """Render the page. With `wait`, the page says that requests are allowed again in so many seconds."""
        body = self._templates.draw(
            "front.html",
            base_url=self._ports.urls.base_url,
            root=self._root,
            login=f"{self._ports.urls.app_url}/login",
            modes={mode.value: self._state(mode) for mode in (Mode.TEST, Mode.LIVE)},
            wait=wait,
        )
        return Response(body, media_type=HTML, headers=dict(_HEADERS))

    def _state(self, mode: Mode) -> str:
        banks = self._ports.banks.of_mode(mode.value)
        if not banks:
            return "waits"
        return "simulated" if all(bank.capabilities.simulated for bank in banks) else "ready"

"""Limit on page requests from one client address: `/p`, `/s` and `/kyc` with the calls of their scripts. No key and no
merchant's limit counts them (docs/limits.md "Pages"). Assets are cached by browsers and not counted."""

from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import quote, urlsplit

from litestar import Response

from ....core.domain.accounts.rate_limit import Network
from ....core.domain.errors import Refusal
from ....core.usecases.accounts.access import departed_to
from ....core.usecases.accounts.limit_hits import HitCounter
from ....core.usecases.accounts.rate_limits import PAGES, PAGES_PER_MINUTE, Counted, admit_stranger
from ....ports.bundle import Ports
from ..edge.errors import refused
from ..edge.origin import origin
from .pages import HEADERS, Asked

_FILES = ("/assets/", "/colors/")
BeforeRequest = Callable[[Asked], Awaitable[Response[str] | Response[bytes] | None]]


class PageLimit:
    """Counter of pages by client address, shared with the other processes of the service."""

    def __init__(
        self,
        ports: Ports,
        trusted_proxies: Sequence[Network],
        per_minute: int = PAGES_PER_MINUTE,
        hits: HitCounter | None = None,
    ) -> None:
        self._ports = ports
        self._trusted = trusted_proxies
        self._per_minute = per_minute
        self._hits = hits or HitCounter()

    def before(self, show: Callable[[Asked, int], Response[str]], shown: Callable[[Asked], bool]) -> BeforeRequest:
        """Return a function for routers to call before each request: it returns the answer to a request over the limit,
        else None. A request that is `shown` to a person gets a page from `show`, with the seconds until the next
        allowed request; scripts get the envelope.

        It is a function, because the framework deep-copies a method's object.
        """

        async def before_request(request: Asked) -> Response[str] | Response[bytes] | None:
            if any(part in request.scope["path"] for part in _FILES):
                return None
            found = await self._count(request)
            if not found.over:
                return await self._elsewhere(request)
            return show(request, found.wait) if shown(request) else _said(request, found)

        return before_request

    async def _elsewhere(self, request: Asked) -> Response[str] | None:
        """Lead the browser to the cell of an account that left this one, by a redirect that keeps the method."""
        if self._ports.cell is None:
            return None
        for named in request.path_params.values():
            base = await departed_to(self._ports, str(named))
            if base is not None:
                path = str(request.url.path).removeprefix(urlsplit(self._ports.urls.pay_url).path)
                query = f"?{request.url.query}" if request.url.query else ""
                headers = {**HEADERS, "Location": f"{base}{quote(path)}{query}"}
                return Response("", status_code=307, media_type="text/html", headers=headers)
        return None

    def address(self, request: Asked) -> str:
        """Return the client's address, by which it is counted."""
        return origin(request, self._trusted)

    async def _count(self, request: Asked) -> Counted:
        found = await admit_stranger(self._ports, PAGES, self.address(request), self._per_minute)
        if found.over:
            self._hits.add(PAGES, found.minute)
        return found


def _said(request: Asked, found: Counted) -> Response[bytes]:
    text = "Too many requests for pages from this address; see Retry-After"
    response = refused(Refusal("RATE_LIMIT_EXCEEDED", text, retry_after=found.wait)).of_framework(request.scope)
    response.headers.update(HEADERS)
    return response

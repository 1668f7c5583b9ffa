"""Common parts of the pages under `/p` and `/s`: headers, language, and error pages."""

import logging
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit

from litestar import Request, Response
from litestar.types import ExceptionHandlersMap

from ....core.domain.errors import Refusal
from ....ports.faults import Fault, Unavailable
from .window_page import pick_language
from .window_texts import TEXTS

log = logging.getLogger("cambist.window")

HTML = "text/html"

HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "X-Robots-Tag": "noindex, nofollow",
}
"""Headers of every answer of the window except assets. The link gives access to the page, so there is no referrer and
no caching."""

Asked = Request[Any, Any, Any]


class Page(Protocol):
    """A page that can also render its error pages in its own style."""

    def link(self, object_id: str, wish: str | None, /) -> str:
        """Return the link to the page of an object."""
        ...

    def notification(self, kind: str, language: str, *, here: str = "", refresh: int | None = None) -> str:
        """Render an error page."""
        ...


class Notifications:
    """Error pages: the page is closed, a form was rejected, the service is unavailable or busy."""

    def __init__(self, page: Page, parameter: str) -> None:
        """Create the error pages. `parameter` is the part of the path that names the object."""
        self._page = page
        self._parameter = parameter

    def say(self, request: Asked, kind: str, status: int, wait: int | None = None) -> Response[str]:
        """Return an error page as an answer. `wait` is the number of seconds after which a retry makes sense, if
        known."""
        reloads = request.method in ("GET", "HEAD") and (status >= 500 or wait is not None)
        again = (wait or 10) if reloads else None
        language = language_of(request)
        # The answer to a POST cannot be reloaded at its own address.
        object_id = request.path_params.get(self._parameter, "") if request.method == "POST" else ""
        here = self._page.link(object_id, None) if object_id else ""
        response = html_page(self._page.notification(kind, language, here=here, refresh=again), language, status)
        if wait is not None or status == 503:
            response.headers["Retry-After"] = str(wait or 5)
        return response

    def busy(self, request: Asked, wait: int) -> Response[str]:
        """Answer a request over the limit of its address. Requests are allowed again after `wait` seconds."""
        return self.say(request, "busy", 429, wait)

    @staticmethod
    def shown(request: Asked) -> bool:
        """Return whether a person sees the answer, rather than the page's script."""
        return not request.scope["path"].endswith(("/state", "/events"))

    def handlers(self) -> ExceptionHandlersMap:
        """Return the router's exception handlers. They are functions, because the framework deep-copies handlers, and a
        method brings its object along."""

        def on_fault(request: Asked, fault: Exception) -> Response[str]:
            """Answer that the storage or the bank is temporarily unavailable."""
            log.warning("a page is unavailable: %s", fault)
            return self.say(request, "unavailable", 503)

        def on_anything(request: Asked, error: Exception) -> Response[str]:
            """Log an error of ours, and disclose nothing of it."""
            log.error("unhandled error in a page", exc_info=error)
            return self.say(request, "unavailable", 500)

        # Unavailable is listed itself, because the application's handler for it would take precedence over one for
        # Fault.
        return {Refusal: on_fault, Fault: on_fault, Unavailable: on_fault, Exception: on_anything}


def html_page(body: str, language: str, status: int = 200) -> Response[str]:
    headers = {**HEADERS, "Content-Language": language, "Vary": "Accept-Language"}
    return Response(body, status_code=status, media_type=HTML, headers=headers)


def see_other(address: str) -> Response[str]:
    """Redirect the browser after a form."""
    return Response("", status_code=303, media_type=HTML, headers={**HEADERS, "Location": address})


def wished_language(request: Asked) -> str | None:
    wish = request.query_params.get("lang")
    return wish if wish in TEXTS else None


def language_of(request: Asked) -> str:
    return pick_language(wished_language(request), request.headers.get("accept-language", ""))


_FORM = 16_384
"""Bytes of a form that are read."""


async def read_form(request: Asked) -> dict[str, str]:
    """Return the fields of a form from one of our pages; the last value if a name repeats."""
    return dict(parse_qsl((await request.body())[:_FORM].decode("latin-1"), encoding="utf-8"))


def is_opened(request: Asked) -> bool:
    """Return whether the request may come from a payer who opens the page, rather than from a HEAD request or a
    browser's prefetch. Link previews cannot be told apart."""
    purpose = request.headers.get("sec-purpose", "") + request.headers.get("purpose", "")
    return request.method == "GET" and "prefetch" not in purpose


def is_foreign(request: Asked) -> bool:
    """Return whether the browser reports that another site sent this form.

    `Sec-Fetch-Site` decides if it is present. Over plain http it is absent, and `Origin` is `null`, because our own
    page sends no referrer. Such a form is accepted, since nobody without the link can name the payment.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = request.headers.get("origin")
    if origin is None or origin == "null":
        return False
    return urlsplit(origin).netloc.lower() != request.headers.get("host", "").lower()

"""What the pages under `/p` and `/s` have in common: headers, language, and what they say when something is wrong."""

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
"""On every answer of the window but assets. The link is the key to the page, hence no referrer and no store."""

Asked = Request[Any, Any, Any]


class Page(Protocol):
    """A page that can also say in its own look why it shows nothing."""

    def link(self, object_id: str, wish: str | None, /) -> str:
        """Where the page of an object is."""
        ...

    def notice(self, kind: str, language: str, *, here: str = "", refresh: int | None = None) -> str:
        """The page that says it."""
        ...


class Notices:
    """Says on a page that it is closed, that a form was rejected, or that the service is away or busy."""

    def __init__(self, page: Page, parameter: str) -> None:
        """`parameter`: the part of the path that names the object."""
        self._page = page
        self._parameter = parameter

    def say(self, request: Asked, kind: str, status: int, wait: int | None = None) -> Response[str]:
        """The notice as an answer. `wait`: the seconds after which asking again makes sense, where that is known."""
        reloads = request.method in ("GET", "HEAD") and (status >= 500 or wait is not None)
        again = (wait or 10) if reloads else None
        language = language_of(request)
        # A page that answers a POST cannot be asked for again under its own address.
        object_id = request.path_params.get(self._parameter, "") if request.method == "POST" else ""
        here = self._page.link(object_id, None) if object_id else ""
        response = html_page(self._page.notice(kind, language, here=here, refresh=again), language, status)
        if wait is not None or status == 503:
            response.headers["Retry-After"] = str(wait or 5)
        return response

    def busy(self, request: Asked, wait: int) -> Response[str]:
        """Too much is asked from this address; there is room again after so many seconds."""
        return self.say(request, "busy", 429, wait)

    @staticmethod
    def shown(request: Asked) -> bool:
        """Whether what answers is shown to a person, and not read by the page's script."""
        return not request.scope["path"].endswith(("/state", "/events"))

    def handlers(self) -> ExceptionHandlersMap:
        """What a router does with faults of the service. Functions and not methods: the framework copies handlers
        deeply, and a method takes its object along."""

        def on_fault(request: Asked, fault: Exception) -> Response[str]:
            """The storage or the bank does not answer for now."""
            log.warning("a page is unavailable: %s", fault)
            return self.say(request, "unavailable", 503)

        def on_anything(request: Asked, error: Exception) -> Response[str]:
            """Our fault: nothing of it goes out, all of it goes to the log."""
            log.error("unhandled error in a page", exc_info=error)
            return self.say(request, "unavailable", 500)

        # Unavailable by its own name, because the application's handler of it would be found before one of Fault.
        return {Refusal: on_fault, Fault: on_fault, Unavailable: on_fault, Exception: on_anything}


def html_page(body: str, language: str, status: int = 200) -> Response[str]:
    headers = {**HEADERS, "Content-Language": language, "Vary": "Accept-Language"}
    return Response(body, status_code=status, media_type=HTML, headers=headers)


def see_other(address: str) -> Response[str]:
    """Send the browser on after a form."""
    return Response("", status_code=303, media_type=HTML, headers={**HEADERS, "Location": address})


def wished_language(request: Asked) -> str | None:
    wish = request.query_params.get("lang")
    return wish if wish in TEXTS else None


def language_of(request: Asked) -> str:
    return pick_language(wished_language(request), request.headers.get("accept-language", ""))


_FORM = 16_384
"""Bytes of a form that are read."""


async def read_form(request: Asked) -> dict[str, str]:
    """Return the fields of a form that one of our pages sent; the last one where a name comes several times."""
    return dict(parse_qsl((await request.body())[:_FORM].decode("latin-1"), encoding="utf-8"))


def is_opened(request: Asked) -> bool:
    """Return whether the request may come from a payer who opens the page, rather than from a look at the headers or a
    browser that prefetches links. Link previews cannot be told apart."""
    purpose = request.headers.get("sec-purpose", "") + request.headers.get("purpose", "")
    return request.method == "GET" and "prefetch" not in purpose


def is_foreign(request: Asked) -> bool:
    """Return whether a browser says that another site sent this form.

    `Sec-Fetch-Site` decides where it is sent. Over plain http it is not, and `Origin` is `null` there, because our
    own page asks for no referrer: that is let through, since nobody without the link can name the payment at all.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = request.headers.get("origin")
    if origin is None or origin == "null":
        return False
    return urlsplit(origin).netloc.lower() != request.headers.get("host", "").lower()

"""The hosted KYC page `{app_url}/kyc`: forms, uploads with progress, status (docs/kyc.md "A page that does it").

It has no cookies, keys or third parties: the link identifies the client. The page's script calls three paths with the
link's `session` in the body, and PUTs files to the granted addresses.
"""

import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

from litestar import Request, Response, post, route
from litestar.params import FromPath

from ....core.domain.accounts.rate_limit import WINDOW
from ....core.domain.errors import Refusal
from ....core.domain.kyc.kyc import RegisterOrder
from ....core.domain.masked import Masked
from ....core.domain.payer.kyc_page import Face
from ....core.domain.subscriptions.subscriptions import masked_phone
from ....core.usecases.payer import kyc_page
from ....core.usecases.payer.kyc_begin import Begun, Merchants, begin
from ....core.usecases.payer.kyc_page import KycView
from ....ports.bundle import Ports
from ....ports.faults import Fault
from ....ports.files import ElsewhereFiles, HeadedUploads
from ..edge.answers import answer
from ..edge.bodies import read_body
from ..edge.errors import on_error
from ..edge.routing import Router
from ..packed import asset
from ..templates import Templates, read_asset
from .kyc_calls import PageCall, PageRegister, PageUpload
from .kyc_texts import KYC_TEXTS
from .page_limit import PageLimit
from .pages import HEADERS, is_foreign, read_form, see_other
from .window_page import pick_language
from .window_texts import LANGUAGE_NAMES

log = logging.getLogger("cambist.kyc")

_ASSETS = {
    "window.css": "text/css",
    "window.js": "text/javascript",
    "kyc.css": "text/css",
    "kyc.js": "text/javascript",
    "mark.svg": "image/svg+xml",
}
_LONGEST = 2048
"""Largest length of a return address; a longer one is ignored."""
_LIVE = (Face.PROCESSING, Face.FORM)
"""Faces that may change while the page is open."""

Asked = Request[Any, Any, Any]
T = TypeVar("T")


def kyc_page_router(ports: Ports, limit: PageLimit | None = None) -> Router:
    """Return the router of everything under `/kyc`, with its own templates and assets."""
    limit = limit or PageLimit(ports, ())
    page = _Page(ports, limit)

    def busy(request: Asked, wait: int) -> Response[str]:
        return page.busy(request, wait)

    @route("/", http_method=["GET", "HEAD"], include_in_schema=False)
    async def show(request: Asked) -> Response[str]:
        return await page.show(request)

    @post("/begin", status_code=200, include_in_schema=False)
    async def begin_session(request: Asked) -> Response[str]:
        return await page.begin(request)

    @post("/state", status_code=200, include_in_schema=False)
    async def state(request: Asked) -> Response[bytes]:
        call = await _read(request, PageCall)
        view = _found(await kyc_page.view(ports, call.session, None))
        return _private(answer({"face": view.face.value}).of_framework())

    @post("/upload-url", status_code=200, include_in_schema=False)
    async def upload_url(request: Asked) -> Response[bytes]:
        call = await _read(request, PageUpload)
        grant = _found(await kyc_page.grant(ports, call.session, call.order))
        files = ports.files
        headers = dict(files.upload_headers) if isinstance(files, HeadedUploads) else {}
        place = {"upload_url": grant.upload_url, "file_key": grant.file_key, "upload_headers": headers}
        return _private(answer(place).of_framework())

    @post("/register", status_code=200, include_in_schema=False)
    async def register(request: Asked) -> Response[bytes]:
        call = await _read(request, PageRegister)
        given = {name: getattr(call, name) for name in PageRegister.__struct_fields__ if name != "session"}
        done = _found(await kyc_page.register(ports, call.session, RegisterOrder(phone="", **given)))
        told = {"status": done.status} if done.session is None else {"status": done.status, "session": done.session}
        return _private(answer(told).of_framework())

    @route("/assets/{name:str}", http_method=["GET", "HEAD"], include_in_schema=False)
    async def file(request: Asked, name: FromPath[str]) -> Response[bytes]:
        return asset(request, page.assets.get(name))

    return Router(
        "/kyc",
        route_handlers=[show, begin_session, state, upload_url, register, file],
        exception_handlers={Exception: lambda request, error: _private(on_error(request, error))},
        before_request=limit.before(busy, lambda request: request.method != "POST" or _is_form(request)),
    )


def _is_form(request: Asked) -> bool:
    return request.scope["path"].endswith("/begin")


async def _read(request: Asked, shape: type[T]) -> T:
    return read_body(await request.body(), request.headers.get("content-type"), shape)


def _found(of: T | None) -> T:
    if of is None:
        raise Refusal("NOT_FOUND", "The link does not work any more")
    return of


def _private(response: Response[bytes]) -> Response[bytes]:
    response.headers.update(HEADERS)
    return response


class _Ask(Masked, frozen=True):
    """Missing details that the page asks for. Its repr hides the phone."""

    _shown = ("begun",)

    begun: Begun
    phone: str | None
    typed: Mapping[str, str]
    redirect: str | None

    @property
    def wrong(self) -> str | None:
        """The first invalid input field."""
        asked = (("phone", self.begun.asks_phone), ("site", self.begun.asks_site))
        return next((name for name, is_asked in asked if is_asked and name in self.typed), None)


class _Page:
    def __init__(self, ports: Ports, limit: PageLimit) -> None:
        self._ports = ports
        self._limit = limit
        self._merchants = Merchants(ports)
        self._path = f"{urlsplit(ports.urls.app_url).path.rstrip('/')}/kyc"
        self.assets = {name: read_asset(name, media_type) for name, media_type in _ASSETS.items()}
        self._templates = Templates(asset=self._asset_link, language_names=LANGUAGE_NAMES)

    def _policy(self) -> str:
        """Return the content security policy. Files are uploaded to the API or to the store itself, which may be other
        origins than the page's."""
        files = self._ports.files
        to = urlsplit(files.upload_origin if isinstance(files, ElsewhereFiles) else self._ports.urls.base_url)
        return HEADERS["Content-Security-Policy"].replace(
            "connect-src 'self'", f"connect-src 'self' {to.scheme}://{to.netloc}"
        )

    async def show(self, request: Asked) -> Response[str]:
        query = request.query_params
        session = query.get("session")
        if session is None:
            return await self._begin(request, query, {})
        try:
            view = await kyc_page.view(self._ports, session, query.get("redirect"))
        except (Refusal, Fault) as error:
            return self._not_shown(request, error)
        # A phone in the link proves nothing, but another client's phone shows that links were mixed up.
        if view is None or query.get("phone", view.phone) != view.phone:
            return self._html(request, "link", None, 404)
        return self._html(request, view.face.value, view, 200)

    async def begin(self, request: Asked) -> Response[str]:
        """Handle the form with the details that the link lacked."""
        if is_foreign(request):
            return self._html(request, "link", None, 403)
        given = await read_form(request)
        values: dict[str, str] = {name: given[name] for name in ("phone", "site", "redirect") if name in given}
        return await self._begin(request, values, {"phone": "", **values})

    async def _begin(self, request: Asked, given: Mapping[str, str], typed: Mapping[str, str]) -> Response[str]:
        """Redirect to a new session, or show the form for the missing details. `typed` is the submitted input, shown
        again where it is invalid."""
        phone, redirect = given.get("phone"), given.get("redirect") or None
        if redirect is not None and len(redirect) > _LONGEST:
            redirect = None
        address = self._limit.address(request)
        try:
            begun = await begin(self._ports, self._merchants, address, phone, given.get("site"), redirect)
        except (Refusal, Fault) as error:
            return self._not_shown(request, error)
        if begun.session is None:
            return self._html(request, "ask", None, 422 if typed else 200, asked=_Ask(begun, phone, typed, redirect))
        kept = {"session": begun.session, "redirect": redirect, "lang": request.query_params.get("lang")}
        query = urlencode({name: value for name, value in kept.items() if value is not None})
        return see_other(f"{self._path}?{query}")

    def _not_shown(self, request: Asked, error: Refusal | Fault) -> Response[str]:
        if isinstance(error, Fault):
            log.warning("the hosted page is unavailable: %s", error)
            return self._html(request, "unavailable", None, 503)
        if error.status == HTTPStatus.TOO_MANY_REQUESTS:
            return self.busy(request, error.retry_after or WINDOW)
        if error.code == "NOT_FOUND":
            return self._html(request, "link", None, 404)
        log.info("the hosted page is not shown: %s", error.code)
        return self._html(request, "unavailable", None, 503 if error.status >= 500 else error.status)

    def busy(self, request: Asked, wait: int) -> Response[str]:
        """Answer a request over the limit of an address or a link. Requests are allowed again after `wait` seconds."""
        response = self._html(request, "busy", None, 429, refresh=wait)
        response.headers["Retry-After"] = str(wait)
        return response

    def _html(
        self,
        request: Asked,
        face: str,
        view: KycView | None,
        status: int,
        refresh: int | None = None,
        asked: "_Ask | None" = None,
    ) -> Response[str]:
        query = request.query_params
        wish = query.get("lang")
        language = pick_language(wish if wish in KYC_TEXTS else None, request.headers.get("accept-language", ""))
        names = ("phone", "session", "redirect") if asked is None else ()
        kept = {name: value for name in names if (value := query.get(name)) is not None}
        here = "" if asked is None else self._path  # the answer to a form has an address that cannot be opened
        if asked is not None and asked.redirect is not None:
            kept["redirect"] = asked.redirect
        body = self._templates.draw(
            "kyc.html",
            t=_texts(KYC_TEXTS[language]),
            language=language,
            switch={each: f"{here}?{urlencode({**kept, 'lang': each})}" for each in KYC_TEXTS},
            refresh=5 if view is not None and view.face in _LIVE else refresh,
            face=face,
            live=view is not None and view.face in _LIVE,
            merchant="" if view is None else view.merchant,
            phone=None if view is None else masked_phone(view.phone),
            again=view is not None and view.was_refused,
            form_url=None if view is None else view.form_url,
            back=None if view is None else view.back,
            session="" if view is None else query.get("session", ""),
            links=None if view is None else self._links(),
            ask=asked,
            begin=f"{self._path}/begin?{urlencode({'lang': language})}",
        )
        headers = {
            **HEADERS,
            "Content-Security-Policy": self._policy(),
            "Content-Language": language,
            "Vary": "Accept-Language",
        }
        return Response(body, status_code=status, media_type="text/html", headers=headers)

    def _links(self) -> dict[str, str]:
        return {name: f"{self._path}/{part}" for name, part in _PARTS.items()}

    def _asset_link(self, name: str) -> str:
        return f"{self._path}/assets/{name}?v={self.assets[name].tag}"


_PARTS = {"state": "state", "upload": "upload-url", "register": "register"}


def _texts(table: Mapping[str, str]) -> Callable[..., str]:
    """Return the function behind `t("send")` in templates. A missing key is an error, not an empty string."""

    def text(key: str, **values: str) -> str:
        return table[key].format(**values)

    return text

"""Routes of the dashboard, one row per page. Every route has a row, and the row names the right that it needs."""

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from litestar import Response, route
from litestar.exceptions import MethodNotAllowedException, NotFoundException
from litestar.params import FromPath

from ...core.domain.accounts.accounts import Mode
from ...core.domain.accounts.rate_limit import Network
from ...core.domain.errors import Refusal
from ...core.domain.people.roles import PersonRight, holders
from ...core.usecases.actions.decisions import Waits
from ...core.usecases.common.account_time import test_clock_of
from ...core.usecases.overview.changes import Watched
from ...core.usecases.people.second_person import Requested
from ...core.usecases.people.sessions import find_actor, list_accounts_of, require
from ...ports.bundle import Ports
from ...ports.faults import Fault
from ..http.edge.routing import Application, Router
from ..http.edge.streams import WindowStreams
from ..http.packed import Packed, asset
from ..http.payer.page_limit import PageLimit
from ..http.payer.pages import Asked
from ..http.templates import PAGES as SHARED
from ..http.templates import Templates, read_asset
from .assets import ASSETS, FOLDER
from .blocks import Block, Link, Note, filled_in, is_form
from .cookies import SESSION
from .drawing import draw_rows, draw_value
from .lists import CURSORS, is_filtered
from .menu import menu_of
from .pages.account import ACCOUNT
from .pages.approvals import APPROVALS
from .pages.brand import BRAND
from .pages.clients import CLIENTS
from .pages.developers import DEVELOPERS
from .pages.exports import EXPORTS
from .pages.home import HOME
from .pages.money import MONEY
from .pages.notifications import NOTIFICATIONS
from .pages.payment import PAYMENT
from .pages.payment_links import PAYMENT_LINKS
from .pages.payment_views import VIEWS
from .pages.payments import PAYMENTS
from .pages.people import PEOPLE
from .pages.receipts import RECEIPTS
from .pages.refunds import REFUNDS
from .pages.reports import REPORTS
from .pages.resends import RESENDS
from .pages.sign_in import SIGN_IN
from .pages.stream import STREAM
from .pages.trade import TRADE
from .rows import Page, Redirect, Row
from .rules import faults_of, sentence_of
from .texts import LANGUAGES
from .web import Ask, Site, html, read_form, read_upload, see_other

log = logging.getLogger("cambist.dashboard")

ROWS: tuple[Row, ...] = (
    *SIGN_IN, *HOME, *PAYMENTS, *PAYMENT, *PAYMENT_LINKS, *VIEWS, *REFUNDS, *RECEIPTS, *EXPORTS, *TRADE, *CLIENTS,
    *MONEY, *REPORTS, *DEVELOPERS, *RESENDS,
    *ACCOUNT, *BRAND, *APPROVALS, *NOTIFICATIONS, *PEOPLE, *STREAM,
)  # fmt: skip

_READING = ("GET", "HEAD")
_LIVE = {
    **dict.fromkeys(("home", "payments", "refunds", "receipts", "subscriptions", "exchanges", "balance"), ""),
    **dict.fromkeys(("payouts", "settlements"), Watched.SETTLEMENTS),
    "clients": Watched.CLIENTS,
    "developers/events": Watched.EVENTS,
    "developers/requests": Watched.REQUESTS,
    "exports": "exports",
}
"""Sections whose pages offer to reload when something changed, and what their stream is about."""
_READABLE = {row.path: row for row in ROWS if row.method == "GET"}
_CORRECTABLE = (400, 401, 409, 422)
"""Statuses of forms that the person can correct and send again."""
_PARAMETER = re.compile(r"\{(\w+):str\}")
_KEPT = ("next", "token")
"""Fields of a form that are part of its page's address."""


def dashboard(
    ports: Ports, trusted_proxies: Sequence[Network], limit: PageLimit, streams: WindowStreams
) -> Application:
    """Build the dashboard as an application of its own, below the path of `app_url`."""
    pages = _Pages(ports, trusted_proxies, streams)

    @route("/dashboard/assets/{name:str}", http_method=["GET", "HEAD"], include_in_schema=False)
    async def file(request: Asked, name: FromPath[str]) -> Response[bytes]:
        return asset(request, pages.assets.get(name))

    def failed(request: Asked, error: Exception) -> Response[Any]:
        return pages.failed(request, error)

    by_path: dict[str, list[Row]] = {}
    for row in ROWS:
        by_path.setdefault(row.path, []).append(row)
    router = Router(
        pages.site.root or "/",
        route_handlers=[file, *(_handler(pages, path, rows) for path, rows in by_path.items())],
        before_request=limit.before(pages.busy, lambda _: True),
    )
    return Application(
        route_handlers=[router],
        exception_handlers={Exception: failed},
        openapi_config=None,
        logging_config=None,
        request_max_body_size=None,
    )


def _handler(pages: "_Pages", path: str, rows: Sequence[Row]) -> Any:
    methods = sorted(
        {method for row in rows for method in ((row.method, "HEAD") if row.method == "GET" else ("POST",))}
    )
    known = {row.method: row for row in rows}

    @route(path, http_method=methods, include_in_schema=False, status_code=200)  # type: ignore[arg-type]  # their names
    async def answer(request: Asked) -> Response[Any]:
        method = "GET" if request.method in _READING else "POST"
        return await pages.answer(request, known[method])

    return answer


def _filled(ask: Ask, pattern: str) -> str:
    """Return the path of a row with the parameters of this request."""
    return _PARAMETER.sub(lambda found: quote(ask.path(found[1]), safe=""), pattern)


def _page_of(ask: Ask, row: Row) -> str:
    """Return the path of the page that has the form of this row; the home page if the form belongs to none."""
    path = _filled(ask, row.retry)
    return path if ask.is_page(path) else "/home"


class _Pages:
    """Answers requests by their rows."""

    def __init__(self, ports: Ports, trusted_proxies: Sequence[Network], streams: WindowStreams) -> None:
        self.site = Site(ports, trusted_proxies, streams)
        self.assets: Mapping[str, Packed] = {
            name: read_asset(name, kind, SHARED if name == "mark.svg" else FOLDER / "static")
            for name, kind in ASSETS.items()
        }
        patterns = [_PARAMETER.sub("[^/]+", row.path) for row in ROWS if row.method == "GET"]
        self.site.is_page = lambda path: any(re.fullmatch(each, path) for each in patterns)
        self._templates = Templates(
            folder=FOLDER / "templates", asset=self._address, draw_value=draw_value, draw_rows=draw_rows
        )

    def _address(self, name: str) -> str:
        return f"{self.site.root}/dashboard/assets/{name}?v={self.assets[name].tag}"

    async def answer(self, request: Asked, row: Row) -> Response[Any]:
        """Answer a request by its row; every failure becomes a page."""
        ask = Ask(self.site, request, None, {})
        try:
            token = ask.cookie(SESSION)
            actor = await find_actor(self.site.ports, token) if token else None
            sends_form = row.method == "POST" and not row.is_by_link
            form = await (read_upload if row.is_upload else read_form)(request) if sends_form else {}
            ask = Ask(self.site, request, actor, form)
            if sends_form:
                ask.page_path = f"{self.site.root}{_page_of(ask, row)}"
                ask.page_query = {name: ask.secret(name) for name in _KEPT if ask.secret(name)}
                ask.check_form()
            if actor is None and not row.is_public:
                return self._to_sign_in(ask, row)
            if row.right is not None:
                require(ask.actor, row.right)
            test_clock = None if actor is None else test_clock_of(actor.account, actor.mode)
            with self.site.ports.clock.entered(test_clock):
                made = await row.handler(ask)
        except Requested as requested:
            return see_other(ask, f"/approvals/{requested.action.id}", done="requested")
        except Waits as waits:
            return await self._page(ask, Page(ask.t("done"), [Note(ask.t("waits") + f" ({waits.action.id})", "warn")]))
        except Refusal as refusal:
            return await self._refused(ask, row, refusal)
        except Fault as fault:
            log.warning("a page of the dashboard is unavailable: %s", fault)
            page = Page(ask.t("error.503"), [Note(ask.t("error.503.text"), "bad")], status=503)
            return await self._bare(ask, page)
        except Exception as error:
            log.error("unhandled error in the dashboard", exc_info=error)  # noqa: TRY400 - the same
            told = ask.t("error.500.text", request=request.scope.get("request_id", "-"))
            return await self._bare(ask, Page(ask.t("error.title"), [Note(told, "bad")], status=500))
        if isinstance(made, Redirect):
            return see_other(ask, made.path, **made.query)
        return made if isinstance(made, Response) else await self._page(ask, made)

    def _to_sign_in(self, ask: Ask, row: Row) -> Response[Any]:
        """Redirect to the sign-in, which leads back to the requested page."""
        if row.method == "POST":
            return see_other(ask, "/login")
        address = self._address_of(ask)
        return see_other(ask, "/login", next=address if address != "/home" else None)

    def _address_of(self, ask: Ask) -> str:
        """Return path and query of the page, without the message about the previous action."""
        query = {name: value for name, value in ask.page_query.items() if name not in ("done", "lang")}
        return f"{ask.page_path.removeprefix(self.site.root)}{'?' + urlencode(query) if query else ''}"

    async def _refused(self, ask: Ask, row: Row, refusal: Refusal) -> Response[Any]:
        if refusal.code == "STEP_UP_NEEDED" and ask.signed_in is not None:
            return see_other(ask, "/confirm", next=self._address_of(ask))
        if refusal.code == "PERSON_RIGHT_MISSING" and isinstance(refusal.details, Mapping):
            right = PersonRight(refusal.details["right"])
            who = ", ".join(ask.t.of("role", role) for role in holders(right, ask.mode))
            blocks: list[Block] = [Note(f"{ask.t.of('error', refusal.code)} {ask.t('error.who', roles=who)}", "bad")]
            return await self._page(ask, Page(ask.t("error.403"), blocks, status=403))
        told = sentence_of(ask.t, refusal)
        again = await self._filled_in(ask, row, told, refusal) if refusal.status in _CORRECTABLE else None
        if again is not None:
            return await self._page(ask, again)
        link = Link(
            ask.t("back"), ask.here(lang=ask.language if ask.has_wish else None) if row.retry else ask.to("/home")
        )
        if refusal.code == "SECOND_FACTOR_NEEDED":
            link = Link(ask.t("set_up"), ask.to("/profile"))
        if refusal.code == "EXPORT_NOT_FOUND":
            link = Link(ask.t("exports"), ask.to("/exports"))
        if refusal.code == "CURSOR_INVALID":
            link = Link(ask.t("top"), ask.here(**dict.fromkeys(CURSORS)))
        page = Page(ask.t("error.title"), [Note(told, "bad", link)], status=refusal.status)
        response = await self._page(ask, page)
        if refusal.retry_after is not None:
            response.headers["Retry-After"] = str(refusal.retry_after)
        return response

    async def _filled_in(self, ask: Ask, row: Row, told: str, refusal: Refusal) -> Page | None:
        """Return the page of a refused form, with the error and what the person typed. None: the form has no page of
        its own, or its page cannot be shown now."""
        source = _READABLE.get(row.retry) if row.method == "POST" else None
        person = ask.signed_in
        if source is None or (person is None and not source.is_public):
            return None
        try:
            if source.right is not None:
                require(ask.actor, source.right)
            test_clock = None if person is None else test_clock_of(person.account, person.mode)
            with self.site.ports.clock.entered(test_clock):
                page = await source.handler(ask)
        except (Refusal, Fault):
            return None
        if not isinstance(page, Page):
            return None
        action = ask.to(_filled(ask, row.path))
        faults = faults_of(ask.t, refusal)
        blocks = [filled_in(each, ask.form, faults) if is_form(each, action) else each for each in page.blocks]
        return msgspec.structs.replace(page, blocks=[Note(told, "bad"), *blocks], status=refusal.status)

    async def _bare(self, ask: Ask, page: Page) -> Response[str]:
        """Render a page without reading from the storage."""
        return html(ask, self._draw(ask, page, (), None), page.status)

    async def _page(self, ask: Ask, page: Page) -> Response[str]:
        actor = ask.signed_in
        accounts = [] if actor is None else await list_accounts_of(self.site.ports, actor.user.id)
        several = ask.to("/accounts") if len(accounts) > 1 else ""
        return html(ask, self._draw(ask, page, menu_of(ask, len(accounts)), actor, several), page.status)

    def _draw(self, ask: Ask, page: Page, menu: Sequence[Any], actor: Any, accounts: str = "") -> str:
        is_test = actor is not None and actor.mode is Mode.TEST
        other = None
        if actor is not None:
            other = "live" if is_test and actor.membership.live else "test" if not is_test else None
        done = ask.query.get("done", "")
        return self._templates.draw(
            "page.html",
            t=ask.t,
            language=ask.language,
            title=page.title,
            blocks=page.blocks,
            crumbs=page.crumbs,
            menu=menu,
            filtered=is_filtered(ask),
            csrf=ask.csrf if actor is not None or page.has_form else "",
            refresh=page.refresh,
            home=ask.to("/home"),
            account="" if actor is None else actor.account.name,
            accounts=accounts,
            switch=ask.to("/switch"),
            logout=ask.to("/logout"),
            is_test=is_test,
            other_mode=other,
            stream=self._stream(ask, page),
            done=ask.t.of("done", done) if f"done.{done}" in _DONE else "",
            languages=[(code, name, ask.here(lang=code)) for code, name in LANGUAGES.items()],
        )

    def _stream(self, ask: Ask, page: Page) -> str:
        """Return the address of the page's live updates; empty if it has none."""
        parts = ask.request.scope["path"].removeprefix(f"{self.site.root}/").split("/")
        section = "/".join(parts[: 2 if parts[0] == "developers" else 1])
        person = ask.signed_in
        if page.status != 200 or section not in _LIVE or person is None:
            return ""
        if section != "exports" and person.caller.shops is not None:
            return ""
        return ask.to("/stream", about=_LIVE[section])

    def failed(self, request: Asked, error: Exception) -> Response[str]:
        """Answer a request that no page handles: an unknown address or method, or a fault before the page."""
        ask = Ask(self.site, request, None, {})
        if isinstance(error, NotFoundException | MethodNotAllowedException):
            link = Link(ask.t("to_home"), ask.to("/home"))
            page = Page(ask.t("error.404"), [Note(ask.t("error.404.text"), "plain", link)], status=404)
        else:
            log.error("unhandled error before a page of the dashboard", exc_info=error)
            told = ask.t("error.500.text", request=request.scope.get("request_id", "-"))
            page = Page(ask.t("error.title"), [Note(told, "bad")], status=500)
        return html(ask, self._draw(ask, page, (), None), page.status)

    def busy(self, request: Asked, wait: int) -> Response[str]:
        """Answer a request from an address that exceeded its rate limit."""
        ask = Ask(self.site, request, None, {})
        page = Page(ask.t("error.429"), [Note(ask.t("error.503.text"), "warn")], status=429)
        response = html(ask, self._draw(ask, page, (), None), 429)
        response.headers["Retry-After"] = str(wait)
        return response


_DONE = frozenset(
    f"done.{code}"
    for code in (
        "saved",
        "created",
        "cancelled",
        "approved",
        "retried",
        "archived",
        "rejected",
        "resent",
        "ended",
        "removed",
        "sent",
        "advanced",
        "mailed",
        "requested",
    )
)

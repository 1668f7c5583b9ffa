"""Common parts of the pages: the signed-in person, language, forms and their protection, answers."""

import hmac
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from urllib.parse import parse_qsl, urlencode, urlsplit

from litestar import Response
from litestar.datastructures import Cookie, UploadFile

from ...core.domain.accounts.accounts import Caller, Mode
from ...core.domain.accounts.rate_limit import Network
from ...core.domain.days import iso
from ...core.domain.errors import Refusal
from ...core.domain.money import Rub, Usdt, grouped
from ...core.domain.operators.audit import OperatorAction
from ...core.domain.people.roles import PersonRight
from ...core.usecases.actions.audit import note
from ...core.usecases.people.sessions import Actor, Device, by_person, may
from ...ports.bundle import Ports
from ..http.edge.origin import origin
from ..http.edge.streams import WindowStreams
from ..http.payer.pages import HEADERS as PAGE_HEADERS
from ..http.payer.pages import HTML, Asked
from ..http.payer.window_page import pick_language
from . import blocks
from .cookies import DEVICE, HALF, PRE_SESSION, SESSION, clear_cookie, read_cookie, set_cookie
from .texts import LANGUAGES, Texts

log = logging.getLogger("cambist.dashboard")

HEADERS: Mapping[str, str] = {
    **PAGE_HEADERS,
    # Our own forms then carry a true Origin; the payer's pages send none.
    "Referrer-Policy": "same-origin",
    # The preview of a brand shows pages of our own.
    "Content-Security-Policy": f"{PAGE_HEADERS['Content-Security-Policy']}; frame-src 'self'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
}
MOSCOW = timezone(timedelta(hours=3), "MSK")
"""Time zone of the moments on pages."""

_FORM = 65_536
"""Largest size of a submitted form, in bytes."""
_UPLOAD = 98_304
"""Largest size of a form with a file: the largest logo and the other fields."""
_FIELDS = 200
_CSRF = "dashboard.csrf"
_DEVICE_SECONDS = 365 * 24 * 3600
_HALF_SECONDS = 600
_PRE_SECONDS = 3600
_PRE_BYTES = 16

Form = Mapping[str, Sequence[str]]


class Site:
    """Configuration of the dashboard: its address, and what its pages need."""

    def __init__(self, ports: Ports, trusted_proxies: Sequence[Network], streams: WindowStreams) -> None:
        self.ports = ports
        self.streams = streams
        self.trusted_proxies = trusted_proxies
        parts = urlsplit(ports.urls.app_url)
        self.root = parts.path.rstrip("/")
        self.origin = f"{parts.scheme}://{parts.netloc}".lower()
        self.is_page: Callable[[str], bool] = lambda _: False
        """Whether a path is that of a page; set by the table of routes."""


class Ask:
    """A request for a page."""

    def __init__(self, site: Site, request: Asked, actor: Actor | None, form: Form) -> None:
        self.site = site
        self.ports = site.ports
        self.request = request
        self.signed_in = actor
        self.form = form
        self.query: Mapping[str, str] = dict(parse_qsl(request.scope["query_string"].decode("latin-1")))
        wish = self.query.get("lang")
        spoken = actor.user.language if actor is not None else pick_language(None, _accepted(request))
        self.language: str = wish if wish is not None and wish in LANGUAGES else spoken
        self.has_wish = wish in LANGUAGES
        self.t = Texts(self.language)
        self.cookies: list[Cookie] = []
        self.page_path: str = request.scope["path"]
        """Path at which a browser can open this page. For a submitted form it is the page that contains the form."""
        self.page_query: Mapping[str, str] = self.query

    @property
    def actor(self) -> Actor:
        """The signed-in person. Pages that use it are served to signed-in people only."""
        if self.signed_in is None:
            raise Refusal("Unauthorized", "Sign in first")
        return self.signed_in

    @property
    def caller(self) -> Caller:
        return self.actor.caller

    @property
    def mode(self) -> Mode:
        return self.actor.mode

    def is_page(self, path: str) -> bool:
        """Return whether a path, relative to the dashboard, is that of a page."""
        return self.site.is_page(path)

    def value(self, name: str) -> str:
        """Return a field of the form, trimmed. Raises: Refusal VALIDATION_ERROR for a field that repeats."""
        given = self.form.get(name, ())
        if len(given) > 1:
            raise Refusal("VALIDATION_ERROR", f"{name} was sent twice")
        return given[0].strip() if given else ""

    def secret(self, name: str) -> str:
        """Return a field of the form as it was typed."""
        given = self.form.get(name, ())
        return given[0] if len(given) == 1 else ""

    def each(self, name: str) -> Sequence[str]:
        """Return all query values of a name, such as those of several checked boxes."""
        given = parse_qsl(self.request.scope["query_string"].decode("latin-1"))
        return [value for each, value in given if each == name]

    def path(self, name: str) -> str:
        """Return a parameter of the path. A form whose path lacks it sends it as a field: a refund names its
        payment."""
        given = self.request.path_params.get(name)
        return self.secret(name) if given is None else str(given)

    def to(self, path: str, /, **query: str | None) -> str:
        """Return the address of a page, with the language if this request chose one."""
        given: dict[str, str] = {name: value for name, value in query.items() if value}
        if self.has_wish:
            given["lang"] = self.language
        return f"{self.site.root}{path}{'?' + urlencode(given) if given else ''}"

    def here(self, **changes: str | None) -> str:
        """Return the address of this page with other query values; None removes one. A GET of it works even if the page
        answers a form."""
        query = {**self.page_query, **changes}
        given = {name: value for name, value in query.items() if value is not None}
        return f"{self.page_path}{'?' + urlencode(given) if given else ''}"

    def acting(self, name: str, object_id: str | None = None) -> Ports:
        """Return the ports for a change by this person."""
        return by_person(self.ports, self.actor, name, object_id, self.value("reason")[:255])

    def has(self, right: PersonRight) -> bool:
        """Return whether the role has the right, for menus and buttons."""
        return self.signed_in is not None and may(self.actor, right, confirmed=False)

    def require_whole_account(self) -> None:
        """Refuse a person who is limited to shops. Raises: Refusal PERSON_RIGHT_MISSING."""
        if self.caller.shops is not None:
            details = {"right": PersonRight.MONEY.value}
            raise Refusal("PERSON_RIGHT_MISSING", "You are limited to shops, and this is about all", details=details)

    @staticmethod
    def missing(code: str) -> Refusal:
        """Return the refusal for an object that does not exist for this person."""
        return Refusal(code, "There is nothing of this id")

    def at(self, moment: datetime | None) -> blocks.Moment | None:
        return None if moment is None else blocks.moment(moment, MOSCOW, iso(moment))

    def rub(self, amount: Rub | None) -> blocks.Money | None:
        return blocks.rub(amount, self.language)

    def usdt(self, amount: Usdt | None) -> blocks.Money | None:
        return blocks.usdt(amount, self.language)

    def rate(self, rate: str | None) -> str | None:
        return None if rate is None else grouped(rate, self.language)

    def copied(self, text: str) -> blocks.Code:
        """Return a text with a button that copies it."""
        return blocks.Code(text, (self.t("copy"), self.t("copied")))

    def number(self, value: int) -> str:
        return grouped(str(value), self.language)

    @property
    def device(self) -> Device:
        """The browser, as its owner recognises it."""
        return Device(name=_browser(self.request.headers.get("user-agent", "")), network=self.address)

    @property
    def address(self) -> str:
        return origin(self.request, self.site.trusted_proxies)

    def cookie(self, name: bytes) -> str:
        return read_cookie(self.request.scope["headers"], name)

    def keep_session(self, token: str) -> None:
        self.cookies += [set_cookie(SESSION, token), clear_cookie(HALF), clear_cookie(PRE_SESSION)]

    def drop_session(self) -> None:
        self.cookies += [clear_cookie(SESSION), clear_cookie(HALF)]

    def keep_half(self, token: str) -> None:
        self.cookies.append(set_cookie(HALF, token, seconds=_HALF_SECONDS))

    def keep_device(self, token: str) -> None:
        self.cookies.append(set_cookie(DEVICE, token, seconds=_DEVICE_SECONDS))

    @property
    def csrf(self) -> str:
        """Value of the hidden field that every form carries. It is bound to the session, or to the browser before the
        sign-in."""
        bound = self.signed_in.session.id if self.signed_in is not None else self._pre_session()
        return _csrf_of(self.ports, bound)

    @property
    def browser(self) -> str:
        """Id of the browser before the sign-in; a passkey's challenge is bound to it."""
        return self._pre_session()

    def _pre_session(self) -> str:
        token = self.cookie(PRE_SESSION)
        if not token:
            token = self.ports.ids.secret(_PRE_BYTES)
            self.cookies.append(set_cookie(PRE_SESSION, token, seconds=_PRE_SECONDS))
            # A page may have several forms; all of them belong to this browser.
            self.request.scope["headers"] = [
                *self.request.scope["headers"],
                (b"cookie", PRE_SESSION + b"=" + token.encode()),
            ]
        return token

    def check_form(self) -> None:
        """Refuse a form that another site sent. Raises: Refusal FORM_REFUSED. Two checks: the browser must not report
        another site as the origin, and the hidden field must belong to this session or browser."""
        headers = self.request.headers
        site, sender = headers.get("sec-fetch-site"), headers.get("origin")
        foreign = site not in (None, "same-origin") or (
            site is None and sender is not None and sender.lower() != self.site.origin
        )
        bound = self.signed_in.session.id if self.signed_in is not None else self.cookie(PRE_SESSION)
        fits = bool(bound) and hmac.compare_digest(self.value("csrf").encode(), _csrf_of(self.ports, bound).encode())
        if foreign or not fits:
            raise Refusal("FORM_REFUSED", "The form is not from this page: open the page again and repeat")


def _csrf_of(ports: Ports, bound: str) -> str:
    return ports.vault.fingerprint(f"{_CSRF}:{bound}").hex()[:40]


def _accepted(request: Asked) -> str:
    return str(request.headers.get("accept-language", ""))


def _browser(agent: str) -> str:
    """Return browser and system of a User-Agent, as people name them."""
    names = ("Edg/", "OPR/", "YaBrowser/", "Firefox/", "Chrome/", "Safari/")
    shown = {"Edg/": "Edge", "OPR/": "Opera", "YaBrowser/": "Yandex Browser"}
    found = next((name for name in names if name in agent), "")
    browser = shown.get(found, found.rstrip("/")) or "Unknown browser"
    systems = ("Windows", "Android", "iPhone", "iPad", "Mac OS", "Linux")
    system = next((name for name in systems if name in agent), "")
    return f"{browser}, {system}" if system else browser


async def read_form(request: Asked) -> Form:
    """Return the fields of a form, each with all its values. Raises: Refusal FORM_REFUSED for another content type."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refusal("FORM_REFUSED", "Only forms of the dashboard are accepted here")
    parts: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > _FORM:
            raise Refusal("PAYLOAD_TOO_LARGE", "The form is too large")
        parts.append(chunk)
    try:
        pairs = parse_qsl(b"".join(parts).decode("ascii"), keep_blank_values=True, max_num_fields=_FIELDS)
    except (ValueError, UnicodeDecodeError):
        raise Refusal("VALIDATION_ERROR", "The form cannot be read") from None
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        if "\0" in value or any("\ud800" <= char <= "\udfff" for char in value):
            raise Refusal("VALIDATION_ERROR", "The form contains characters that no field accepts")
        found.setdefault(name, []).append(value)
    return found


async def read_upload(request: Asked) -> Form:
    """Return the fields of a form with a small file, as `read_form`; a file's bytes as Latin-1 text. Raises: Refusal
    FORM_REFUSED, PAYLOAD_TOO_LARGE, VALIDATION_ERROR."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "multipart/form-data":
        return await read_form(request)
    length = request.headers.get("content-length", "")
    # The server reads no more than the stated length.
    if not length.isdecimal() or int(length) > _UPLOAD:
        raise Refusal("PAYLOAD_TOO_LARGE", "The form is too large")
    try:
        given = (await request.form()).multi_items()
    except Exception:  # noqa: BLE001 - the parser of the framework has no common error
        raise Refusal("VALIDATION_ERROR", "The form cannot be read") from None
    found: dict[str, list[str]] = {}
    for name, value in given:
        text = (await value.read()).decode("latin-1") if isinstance(value, UploadFile) else str(value)
        if not isinstance(value, UploadFile) and ("\0" in text or any("\ud800" <= char <= "\udfff" for char in text)):
            raise Refusal("VALIDATION_ERROR", "The form contains characters that no field accepts")
        found.setdefault(name, []).append(text)
    return found


def html(ask: Ask, body: str, status: int = 200) -> Response[str]:
    """Return a page as an answer."""
    headers = {**HEADERS, "Content-Language": ask.language}
    return Response(body, status_code=status, media_type=HTML, headers=headers, cookies=ask.cookies)


def see_other(ask: Ask, path: str, /, **query: str | None) -> Response[str]:
    """Redirect to a page after a form."""
    headers = {**HEADERS, "Location": ask.to(path, **query)}
    return Response("", status_code=303, media_type=HTML, headers=headers, cookies=ask.cookies)


async def audited(ask: Ask, name: str, object_id: str | None = None) -> None:
    """Write an audit row for a read, such as of a payer's data."""
    action = OperatorAction(operator=ask.actor.user.id, name=name, object_id=object_id)
    await note(ask.ports, action, account_id=ask.actor.account.id)

"""Rendering of the payer window: language, amounts, QR codes, assets and templates, independent of HTTP requests."""

import functools
from collections.abc import Mapping, Sequence
from datetime import datetime
from urllib.parse import quote

import msgspec
from markupsafe import Markup

from ....core.domain.days import MOSCOW
from ....core.domain.money import Rub
from ....core.domain.payer.window import FINAL_FACES, RETURN_SECONDS, Face, leads_nowhere
from ....core.domain.payments.payments import FailureReason
from ....core.usecases.payer.confirmation import ConfirmationView, Mailed
from ....core.usecases.payer.window import ClosedView, PayerView, half_of
from ..templates import Templates, read_asset
from .window_texts import LANGUAGE_NAMES, TEXTS

_ASSETS = {
    "window.css": "text/css",
    "window.js": "text/javascript",
    "mark.svg": "image/svg+xml",
}

_QUIET_ZONE = 4
"""White border of a QR code that its standard requires, in modules."""

PANEL = "#test"
"""Anchor of the panel that simulates the payer."""

QR_CACHE = 512
"""Number of cached QR codes (3 KB each). Drawing one takes 12 ms, and a waiting page without script reloads every few
seconds."""

REFRESH_SECONDS = {Face.EXPIRED: 30, Face.REVIEW: 30}
"""Seconds after which a page without script reloads itself; 5 while the payer waits for something."""

PANEL_REASONS = (
    FailureReason.INSUFFICIENT_FUNDS,
    FailureReason.DECLINED_BY_BANK,
    FailureReason.CANCELLED_BY_CUSTOMER,
    FailureReason.CANCELLED_BY_BANK,
    FailureReason.UNKNOWN,
)
"""Failure reasons offered by the panel. The others belong to subscriptions and to expiry."""


def pick_language(wish: str | None, accept: str) -> str:
    """Return the page's language: `wish` (`?lang=`) if we have it, else the best of `Accept-Language`.

    English for a browser that lists only languages we do not have. Russian for a browser that lists none, because
    payers pay from Russian banks.
    """
    if wish is not None and wish in TEXTS:
        return wish
    ranked: list[tuple[float, str]] = []
    for part in accept.split(","):
        tag, _, weight = part.strip().partition(";")
        language = tag.strip().partition("-")[0].lower()
        if language and language != "*":
            ranked.append((_quality(weight), language))
    # sorted() is stable: of equal weights the first one wins.
    liked = [language for quality, language in sorted(ranked, key=lambda item: -item[0]) if quality > 0]
    if not liked:
        return "ru"
    return next((language for language in liked if language in TEXTS), "en")


def _quality(weight: str) -> float:
    name, _, value = weight.strip().partition("=")
    if name.strip().lower() != "q":
        return 1.0
    try:
        return float(value)
    except ValueError:
        return 0.0


def print_amount(amount: Rub, language: str) -> str:
    """Format an amount: `1 234,56 ₽` in Russian, `₽1,234.56` in English. The spaces are plain."""
    whole, _, part = str(amount).partition(".")
    grouped = f"{int(whole):,}"
    if language == "ru":
        return f"{grouped.replace(',', ' ')},{part} ₽"
    return f"₽{grouped}.{part}"


def _glued(amount: Rub, language: str) -> str:
    """Format an amount without line breaks, for use inside a sentence."""
    return print_amount(amount, language).replace(" ", "\N{NO-BREAK SPACE}")


def print_span(seconds: int) -> str:
    """Format a duration: `14:32`, or `1:05:00` from an hour on."""
    minutes, rest = divmod(max(seconds, 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class DrawnQr(msgspec.Struct, frozen=True):
    """A QR code as an inline SVG with its quiet zone, `size` units wide, with the id `qr` so that a page can show it
    twice."""

    svg: Markup
    size: int


def draw_qr(payload: str) -> DrawnQr:
    """Draw the bank's payload as a QR code."""
    import segno  # imported late: with the first page, like the templates

    qr = segno.make_qr(payload, error="m")
    svg = qr.svg_inline(border=_QUIET_ZONE, omitsize=True, svgid="qr", svgclass=None, lineclass=None)
    # Safe: it consists of numbers written by segno and does not contain the payload as text.
    return DrawnQr(Markup(svg), int(qr.symbol_size(border=_QUIET_ZONE)[0]))  # noqa: S704


def monogram(name: str) -> str:
    """Return the first letter or digit of a shop's name, for its sign."""
    return next((char.upper() for char in name if char.isalnum()), "•")


def to_bank(link: str | None, actions: Sequence[object]) -> str | None:
    """Return the target of the bank button. A simulated bank has no application, so its button leads to the panel."""
    return PANEL if link is not None and actions and leads_nowhere(link) else link


def millis(moment: datetime) -> int:
    """Return the Unix time in milliseconds, as in JavaScript."""
    return round(moment.timestamp() * 1000)


class WindowPage:
    """Templates, assets and cached QR codes of one router. `path` is the path of the window in links (`/p`)."""

    def __init__(self, path: str, *, is_preview: bool = False) -> None:
        """Create the pages. A preview has no script, and does not reload itself."""
        self.path = path
        self._is_preview = is_preview
        self.assets = {name: read_asset(name, media_type) for name, media_type in _ASSETS.items()}
        self._qr = functools.lru_cache(maxsize=QR_CACHE)(draw_qr)
        self._templates = Templates(
            asset=self._asset_link,
            logo_link=self._logo_link,
            color_link=self._color_link,
            is_preview=is_preview,
            language_names=LANGUAGE_NAMES,
        )

    def link(self, payment_id: str, wish: str | None, part: str = "") -> str:
        """Return the link to a payment's page or to a part of it. It keeps an explicit choice of language."""
        query = f"?lang={wish}" if wish in TEXTS else ""
        return f"{self.path}/{quote(payment_id, safe='')}{part}{query}"

    def window(self, view: PayerView, language: str, wish: str | None) -> str:
        """Render the page of a payment."""
        texts = _Texts(TEXTS[language])
        face = view.standing.face
        drawn = self._qr(view.qr_payload) if view.qr_payload is not None and face is Face.WAITING else None
        paid = view.received or view.amount
        left = (view.standing.deadline - view.standing.now).total_seconds()
        returns = face is Face.PAID and view.auto_return and view.return_url is not None
        return self._templates.draw(
            "window.html",
            t=texts,
            language=language,
            view=view,
            face=face.value,
            sum=print_amount(paid if face is Face.PAID else view.amount, language),
            amount=_glued(view.amount, language),
            received=None if view.received is None else _glued(view.received, language),
            half=_glued(half_of(view.amount), language),
            reason=(view.failure_reason or FailureReason.UNKNOWN).value,
            monogram=monogram(view.shop_name),
            qr=None if drawn is None else drawn.svg,
            qr_size=0 if drawn is None else drawn.size,
            bank_link=to_bank(view.bank_link, view.actions) if face is Face.WAITING else None,
            now=millis(view.standing.now),
            deadline=millis(view.standing.deadline),
            time_left=print_span(int(left)),
            live=face not in FINAL_FACES,
            refresh=None if self._is_preview or face in FINAL_FACES else REFRESH_SECONDS.get(face, 5),
            return_after=RETURN_SECONDS if returns else None,
            actions=[action.value for action in view.actions],
            reasons=[reason.value for reason in PANEL_REASONS],
            links={part: self.link(view.id, wish, f"/{part}") for part in ("events", "state", "simulate", "retry")},
            newest=None if view.newest_id is None else self.link(view.newest_id, wish),
            switch=_switch(""),
        )

    def confirmation(self, view: ConfirmationView, language: str, wish: str | None, said: Mailed | None = None) -> str:
        """Render the confirmation of a payment."""
        here = self.link(view.id, wish, f"/confirmation/{view.key}")
        return self.draw(
            "confirmation.html",
            TEXTS[language],
            language,
            view=view,
            said=said,
            amount=print_amount(view.amount, language),
            refunded=None if view.refunded is None else print_amount(view.refunded, language),
            when=f"{view.paid_at.astimezone(MOSCOW):%d.%m.%Y %H:%M}",
            monogram=monogram(view.shop_name),
            here=here,
            refresh=None,
            switch={code: self.link(view.id, code, f"/confirmation/{view.key}") for code in TEXTS},
        )

    def notification(self, kind: str, language: str, *, here: str = "", refresh: int | None = None) -> str:
        """Render a page without a payment: `closed`, `unavailable` or `rejected`. `here` is its address if it
        differs."""
        return self._notification(kind, language, here=here, refresh=refresh)

    def closed(self, view: ClosedView, language: str) -> str:
        """Render the page of a payment whose window is closed."""
        return self._notification("closed", language, view=view)

    def _notification(
        self, kind: str, language: str, *, here: str = "", refresh: int | None = None, view: ClosedView | None = None
    ) -> str:
        return self._templates.draw(
            "notice.html",
            t=_Texts(TEXTS[language]),
            language=language,
            kind=kind,
            view=view,
            monogram="" if view is None else monogram(view.shop_name),
            refresh=refresh,
            switch=_switch(here),
        )

    def qr(self, payload: str) -> DrawnQr:
        """Return the bank's payload as a QR code."""
        return self._qr(payload)

    def draw(self, template: str, texts: Mapping[str, str], language: str, **values: object) -> str:
        """Render another page in the same style, with its own template and texts."""
        return self._templates.draw(template, t=_Texts(texts), language=language, **values)

    def _logo_link(self, logo_id: str | None) -> str | None:
        return None if logo_id is None else f"{self.path}/logos/{logo_id}"

    def _color_link(self, color: str) -> str:
        return f"{self.path}/colors/{color.removeprefix('#')}.css"

    def _asset_link(self, name: str) -> str:
        return f"{self.path}/assets/{name}?v={self.assets[name].tag}"


def _switch(here: str) -> dict[str, str]:
    return {language: f"{here}?lang={language}" for language in TEXTS}


class _Texts:
    """`t("paid_head")` and `t("title", shop=…)` in templates. A missing key is an error, not an empty string."""

    def __init__(self, table: Mapping[str, str]) -> None:
        self._table = table

    def __call__(self, key: str, **values: str) -> str:
        return self._table[key].format(**values)

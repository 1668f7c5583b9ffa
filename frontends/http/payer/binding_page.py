"""Rendering of the page where a payer confirms a subscription, independent of HTTP requests."""

from urllib.parse import quote

from ....core.domain.payer.binding_window import FINAL_BINDING_FACES, BindingFace
from ....core.domain.payer.window import RETURN_SECONDS
from ....core.usecases.payer.binding_window import BindingView, Pressed
from .binding_texts import BINDING_TEXTS
from .window_page import PANEL_REASONS, WindowPage, millis, monogram, print_amount, print_span, to_bank

_REFRESH = {BindingFace.TERMS: 60, BindingFace.LAPSED: 30, BindingFace.LAPSED_PAID: 30, BindingFace.PAUSED: 30}
"""Seconds after which a page without script reloads itself; 5 while the payer waits for something."""

_SAID = (Pressed.CHANGED.value, Pressed.AWAY.value)
"""Messages that the page may show after a press of its button."""


class BindingPage:
    """Pages of subscriptions, with the payer window's assets and templates. `path` is their path in links (`/s`)."""

    def __init__(self, path: str, page: WindowPage) -> None:
        self.path = path
        self._page = page

    def link(self, subscription_id: str, wish: str | None, part: str = "", *, say: str | None = None) -> str:
        """Return the link to a subscription's page or to a part of it. `say` is the message beside its button."""
        values = [f"lang={wish}"] if wish in BINDING_TEXTS else []
        values += [] if say is None else [f"say={say}"]
        query = f"?{'&'.join(values)}" if values else ""
        return f"{self.path}/{quote(subscription_id, safe='')}{part}{query}"

    def notification(self, kind: str, language: str, *, here: str = "", refresh: int | None = None) -> str:
        """Render a page without a subscription, as in the payer window."""
        return self._page.notification(kind, language, here=here, refresh=refresh)

    def draw(self, view: BindingView, language: str, wish: str | None, said: str | None = None) -> str:
        """Return the page of a subscription. `said` is the unchecked `say` of the link."""
        texts = BINDING_TEXTS[language]
        face = view.standing.face
        drawn = None if view.qr_payload is None else self._page.qr(view.qr_payload)
        amount = print_amount(view.amount, language).replace(" ", "\N{NO-BREAK SPACE}")
        number = "1" if view.interval_count == 1 else "n"
        every = texts[f"{view.interval}_{number}"].format(count=view.interval_count)
        returns = view.auto_return and view.return_url is not None
        final = face in FINAL_BINDING_FACES
        return self._page.draw(
            "subscription.html",
            texts,
            language,
            view=view,
            face=face.value,
            amount=amount,
            every=every,
            monogram=monogram(view.shop_name),
            bank_link=to_bank(view.bank_link, view.actions),
            qr=None if drawn is None else drawn.svg,
            qr_size=0 if drawn is None else drawn.size,
            now=millis(view.standing.now),
            deadline=millis(view.standing.deadline),
            time_left=print_span(int((view.standing.deadline - view.standing.now).total_seconds())),
            live=not final,
            refresh=None if final else _REFRESH.get(face, 5),
            refresh_to=self.link(view.id, wish),
            said=said if said in _SAID else None,
            return_after=RETURN_SECONDS if returns else None,
            actions=[action.value for action in view.actions],
            reasons=[reason.value for reason in PANEL_REASONS],
            links={part: self.link(view.id, wish, f"/{part}") for part in ("events", "state", "simulate", "open")},
            switch={code: self.link(view.id, code) for code in BINDING_TEXTS},
        )

"""The payer's page of a payment link, `/l/{id}` (docs/payment-links.md "The payer's page").

A GET shows the page and changes nothing. The form's POST makes a payment, and sends the browser to its window. The page
works without script.
"""

from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlsplit

from litestar import Response, post, route

from ....core.domain.accounts.rate_limit import Network
from ....core.domain.payments.payment_links import FieldKind, FillFault, LinkStatus
from ....core.usecases.payment_links.link_page import AMOUNT, LinkView, Pressed, link_view, press_link
from ....ports.bundle import Ports
from ..edge.routing import Router
from .link_texts import LINK_TEXTS
from .page_limit import PageLimit
from .pages import Asked, Notifications, html_page, is_foreign, language_of, read_form, see_other, wished_language
from .window_page import WindowPage, monogram, print_amount

_ATTEMPT = "attempt"
_TYPES = {FieldKind.TEXT: ("text", "on"), FieldKind.EMAIL: ("email", "email"), FieldKind.PHONE: ("tel", "tel")}
"""Type of each kind of field, and the value of its `autocomplete`."""


def link_router(ports: Ports, trusted_proxies: Sequence[Network] = (), limit: PageLimit | None = None) -> Router:
    """Return the router of everything under `/l`. It uses the assets of the payer window."""
    base = urlsplit(ports.urls.pay_url).path.rstrip("/")
    page = LinkPage(f"{base}/l", WindowPage(f"{base}/p"))
    notifications = Notifications(page, "link_id")
    limit = limit or PageLimit(ports, trusted_proxies)

    @route("/{link_id:str}", http_method=["GET", "HEAD"], include_in_schema=False)
    async def show(request: Asked) -> Response[str]:
        view = await link_view(ports, request.path_params["link_id"])
        if view is None:
            return notifications.say(request, "closed", 404)
        return html_page(page.draw(view, language_of(request), wished_language(request)), language_of(request))

    @post("/{link_id:str}", include_in_schema=False)
    async def press(request: Asked) -> Response[str]:
        link_id = request.path_params["link_id"]
        if is_foreign(request):
            return notifications.say(request, "rejected", 403)
        typed = await read_form(request)
        pressed = await press_link(ports, link_id, typed, typed.get(_ATTEMPT, ""), limit.address(request))
        wish = wished_language(request)
        if pressed is not None and pressed.payment_id is not None:
            return see_other(page.window.link(pressed.payment_id, wish))
        view = None if pressed is None else await link_view(ports, link_id)
        if pressed is None or view is None:
            return notifications.say(request, "closed", 404)
        body = page.draw(view, language_of(request), wish, typed, pressed)
        # A link that is over says so in place of its form, and is no problem that may pass.
        status = 200 if view.status is not LinkStatus.ACTIVE else 422 if pressed.faults else 503
        return html_page(body, language_of(request), status)

    return Router(
        "/l",
        route_handlers=[show, press],
        exception_handlers=notifications.handlers(),
        before_request=limit.before(notifications.busy, notifications.shown),
    )


class LinkPage:
    """Pages of payment links, with the payer window's assets and templates. `path` is their path in links (`/l`)."""

    def __init__(self, path: str, window: WindowPage) -> None:
        self.path = path
        self.window = window

    def link(self, link_id: str, wish: str | None) -> str:
        """Return the address of a link's page."""
        query = f"?lang={wish}" if wish in LINK_TEXTS else ""
        return f"{self.path}/{quote(link_id, safe='')}{query}"

    def notification(self, kind: str, language: str, *, here: str = "", refresh: int | None = None) -> str:
        """Render a page without a link, as in the payer window."""
        return self.window.notification(kind, language, here=here, refresh=refresh)

    def draw(
        self,
        view: LinkView,
        language: str,
        wish: str | None,
        typed: Mapping[str, str] | None = None,
        pressed: Pressed | None = None,
    ) -> str:
        """Return the page of a link. `typed` and `pressed`: the form that made no payment, and why."""
        typed = typed or {}
        pressed = pressed or Pressed()
        texts = LINK_TEXTS[language]
        face = "paid" if view.is_single and view.status is LinkStatus.USED_UP else view.status.value
        bounds = {
            "low": print_amount(view.amount_min, language).replace(" ", "\N{NO-BREAK SPACE}"),
            "high": print_amount(view.amount_max, language).replace(" ", "\N{NO-BREAK SPACE}"),
        }
        amount = None if view.amount is None else print_amount(view.amount, language)

        def fault(name: str) -> str | None:
            found: FillFault | None = pressed.faults.get(name)
            return None if found is None else texts[f"fault_{found}"].format(**bounds)

        fields = [
            {
                "name": f"field_{at}",
                "label": field.label,
                "type": _TYPES[field.of_kind][0],
                "autocomplete": _TYPES[field.of_kind][1],
                "required": field.is_required,
                "value": typed.get(f"field_{at}", "")[:1024],
                "fault": fault(f"field_{at}"),
            }
            for at, field in enumerate(view.fields)
        ]
        return self.window.draw(
            "link.html",
            texts,
            language,
            view=view,
            face=face,
            amount=amount,
            bounds=bounds,
            amount_name=AMOUNT,
            amount_typed=typed.get(AMOUNT, "")[:64],
            amount_fault=fault(AMOUNT),
            fields=fields,
            problem=pressed.problem,
            monogram=monogram(view.shop_name),
            here=self.link(view.id, wish),
            attempt=view.attempt,
            refresh=None,
            switch={code: self.link(view.id, code) for code in LINK_TEXTS},
        )

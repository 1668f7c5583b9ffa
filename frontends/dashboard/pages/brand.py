"""The look of the payer's pages: colour, logo, contact and text, of the account and of each shop, with a preview of
each state (docs/dashboard.md "Brand")."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from litestar import Response

from ....core.domain.account_settings import BRAND_SETTINGS
from ....core.domain.accounts.shops import Shop, seller_name
from ....core.domain.errors import Refusal
from ....core.domain.money import Rub
from ....core.domain.payer.brand import CONTACT_LONGEST, TEXT_LONGEST, Brand, brand_of
from ....core.domain.payer.colors import adjustments
from ....core.domain.payer.logos import BYTES_MOST
from ....core.domain.payer.window import Face
from ....core.domain.payments.payments import FailureReason, PaymentStatus
from ....core.domain.people.roles import PersonRight
from ....core.usecases.accounts.shops import list_shops
from ....core.usecases.payer.window import ClosedView, PayerView, Standing
from ....core.usecases.people.own_account import change_brand, change_logo
from ....ports.bundle import Urls
from ...http.payer.pages import HEADERS, HTML
from ...http.payer.window_page import WindowPage
from ..blocks import Block, Field, Form, Frames, Link, Note
from ..rows import Page, Redirect, get, post
from ..texts import add
from ..web import Ask

_CLOSED = "closed"
_STATES = (*(each.value for each in Face), _CLOSED)

add(
    {
        "brand": ("Brand", "Оформление"),
        "brand.intro": (
            "How the payment page, the pages of payment links and the letters to payers look.",
            "Как выглядят страница оплаты, страницы платёжных ссылок и письма плательщикам.",
        ),
        "brand.shop.intro": (
            "What is empty here is taken from the account.",
            "Что здесь не заполнено, берётся из настроек аккаунта.",
        ),
        "brand.color": ("Colour of buttons and links", "Цвет кнопок и ссылок"),
        "brand.color.hint": ("Such as #2152d9; empty: ours", "Например, #2152d9; пусто: наш"),
        "brand.contact": ("Contact for payers", "Контакт для плательщиков"),
        "brand.contact.hint": (
            "A mail address, a phone, a web address, or words",
            "Адрес почты, телефон, адрес сайта или слова",
        ),
        "brand.success": ("Text after a payment", "Текст после оплаты"),
        "brand.success.hint": (
            "A payment link with a text of its own shows that one",
            "Если у платёжной ссылки есть свой текст, показывается он",
        ),
        "brand.logo": ("Logo", "Логотип"),
        "brand.logo.hint": (
            "PNG, JPEG or WebP, up to 64 KB. Everything but the pixels is removed.",
            "PNG, JPEG или WebP, до 64 КБ. Остаются только точки картинки.",
        ),
        "brand.logo.upload": ("Upload the logo", "Загрузить логотип"),
        "brand.logo.remove": ("Remove the logo", "Убрать логотип"),
        "brand.rule.dark_text": (
            "The button's text is dark: white would be hard to read on this colour.",
            "Надпись на кнопке тёмная: белую на этом цвете трудно прочесть.",
        ),
        "brand.rule.border": (
            "The button gets a border where the colour hardly differs from the ground.",
            "Там, где цвет почти сливается с фоном, у кнопки есть рамка.",
        ),
        "brand.rule.darker": (
            "Links on light grounds are darker than the colour, so that they can be read.",
            "Ссылки на светлом фоне темнее этого цвета, чтобы их можно было прочесть.",
        ),
        "brand.rule.lighter": (
            "Links on dark grounds are lighter than the colour, so that they can be read.",
            "Ссылки на тёмном фоне светлее этого цвета, чтобы их можно было прочесть.",
        ),
        "brand.preview": ("What payers see", "Что видят плательщики"),
        "brand.sample": ("Pottery class on Saturday", "Мастер-класс по керамике в субботу"),
        "face.preparing": ("The bank prepares the QR code", "Банк готовит QR-код"),
        "face.waiting": ("Waiting for the payment", "Ожидание оплаты"),
        "face.checking": ("The time is over, the bank is asked", "Время вышло, спрашиваем банк"),
        "face.processing": ("The bank is processing it", "Банк проводит платёж"),
        "face.paid": ("Paid", "Оплачено"),
        "face.failed": ("Failed", "Не прошло"),
        "face.cancelled": ("Cancelled", "Отменено"),
        "face.expired": ("Expired", "Время вышло"),
        "face.review": ("Another amount arrived", "Пришла другая сумма"),
        "face.overtaken": ("Paid by another attempt", "Оплачено другой попыткой"),
        "face.closed": ("Closed", "Страница закрыта"),
    }
)


async def _shop(ask: Ask) -> Shop | None:
    """Return the shop of the path; None for the account."""
    shop_id = ask.request.path_params.get("shop_id")
    if shop_id is None:
        return None
    found = next((each for each in await list_shops(ask.ports, ask.actor.account.id) if each.id == shop_id), None)
    if found is None or not ask.caller.sees_shop(found.id):
        raise ask.missing("SHOP_NOT_FOUND")
    return found


def _path(shop: Shop | None) -> str:
    return "/settings/brand" if shop is None else f"/shops/{shop.id}/brand"


async def brand(ask: Ask) -> Page:
    shop = await _shop(ask)
    now = ask.actor.account.settings if shop is None else shop
    path = _path(shop)
    fields = [
        Field(
            name="brand_color",
            label=ask.t("brand.color"),
            value=now.brand_color or "",
            hint=ask.t("brand.color.hint"),
            maxlength=7,
        ),
        Field(
            name="brand_contact",
            label=ask.t("brand.contact"),
            value=now.brand_contact or "",
            hint=ask.t("brand.contact.hint"),
            maxlength=CONTACT_LONGEST,
        ),
        Field(
            name="brand_success_text",
            label=ask.t("brand.success"),
            value=now.brand_success_text or "",
            hint=ask.t("brand.success.hint"),
            maxlength=TEXT_LONGEST,
        ),
    ]
    logo = Field(
        name="logo",
        label=ask.t("brand.logo"),
        type="file",
        pattern="image/png,image/jpeg,image/webp",
        hint=ask.t("brand.logo.hint"),
        required=True,
    )
    intro = ask.t("brand.intro" if shop is None else "brand.shop.intro")
    blocks: list[Block] = [
        Form(action=ask.to(path), fields=fields, submit=ask.t("save"), title=ask.t("settings"), intro=intro),
        *_rules(ask, now.brand_color),
        Form(
            action=ask.to(f"{path}/logo"), fields=[logo], submit=ask.t("brand.logo.upload"), title=ask.t("brand.logo")
        ),
    ]
    if (ask.actor.account if shop is None else shop).logo_id is not None:
        remove = ask.t("brand.logo.remove")
        blocks.append(Form(action=ask.to(f"{path}/logo/remove"), fields=[], submit=remove, tone="danger"))
    frames = [(ask.t.of("face", each), ask.to(f"{path}/preview/{each}")) for each in _STATES]
    blocks.append(Frames(ask.t("brand.preview"), frames))
    crumbs = [Link(ask.t("settings"), ask.to("/settings"))]
    if shop is not None:
        crumbs = [Link(ask.t("shops"), ask.to("/shops")), Link(shop.name, ask.to(f"/shops/{shop.id}"))]
    return Page(ask.t("brand"), blocks, crumbs)


def _rules(ask: Ask, color: str | None) -> list[Block]:
    """Say what the rule of contrast does to the chosen colour."""
    return [] if color is None else [Note(ask.t(f"brand.rule.{each}")) for each in sorted(adjustments(color))]


async def preview(ask: Ask) -> Response[str]:
    """Return a payer's page in one of its states, with sample data, for a frame of our own."""
    shop = await _shop(ask)
    account = ask.actor.account
    shown = shop or next(each for each in await list_shops(ask.ports, account.id) if each.id == account.default_shop_id)
    name, look = seller_name(shown, account), brand_of(account, shop)
    page = WindowPage(f"{ask.ports.urls.pay_url}/p", is_preview=True)
    state = ask.path("face")
    if state not in _STATES:
        raise Refusal("NOT_FOUND", "No such state")
    if state == _CLOSED:
        view = ClosedView(id=_SAMPLE, shop_name=name, brand=look, order_number="1042", return_url=None)
        body = page.closed(view, ask.language)
    else:
        body = page.window(_sample(ask, name, look, Face(state)), ask.language, None)
    return Response(body, media_type=HTML, headers={**HEADERS, **_framed(ask.ports.urls)})


_SAMPLE = "pay_00000000-0000-7000-8000-000000000000"


def _sample(ask: Ask, name: str, look: Brand, face: Face) -> PayerView:
    now = ask.ports.clock.now()
    is_waiting = face is Face.WAITING
    return PayerView(
        id=_SAMPLE,
        standing=Standing(status=PaymentStatus.PENDING, face=face, now=now, deadline=now + timedelta(minutes=15)),
        shop_name=name,
        brand=look,
        amount=Rub(1490_00),
        received=Rub(745_00) if face is Face.REVIEW else None,
        description=ask.t("brand.sample"),
        order_number="1042",
        qr_payload="https://qr.example/preview" if is_waiting else None,
        bank_link="https://qr.example/preview" if is_waiting else None,
        link_kind=None,
        failure_reason=FailureReason.DECLINED_BY_BANK if face is Face.FAILED else None,
        success_text=look.success_text,
        return_url=None,
        auto_return=False,
        test_mode=True,
        simulated=True,
        actions=(),
    )


def _framed(urls: Urls) -> dict[str, Any]:
    """Return the headers of a preview: assets of the payer's pages, no script and no forms, in our own frames only."""
    parts = urlsplit(urls.pay_url)
    source = f"{parts.scheme}://{parts.netloc}"
    policy = f"default-src 'none'; style-src {source}; img-src {source}; form-action 'none'; base-uri 'none'"
    return {
        "Content-Security-Policy": f"{policy}; frame-ancestors 'self'",
        "X-Frame-Options": "SAMEORIGIN",
    }


async def save(ask: Ask) -> Redirect:
    shop = await _shop(ask)
    texts = {name: ask.value(name) for name in BRAND_SETTINGS}
    await change_brand(ask.ports, ask.actor, None if shop is None else shop.id, texts)
    return Redirect(_path(shop), {"done": "saved"})


async def upload(ask: Ask) -> Redirect:
    shop = await _shop(ask)
    given = ask.secret("logo").encode("latin-1", "replace")
    if len(given) > BYTES_MOST or not given:
        given = given[: BYTES_MOST + 1] or b"\0"  # refused by its rule, not taken for a removal
    await change_logo(ask.ports, ask.actor, None if shop is None else shop.id, given)
    return Redirect(_path(shop), {"done": "saved"})


async def remove(ask: Ask) -> Redirect:
    shop = await _shop(ask)
    await change_logo(ask.ports, ask.actor, None if shop is None else shop.id, b"")
    return Redirect(_path(shop), {"done": "removed"})


BRAND = tuple(
    row
    for path in ("/settings/brand", "/shops/{shop_id:str}/brand")
    for row in (
        get(path, brand, PersonRight.SHOPS),
        post(path, save, PersonRight.SHOPS, retry=path),
        post(f"{path}/logo", upload, PersonRight.SHOPS, retry=path, is_upload=True),
        post(f"{path}/logo/remove", remove, PersonRight.SHOPS, retry=path),
        get(f"{path}/preview/{{face:str}}", preview, PersonRight.SHOPS),
    )
)

"""Payment links: the list, a new one, one link with its QR code; and the counter, where a seller takes a payment on the
spot (docs/dashboard.md "Payment links", "Counter")."""

from datetime import date, datetime, time

from ....core.domain.errors import Refusal
from ....core.domain.payments.orders import PaymentOrder
from ....core.domain.payments.payment_links import LONGEST_LIFE, FieldKind, LinkField, LinkStatus, PaymentLinkOrder
from ....core.domain.payments.payments import WAITING
from ....core.domain.people.roles import PersonRight
from ....core.usecases.common.encrypted import require_pay_to
from ....core.usecases.payment_links.payment_links import (
    LinkFilter,
    ShownLink,
    archive_link,
    browse_links,
    create_link,
    get_link,
    list_link_payments,
)
from ....core.usecases.payments.payments import create_payment, get_payment
from ....core.usecases.people.payment_links import send_payment_link
from ...http.payer.window_page import draw_qr
from ..blocks import Actions, Badge, Block, Column, Facts, Field, Form, Link, Note, Picture, Table, Value
from ..lists import SIZE, count_text, cursor_of, cursor_pager, cut_note, empty_text, shop_filter, shop_names
from ..rows import Page, Redirect, get, post
from ..texts import add
from ..web import MOSCOW, Ask
from .payments import badge

add(
    {
        "paylinks": ("Payment links", "Платёжные ссылки"),
        "paylink": ("Payment link", "Платёжная ссылка"),
        "paylink.new": ("New payment link", "Новая ссылка"),
        "paylink.create": ("Create the link", "Создать ссылку"),
        "paylink.description": ("What is paid for", "За что платят"),
        "paylink.amount.hint": ("Empty: the payer chooses it", "Пусто: сумму выбирает плательщик"),
        "paylink.amount_min": ("Smallest amount to choose", "Наименьшая сумма"),
        "paylink.amount_max": ("Largest amount to choose", "Наибольшая сумма"),
        "paylink.send": ("Send the link by mail", "Отправить ссылку письмом"),
        "paylink.reusable": ("May be paid more than once", "Платить можно много раз"),
        "paylink.payments_max": (
            "How many times at most; empty: any number",
            "Сколько раз самое большее; пусто: сколько угодно",
        ),
        "paylink.label": ("Ask the payer for", "Спросить у плательщика"),
        "paylink.label.hint": ("Such as a name or an order number", "Например имя или номер заказа"),
        "paylink.email": ("Ask for an e-mail address", "Спросить эл. почту"),
        "paylink.phone": ("Ask for a phone number", "Спросить телефон"),
        "paylink.email.label": ("E-mail", "Эл. почта"),
        "paylink.phone.label": ("Phone", "Телефон"),
        "paylink.until": (
            "Last day, at most 30 days ahead; empty: none",
            "Последний день, не дальше 30 дней; пусто: без срока",
        ),
        "paylink.success": ("Text after the payment", "Текст после оплаты"),
        "paylink.own_id": ("Your own number", "Ваш номер"),
        "paylink.url": ("Address for payers", "Адрес для плательщиков"),
        "paylink.qr": ("QR code of this link", "QR-код этой ссылки"),
        "paylink.open": ("Open as a payer", "Открыть как плательщик"),
        "paylink.any": ("the payer chooses", "выбирает плательщик"),
        "paylink.paid": ("Paid", "Оплачено"),
        "paylink.paid_times": ("Payments", "Платежей"),
        "paylink.expires": ("Expires", "Истекает"),
        "paylink.payer_said": ("The payer filled in", "Плательщик указал"),
        "paylink.archive": ("Archive", "В архив"),
        "paylink.archive.intro": (
            "Nobody can pay by it any more. Payments that are open stay open.",
            "По ней больше никто не заплатит. Открытые платежи останутся открытыми.",
        ),
        "paylink.active": ("active", "действует"),
        "paylink.used_up": ("paid in full", "исчерпана"),
        "paylink.expired": ("expired", "истекла"),
        "paylink.archived": ("archived", "в архиве"),
        "done.archived": ("Archived.", "В архиве."),
        "error.PAYMENT_LINK_NOT_FOUND": ("There is no such link.", "Такой ссылки нет."),
        "error.SHOP_DISABLED": ("The shop is switched off.", "Магазин выключен."),
        "error.PAYMENT_UNAVAILABLE": ("New payments are switched off.", "Новые платежи выключены."),
        "error.AMOUNT_BELOW_MINIMUM": ("The smallest amount is 30 ₽.", "Наименьшая сумма — 30 ₽."),
        "error.PAYMENT_ROUTE_UNAVAILABLE": ("No bank can take it now.", "Сейчас ни один банк это не примет."),
        "error.SHOP_MARKUP_NOT_SET": ("The shop has no fee yet.", "У магазина ещё нет комиссии."),
        "error.PAYER_DATA_REQUIRED": ("Data of the payer are missing.", "Не хватает данных плательщика."),
        "counter": ("Counter", "Касса"),
        "counter.intro": (
            "Type the amount and show the payer the QR code.",
            "Введите сумму и покажите плательщику QR-код.",
        ),
        "counter.show": ("Show the QR code", "Показать QR-код"),
        "counter.next": ("Next payment", "Следующий платёж"),
        "counter.wait": ("Waiting for the payer. The page updates by itself.", "Ждём оплату. Страница обновится сама."),
        "counter.paid": ("Paid.", "Оплачено."),
        "counter.over": ("Not paid.", "Не оплачено."),
        "counter.no_qr": (
            "This bank gives no QR code: open the payer's page.",
            "У этого банка нет QR-кода: откройте страницу оплаты.",
        ),
    }
)  # fmt: skip

_TONES = {LinkStatus.ACTIVE: "good", LinkStatus.EXPIRED: "warn"}
_LABELS = 3
_REFRESH = 3
"""Seconds after which the counter asks again."""


async def links(ask: Ask) -> Page:
    names = await shop_names(ask)
    shop, shop_fields = shop_filter(ask, names)
    number = ask.query.get("q", "").strip()[:256] or None
    wanted = LinkFilter(shop_id=shop, external_id=number)
    found = await browse_links(ask.ports, ask.caller, wanted, cursor_of(ask), SIZE)
    fields = [
        Field(name="q", label=ask.t("paylink.own_id"), type="search", value=ask.query.get("q", "")),
        *shop_fields,
    ]
    table = Table(
        caption=ask.t("paylinks"),
        columns=[
            Column(ask.t("created")),
            Column(ask.t("paylink.description")),
            Column(ask.t("status")),
            Column(ask.t("amount"), is_number=True),
            Column(ask.t("paylink.paid_times"), is_number=True),
            Column(ask.t("paylink.paid"), is_number=True),
        ],
        rows=[_row(ask, each) for each in found.page.records],
        empty=empty_text(ask),
        pager=cursor_pager(ask, found.page),
        note=count_text(ask, found.count),
    )
    blocks: list[Block] = []
    if ask.has(PersonRight.PAYMENTS):
        blocks.append(Actions([Link(ask.t("paylink.new"), ask.to("/links/new"))]))
    form = Form(action=ask.to("/links"), method="get", fields=fields, submit=ask.t("filter"), is_row=True)
    return Page(ask.t("paylinks"), [*blocks, form, *cut_note(ask, found.page), table])


def _row(ask: Ask, shown: ShownLink) -> list[Value]:
    link = shown.link
    return [
        ask.at(link.created_at),
        Link(link.description, ask.to(f"/links/{link.id}")),
        _badge(ask, shown),
        _amount(ask, shown),
        ask.number(shown.totals.payments),
        ask.rub(shown.totals.amount),
    ]


def _badge(ask: Ask, shown: ShownLink) -> Badge:
    return Badge(ask.t.of("paylink", shown.status), _TONES.get(shown.status, "plain"))


def _amount(ask: Ask, shown: ShownLink) -> Value:
    return ask.t("paylink.any") if shown.link.amount is None else ask.rub(shown.link.amount)


async def new(ask: Ask) -> Page:
    names = await shop_names(ask)
    shops = [Field(name="shop_id", label=ask.t("shop"), type="select", options=[*names.items()])]
    last = ask.ports.clock.now().astimezone(MOSCOW).date() + LONGEST_LIFE
    labels = [
        Field(
            name=f"label_{at}",
            label=f"{ask.t('paylink.label')} ({at + 1})",
            maxlength=60,
            hint=ask.t("paylink.label.hint") if at == 0 else "",
        )
        for at in range(_LABELS)
    ]
    fields = [
        Field(name="key", type="hidden", value=ask.ports.ids.uuid()),
        Field(name="description", label=ask.t("paylink.description"), required=True, maxlength=255),
        Field(name="amount_rub", label=ask.t("amount"), hint=ask.t("paylink.amount.hint"), inputmode="decimal"),
        Field(name="amount_min_rub", label=ask.t("paylink.amount_min"), inputmode="decimal"),
        Field(name="amount_max_rub", label=ask.t("paylink.amount_max"), inputmode="decimal"),
        Field(name="reusable", label=ask.t("paylink.reusable"), type="checkbox"),
        Field(name="payments_max", label=ask.t("paylink.payments_max"), inputmode="numeric", maxlength=5),
        *(shops if len(names) > 1 else []),
        *labels,
        Field(name="email", label=ask.t("paylink.email"), type="checkbox"),
        Field(name="phone", label=ask.t("paylink.phone"), type="checkbox"),
        Field(name="expires_at", label=ask.t("paylink.until"), type="date", hint=f"≤ {last:%d.%m.%Y}"),
        Field(name="success_text", label=ask.t("paylink.success"), maxlength=255),
        Field(name="external_id", label=ask.t("paylink.own_id"), maxlength=256),
    ]
    form = Form(action=ask.to("/links"), fields=fields, submit=ask.t("paylink.create"))
    return Page(ask.t("paylink.new"), [form], _crumbs(ask))


def _crumbs(ask: Ask) -> list[Link]:
    return [Link(ask.t("paylinks"), ask.to("/links"))]


async def create(ask: Ask) -> Redirect:
    order = _order(ask)
    made = await create_link(ask.acting("paylink.create"), ask.caller, ask.value("key"), lambda: order)
    return Redirect(f"/links/{made.resource.link.id}", {"done": "created"})


def _order(ask: Ask) -> PaymentLinkOrder:
    fields = [LinkField(label=label) for at in range(_LABELS) if (label := ask.value(f"label_{at}"))]
    fields += [
        LinkField(label=ask.t.of("paylink", f"{kind}.label"), kind=kind.value)
        for kind in (FieldKind.EMAIL, FieldKind.PHONE)
        if ask.value(kind.value)
    ]
    return PaymentLinkOrder(
        description=ask.value("description"),
        amount_rub=_typed_amount(ask, "amount_rub"),
        amount_min_rub=_typed_amount(ask, "amount_min_rub"),
        amount_max_rub=_typed_amount(ask, "amount_max_rub"),
        reusable=bool(ask.value("reusable")),
        payments_max=_typed_number(ask, "payments_max"),
        fields=fields,
        success_text=ask.value("success_text") or None,
        external_id=ask.value("external_id") or None,
        shop_id=ask.value("shop_id") or None,
        expires_at=_typed_day(ask, "expires_at"),
    )


def _typed_amount(ask: Ask, name: str) -> str | None:
    return "".join(ask.value(name).replace(",", ".").split()) or None


def _typed_number(ask: Ask, name: str) -> int | None:
    text = ask.value(name)
    return None if not text else int(text) if text.isascii() and text.isdecimal() else 0


def _typed_day(ask: Ask, name: str) -> str | None:
    """Return the end of a Moscow day. The thirtieth day ends at this time of it, because a link lives for thirty times
    24 hours at most. A text that is no such day is left for the rule to refuse."""
    text, latest = ask.value(name), ask.ports.clock.now() + LONGEST_LIFE
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return text or None
    if day == latest.astimezone(MOSCOW).date():
        return latest.isoformat()
    return datetime.combine(day, time.max, MOSCOW).isoformat()


async def link(ask: Ask) -> Page:
    shown = await get_link(ask.ports, ask.caller, ask.path("link_id"))
    found, url = shown.link, ask.ports.urls.link_page(shown.link.id)
    facts = Facts(
        None,
        [
            (ask.t("paylink.url"), ask.copied(url)),
            (ask.t("status"), _badge(ask, shown)),
            (ask.t("amount"), _amount(ask, shown)),
            (ask.t("paylink.amount_min"), ask.rub(found.amount_min)),
            (ask.t("paylink.amount_max"), ask.rub(found.amount_max)),
            (ask.t("paylink.paid_times"), _times(ask, shown)),
            (ask.t("paylink.paid"), ask.rub(shown.totals.amount)),
            (ask.t("paylink.expires"), ask.at(found.expires_at)),
            (ask.t("paylink.own_id"), found.external_id),
            (ask.t("paylink.success"), found.success_text),
            (ask.t("created"), ask.at(found.created_at)),
        ],
    )
    blocks: list[Block] = [facts]
    if shown.status is LinkStatus.ACTIVE:
        blocks += [
            Picture(str(draw_qr(url).svg), ask.t("paylink.qr")),
            Actions([Link(ask.t("paylink.open"), url)]),
        ]
        if ask.ports.mailer is not None and ask.has(PersonRight.PAYMENTS):
            email = Field(name="email", label=ask.t("people.mail"), type="email", required=True, maxlength=254)
            send = ask.t("paylink.send")
            blocks.append(Form(action=ask.to(f"/links/{found.id}/send"), fields=[email], submit=send, title=send))
    blocks.append(await _payments(ask, found.id))
    if found.archived_at is None and ask.has(PersonRight.PAYMENTS):
        blocks.append(
            Form(
                action=ask.to(f"/links/{found.id}/archive"),
                fields=[],
                submit=ask.t("paylink.archive"),
                title=ask.t("paylink.archive"),
                intro=ask.t("paylink.archive.intro"),
                tone="danger",
            )
        )
    return Page(found.description, blocks, _crumbs(ask))


def _times(ask: Ask, shown: ShownLink) -> str:
    most = shown.link.payments_max
    return f"{ask.number(shown.totals.payments)} / {'∞' if most is None else ask.number(most)}"


async def _payments(ask: Ask, link_id: str) -> Table:
    """Return the newest payments of a link. People who may make payments also see the payers' answers."""
    found = await list_link_payments(ask.ports, ask.caller, link_id, 1, SIZE)
    is_open = ask.has(PersonRight.PAYMENTS)
    columns = [Column(ask.t("created")), Column(ask.t("payment")), Column(ask.t("status"))]
    if is_open:
        columns.append(Column(ask.t("paylink.payer_said")))
    rows: list[list[Value]] = []
    for each in found.records:
        row: list[Value] = [
            ask.at(each.payment.created_at),
            Link(each.payment.id[-12:], ask.to(f"/payments/{each.payment.id}")),
            badge(ask, each.payment.status),
        ]
        if is_open:
            row.append("; ".join(f"{answer.label}: {answer.value}" for answer in each.answers) or None)
        rows.append([*row, ask.rub(each.payment.amount)])
    return Table(
        title=ask.t("payments"),
        caption=ask.t("payments"),
        columns=[*columns, Column(ask.t("amount"), is_number=True)],
        rows=rows,
        empty=ask.t("nothing"),
        note=ask.t("total", total=ask.number(found.total)),
    )


async def archive(ask: Ask) -> Redirect:
    link_id = ask.path("link_id")
    await archive_link(ask.acting("paylink.archive", link_id), ask.caller, link_id)
    return Redirect(f"/links/{link_id}", {"done": "archived"})


async def send(ask: Ask) -> Redirect:
    shown = await get_link(ask.ports, ask.caller, ask.path("link_id"))
    if shown.status is not LinkStatus.ACTIVE:
        raise Refusal("INVALID_STATE", "The link takes no payments any more")
    await send_payment_link(ask.ports, ask.actor, shown.link, ask.value("email"), ask.language)
    return Redirect(f"/links/{shown.link.id}", {"done": "mailed"})


async def counter(ask: Ask) -> Page:
    names = await shop_names(ask)
    shops = [Field(name="shop_id", label=ask.t("shop"), type="select", options=[*names.items()])]
    fields = [
        Field(name="key", type="hidden", value=ask.ports.ids.uuid()),
        Field(name="amount_rub", label=ask.t("amount"), required=True, inputmode="decimal", maxlength=16),
        Field(name="description", label=ask.t("paylink.description"), maxlength=255),
        *(shops if len(names) > 1 else []),
    ]
    intro, submit = ask.t("counter.intro"), ask.t("counter.show")
    return Page(ask.t("counter"), [Form(action=ask.to("/counter"), fields=fields, submit=submit, intro=intro)])


async def take(ask: Ask) -> Redirect:
    order = PaymentOrder(
        amount_rub=_typed_amount(ask, "amount_rub") or "",
        description=ask.value("description") or None,
        shop_id=ask.value("shop_id") or None,
    )
    if order.shop_id is not None and not ask.caller.sees_shop(order.shop_id):
        raise Refusal("SHOP_NOT_FOUND", "No shop of this id")
    made = await create_payment(ask.acting("counter.take"), ask.caller, ask.value("key"), lambda: order)
    return Redirect(f"/counter/{made.resource.id}")


async def shown_qr(ask: Ask) -> Page:
    found = await get_payment(ask.ports, ask.caller, ask.path("payment_id"))
    waits = found.status in WAITING
    blocks: list[Block] = [
        Facts(None, [(ask.t("amount"), ask.rub(found.amount)), (ask.t("status"), badge(ask, found.status))])
    ]
    if waits and found.qr_payload is not None:
        require_pay_to(ask.ports.vault, found)
        blocks.append(Picture(str(draw_qr(found.qr_payload).svg), ask.t("counter.show")))
    elif waits:
        page = Link(ask.t("payment.link"), ask.ports.urls.payment_page(found.id))
        blocks.append(Note(ask.t("counter.no_qr"), "warn", page))
    if waits:
        blocks.append(Note(ask.t("counter.wait"), "plain"))
    else:
        is_paid = found.paid_at is not None
        blocks.append(Note(ask.t("counter.paid" if is_paid else "counter.over"), "good" if is_paid else "bad"))
    blocks.append(Actions([Link(ask.t("counter.next"), ask.to("/counter"))]))
    crumbs = [Link(ask.t("counter"), ask.to("/counter"))]
    return Page(ask.t("counter"), blocks, crumbs, refresh=_REFRESH if waits else None)


_L = "/links/{link_id:str}"

PAYMENT_LINKS = (
    get("/links", links, PersonRight.READ),
    post("/links", create, PersonRight.PAYMENTS, retry="/links/new"),
    get("/links/new", new, PersonRight.PAYMENTS),
    get(_L, link, PersonRight.READ),
    post(f"{_L}/send", send, PersonRight.PAYMENTS, retry=_L),
    post(f"{_L}/archive", archive, PersonRight.PAYMENTS, retry=_L),
    get("/counter", counter, PersonRight.PAYMENTS),
    post("/counter", take, PersonRight.PAYMENTS, retry="/counter"),
    get("/counter/{payment_id:str}", shown_qr, PersonRight.READ),
)

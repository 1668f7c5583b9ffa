"""Payments: the list with its search and filters (docs/dashboard.md "Payments"). payment.py has the page of one
payment."""

import re
from collections.abc import Sequence
from urllib.parse import parse_qsl

from ....core.domain.accounts.terminals import PAYMENT_METHODS
from ....core.domain.payments.payments import RECURRING, PaymentStatus
from ....core.domain.people.roles import PersonRight
from ....core.usecases.payments.list import PaymentSearch
from ....core.usecases.payments.search import FoundPayments, Reading, payment_id_of, search_payments, whole_phone_tail
from ..blocks import Actions, Badge, Block, Field, Form, Link, Note, Table
from ..lists import (
    SIZE,
    choice,
    choice_field,
    count_text,
    cursor_of,
    cursor_pager,
    cut_note,
    date_fields,
    period_dates,
    period_field,
    shop_filter,
    shop_names,
)
from ..rows import Page, Redirect, get
from ..texts import add
from ..web import Ask
from .exports import export_form
from .payment_columns import TONES, cells, chosen_columns, columns_field, heads, written_columns
from .payment_views import filter_of, save_form, view_links

add(
    {
        "payment": ("Payment", "Платёж"),
        "payments.search": ("Search", "Поиск"),
        "payments.search.hint": (
            "Order number, payment id, amount, last 4 digits of the phone, or e-mail.",
            "Номер заказа или платежа, сумма, 4 последние цифры телефона или почта.",
        ),
        "payments.payer": (
            "Payments with the e-mail address that was searched for.",
            "Платежи с адресом почты, который искали.",
        ),
        "payments.everybody": ("Show those of all payers", "Показать платежи всех плательщиков"),
        "payments.no_shop": (
            "You do not see the shop of this filter, so it does not count.",
            "Магазин из этого фильтра вам не виден, поэтому он не учитывается.",
        ),
        "method": ("Method", "Способ"),
        "method.sbp": ("SBP", "СБП"),
        "method.recurring": ("subscription", "подписка"),
        "reading": ("Searched as", "Искали как"),
        "reading.order": ("Order number", "Номер заказа"),
        "reading.number": ("Payment number", "Номер платежа"),
        "reading.email": ("E-mail", "Почта"),
        "reading.phone": ("Phone", "Телефон"),
        "reading.amount": ("Amount", "Сумма"),
        "payment.method": ("Method", "Способ"),
        "payment.actual": ("Received", "Получено"),
        "payment.paid_at": ("Paid", "Оплачен"),
        "payment.settled_at": ("Settled", "Рассчитан"),
        "payment.expires_at": ("Expires", "Истекает"),
        "payment.failure": ("Failed because", "Не прошёл"),
        "payment.payer": ("Payer", "Плательщик"),
        "payment.phone": ("Phone", "Телефон"),
        "payment.mail": ("E-mail", "Эл. почта"),
        "payment.reveal": ("Show the payer's data", "Показать данные плательщика"),
        "payment.link": ("Link for the payer", "Ссылка для плательщика"),
        "payment.description": ("Description", "Описание"),
        "payment.credit": ("Credited", "Зачислено"),
        "payment.transfers": ("Money that came", "Поступления"),
        "payment.simulate": ("Simulate", "Сымитировать"),
        "payment.outcome": ("Outcome", "Исход"),
        "payment.simulate.intro": (
            "Test mode: act as the payer's bank.",
            "Тестовый режим: ответьте за банк плательщика.",
        ),
        "payment.subscription": ("Subscription", "Подписка"),
        "payment.new_refund": ("Refund", "Возврат"),
        "payment.refund_amount": ("Amount, empty for all that is left", "Сумма; пусто — весь остаток"),
        "payment.refund.intro": (
            "The payer gets the money back to the same account.",
            "Плательщик получит деньги на тот же счёт.",
        ),
        "payment.refund.submit": ("Apply for a refund", "Оформить возврат"),
        "payment.settlement": ("Settlement", "Расчёт"),
        "transfer.status": ("State", "Состояние"),
        "status.pending": ("waits for the payer", "ждёт плательщика"),
        "status.processing": ("in progress", "выполняется"),
        "status.paid": ("paid", "оплачен"),
        "status.settled": ("settled", "рассчитан"),
        "status.failed": ("failed", "не прошёл"),
        "status.cancelled": ("cancelled", "отменён"),
        "status.expired": ("expired", "истёк"),
        "status.refunded": ("refunded", "возвращён"),
        "status.amount_mismatch": ("another amount came", "пришла другая сумма"),
        "status.credited": ("credited", "зачтено"),
        "status.under_review": ("under review", "на проверке"),
        "status.suspended": ("waits for an operator", "ждёт оператора"),
        "status.returning": ("being returned", "возвращается"),
        "status.returned": ("returned", "возвращено"),
        "done.created": ("Created.", "Создано."),
        "done.saved": ("Saved.", "Сохранено."),
        "done.cancelled": ("Cancelled.", "Отменено."),
        "done.approved": ("Approved.", "Одобрено."),
        "done.rejected": ("Rejected.", "Отклонено."),
        "done.resent": ("Sent again.", "Отправлено ещё раз."),
        "done.ended": ("Ended.", "Завершено."),
        "done.removed": ("Removed.", "Удалено."),
        "done.sent": ("Sent.", "Отправлено."),
        "done.advanced": ("The clock was moved.", "Часы переведены."),
        "error.PAYMENT_NOT_FOUND": (
            "There is no such payment in this account and mode.",
            "Такого платежа нет в этом аккаунте и режиме.",
        ),
        "error.INVALID_STATE": (
            "The object changed meanwhile or does not allow this now.",
            "Объект изменился или сейчас этого не допускает.",
        ),
    }
)  # fmt: skip


def badge(ask: Ask, status: str, prefix: str = "status") -> Badge:
    """Return a status as a badge."""
    return Badge(ask.t.of(prefix, status), TONES.get(status, "plain"))


async def payments(ask: Ask) -> Page | Redirect:
    if ask.request.method == "POST":
        # The view could not be saved: show its list again.
        ask.query = ask.page_query = dict(parse_qsl(ask.value("query")))
    text = ask.query.get("q", "").strip()
    payment_id = payment_id_of(text)
    if payment_id is not None:
        return Redirect(f"/payments/{payment_id}")
    if ask.each("col"):
        # The form sends each column as its own field, and empty fields as well. The redirect shortens the address.
        return Redirect("/payments", {**filter_of(ask.query), "cols": written_columns(ask.each("col"))})
    names = await shop_names(ask)
    shop, shop_fields = shop_filter(ask, names)
    found = await search_payments(
        ask.ports, ask.caller, _filter(ask, shop), text, ask.query.get("by"), cursor_of(ask), SIZE
    )
    shorter = _without_contact(ask, text, found)
    if shorter is not None:
        return Redirect("/payments", shorter)
    columns = chosen_columns(ask)
    blocks: list[Block] = [*await view_links(ask), _form(ask, text, shop_fields, columns)]
    if ask.query.get("shop_id", "") not in ("", *names):
        blocks.append(Note(ask.t("payments.no_shop"), "warn"))
    if _payer(ask) is not None:
        everybody = Link(ask.t("payments.everybody"), ask.here(payer=None, cursor=None))
        blocks.append(Note(ask.t("payments.payer"), "plain", everybody))
    if found.others:
        blocks.append(_readings(ask, found))
    by = None if found.reading is None else found.reading.value
    blocks += [
        *cut_note(ask, found.page),
        Table(
            caption=ask.t("payments"),
            columns=heads(ask, columns),
            rows=[cells(ask, each, names, columns) for each in found.page.records],
            empty=ask.t("not_found" if filter_of(ask.query) else "nothing"),
            pager=cursor_pager(ask, found.page, by=by),
            note=count_text(ask, found.count),
        ),
        *await save_form(ask),
    ]
    if found.asked is not None and (found.page.records or found.page.older):
        blocks += export_form(ask, found.asked, 1 if found.count is None else max(1, found.count.number))
    return Page(ask.t("payments"), blocks)


def _without_contact(ask: Ask, text: str, found: FoundPayments) -> dict[str, str | None] | None:
    """Return the address of this search without the payer's whole contact, which would stay in the browser's history:
    the digest of an e-mail address, and the last digits of a phone. None: it has none, or it is an order number."""
    present: dict[str, str | None] = {**filter_of(ask.query)}
    if found.reading is Reading.EMAIL and isinstance(found.asked, PaymentSearch):
        return {**present, "q": None, "by": None, "payer": found.asked.email_digest}
    tail = whole_phone_tail(text)
    if tail is None or (found.reading is Reading.ORDER and found.page.records):
        return None
    return {**present, "q": f"***{tail}", "by": Reading.PHONE.value}


def _payer(ask: Ask) -> str | None:
    """Return the digest of the payer's address whose payments are wanted."""
    given = ask.query.get("payer", "")
    return given if _DIGEST.match(given) else None


def _form(ask: Ask, text: str, shop_fields: Sequence[Field], columns: Sequence[str]) -> Form:
    statuses = [(each.value, ask.t.of("status", each)) for each in PaymentStatus]
    methods = [(each, ask.t.of("method", each)) for each in _METHODS]
    hint = ask.t("payments.search.hint")
    fields = [
        Field(
            name="q", label=ask.t("payments.search"), type="search", value=text, hint=hint, maxlength=256, is_wide=True
        ),
        choice_field(ask, "status", ask.t("status"), statuses),
        choice_field(ask, "payment_method", ask.t("method"), methods),
        *shop_fields,
        period_field(ask),
        *date_fields(ask),
        columns_field(ask, columns),
    ]
    return Form(action=ask.to("/payments"), method="get", fields=fields, submit=ask.t("filter"), is_row=True)


def _readings(ask: Ask, found: FoundPayments) -> Actions:
    """Return links that search for the same text as another kind of value."""
    possible = [each for each in Reading if each in found.others or each is found.reading]
    links = [
        Link(ask.t.of("reading", each), ask.here(by=each.value, cursor=None), current=each is found.reading)
        for each in possible
    ]
    return Actions(links, ask.t("reading"))


_DIGEST = re.compile(r"[0-9a-f]{32}\Z", re.ASCII)
_METHODS = (*PAYMENT_METHODS, RECURRING)


def _filter(ask: Ask, shop: str | None) -> PaymentSearch:
    first, last = period_dates(ask)
    return PaymentSearch(
        shop_id=shop,
        status=choice(ask, "status", PaymentStatus),
        payment_method=choice(ask, "payment_method", _METHODS),
        email_digest=_payer(ask),
        created_from=first,
        created_to=last,
    )


PAYMENTS = (get("/payments", payments, PersonRight.READ),)

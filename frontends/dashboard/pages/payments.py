"""Payments: the list with its filters (docs/dashboard.md "Payments"). payment.py has the page of one payment."""

from typing import Any

from ....core.domain.payments.payments import Payment, PaymentStatus
from ....core.domain.people.roles import PersonRight
from ....core.usecases.payments.list import PaymentFilter, list_payments
from ..blocks import Badge, Block, Column, Field, Form, Link, Table, Value
from ..lists import SIZE, date_fields, dates, number_of, pager, shop_filter, shop_names, total_of
from ..rows import Page, Redirect, get
from ..texts import add
from ..web import Ask
from .exports import export_form

add(
    {
        "payment": ("Payment", "Платёж"),
        "payments.search": ("Order number or payment id", "Номер заказа или платежа"),
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

TONES = {
    "paid": "good", "settled": "good", "completed": "good", "active": "good", "sent": "good", "delivered": "good",
    "failed": "bad", "rejected": "bad", "amount_mismatch": "warn", "processing": "warn", "expired": "plain",
    "past_due": "warn", "paused": "warn", "reversed": "warn", "suspended": "warn", "under_review": "warn",
}  # fmt: skip


def badge(ask: Ask, status: str, prefix: str = "status") -> Badge:
    """Return a status as a badge."""
    return Badge(ask.t.of(prefix, status), TONES.get(status, "plain"))


async def payments(ask: Ask) -> Page | Redirect:
    search = ask.query.get("q", "").strip()
    if search.startswith("pay_"):
        return Redirect(f"/payments/{search}" if search.replace("_", "").replace("-", "").isalnum() else "/payments")
    names = await shop_names(ask)
    shop, shop_fields = shop_filter(ask, names)
    wanted = _filter(ask, shop)
    found = await list_payments(ask.ports, ask.caller, wanted, number_of(ask), SIZE)
    rows = [_row(ask, each, names) for each in found.records]
    statuses = [("", ask.t("all")), *((each.value, ask.t.of("status", each)) for each in PaymentStatus)]
    fields = [
        Field(name="q", label=ask.t("payments.search"), type="search", value=search),
        Field(name="status", label=ask.t("status"), type="select", value=_status(ask) or "", options=statuses),
        *shop_fields,
        *date_fields(ask),
    ]
    blocks: list[Block] = [
        Form(action=ask.to("/payments"), method="get", fields=fields, submit=ask.t("filter"), is_row=True, title=None),
        Table(
            caption=ask.t("payments"),
            columns=[
                Column(ask.t("created")),
                Column(ask.t("order")),
                Column(ask.t("status")),
                Column(ask.t("shop")),
                Column(ask.t("amount"), is_number=True),
            ],
            rows=rows,
            empty=ask.t("not_found" if ask.query else "nothing"),
            pager=pager(ask, found),  # type: ignore[arg-type]  # of any record
            note=total_of(ask, found),  # type: ignore[arg-type]  # the same
        ),
    ]
    blocks += export_form(ask, wanted, found.total)
    return Page(ask.t("payments"), blocks)


def _status(ask: Ask) -> str | None:
    given = ask.query.get("status", "").lower()
    return given if given in [*PaymentStatus] else None


def _filter(ask: Ask, shop: str | None) -> PaymentFilter:
    first, last = dates(ask)
    return PaymentFilter(
        shop_id=shop,
        status=_status(ask),
        external_id=ask.query.get("q", "").strip()[:256] or None,
        created_from=first,
        created_to=last,
    )


def _row(ask: Ask, payment: Payment, names: Any) -> list[Value]:
    return [
        ask.at(payment.created_at),
        Link(payment.external_id or payment.id[-12:], ask.to(f"/payments/{payment.id}")),
        badge(ask, payment.status),
        names.get(payment.shop_id, ""),
        ask.rub(payment.amount),
    ]


PAYMENTS = (get("/payments", payments, PersonRight.READ),)

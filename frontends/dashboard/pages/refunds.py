"""Refunds: the list, one refund, application, approval, rejection, cancellation (docs/dashboard.md "Refunds")."""

from ....core.domain.people.roles import PersonRight
from ....core.domain.refunds.orders import RefundOrder
from ....core.domain.refunds.refunds import Refund, RefundStatus
from ....core.usecases.people import approvals
from ....core.usecases.refunds.list import RefundFilter, browse_refunds
from ....core.usecases.refunds.refunds import cancel_refund, create_refund, get_refund
from ..blocks import Block, Code, Column, Facts, Field, Form, Link, Note, Table, Value
from ..lists import (
    SIZE,
    choice,
    choice_field,
    count_text,
    cursor_of,
    cursor_pager,
    cut_note,
    date_fields,
    dates,
    empty_text,
    shop_filter,
    shop_names,
)
from ..rows import Page, Redirect, get, post
from ..texts import add
from ..web import Ask
from .exports import export_form
from .payments import badge

add(
    {
        "refund": ("Refund", "Возврат"),
        "refund.payment": ("Payment", "Платёж"),
        "refund.waits": ("Waits because", "Почему ждёт"),
        "refund.completed_at": ("Completed", "Завершён"),
        "refund.failure": ("Refused because", "Отказано"),
        "refund.approve": ("Approve", "Одобрить"),
        "refund.approve.intro": ("The money leaves once you approve.", "После одобрения деньги уйдут плательщику."),
        "refund.reject": ("Reject", "Отклонить"),
        "refund.cancel": ("Take back", "Отозвать"),
        "refund.own": (
            "You, or an API key that you made, applied for it: another person must approve.",
            "Возврат оформили вы или ключ API, который создали вы: одобрить должен другой.",
        ),
        "refund.pending": ("pending", "ждёт"),
        "refund.processing": ("at the bank", "в банке"),
        "refund.completed": ("completed", "выполнен"),
        "refund.reversed": ("came back", "вернулся"),
        "refund.rejected": ("rejected", "отклонён"),
        "refund.cancelled": ("taken back", "отозван"),
        "refund.failed": ("failed", "не прошёл"),
        "waiting.awaiting_approval": ("waits for approval", "ждёт одобрения"),
        "waiting.insufficient_balance": ("the balance does not suffice", "не хватает баланса"),
        "error.OVER_REMAINING": ("That is more than is left of the payment.", "Это больше остатка платежа."),
        "error.INVALID_STATUS": (
            "The payment cannot be refunded in this status.",
            "В этом статусе платёж вернуть нельзя.",
        ),
        "error.REFUND_NOT_FOUND": ("There is no such refund.", "Такого возврата нет."),
        "error.LIMIT_PER_PAYMENT": (
            "This payment has had all its refund applications.",
            "Для этого платежа больше нельзя оформить возврат.",
        ),
        "error.NOT_FOUND": ("This is switched off for the account.", "Это выключено для аккаунта."),
        "error.VALIDATION_ERROR": ("A field is not filled in as expected.", "Одно из полей заполнено неверно."),
        "error.INVALID_AMOUNT": ("The amount is not valid.", "Сумма неверна."),
    }
)  # fmt: skip


async def refunds(ask: Ask) -> Page:
    names = await shop_names(ask)
    shop, shop_fields = shop_filter(ask, names)
    first, last = dates(ask)
    status = choice(ask, "status", RefundStatus)
    wanted = RefundFilter(
        shop_id=shop,
        status=status,
        external_id=ask.query.get("q", "").strip()[:256] or None,
        created_from=first,
        created_to=last,
    )
    found = await browse_refunds(ask.ports, ask.caller, wanted, cursor_of(ask), SIZE)
    statuses = [(each.value, ask.t.of("refund", each)) for each in RefundStatus]
    fields = [
        Field(name="q", label=ask.t("order"), type="search", value=ask.query.get("q", "")),
        choice_field(ask, "status", ask.t("status"), statuses),
        *shop_fields,
        *date_fields(ask),
    ]
    table = Table(
        caption=ask.t("refunds"),
        columns=[
            Column(ask.t("created")),
            Column(ask.t("id")),
            Column(ask.t("refund.payment")),
            Column(ask.t("status")),
            Column(ask.t("refund.waits")),
            Column(ask.t("amount"), is_number=True),
        ],
        rows=[_row(ask, each) for each in found.page.records],
        empty=empty_text(ask),
        pager=cursor_pager(ask, found.page),
        note=count_text(ask, found.count),
    )
    form = Form(action=ask.to("/refunds"), method="get", fields=fields, submit=ask.t("filter"), is_row=True)
    total = len(found.page.records) if found.count is None else found.count.number
    return Page(ask.t("refunds"), [form, *cut_note(ask, found.page), table, *export_form(ask, wanted, total)])


def _row(ask: Ask, refund: Refund) -> list[Value]:
    return [
        ask.at(refund.created_at),
        Link(refund.external_id or refund.id[-12:], ask.to(f"/refunds/{refund.id}")),
        Link(refund.payment_id[-12:], ask.to(f"/payments/{refund.payment_id}")),
        badge(ask, refund.status, "refund"),
        _waits(ask, refund),
        ask.rub(refund.amount),
    ]


def _waits(ask: Ask, refund: Refund) -> str | None:
    return None if refund.pending_reason is None else ask.t.of("waiting", refund.pending_reason)


async def refund(ask: Ask) -> Page:
    found = await get_refund(ask.ports, ask.caller, ask.path("refund_id"))
    facts = Facts(
        None,
        [
            (ask.t("amount"), ask.rub(found.amount)),
            (ask.t("status"), badge(ask, found.status, "refund")),
            (ask.t("refund.waits"), _waits(ask, found)),
            (ask.t("refund.failure"), found.failure_reason),
            (ask.t("id"), Code(found.id)),
            (ask.t("refund.payment"), Link(found.payment_id, ask.to(f"/payments/{found.payment_id}"))),
            (ask.t("order"), found.external_id),
            (ask.t("reason"), found.reason),
            (ask.t("created"), ask.at(found.created_at)),
            (ask.t("refund.completed_at"), ask.at(found.completed_at)),
        ],
    )
    blocks: list[Block] = [facts]
    if found.status is RefundStatus.PENDING:
        blocks += _actions(ask, found)
    return Page(f"{ask.t('refund')} {found.external_id or found.id[-12:]}", blocks, _crumbs(ask))


def _crumbs(ask: Ask) -> list[Link]:
    return [Link(ask.t("refunds"), ask.to("/refunds"))]


def _actions(ask: Ask, found: Refund) -> list[Block]:
    blocks: list[Block] = []
    path = f"/refunds/{found.id}"
    if ask.has(PersonRight.APPROVE):
        if approvals.applied_for_by(found, ask.actor):
            blocks.append(Note(ask.t("refund.own"), "plain"))
        else:
            approval = ask.t("refund.approve")
            intro = ask.t("refund.approve.intro")
            blocks.append(
                Form(action=ask.to(f"{path}/approve"), fields=[], submit=approval, title=approval, intro=intro)
            )
        reason = Field(name="reason", label=ask.t("reason"), required=True, maxlength=255)
        rejection = ask.t("refund.reject")
        blocks.append(
            Form(action=ask.to(f"{path}/reject"), fields=[reason], submit=rejection, title=rejection, tone="danger")
        )
    if ask.has(PersonRight.REFUNDS):
        blocks.append(Form(action=ask.to(f"{path}/cancel"), fields=[], submit=ask.t("refund.cancel")))
    return blocks


async def create(ask: Ask) -> Redirect:
    order = RefundOrder(
        payment_id=ask.value("payment_id"),
        amount_rub=ask.value("amount_rub").replace(",", ".").replace(" ", "") or None,
        reason=ask.value("reason") or None,
    )
    ports = ask.acting("refund.create")
    made = await create_refund(ports, ask.caller, ask.value("key"), lambda: order)
    return Redirect(f"/refunds/{made.resource.id}", {"done": "created"})


async def approve(ask: Ask) -> Redirect:
    found = await approvals.approve(ask.ports, ask.actor, ask.path("refund_id"))
    return Redirect(f"/refunds/{found.id}", {"done": "approved"})


async def reject(ask: Ask) -> Redirect:
    found = await approvals.reject(ask.ports, ask.actor, ask.path("refund_id"), ask.value("reason"))
    return Redirect(f"/refunds/{found.id}", {"done": "rejected"})


async def cancel(ask: Ask) -> Redirect:
    found = await get_refund(ask.ports, ask.caller, ask.path("refund_id"))
    await cancel_refund(ask.acting("refund.cancel", found.id), ask.caller, found.id)
    return Redirect(f"/refunds/{found.id}", {"done": "cancelled"})


_R = "/refunds/{refund_id:str}"

REFUNDS = (
    get("/refunds", refunds, PersonRight.READ),
    post("/refunds", create, PersonRight.REFUNDS, retry="/payments/{payment_id:str}"),
    get(_R, refund, PersonRight.READ),
    post(f"{_R}/approve", approve, PersonRight.APPROVE, retry=_R),
    post(f"{_R}/reject", reject, PersonRight.APPROVE, retry=_R),
    post(f"{_R}/cancel", cancel, PersonRight.REFUNDS, retry=_R),
)

"""Receipts: the list, one receipt, trying it again (docs/dashboard.md "Receipts")."""

from collections.abc import Sequence

from ....core.domain.people.roles import PersonRight
from ....core.domain.receipts.receipts import FiscalReceipt, ReceiptStatus
from ....core.usecases.receipts.receipts import ReceiptFilter, browse_receipts, get_receipt, retry_receipt
from ..blocks import Block, Code, Column, Facts, Form, Link, Table, Value
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
from .payments import badge

add(
    {
        "receipts": ("Receipts", "Чеки"),
        "receipt": ("Receipt", "Чек"),
        "receipt.kind": ("Of", "За что"),
        "receipt.payment": ("Payment", "Платёж"),
        "receipt.refund": ("Refund", "Возврат"),
        "receipt.due": ("Shift ends", "Конец смены"),
        "receipt.failure": ("Failed because", "Причина отказа"),
        "receipt.attempt": ("Attempt", "Попытка"),
        "receipt.storage": ("FN", "ФН"),
        "receipt.document": ("FD", "ФД"),
        "receipt.sign": ("FP", "ФП"),
        "receipt.register": ("Cash register", "Касса"),
        "receipt.url": ("Receipt at the operator", "Чек у ОФД"),
        "receipt.registered_at": ("Written", "Пробит"),
        "receipt.retry": ("Try again", "Повторить"),
        "receipt.retry.intro": (
            "The cash register gets the receipt again. The payment does not change.",
            "Касса получит чек ещё раз. Платёж не изменится.",
        ),
        "receipt.pending": ("not written yet", "ещё не пробит"),
        "receipt.succeeded": ("written", "пробит"),
        "receipt.failed": ("failed", "не пробит"),
        "receiptkind.sale": ("payment", "платёж"),
        "receiptkind.refund": ("refund", "возврат"),
        "receiptkind.second": ("delivery after prepayment", "закрытие предоплаты"),
        "receiptkind.sale_correction": ("correction of a sale", "коррекция прихода"),
        "receiptkind.refund_correction": ("correction of a refund", "коррекция возврата"),
        "error.RECEIPT_NOT_FOUND": ("There is no such receipt.", "Такого чека нет."),
        "done.retried": ("It is tried again.", "Чек отправлен ещё раз."),
    }
)  # fmt: skip


async def receipts(ask: Ask) -> Page:
    names = await shop_names(ask)
    shop, shop_fields = shop_filter(ask, names)
    first, last = dates(ask)
    wanted = ReceiptFilter(
        shop_id=shop, status=choice(ask, "status", ReceiptStatus), created_from=first, created_to=last
    )
    found = await browse_receipts(ask.ports, ask.caller, wanted, cursor_of(ask), SIZE)
    statuses = [(each.value, ask.t.of("receipt", each)) for each in ReceiptStatus]
    fields = [choice_field(ask, "status", ask.t("status"), statuses), *shop_fields, *date_fields(ask)]
    table = receipt_table(
        ask, found.page.records, pager=cursor_pager(ask, found.page), note=count_text(ask, found.count)
    )
    form = Form(action=ask.to("/receipts"), method="get", fields=fields, submit=ask.t("filter"), is_row=True)
    return Page(ask.t("receipts"), [form, *cut_note(ask, found.page), table])


def receipt_table(
    ask: Ask,
    found: Sequence[FiscalReceipt],
    *,
    title: str | None = None,
    pager: Sequence[Link] = (),
    note: str | None = None,
) -> Table:
    """Return a table of receipts."""
    return Table(
        title=title,
        caption=ask.t("receipts"),
        columns=[
            Column(ask.t("created")),
            Column(ask.t("id")),
            Column(ask.t("receipt.kind")),
            Column(ask.t("status")),
            Column(ask.t("receipt.due")),
            Column(ask.t("amount"), is_number=True),
        ],
        rows=[_row(ask, each) for each in found],
        empty=empty_text(ask),
        pager=pager,
        note=note,
    )


def _row(ask: Ask, receipt: FiscalReceipt) -> list[Value]:
    return [
        ask.at(receipt.created_at),
        Link(receipt.id[-12:], ask.to(f"/receipts/{receipt.id}")),
        ask.t.of("receiptkind", receipt.kind),
        badge(ask, receipt.status, "receipt"),
        None if receipt.status is ReceiptStatus.SUCCEEDED else ask.at(receipt.due_at),
        ask.rub(receipt.amount),
    ]


async def receipt(ask: Ask) -> Page:
    found = await get_receipt(ask.ports, ask.caller, ask.path("receipt_id"))
    refund = None
    if found.refund_id is not None:
        refund = Link(found.refund_id[-12:], ask.to(f"/refunds/{found.refund_id}"))
    facts = Facts(
        None,
        [
            (ask.t("amount"), ask.rub(found.amount)),
            (ask.t("status"), badge(ask, found.status, "receipt")),
            (ask.t("receipt.failure"), found.failure_reason),
            (ask.t("receipt.kind"), ask.t.of("receiptkind", found.kind)),
            (ask.t("id"), Code(found.id)),
            (ask.t("receipt.payment"), Link(found.payment_id[-12:], ask.to(f"/payments/{found.payment_id}"))),
            (ask.t("receipt.refund"), refund),
            (ask.t("receipt.attempt"), None if found.attempt == 1 else str(found.attempt)),
            (ask.t("receipt.due"), None if found.status is ReceiptStatus.SUCCEEDED else ask.at(found.due_at)),
            (ask.t("receipt.storage"), found.storage_number),
            (ask.t("receipt.document"), found.document_number),
            (ask.t("receipt.sign"), found.fiscal_sign),
            (ask.t("receipt.register"), found.register_number),
            (ask.t("receipt.url"), found.url),
            (ask.t("receipt.registered_at"), ask.at(found.registered_at)),
            (ask.t("created"), ask.at(found.created_at)),
        ],
    )
    blocks: list[Block] = [facts]
    if found.status is not ReceiptStatus.SUCCEEDED and ask.has(PersonRight.PAYMENTS):
        action, intro = ask.to(f"/receipts/{found.id}/retry"), ask.t("receipt.retry.intro")
        blocks.append(Form(action=action, fields=[], submit=ask.t("receipt.retry"), intro=intro))
    crumbs = [Link(ask.t("receipts"), ask.to("/receipts"))]
    return Page(f"{ask.t('receipt')} {found.id[-12:]}", blocks, crumbs)


async def retry(ask: Ask) -> Redirect:
    found = ask.path("receipt_id")
    await retry_receipt(ask.acting("receipt.retry", found), ask.caller, found)
    return Redirect(f"/receipts/{found}", {"done": "retried"})


_R = "/receipts/{receipt_id:str}"

RECEIPTS = (
    get("/receipts", receipts, PersonRight.READ),
    get(_R, receipt, PersonRight.READ),
    post(f"{_R}/retry", retry, PersonRight.PAYMENTS, retry=_R),
)

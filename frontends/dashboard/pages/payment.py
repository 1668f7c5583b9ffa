"""Page of one payment: its history, its money, notes of people, and the possible actions (docs/dashboard.md
"Payments")."""

from typing import Any

from ....core.domain.errors import Refusal
from ....core.domain.payments.payments import Payment, PaymentStatus
from ....core.domain.people.payment_notes import LINKS_MOST, NOTE_LONGEST, NOTES_MOST
from ....core.domain.people.roles import PersonRight
from ....core.domain.people.timeline import StepKind
from ....core.usecases.common.encrypted import open_payer_name, open_private_data
from ....core.usecases.overview.payment_timeline import ShownStep, read_timeline
from ....core.usecases.payments.payments import get_payment
from ....core.usecases.payments.transfers import list_transfers
from ....core.usecases.people.payment_links import can_send_link, send_link
from ....core.usecases.people.payment_notes import add_note, delete_note, list_notes
from ....core.usecases.receipts.receipts import receipts_of
from ....core.usecases.refunds.list import RefundFilter, list_refunds
from ....core.usecases.sandbox.sandbox import PaymentSimulation, simulate
from ....core.usecases.webhooks.events import EventQuery, list_events
from ..blocks import (
    Actions,
    Block,
    Code,
    Column,
    Facts,
    Field,
    Form,
    Link,
    Remark,
    Remarks,
    Step,
    Table,
    Timeline,
    Value,
)
from ..lists import shop_names
from ..rows import Page, Redirect, get, post
from ..texts import LANGUAGES, add
from ..web import Ask, audited
from .payments import badge
from .receipts import receipt_table

add(
    {
        "payment.timeline": ("What happened", "Что было"),
        "step.created": ("Created", "Создан"),
        "step.link_sent": ("Link sent to {to}", "Ссылка отправлена на {to}"),
        "step.started": ("The bank is working on it", "Банк выполняет перевод"),
        "step.other_amount": (
            "Another amount came; an operator decides",
            "Пришла другая сумма, решает оператор",
        ),
        "step.unapplied": ("Money came that does not count here", "Пришли деньги, которые сюда не зачтены"),
        "step.money_returned": ("That money went back to the payer", "Эти деньги вернулись плательщику"),
        "step.paid": ("Paid", "Оплачен"),
        "step.failed": ("Failed", "Не прошёл"),
        "step.cancelled": ("Cancelled", "Отменён"),
        "step.expired": ("Expired: nobody paid in time", "Истёк: вовремя не оплатили"),
        "step.settled": ("Settled", "Рассчитан"),
        "step.refund_applied": ("Refund applied for", "Оформлен возврат"),
        "step.refund_approved": ("Refund approved", "Возврат одобрен"),
        "step.refund_completed": ("Money returned to the payer", "Деньги вернулись плательщику"),
        "step.refund_rejected": ("Refund rejected", "Возврат отклонён"),
        "step.refund_failed": ("Refund failed", "Возврат не прошёл"),
        "step.refund_reversed": ("The refund came back", "Возврат вернулся"),
        "step.webhook_delivered": ("Your program was informed", "Ваша программа получила вебхук"),
        "step.webhook_failed": ("Your program did not accept the webhook", "Ваша программа не приняла вебхук"),
        "step.by": ("by {person}", "{person}"),
        "notes": ("Notes", "Заметки"),
        "notes.empty": ("No notes yet.", "Заметок пока нет."),
        "notes.text": ("New note", "Новая заметка"),
        "notes.hint": (
            "Your colleagues see it, the payer does not. At most {length} characters, {count} notes.",
            "Видят ваши коллеги, плательщик не видит. До {length} знаков, до {count} заметок.",
        ),
        "notes.add": ("Add the note", "Добавить заметку"),
        "notes.delete": ("Delete", "Удалить"),
        "notes.delete_of": ("Delete your note of {when}", "Удалить вашу заметку от {when}"),
        "notes.gone": ("a former member", "бывший участник"),
        "link.send": ("Send the link by mail", "Отправить ссылку почтой"),
        "link.send.intro": (
            "The payer gets a letter with the link, at most {count} an hour.",
            "Плательщик получит письмо со ссылкой, не больше {count} в час.",
        ),
        "link.to": ("E-mail of the payer", "Эл. почта плательщика"),
        "link.language": ("Language of the letter", "Язык письма"),
        "link.submit": ("Send the link", "Отправить ссылку"),
        "error.NOTE_NOT_FOUND": ("You have no such note here.", "Такой вашей заметки здесь нет."),
        "error.LINK_LIMIT": (
            "Too many links were sent within an hour. Try again later.",
            "За час отправлено слишком много ссылок. Повторите позже.",
        ),
        "error.FEATURE_NOT_ENABLED": ("This is not connected.", "Это не подключено."),
    }
)

_TONES = {
    StepKind.PAID: "good",
    StepKind.SETTLED: "good",
    StepKind.REFUND_COMPLETED: "good",
    StepKind.OTHER_AMOUNT: "warn",
    StepKind.UNAPPLIED: "warn",
    StepKind.EXPIRED: "warn",
    StepKind.REFUND_REVERSED: "warn",
    StepKind.FAILED: "bad",
    StepKind.REFUND_FAILED: "bad",
    StepKind.WEBHOOK_FAILED: "bad",
}
_REFUNDS = 20


async def payment(ask: Ask) -> Page:
    found = await get_payment(ask.ports, ask.caller, ask.path("payment_id"))
    names = await shop_names(ask)
    refunds = await list_refunds(
        ask.ports, ask.caller, RefundFilter(payment_id=found.id, shop_id=found.shop_id), lambda: (1, _REFUNDS)
    )
    events = await list_events(ask.ports, ask.caller, EventQuery(object_id=found.id), 1, 20)
    receipts = await receipts_of(ask.ports, found)
    steps = await read_timeline(ask.ports, ask.caller, found, refunds.records)
    transfers = await list_transfers(ask.ports, ask.caller, found.id, 1, 20)
    blocks: list[Block] = [_facts(ask, found, names)]
    blocks.append(Timeline(ask.t("payment.timeline"), [_step(ask, each) for each in steps]))
    if receipts:
        blocks.append(receipt_table(ask, receipts, title=ask.t("receipts")))
    if transfers.records:
        blocks.append(
            Table(
                title=ask.t("payment.transfers"),
                caption=ask.t("payment.transfers"),
                columns=[
                    Column(ask.t("date")),
                    Column(ask.t("transfer.status")),
                    Column(ask.t("reason")),
                    Column(ask.t("amount"), is_number=True),
                ],
                rows=[
                    [ask.at(each.received_at), badge(ask, each.status), each.reason, ask.rub(each.amount)]
                    for each in transfers.records
                ],
                empty=ask.t("nothing"),
            )
        )
    if refunds.records:
        blocks.append(
            Table(
                title=ask.t("refunds"),
                caption=ask.t("refunds"),
                columns=[
                    Column(ask.t("created")),
                    Column(ask.t("id")),
                    Column(ask.t("status")),
                    Column(ask.t("amount"), is_number=True),
                ],
                rows=[
                    [
                        ask.at(each.created_at),
                        Link(each.id[-12:], ask.to(f"/refunds/{each.id}")),
                        badge(ask, each.status, "refund"),
                        ask.rub(each.amount),
                    ]
                    for each in refunds.records
                ],
                empty=ask.t("nothing"),
            )
        )
    if ask.has(PersonRight.LOGS) and events.records:
        blocks.append(_events_table(ask, events.records))
    blocks += [*await _notes(ask, found), *_actions(ask, found)]
    return Page(f"{ask.t('payment')} {found.external_id or found.id[-12:]}", blocks, _crumbs(ask))


def _events_table(ask: Ask, records: Any) -> Table:
    """Return the table of an object's events and their deliveries."""
    return Table(
        title=ask.t("events"),
        caption=ask.t("events"),
        columns=[Column(ask.t("date")), Column(ask.t("event.type")), Column(ask.t("event.delivery"))],
        rows=[
            [
                ask.at(each.event.created_at),
                Link(each.event.type, ask.to(f"/developers/events/{each.event.id}")),
                badge(ask, each.delivery.status, "delivery"),
            ]
            for each in records
        ],
        empty=ask.t("nothing"),
    )


def _step(ask: Ask, shown: ShownStep) -> Step:
    step = shown.step
    text = ask.t(f"step.{step.kind}", to=step.to) if step.to else ask.t.of("step", step.kind)
    details: list[Value] = []
    if step.refund_id is not None:
        details.append(Link(step.refund_id[-12:], ask.to(f"/refunds/{step.refund_id}")))
    if step.status is not None:
        told = ask.t.of("status", step.status)
        sees = step.event_id is not None and ask.has(PersonRight.LOGS)
        details.append(Link(told, ask.to(f"/developers/events/{step.event_id}")) if sees else told)
    if step.reason is not None:
        details.append(ask.t.of("reason", step.reason))
    details += [each for each in (ask.rub(step.amount), ask.usdt(step.credit)) if each is not None]
    if shown.person is not None:
        details.append(ask.t("step.by", person=shown.person))
    return Step(ask.at(step.at), text, details, _TONES.get(step.kind, "plain"))


async def _notes(ask: Ask, found: Payment) -> list[Block]:
    if not ask.has(PersonRight.NOTES):
        return []
    path = f"/payments/{found.id}/note"
    remarks = []
    for each in await list_notes(ask.ports, ask.actor, found.id):
        at = ask.at(each.note.at)
        removal = None
        if each.is_own:
            removal = Form(
                action=ask.to(f"{path}/delete"),
                fields=[Field(name="note", type="hidden", value=each.note.id)],
                submit=ask.t("notes.delete"),
                label=ask.t("notes.delete_of", when="" if at is None else at.text),
            )
        remarks.append(Remark(at, each.author or ask.t("notes.gone"), each.note.text, removal))
    text = Field(
        name="text",
        label=ask.t("notes.text"),
        type="textarea",
        required=True,
        maxlength=NOTE_LONGEST,
        hint=ask.t("notes.hint", length=NOTE_LONGEST, count=NOTES_MOST),
    )
    key = Field(name="key", type="hidden", value=ask.ports.ids.uuid())
    return [
        Remarks(ask.t("notes"), remarks, ask.t("notes.empty")),
        Form(action=ask.to(path), fields=[text, key], submit=ask.t("notes.add")),
    ]


def _facts(ask: Ask, found: Payment, names: Any) -> Facts:
    subscription = None
    if found.subscription_id is not None:
        subscription = Link(found.subscription_id[-12:], ask.to(f"/subscriptions/{found.subscription_id}"))
    is_open = found.status in (PaymentStatus.PENDING, PaymentStatus.PROCESSING)
    failure = None if found.failure_reason is None else ask.t.of("reason", found.failure_reason)
    return Facts(
        None,
        [
            (ask.t("amount"), ask.rub(found.amount)),
            (ask.t("status"), badge(ask, found.status)),
            (ask.t("payment.failure"), failure),
            (ask.t("payment.actual"), ask.rub(found.actual_amount)),
            (ask.t("payment.credit"), ask.usdt(found.amount_usdt)),
            (ask.t("id"), Code(found.id)),
            (ask.t("order"), found.external_id),
            (ask.t("shop"), names.get(found.shop_id)),
            (ask.t("payment.method"), ask.t.of("method", found.payment_method)),
            (ask.t("payment.description"), found.description),
            (ask.t("payment.subscription"), subscription),
            (ask.t("payment.phone"), found.payer_contact),
            (ask.t("created"), ask.at(found.created_at)),
            (ask.t("payment.expires_at"), ask.at(found.expires_at) if is_open else None),
            (ask.t("payment.paid_at"), ask.at(found.paid_at)),
            (ask.t("payment.settled_at"), ask.at(found.settled_at)),
            (ask.t("payment.link"), ask.copied(ask.ports.urls.payment_page(found.id)) if is_open else None),
        ],
    )


def _crumbs(ask: Ask) -> list[Link]:
    return [Link(ask.t("payments"), ask.to("/payments"))]


def _actions(ask: Ask, found: Payment) -> list[Block]:
    blocks: list[Block] = []
    if ask.has(PersonRight.PAYMENTS) and can_send_link(ask.ports, found):
        languages = list(LANGUAGES.items())
        blocks.append(
            Form(
                action=ask.to(f"/payments/{found.id}/link"),
                fields=[
                    Field(name="email", label=ask.t("link.to"), type="email", required=True),
                    Field(name="language", label=ask.t("link.language"), type="select", options=languages, value="ru"),
                ],
                submit=ask.t("link.submit"),
                title=ask.t("link.send"),
                intro=ask.t("link.send.intro", count=LINKS_MOST),
            )
        )
    if ask.has(PersonRight.PAYER_DATA) and (found.private is not None or found.payer_name is not None):
        action = ask.to(f"/payments/{found.id}/payer")
        blocks.append(Form(action=action, fields=[], submit=ask.t("payment.reveal"), title=ask.t("payment.payer")))
    if ask.has(PersonRight.REFUNDS) and found.status in (PaymentStatus.PAID, PaymentStatus.SETTLED):
        fields = [
            Field(name="payment_id", type="hidden", value=found.id),
            Field(name="key", type="hidden", value=ask.ports.ids.uuid()),
            Field(name="amount_rub", label=ask.t("payment.refund_amount"), inputmode="decimal"),
            Field(name="reason", label=ask.t("reason"), maxlength=255),
        ]
        blocks.append(
            Form(
                action=ask.to("/refunds"),
                fields=fields,
                submit=ask.t("payment.refund.submit"),
                title=ask.t("payment.new_refund"),
                intro=ask.t("payment.refund.intro"),
                tone="danger",
            )
        )
    if ask.mode.value == "test" and ask.has(PersonRight.SANDBOX) and found.status is not PaymentStatus.SETTLED:
        outcomes = ("paid", "processing", "failed", "cancelled", "expired")
        options = [(each, ask.t.of("status", each)) for each in outcomes]
        blocks.append(
            Form(
                action=ask.to(f"/payments/{found.id}/simulate"),
                fields=[Field(name="outcome", label=ask.t("payment.outcome"), type="select", options=options)],
                submit=ask.t("payment.simulate"),
                title=ask.t("payment.simulate"),
                intro=ask.t("payment.simulate.intro"),
            )
        )
    return blocks


async def reveal(ask: Ask) -> Page:
    """Show the payer's data once, and record this in the audit log."""
    found = await get_payment(ask.ports, ask.caller, ask.path("payment_id"))
    await audited(ask, "payment.reveal", found.id)
    contact = open_private_data(ask.ports.vault, found)
    rows: list[tuple[str, Value]] = [
        (ask.t("payment.payer"), open_payer_name(ask.ports.vault, found)),
        (ask.t("payment.phone"), None if contact is None else contact.client_phone),
        (ask.t("payment.mail"), None if contact is None else contact.client_email),
    ]
    back = Actions([Link(ask.t("back"), ask.to(f"/payments/{found.id}"))])
    return Page(ask.t("payment.payer"), [Facts(None, rows), back], _crumbs(ask))


async def simulated(ask: Ask) -> Redirect:
    if ask.mode.value != "test":
        raise Refusal("NOT_FOUND", "Simulations belong to test mode")
    payment_id = ask.path("payment_id")
    await simulate(ask.ports, ask.caller, payment_id, PaymentSimulation(outcome=ask.value("outcome")))
    return Redirect(f"/payments/{payment_id}", {"done": "saved"})


async def new_note(ask: Ask) -> Redirect:
    payment_id = ask.path("payment_id")
    await add_note(ask.ports, ask.actor, payment_id, ask.value("text"), key=ask.value("key"))
    return Redirect(f"/payments/{payment_id}", {"done": "saved"})


async def drop_note(ask: Ask) -> Redirect:
    payment_id = ask.path("payment_id")
    await delete_note(ask.ports, ask.actor, payment_id, ask.value("note"))
    return Redirect(f"/payments/{payment_id}", {"done": "removed"})


async def mail_link(ask: Ask) -> Redirect:
    payment_id, wish = ask.path("payment_id"), ask.value("language")
    language = wish if wish in LANGUAGES else "ru"
    await send_link(ask.ports, ask.actor, payment_id, ask.value("email"), language)
    return Redirect(f"/payments/{payment_id}", {"done": "sent"})


_ONE = "/payments/{payment_id:str}"

PAYMENT = (
    get(_ONE, payment, PersonRight.READ),
    post(f"{_ONE}/payer", reveal, PersonRight.PAYER_DATA, retry=_ONE),
    post(f"{_ONE}/simulate", simulated, PersonRight.SANDBOX, retry=_ONE),
    post(f"{_ONE}/note", new_note, PersonRight.NOTES, retry=_ONE),
    post(f"{_ONE}/note/delete", drop_note, PersonRight.NOTES, retry=_ONE),
    post(f"{_ONE}/link", mail_link, PersonRight.PAYMENTS, retry=_ONE),
)

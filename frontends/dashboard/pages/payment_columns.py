"""Columns of the list of payments, from which a person chooses (docs/dashboard.md "Payments")."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from ....core.domain.payments.payments import Payment
from ..blocks import Badge, Code, Column, Field, Link, Value
from ..texts import add
from ..web import Ask

add(
    {
        "columns": ("Columns", "Столбцы"),
        "columns.method": ("Method", "Способ"),
        "columns.phone": ("Payer's phone", "Телефон плательщика"),
        "columns.received": ("Received", "Получено"),
        "columns.credit": ("Credited", "Зачислено"),
        "columns.reason": ("Failed because", "Не прошёл"),
        "columns.paid": ("Paid", "Оплачен"),
        "columns.settled": ("Settled", "Рассчитан"),
        "columns.description": ("Description", "Описание"),
    }
)

Names = Mapping[str, str]
"""Names of shops by id."""


class PaymentColumn(msgspec.Struct, frozen=True):
    """A column: its title and its value of a payment."""

    text: str
    value: Callable[[Ask, Payment, Names], Value]
    is_number: bool = False


def _order(ask: Ask, payment: Payment, _names: Names) -> Value:
    return Link(payment.external_id or payment.id[-12:], ask.to(f"/payments/{payment.id}"))


def _status(ask: Ask, payment: Payment, _names: Names) -> Value:
    return Badge(ask.t.of("status", payment.status), TONES.get(payment.status, "plain"))


def _reason(ask: Ask, payment: Payment, _names: Names) -> Value:
    return None if payment.failure_reason is None else ask.t.of("reason", payment.failure_reason)


def _received(ask: Ask, payment: Payment, _names: Names) -> Value:
    return ask.rub(payment.actual_amount)


TONES = {
    "paid": "good", "settled": "good", "completed": "good", "active": "good", "sent": "good", "delivered": "good",
    "failed": "bad", "rejected": "bad", "amount_mismatch": "warn", "processing": "warn", "expired": "plain",
    "past_due": "warn", "paused": "warn", "reversed": "warn", "suspended": "warn", "under_review": "warn",
}  # fmt: skip
"""Tones of statuses."""

COLUMNS: Mapping[str, PaymentColumn] = {
    "created": PaymentColumn("created", lambda ask, payment, _: ask.at(payment.created_at)),
    "order": PaymentColumn("order", _order),
    "id": PaymentColumn("id", lambda _ask, payment, _: Code(payment.id)),
    "status": PaymentColumn("status", _status),
    "reason": PaymentColumn("columns.reason", _reason),
    "shop": PaymentColumn("shop", lambda _ask, payment, names: names.get(payment.shop_id, "")),
    "method": PaymentColumn("columns.method", lambda ask, payment, _: ask.t.of("method", payment.payment_method)),
    "phone": PaymentColumn("columns.phone", lambda _ask, payment, _: payment.payer_contact),
    "description": PaymentColumn("columns.description", lambda _ask, payment, _: payment.description),
    "paid": PaymentColumn("columns.paid", lambda ask, payment, _: ask.at(payment.paid_at)),
    "settled": PaymentColumn("columns.settled", lambda ask, payment, _: ask.at(payment.settled_at)),
    "amount": PaymentColumn("amount", lambda ask, payment, _: ask.rub(payment.amount), is_number=True),
    "received": PaymentColumn("columns.received", _received, is_number=True),
    "credit": PaymentColumn("columns.credit", lambda ask, payment, _: ask.usdt(payment.amount_usdt), is_number=True),
}
"""All columns, in display order."""
USUAL = ("created", "order", "status", "shop", "amount")
_ALWAYS = "order"
"""The column that is always shown, because it links to the payment."""


def written_columns(names: Sequence[str]) -> str | None:
    """Return the chosen columns as one query value; None for the default columns."""
    chosen = [name for name in COLUMNS if name in names or name == _ALWAYS]
    return None if not names or chosen == list(USUAL) else ".".join(chosen)


def chosen_columns(ask: Ask) -> Sequence[str]:
    """Return the chosen columns of this request."""
    given = ask.query.get("cols", "").split(".")
    found = [name for name in COLUMNS if name in given]
    return [name for name in COLUMNS if name in found or name == _ALWAYS] if found else USUAL


def columns_field(ask: Ask, chosen: Sequence[str]) -> Field:
    options = [(name, ask.t(each.text)) for name, each in COLUMNS.items() if name != _ALWAYS]
    return Field(
        name="col", label=ask.t("columns"), type="checks", options=options, chosen=tuple(chosen), is_folded=True
    )


def heads(ask: Ask, chosen: Sequence[str]) -> list[Column]:
    return [Column(ask.t(COLUMNS[name].text), is_number=COLUMNS[name].is_number) for name in chosen]


def cells(ask: Ask, payment: Payment, names: Names, chosen: Sequence[str]) -> list[Value]:
    return [COLUMNS[name].value(ask, payment, names) for name in chosen]

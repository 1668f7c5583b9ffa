"""Rows of files of payments and refunds: the list's records with what belongs to them (docs/payments.md "As a file",
docs/refunds.md "Finding refunds")."""

import re
from collections.abc import AsyncIterator, Sequence
from decimal import Decimal

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import OneOf
from ...domain.accounts.accounts import Caller
from ...domain.accounts.shops import Shop
from ...domain.days import iso, iso_or_none
from ...domain.movements import Movement
from ...domain.payments.payments import Payment
from ...domain.refunds.refunds import Refund
from ...domain.settlement.rates import merchant_rate
from ...domain.settlement.settlement import Settlement, SettlementItem, line_id
from ..common.paging import Position
from ..ledger.conversions import Conversion, conversions_of
from ..ledger.movements import MovementFilter, walk_movements
from ..payments.list import PaymentFilter, walk_payments
from ..refunds.list import RefundFilter, walk_refunds

_FORMULA = re.compile(
    r"""
    (?: \A (?=[\t\r\n]) )                             # a cell that begins with a control character
    | (?: \A | (?<=[;\t\r\n]) ) (?= [\s"]* [=+\-@＝＋－＠] )
    """,
    re.VERBOSE,
)
"""Position of a formula: at the beginning, or behind a character at which a program begins the next cell or row if it
takes another separator than ours. Excel does so in Russia, where lists are separated by semicolons."""


class PaymentRow(msgspec.Struct, frozen=True, kw_only=True):
    """One payment. Rate, fee and credit are those of its line in the settlement."""

    id: str
    external_id: str | None
    status: str
    amount_rub: str
    actual_amount_rub: str | None
    payment_method: str
    shop_id: str
    shop_name: str | None
    subscription_id: str | None
    failure_reason: str | None
    created_at: str
    paid_at: str | None
    settled_at: str | None
    settlement_id: str | None
    rate_merchant: str | None
    fee_usdt: str | None
    credit_usdt: str | None


class PersonPaymentRow(PaymentRow, frozen=True, kw_only=True):
    """One payment for a person: with the masked phone that the page of the payment shows, too."""

    payer_phone: str | None


class RefundRow(msgspec.Struct, frozen=True, kw_only=True):
    """One refund, with the order number of its payment."""

    id: str
    external_id: str | None
    payment_id: str
    payment_external_id: str | None
    status: str
    pending_reason: str | None
    failure_reason: str | None
    reason: str | None
    amount_rub: str
    amount_usdt: str | None
    rate_market: str | None
    shop_id: str
    shop_name: str | None
    created_at: str
    completed_at: str | None


class MovementRow(msgspec.Struct, frozen=True, kw_only=True):
    """One movement of the balance."""

    id: str
    number: str
    kind: str
    object_type: str
    object_id: str
    available_usdt: str
    reserved_usdt: str
    pending_rub: str
    converted_rub: str | None
    rate: str | None
    settlement_id: str | None
    balance_available_usdt: str
    balance_reserved_usdt: str
    balance_pending_rub: str
    created_at: str


FileRow = PaymentRow | RefundRow | MovementRow
Rows = Sequence[PaymentRow] | Sequence[RefundRow] | Sequence[MovementRow]

TEXTS = ("external_id", "payment_external_id", "shop_name", "reason")
"""Columns whose values people wrote. A spreadsheet might take them for formulas."""


def guarded(text: str | None) -> str | None:
    """Return a text that no spreadsheet reads as a formula: put an apostrophe before anything that looks like one."""
    return None if text is None else _FORMULA.sub("'", text)


def guarded_rows(rows: Rows) -> list[FileRow]:
    """Return the rows with guarded texts, for CSV."""
    texts = [name for name in TEXTS if rows and name in rows[0].__struct_fields__]
    return [msgspec.structs.replace(row, **{name: guarded(getattr(row, name)) for name in texts}) for row in rows]


async def payment_rows(
    ports: Ports, caller: Caller, asked: PaymentFilter, after: Position | None = None
) -> AsyncIterator[tuple[Sequence[PaymentRow], Position]]:
    """Return the rows of all payments of the filter, newest first, in batches with the position behind each.

    The filter is checked before the first batch. For people the rows are PersonPaymentRow. Raises: Refusal
    VALIDATION_ERROR, SHOP_NOT_FOUND.
    """
    return _payment_batches(ports, caller, await walk_payments(ports, caller, asked, after))


async def _payment_batches(
    ports: Ports, caller: Caller, batches: AsyncIterator[tuple[list[Payment], Position]]
) -> AsyncIterator[tuple[Sequence[PaymentRow], Position]]:
    names: dict[str, str | None] = {}
    async for payments, position in batches:
        lines = await lines_of(ports, payments)
        await _add_names(ports, names, payments)
        rows: Sequence[PaymentRow] = [_payment_row(each, names[each.shop_id], lines.get(each.id)) for each in payments]
        if caller.is_person:
            rows = [_for_person(*pair) for pair in zip(rows, payments, strict=True)]
        yield rows, position


class Line(msgspec.Struct, frozen=True):
    """A payment's line of its settlement."""

    item: SettlementItem
    rate: Decimal
    """The merchant's rate, with all digits."""


async def lines_of(ports: Ports, payments: Sequence[Payment]) -> dict[str, Line]:
    """Return the settlement lines of the payments that are settled, by payment id."""
    wanted = {line_id(each.settlement_id, each.id): each for each in payments if each.settlement_id is not None}
    if not wanted:
        return {}
    statements = tuple({each.settlement_id for each in wanted.values()})
    async with ports.storage.unit() as unit:
        items = await unit[SettlementItem].find(id=OneOf(tuple(wanted)), limit=len(wanted), readable=True)
        found = await unit[Settlement].find(id=OneOf(statements), limit=len(statements), readable=True)
    markets = {each.id: Decimal(each.rate_market) for each in found}
    rates = {
        pair: merchant_rate(markets[pair[0]], pair[1])
        for pair in {(each.settlement_id, each.markup) for each in items}
        if pair[0] in markets
    }
    known = {each.payment_id: (each, rates.get((each.settlement_id, each.markup))) for each in items}
    return {payment_id: Line(item, rate) for payment_id, (item, rate) in known.items() if rate is not None}


def _payment_row(payment: Payment, shop_name: str | None, line: Line | None) -> PaymentRow:
    return PaymentRow(
        id=payment.id,
        external_id=payment.external_id,
        status=payment.status.value,
        amount_rub=str(payment.amount),
        actual_amount_rub=None if payment.actual_amount is None else str(payment.actual_amount),
        payment_method=payment.payment_method,
        shop_id=payment.shop_id,
        shop_name=shop_name,
        subscription_id=payment.subscription_id,
        failure_reason=None if payment.failure_reason is None else payment.failure_reason.value,
        created_at=iso(payment.created_at),
        paid_at=iso_or_none(payment.paid_at),
        settled_at=iso_or_none(payment.settled_at),
        settlement_id=payment.settlement_id,
        rate_merchant=None if line is None else format(line.rate, "f"),
        fee_usdt=None if line is None else str(line.item.fee),
        credit_usdt=None if line is None else str(line.item.credit),
    )


def _for_person(row: PaymentRow, payment: Payment) -> PersonPaymentRow:
    return PersonPaymentRow(**msgspec.structs.asdict(row), payer_phone=payment.payer_contact)


async def refund_rows(
    ports: Ports, caller: Caller, asked: RefundFilter, after: Position | None = None
) -> AsyncIterator[tuple[Sequence[RefundRow], Position]]:
    """Return the rows of all refunds of the filter, newest first, in batches with the position behind each.

    The filter is checked before the first batch. Raises: Refusal NOT_FOUND, VALIDATION_ERROR, SHOP_NOT_FOUND.
    """
    return _refund_batches(ports, await walk_refunds(ports, caller, asked, after))


async def _refund_batches(
    ports: Ports, batches: AsyncIterator[tuple[list[Refund], Position]]
) -> AsyncIterator[tuple[Sequence[RefundRow], Position]]:
    names: dict[str, str | None] = {}
    async for refunds, position in batches:
        wanted = tuple({each.payment_id for each in refunds})
        async with ports.storage.unit() as unit:
            found = await unit[Payment].find(id=OneOf(wanted), limit=len(wanted), readable=True) if wanted else []
        orders = {each.id: each.external_id for each in found}
        await _add_names(ports, names, refunds)
        yield [_refund_row(each, names[each.shop_id], orders.get(each.payment_id)) for each in refunds], position


def _refund_row(refund: Refund, shop_name: str | None, order: str | None) -> RefundRow:
    return RefundRow(
        id=refund.id,
        external_id=refund.external_id,
        payment_id=refund.payment_id,
        payment_external_id=order,
        status=refund.status.value,
        pending_reason=None if refund.pending_reason is None else refund.pending_reason.value,
        failure_reason=refund.failure_reason,
        reason=refund.reason,
        amount_rub=str(refund.amount),
        amount_usdt=None if refund.taken_usdt is None else str(refund.taken_usdt),
        rate_market=refund.rate_market,
        shop_id=refund.shop_id,
        shop_name=shop_name,
        created_at=iso(refund.created_at),
        completed_at=iso_or_none(refund.completed_at),
    )


async def movement_rows(
    ports: Ports, caller: Caller, asked: MovementFilter, after: Position | None = None
) -> AsyncIterator[tuple[Sequence[MovementRow], Position]]:
    """Return the rows of all movements of the filter, newest first, in batches with the position behind each.

    The filter is checked before the first batch. Raises: Refusal VALIDATION_ERROR; PROVIDER_UNAVAILABLE while movements
    are being listed.
    """
    return _movement_batches(ports, await walk_movements(ports, caller, asked, after))


async def _movement_batches(
    ports: Ports, batches: AsyncIterator[tuple[list[Movement], Position]]
) -> AsyncIterator[tuple[Sequence[MovementRow], Position]]:
    async for movements, position in batches:
        known = await conversions_of(ports, movements)
        yield [_movement_row(each, known.get(each.number)) for each in movements], position


def _movement_row(movement: Movement, conversion: Conversion | None) -> MovementRow:
    return MovementRow(
        id=movement.entry_id,
        number=str(movement.number),
        kind=movement.kind.value,
        object_type=movement.object_type.value,
        object_id=movement.object_id,
        available_usdt=str(movement.available),
        reserved_usdt=str(movement.reserved),
        pending_rub=str(movement.pending),
        converted_rub=None if conversion is None else str(conversion.amount),
        rate=None if conversion is None else conversion.rate,
        settlement_id=None if conversion is None else conversion.settlement_id,
        balance_available_usdt=str(movement.available_after),
        balance_reserved_usdt=str(movement.reserved_after),
        balance_pending_rub=str(movement.pending_after),
        created_at=iso(movement.at),
    )


async def _add_names(ports: Ports, names: dict[str, str | None], records: Sequence[Payment] | Sequence[Refund]) -> None:
    """Read the names of the records' shops that are not known yet. An account has few shops."""
    for shop_id in {each.shop_id for each in records} - names.keys():
        shop = await ports.storage.get(Shop, shop_id)
        names[shop_id] = None if shop is None else shop.name

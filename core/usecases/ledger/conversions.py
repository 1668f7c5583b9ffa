"""Conversions of movements: the rate and the RUB amount by which a movement turned RUB into USDT or back, from the rows
of its objects (docs/settlement.md "Movements")."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import OneOf, R, Unit
from ...domain.ledger import EntryKind
from ...domain.money import Rub, Usdt
from ...domain.movements import Movement, ObjectType
from ...domain.payments.payments import Payment
from ...domain.refunds.refunds import Refund
from ...domain.settlement.rates import merchant_rate
from ...domain.settlement.settlement import Correction, Settlement, SettlementItem, line_id


class Conversion(msgspec.Struct, frozen=True, kw_only=True):
    """Conversion of a movement."""

    amount: Rub
    """RUB value of the change of available USDT, with the same sign."""
    rate: str
    """RUB per 1 USDT. The rate of a settlement includes the payment's markup; the rate of a refund does not."""
    settlement_id: str | None = None
    """The statement with this line."""


async def conversions_of(ports: Ports, movements: Sequence[Movement]) -> dict[int, Conversion]:
    """Return the conversions of movements by number. A movement without a conversion, or whose object was deleted, is
    left out."""
    settled = [each for each in movements if each.kind is EntryKind.SETTLEMENT]
    refunded = [each for each in movements if each.object_type is ObjectType.REFUND and each not in settled]
    async with ports.storage.unit() as unit:
        found = await _of_refunds(unit, [each for each in refunded if each.available != Usdt(0)])
        return found | await _of_settlements(unit, settled)


async def _of_refunds(unit: Unit, movements: Sequence[Movement]) -> dict[int, Conversion]:
    refunds = await _by_id(unit, Refund, (each.object_id for each in movements))
    found = {}
    for each in movements:
        refund = refunds.get(each.object_id)
        if refund is not None and refund.rate_market is not None:
            kopecks = refund.amount.kopecks if each.available > Usdt(0) else -refund.amount.kopecks
            found[each.number] = Conversion(amount=Rub(kopecks), rate=refund.rate_market)
    return found


async def _of_settlements(unit: Unit, movements: Sequence[Movement]) -> dict[int, Conversion]:
    """Return conversions of settlements. A payment's conversion is its line of the statement less those of its refunds,
    all at one rate. A correction has its own."""
    paid = (each.object_id for each in movements if each.object_type is ObjectType.PAYMENT)
    given_back = (each.object_id for each in movements if each.object_type is ObjectType.REFUND)
    objects: dict[str, Any] = {**await _by_id(unit, Payment, paid), **await _by_id(unit, Correction, given_back)}
    lines = {each.object_id: line for each in movements if (line := _line_of(objects.get(each.object_id))) is not None}
    items = await _by_id(unit, SettlementItem, lines.values())
    settlements = await _by_id(unit, Settlement, {item.settlement_id for item in items.values()})
    rates: dict[tuple[str, str], str] = {}
    found = {}
    for each in movements:
        item = items.get(lines.get(each.object_id, ""))
        settlement = None if item is None else settlements.get(item.settlement_id)
        if item is None or settlement is None:
            continue
        place = settlement.id, item.markup
        if place not in rates:
            rates[place] = format(merchant_rate(Decimal(settlement.rate_market), item.markup), "f")
        found[each.number] = Conversion(
            amount=Rub(-each.pending.kopecks), rate=rates[place], settlement_id=settlement.id
        )
    return found


def _line_of(settled: Payment | Correction | None) -> str | None:
    """Return the id of the statement line of a settled payment or correction."""
    if settled is None or settled.settlement_id is None:
        return None
    if isinstance(settled, Payment):
        return line_id(settled.settlement_id, settled.id)
    return line_id(settled.settlement_id, settled.payment_id, settled.id)


async def _by_id(unit: Unit, kind: type[R], wanted: Iterable[str]) -> dict[str, R]:
    named = tuple(dict.fromkeys(wanted))
    found = await unit[kind].find(id=OneOf(named), limit=len(named), readable=True) if named else []
    return {record.id: record for record in found}

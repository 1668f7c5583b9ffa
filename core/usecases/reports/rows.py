"""Rows of registers: movements with the data of their objects (docs/reports.md "Columns")."""

from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import OneOf, R, Unit
from ...domain.accounts.shops import Shop
from ...domain.days import iso_moscow
from ...domain.ledger import EntryKind
from ...domain.money import Rub, Usdt
from ...domain.movements import Movement, ObjectType
from ...domain.payments.payments import Payment
from ...domain.refunds.refunds import Refund
from ...domain.reports.reports import Sums
from ...domain.settlement.rates import merchant_rate
from ...domain.settlement.settlement import Correction, Settlement, SettlementItem, line_id, terms_of
from ...domain.settlement.withdrawals import Withdrawal, shown_hash
from ..exports.rows import guarded

_KOPECK = Decimal(1)
_UNITS_IN_KOPECK = Decimal(1_000_000)


class RegisterRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One movement of the balance. Its fields are the columns of the CSV."""

    number: str
    kind: str
    completed_at: str
    operation_id: str
    payment_id: str | None = None
    external_id: str | None = None
    shop_id: str | None = None
    shop_name: str | None = None
    amount_rub: str | None = None
    sbp_operation_id: str | None = None
    settlement_id: str | None = None
    rate_market: str | None = None
    rate_merchant: str | None = None
    fee_usdt: str | None = None
    fee_rub: str | None = None
    pending_rub: str
    available_usdt: str
    reserved_usdt: str
    network: str | None = None
    tx_hash: str | None = None
    balance_pending_rub: str
    balance_available_usdt: str
    balance_reserved_usdt: str
    entry_id: str


COLUMNS = RegisterRow.__struct_fields__


def fee_in_roubles(amount: Rub, credit: Usdt, rate_market: str) -> Rub:
    """Return the fee in roubles: the amount less the credit's worth at the market rate, rounded once to a kopeck."""
    with localcontext() as context:
        context.prec = 60
        worth = Decimal(credit.units) * Decimal(rate_market) / _UNITS_IN_KOPECK
        return amount - Rub(int(worth.quantize(_KOPECK, ROUND_HALF_UP)))


class RegisterRows:
    """Makes rows of batches of movements, and remembers what many rows share."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._shops: dict[str, str | None] = {}
        self._settlements: dict[str, Settlement] = {}

    async def of(self, movements: Sequence[Movement]) -> tuple[list[RegisterRow], dict[str, Sums]]:
        """Return rows, and their sums by kind. A row of an object that was deleted lacks the object's data."""
        found = await self._objects(movements)
        rows: list[RegisterRow] = []
        sums: dict[str, list[int]] = {}
        for each in movements:
            amount = each.pending
            data: dict[str, Any] = {}
            about = found.get(each.object_id)
            if isinstance(about, Withdrawal):
                data = {"network": about.network, "tx_hash": shown_hash(about), "settlement_id": about.settlement_id}
            elif isinstance(about, Refund):
                amount = about.amount
                data = {"payment_id": about.payment_id, "external_id": guarded(about.external_id)}
                data |= {"shop_id": about.shop_id, "rate_market": about.rate_market}
            elif isinstance(about, Payment):
                data = {"payment_id": about.id, "external_id": guarded(about.external_id), "shop_id": about.shop_id}
                data["sbp_operation_id"] = about.sbp_operation_id
            if "shop_id" in data:
                data["shop_name"] = self._shops.get(data["shop_id"])
            fee, fee_rub = Usdt(0), Rub(0)
            if each.kind is EntryKind.SETTLEMENT:
                amount = Rub(-each.pending.kopecks)
                item = found.get(_line_of(found.get(f"{each.object_id}:correction", about)) or "")
                settlement = None if item is None else self._settlements.get(item.settlement_id)
                if item is not None and settlement is not None:
                    market = settlement.rate_market
                    # The lines of a payment and of its refunds add up to the worth of the rest.
                    fee = terms_of(market, item.markup).worth(amount).fee
                    fee_rub = fee_in_roubles(amount, each.available, market)
                    data |= {"settlement_id": settlement.id, "rate_market": market, "fee_usdt": str(fee)}
                    data["rate_merchant"] = format(merchant_rate(Decimal(market), item.markup), "f")
                    data["fee_rub"] = str(fee_rub)
            kopecks = abs(amount.kopecks)
            rows.append(
                RegisterRow(
                    number=str(each.number),
                    kind=each.kind.value,
                    completed_at=iso_moscow(each.at),
                    operation_id=each.object_id,
                    amount_rub=str(Rub(kopecks)) if kopecks else None,
                    pending_rub=str(each.pending),
                    available_usdt=str(each.available),
                    reserved_usdt=str(each.reserved),
                    balance_pending_rub=str(each.pending_after),
                    balance_available_usdt=str(each.available_after),
                    balance_reserved_usdt=str(each.reserved_after),
                    entry_id=each.entry_id,
                    **data,
                )
            )
            change = each.pending.kopecks, each.available.units, each.reserved.units
            values = 1, kopecks, fee.units, fee_rub.kopecks, *change
            before = sums.setdefault(each.kind.value, [0] * len(values))
            sums[each.kind.value] = [one + other for one, other in zip(before, values, strict=True)]
        return rows, {kind: sums_of(values) for kind, values in sums.items()}

    async def _objects(self, movements: Sequence[Movement]) -> dict[str, Any]:
        """Return the objects of the movements by id, and the statement lines of settled ones."""
        by_type: dict[ObjectType, set[str]] = {}
        for each in movements:
            by_type.setdefault(each.object_type, set()).add(each.object_id)
        refunds = by_type.get(ObjectType.REFUND, set())
        async with self._ports.storage.unit() as unit:
            found: dict[str, Any] = await _by_id(unit, Payment, by_type.get(ObjectType.PAYMENT, ()))
            found |= await _by_id(unit, Refund, refunds)
            found |= await _by_id(unit, Withdrawal, by_type.get(ObjectType.WITHDRAWAL, ()))
            corrections = await _by_id(unit, Correction, refunds)
            found |= {f"{each.id}:correction": each for each in corrections.values()}
            shops = {each.shop_id for each in found.values() if isinstance(each, (Payment, Refund))}
            names = await _by_id(unit, Shop, shops - self._shops.keys())
            self._shops |= dict.fromkeys(shops - self._shops.keys()) | {key: each.name for key, each in names.items()}
            settled = {each.object_id for each in movements if each.kind is EntryKind.SETTLEMENT}
            lines = (_line_of(found.get(f"{each}:correction", found.get(each))) for each in settled)
            items = await _by_id(unit, SettlementItem, (each for each in lines if each is not None))
            statements = {each.settlement_id for each in items.values()}
            self._settlements |= await _by_id(unit, Settlement, statements - self._settlements.keys())
        return found | items


def sums_of(values: Sequence[int]) -> Sums:
    """Return sums from their values in the order of the fields."""
    return Sums(**dict(zip(Sums.__struct_fields__, values, strict=True)))


def _line_of(settled: Any) -> str | None:
    """Return the id of the statement line of a settled payment or correction."""
    if isinstance(settled, Payment) and settled.settlement_id is not None:
        return line_id(settled.settlement_id, settled.id)
    if isinstance(settled, Correction) and settled.settlement_id is not None:
        return line_id(settled.settlement_id, settled.payment_id, settled.id)
    return None


async def _by_id(unit: Unit, kind: type[R], wanted: Iterable[str]) -> dict[str, R]:
    named = tuple(wanted)
    found = await unit[kind].find(id=OneOf(named), limit=len(named), readable=True) if named else []
    return {record.id: record for record in found}

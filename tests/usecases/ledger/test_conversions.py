"""The rate at which a movement was converted, available while its objects are kept (docs/settlement.md "Movements")."""

from collections.abc import AsyncIterator

import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.ledger import EntryKind
from cambist.core.domain.money import Rub
from cambist.core.domain.movements import Movement
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.refunds.refunds import Refund
from cambist.core.domain.settlement.settlement import Settlement, SettlementItem
from cambist.core.usecases.ledger.conversions import conversions_of
from cambist.core.usecases.ledger.listing import list_fresh
from cambist.ports.bank import RefundStatus
from tests.invariants import everything
from tests.planting import beneath
from tests.refund_app import RefundApp, open_refund_app
from tests.tables import table


@pytest.fixture
async def refunds() -> AsyncIterator[RefundApp]:
    async with open_refund_app(made_up=True) as opened:
        yield opened


async def moved(refunds: RefundApp) -> list[Movement]:
    await list_fresh(refunds.ports, refunds.app.account.account_id, Mode.TEST)
    found: list[Movement] = await everything(refunds.ports, Movement)
    return sorted(found, key=lambda each: each.number)


async def test_refund_and_its_return_convert_at_the_market_rate_oppositely(
    refunds: RefundApp,
) -> None:
    await refunds.settled("500.00")
    payment_id = await refunds.settled()
    refund_id = await refunds.apply(payment_id, "40.00")
    await refunds.app.work(2)
    await refunds.tell(refund_id, RefundStatus.FAILED)
    movements = await moved(refunds)
    found = await conversions_of(refunds.ports, movements)
    told = {each.kind: found.get(each.number) for each in movements if each.object_id == refund_id}
    assert {kind: each and (each.amount, each.settlement_id) for kind, each in told.items()} == {
        EntryKind.REFUND_TAKEN: (Rub(-40_00), None),
        EntryKind.REFUND_RETURNED: (Rub(40_00), None),
    }
    assert {each.rate for each in told.values() if each is not None} == {(await refunds.refund(refund_id)).rate_market}


@table("kind", [Payment, SettlementItem, Settlement])
async def test_missing_record_loses_only_its_own_conversion(kind: type) -> None:
    async with open_refund_app(made_up=True) as refunds:
        for amount in ("100.00", "200.00", "300.00"):
            await refunds.settled(amount)
        movements = await moved(refunds)
        whole = await conversions_of(refunds.ports, movements)
        assert [each.amount for each in whole.values()] == [Rub(100_00), Rub(200_00), Rub(300_00)]
        number = [*whole][1]
        [payment_id] = [each.object_id for each in movements if each.number == number]
        names = {payment_id, whole[number].settlement_id}
        rows = await everything(refunds.ports, kind)
        [row] = [each for each in rows if getattr(each, "payment_id", each.id) in names]
        async with beneath(refunds.ports).unit() as unit:
            unit[kind].remove(row)
            await unit.commit()
        left = await conversions_of(refunds.ports, movements)
        assert left == {each: whole[each] for each in whole if each != number}


async def test_a_refund_that_is_forgotten_has_none(refunds: RefundApp) -> None:
    await refunds.settled("500.00")
    refund_id = await refunds.apply(await refunds.settled(), "40.00")
    await refunds.app.work(2)
    movements = await moved(refunds)
    whole = await conversions_of(refunds.ports, movements)
    async with beneath(refunds.ports).unit() as unit:
        unit[Refund].remove(await refunds.refund(refund_id))
        await unit.commit()
    left = await conversions_of(refunds.ports, movements)
    assert len(whole) - len(left) == 1
    assert left.items() <= whole.items()

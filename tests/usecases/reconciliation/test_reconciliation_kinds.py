"""Money of every kind that passes a bank is found in its list, on each storage (docs/reconciliation.md "What is
compared")."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from cambist.core.domain.exchanges.exchanges import invoice_operation
from cambist.core.domain.exchanges.funds import ExchangeTransfer
from cambist.core.domain.exchanges.returns import ReturnStatus, rub_return_operation
from cambist.core.domain.reconciliation.reconciliation import ReconciliationStatus
from cambist.core.usecases.reconciliation.counted import known
from cambist.core.usecases.reconciliation.discrepancies import list_differences
from cambist.core.usecases.reconciliation.scope import scope_of
from cambist.ports.reporting import ReportingBank
from tests.invariants import everything
from tests.reconciliation_kit import (
    KINDS,
    Make,
    at_noon,
    compared,
    with_exchange_of_rub,
    with_first_charge,
)
from tests.restored import App, World

S = ReconciliationStatus


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    world = World("memory", tmp_path)
    world.banks = world.banks[:1]
    async with world.opened() as opened:
        yield opened


async def test_all_of_them_agree(app: App) -> None:
    day = await at_noon(app)
    for make in KINDS:
        await make(app)
    assert await compared(app, day) is S.AGREED, await list_differences(app.ports)


@pytest.mark.parametrize("make", KINDS)
async def test_each_is_missed_when_the_bank_lacks_it(app: App, make: Make) -> None:
    day = await at_noon(app)
    made = await make(app)
    bank, now = app.world.bank, app.world.clock.now()
    page = await bank.entries("", now - timedelta(days=1), now + timedelta(days=1), None)
    app.world.script.entries.omitted |= {each.operation or "" for each in page.entries}
    assert await compared(app, day) is S.DIFFERENT
    found = await list_differences(app.ports)
    assert {each.difference.value for each in found} == {"missing"}
    assert {each.object_id for each in found} == made


@pytest.mark.parametrize("make", KINDS)
async def test_each_is_extra_when_we_know_nothing_of_it(app: App, make: Make) -> None:
    """A restored database is like this: it has lost operations that the bank has."""
    day = await at_noon(app)
    copy = app.world.copy() if app.world._kind == "memory" else None
    if copy is None:
        pytest.skip("the copy of a database in memory is enough")
    await make(app)
    bank, now = app.world.bank, app.world.clock.now()
    page = await bank.entries("", now - timedelta(days=1), now + timedelta(days=1), None)
    done = {each.id for each in page.entries if each.state == "done"}
    async with app.world.opened(copy) as forgetful:
        assert await compared(forgetful, day) is S.DIFFERENT
        found = await list_differences(forgetful.ports)
        assert {each.difference.value for each in found} == {"extra"}
        assert {each.entry for each in found} == done


async def test_binding_is_known_by_its_operation(app: App) -> None:
    await at_noon(app)
    [payment_id] = await with_first_charge(app)
    bank = app.ports.banks.named("bank")
    assert isinstance(bank, ReportingBank)
    name = payment_id.replace("pay_", "bnd_", 1)
    found = await known(app.ports, await scope_of(app.ports, bank, ""), {name})
    assert {operation: each.object_id for operation, each in found.items()} == {name: payment_id}


async def test_superseded_attempt_is_undone_and_money_taken_back_is_none(
    app: App,
) -> None:
    await at_noon(app)
    made = await with_exchange_of_rub(app)
    transfer = next(each for each in await everything(app.ports, ExchangeTransfer) if each.id in made)
    first, second, third = (rub_return_operation(transfer.id, number) for number in (1, 2, 3))
    assert transfer.sent_back is not None
    assert transfer.sent_back.operation == first
    async with app.ports.storage.unit() as unit:
        back = msgspec.structs.replace(transfer.sent_back, operation=second, number=2, status=ReturnStatus.RETURNED)
        unit[ExchangeTransfer].save(
            msgspec.structs.replace(transfer, sent_back=back, taken_back=transfer.amount, suspended=0)
        )
        await unit.commit()
    bank = app.ports.banks.named("bank")
    assert isinstance(bank, ReportingBank)
    invoice = invoice_operation(transfer.exchange_id)
    unknown = ["exch_0198c3f2-7d1a-7e4b-9f60-000000000001/1", f"{transfer.id}#0", third]
    asked = [*unknown, first, second, invoice]
    found = await known(app.ports, await scope_of(app.ports, bank, ""), asked)
    assert {name: (each.operation, each.standing.value) for name, each in found.items()} == {
        first: (first, "undone"),
        second: (second, "done"),
        invoice: (invoice, "failed"),
    }
    assert found[invoice].kopecks == 0


async def test_operation_that_nobody_made_is_unknown(app: App) -> None:
    bank = app.ports.banks.named("bank")
    assert isinstance(bank, ReportingBank)
    uuid = "0198c3f2-7d1a-7e4b-9f60-000000000001"
    names = {
        *("", "x", "\0", "pay_", "#2", "#", "/", ":", "sus_", "sus_#2", "é", "x" * 5000),
        *(f"{prefix}{uuid}" for prefix in ("pay_", "ref_", "exch_", "inv_", "bnd_", "sus_")),
        *(f"exch_{uuid}/{number}" for number in ("0", "1", "99999999999", "x")),
        *(f"exch_{uuid}:t#{number}" for number in ("0", "1", "99999999999999999999999", "x")),
    }
    assert await known(app.ports, await scope_of(app.ports, bank, ""), names) == {}

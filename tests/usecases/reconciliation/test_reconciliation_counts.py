"""Our operations that a bank's list of a period must contain (docs/reconciliation.md "What is compared")."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.terminals import TerminalWish
from cambist.core.domain.days import moscow_day
from cambist.core.domain.exchanges.exchanges import Exchange
from cambist.core.domain.exchanges.funds import ExchangeTransfer
from cambist.core.domain.exchanges.payouts import PartStatus
from cambist.core.domain.exchanges.returns import MoneyReturn
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.payments.suspense import RETURN_FAILED, RETURN_REVERSED, Suspense
from cambist.core.domain.reconciliation.comparing import Counted
from cambist.core.domain.reconciliation.reconciliation import ReconciliationStatus
from cambist.core.domain.refunds.refunds import WAITS_FOR_MONEY, Refund
from cambist.core.domain.refunds.suspense_returns import return_operation
from cambist.core.usecases.accounts.shops import create_shop
from cambist.core.usecases.accounts.terminals import create_terminal
from cambist.core.usecases.payments.recurring import binding_operation
from cambist.core.usecases.reconciliation.counted import counted_between, known, others_between
from cambist.core.usecases.reconciliation.payments import payments_between
from cambist.core.usecases.reconciliation.scope import Scope, scope_of
from cambist.ports.reporting import ReportedState, ReportingBank
from tests.invariants import everything
from tests.planting import beneath
from tests.reconciliation_kit import (
    KINDS,
    at_noon,
    compared,
    paid,
    with_binding,
    with_exchange_of_usdt,
    with_money_sent_back,
    with_payment_and_refund,
    with_two_exchanges_of_rub,
)
from tests.restored import App, World

S = ReconciliationStatus
MOMENT = timedelta(microseconds=1)


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    world = World("memory", tmp_path)
    async with world.opened() as opened:
        yield opened


async def scope(app: App, owner: str = "", *, at: str = "bank") -> Scope:
    bank = app.ports.banks.named(at)
    assert isinstance(bank, ReportingBank)
    return await scope_of(app.ports, bank, owner)


async def read(app: App, begin: datetime, end: datetime, owner: str = "") -> list[Counted]:
    """All of ours of this time."""
    whose = await scope(app, owner)
    found = [
        *[each async for each in payments_between(app.ports, whose, begin, end)],
        *[each async for each in others_between(app.ports, whose, begin, end)],
    ]
    assert all(begin <= each.began < end for each in found)
    assert len({each.operation for each in found}) == len(found)
    return found


async def plant(app: App, row: Any, **fields: Any) -> None:
    """Let it stand so."""
    async with beneath(app.ports).unit() as unit:
        present: Any = await unit[type(row)].get(row.id)
        unit[type(row)].save(msgspec.structs.replace(present, **fields))
        await unit.commit()


async def test_stretch_includes_its_first_moment_and_excludes_its_end(app: App) -> None:
    begin, end = moscow_day(await at_noon(app))
    for make in KINDS:
        await make(app)
    [made] = [each for each in await everything(app.ports, Exchange) if each.takes_usdt]
    await with_exchange_of_usdt(app)
    going = msgspec.structs.replace(made.parts[0], status=PartStatus.SENT)
    await plant(app, made, parts=(going, *made.parts[1:]))
    all_of_it = await read(app, begin, end)
    open_ones = {each.operation for each in all_of_it if not each.is_counted}
    assert open_ones == {going.operation}
    scope_of_all = await scope(app)
    for moment in {each.began for each in all_of_it}:
        before = {each.operation for each in all_of_it if each.began < moment}
        since = {each.operation for each in all_of_it} - before
        assert {each.operation for each in await read(app, begin, moment)} == before
        assert {each.operation for each in await read(app, moment, end)} == since
        assert await counted_between(app.ports, scope_of_all, begin, moment) == len(before - open_ones)
        assert await counted_between(app.ports, scope_of_all, moment, end) == len(since - open_ones)


@pytest.mark.parametrize("of_one_moment", [1, 2, 3, 5])
async def test_all_are_read_however_many_began_at_one_moment(
    app: App, monkeypatch: pytest.MonkeyPatch, of_one_moment: int
) -> None:
    """They are read some at a time."""
    monkeypatch.setattr("cambist.core.usecases.reconciliation.scope._BATCH", 2)
    begin, end = moscow_day(await at_noon(app))
    waits = [1.0, *(0.0 for _ in range(of_one_moment - 1)), 1.0, 1.0]
    payments = [await paid(app, waits=each) for each in waits]
    assert len({each.created_at for each in payments}) == 3
    assert {each.object_id for each in await read(app, begin, end)} == {each.id for each in payments}


async def test_each_return_belongs_to_its_own_time(app: App) -> None:
    begin, end = moscow_day(await at_noon(app))
    await with_two_exchanges_of_rub(app)
    first, second = await everything(app.ports, ExchangeTransfer)
    assert first.resolved_at < second.resolved_at
    await plant(app, first, sent_back=msgspec.structs.replace(first.sent_back, sent_at=begin - MOMENT))
    decided = msgspec.structs.replace(second.sent_back, created_at=begin - MOMENT)
    await plant(app, second, sent_back=decided)
    found = {each.object_id for each in await read(app, begin, end)}
    assert first.id not in found
    assert second.id in found


async def test_payout_belongs_to_its_day_even_a_week_after_its_exchange(app: App) -> None:
    begin, end = moscow_day(await at_noon(app))
    [exchange_id] = await with_exchange_of_usdt(app)
    [exchange] = await everything(app.ports, Exchange)
    await plant(app, exchange, created_at=begin - timedelta(days=7))
    assert {each.object_id for each in await read(app, begin, end)} == {exchange_id}
    assert await read(app, begin - timedelta(days=8), begin) == []


async def test_refund_belongs_to_its_day_even_after_a_month_of_approval(app: App) -> None:
    begin, end = moscow_day(await at_noon(app))
    await with_payment_and_refund(app)
    [refund] = await everything(app.ports, Refund)
    await plant(app, refund, created_at=begin - WAITS_FOR_MONEY - timedelta(days=31))
    assert refund.id in {each.object_id for each in await read(app, begin, end)}
    assert await read(app, begin - timedelta(days=90), begin) == []


async def test_usdt_that_go_back_are_none_of_a_bank(app: App) -> None:
    """The wallet sends them, so a bank that lists such an operation lists a foreign one."""
    await at_noon(app)
    await with_exchange_of_usdt(app)
    [transfer] = await everything(app.ports, ExchangeTransfer)
    operation = f"{transfer.id}#1"
    back = MoneyReturn(operation=operation, number=1, amount=transfer.amount, created_at=transfer.received_at)
    await plant(app, transfer, sent_back=back)
    assert await known(app.ports, await scope(app), {operation}) == {}


async def test_operations_of_one_bank_are_unknown_at_another(app: App) -> None:
    begin, end = moscow_day(await at_noon(app))
    for make in KINDS:
        await make(app)
    operations = {each.operation for each in await read(app, begin, end)}
    assert set(await known(app.ports, await scope(app), operations)) == operations
    assert await known(app.ports, await scope(app, at="other"), operations) == {}


async def test_an_attempt_to_send_money_back_that_was_never_made_is_not_known(app: App) -> None:
    await at_noon(app)
    await with_money_sent_back(app)
    [money] = await everything(app.ports, Suspense)
    first, second = (return_operation(money, number) for number in (1, 2))
    assert set(await known(app.ports, await scope(app), {first, second})) == {first}


@pytest.mark.parametrize(
    ("fields", "first", "second"),
    [
        ({"resolved_at": None, "sending_since": None, "operation": None}, "failed", None),
        ({"resolved_at": None}, "open", None),
        ({}, "done", None),
        ({"resolved_at": None, "reason": RETURN_FAILED}, "failed", None),
        ({"resolved_at": None, "reason": RETURN_REVERSED}, "undone", None),
        ({"resolved_at": None, "sending_since": None, "operation": None, "attempt": 2}, "undone", "failed"),
        ({"resolved_at": None, "operation": None, "attempt": 2}, "undone", "open"),
        ({"operation": None, "attempt": 2}, "undone", "done"),
    ],
)
async def test_money_that_goes_back_stands_as_its_attempt_does(
    app: App, fields: dict[str, Any], first: str, second: str | None
) -> None:
    await at_noon(app)
    await with_money_sent_back(app)
    [money] = await everything(app.ports, Suspense)
    await plant(app, money, **fields)
    names = [return_operation(money, number) for number in (1, 2, 3)]
    found = await known(app.ports, await scope(app), names)
    expected = {names[0]: first} | ({} if second is None else {names[1]: second})
    assert {name: each.standing.value for name, each in found.items()} == expected
    assert {each.began for each in found.values()} == {
        money.received_at if fields.get("sending_since", True) is None else money.sending_since
    }


@pytest.mark.parametrize("is_both", [False, True])
async def test_failed_refund_at_the_bank_differs_unless_already_contradicted(app: App, is_both: bool) -> None:
    day = await at_noon(app)
    await with_payment_and_refund(app)
    [refund] = await everything(app.ports, Refund)
    await plant(app, refund, contradicted_at=refund.completed_at if is_both else None)
    app.world.script.entries.turned[refund.id] = lambda each: msgspec.structs.replace(each, state=ReportedState.FAILED)
    assert await compared(app, day) is (S.AGREED if is_both else S.DIFFERENT)


async def test_binding_without_money_is_missing_only_if_money_came_for_it(app: App) -> None:
    day = await at_noon(app)
    await with_binding(app, "none")
    [payment] = await everything(app.ports, Payment)
    app.world.script.entries.omitted.add(binding_operation(payment.id))
    assert await compared(app, day) is S.AGREED
    await plant(app, payment, transfer_id="t-1", actual_amount=payment.amount)
    assert await compared(app, day) is S.DIFFERENT


async def test_operations_by_a_merchants_credentials_are_in_its_list_alone(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Payouts go by the installation's."""
    begin, end = moscow_day(await at_noon(app))
    made = set[str]()
    for make in KINDS:
        made |= await make(app)
    [payout] = [each.id for each in await everything(app.ports, Exchange) if each.takes_usdt]
    merchant = app.world.account_id
    monkeypatch.setattr(app.world.bank, "owner_of", lambda _: merchant)
    assert {each.object_id for each in await read(app, begin, end)} == {payout}
    found = await read(app, begin, end, merchant)
    assert {each.object_id for each in found} == made - {payout}
    assert {each.owner for each in found} == {merchant}


@pytest.mark.parametrize("of", ["account", "shop", "terminal"])
async def test_account_shop_and_terminal_credentials_belong_to_the_merchant(app: App, of: str) -> None:
    merchant = app.world.account_id
    shop = await create_shop(app.ports, merchant, "Shop")
    terminal = await create_terminal(app.ports, merchant, TerminalWish(label="Terminal"))
    owner = {"account": merchant, "shop": shop.id, "terminal": terminal.id}[of]
    whose = await scope(app, owner)
    assert (whose.owner, whose.account_id) == (owner, merchant)


@pytest.mark.parametrize("owner", ["", "acc_0198c3f2-7d1a-7e4b-9f60-000000000001", "\0"])
async def test_credentials_of_nobody_whom_we_know_are_of_no_merchant(app: App, owner: str) -> None:
    whose = await scope(app, owner)
    assert (whose.owner, whose.account_id) == (owner, None)

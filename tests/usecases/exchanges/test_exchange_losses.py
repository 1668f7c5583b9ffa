"""RUB that the payer's bank takes back once their exchange is over. If something was given for them, they are the
service's loss, booked as such and shown to operators; if they are in suspense, they leave it (docs/decisions.md
"Invoices and holds"). Each test compares the books with the objects at its end."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.errors import Refusal
from cambist.core.domain.ledger import BalanceType, EntryKind, JournalEntry
from cambist.core.usecases.exchanges.progress import poll_funds
from cambist.core.usecases.exchanges.returns import list_suspended, return_money
from cambist.core.usecases.operators.action_items import read_action_items
from cambist.core.usecases.sandbox.data import forget_test_data
from cambist.ports.bank import RefundState, RefundStatus
from cambist.ports.payouts import TransferState
from tests.exchange_app import ExchangeApp, conclude, open_exchange_app
from tests.invariants import everything

KOPECKS = 10_000_00
MONEY = (BalanceType.LOSSES_RUB, BalanceType.BANK, BalanceType.STOCK_RUB, BalanceType.SUSPENSE)


@pytest.fixture
async def app() -> AsyncIterator[ExchangeApp]:
    async with open_exchange_app(receiver=False) as opened:
        yield opened


async def completed(app: ExchangeApp) -> str:
    """An exchange whose client paid and has its USDT."""
    made = await app.bought()
    await app.pay(made.id)
    await app.app.work(400)
    assert await app.status(made.id) == "completed"
    return made.id


async def late(app: ExchangeApp) -> str:
    """Make an exchange paid after its end: its RUB wait in suspense."""
    made = await app.bought()
    await app.app.work(1000)
    await app.pay(made.id, KOPECKS, again=True)
    assert await app.balance_types(*MONEY) == [0, -KOPECKS, 0, KOPECKS]
    return made.id


async def lost(app: ExchangeApp) -> list[tuple[str, str]]:
    return [(need.object_id, need.text) for need in (await read_action_items(app.ports)).found if need.kind == "loss"]


async def test_rub_taken_back_after_usdt_went_is_the_services_loss(app: ExchangeApp) -> None:
    exchange_id = await completed(app)
    [available] = await app.balance_types(BalanceType.AVAILABLE)
    await app.pay(exchange_id, taken_back=True)
    assert await app.balance_types(*MONEY) == [-KOPECKS, 0, KOPECKS, 0]
    assert await app.balance_types(BalanceType.AVAILABLE) == [available]
    assert await app.status(exchange_id) == "completed"
    assert await lost(app) == [(exchange_id, "10000.00 RUB were taken back once the exchange was over: a loss")]


async def test_loss_is_booked_once_however_often_it_is_reported(app: ExchangeApp) -> None:
    exchange_id = await completed(app)
    for _ in range(3):
        await app.pay(exchange_id, taken_back=True)
    await app.app.work(7 * 3600)
    entries = [
        each for each in await everything(app.ports, JournalEntry) if BalanceType.LOSSES_RUB in str(each.postings)
    ]
    assert [each.kind for each in entries] == [EntryKind.EXCHANGE_TAKEN_BACK]
    assert len(await lost(app)) == 1


async def test_unreported_loss_is_found_by_a_poll(app: ExchangeApp) -> None:
    exchange_id = await completed(app)
    await app.pay(exchange_id, taken_back=True, silent=True)
    assert await app.balance_types(*MONEY) == [0, -KOPECKS, KOPECKS, 0]
    await app.app.work(3600)
    assert await app.balance_types(*MONEY) == [-KOPECKS, 0, KOPECKS, 0]


@pytest.mark.parametrize("end", [TransferState.FINAL, TransferState.FAILED])
async def test_loss_is_not_decided_while_usdt_are_on_their_way(app: ExchangeApp, end: TransferState) -> None:
    """A transfer may still fail and be signed anew, so only its end shows whether USDT were paid for the RUB."""
    made = await app.bought()
    await app.pay(made.id)
    await app.app.clock.advance(301)
    assert await app.look(made.id) == "usdt_sending"
    await app.pay(made.id, taken_back=True)
    assert await app.balance_types(BalanceType.EXCHANGING_RUB, BalanceType.LOSSES_RUB) == [KOPECKS, 0]
    exchange = await app.exchange(made.id)
    await app.sender.simulate(exchange.tx_hash or "", end)
    await app.app.work(8 * 3600)
    assert await app.status(made.id) == "completed"
    assert await app.balance_types(BalanceType.EXCHANGING_RUB, *MONEY) == [0, -KOPECKS, 0, KOPECKS, 0]


async def test_rub_taken_back_while_usdt_took_hours_is_found_after_the_end(app: ExchangeApp) -> None:
    """The RUB were taken back after the polls for late money had ended."""
    made = await app.bought()
    await app.pay(made.id)
    app.sender.script.sign.extend([Twist(ending=Ending.UNAVAILABLE)] * 30)
    await app.app.work(9 * 3600)
    await app.pay(made.id, taken_back=True, silent=True)
    app.sender.script.sign.clear()
    await app.app.work(2 * 3600)
    assert await app.status(made.id) == "completed"
    assert await app.balance_types(*MONEY) == [-KOPECKS, 0, KOPECKS, 0]


async def test_rub_taken_back_leaves_suspense_without_a_loss(app: ExchangeApp) -> None:
    exchange_id = await late(app)
    await app.pay(exchange_id, taken_back=True)
    assert await app.balance_types(*MONEY) == [0, 0, 0, 0]
    assert await list_suspended(app.ports) == []
    assert await lost(app) == []


async def test_rub_taken_back_after_our_return_is_lost(app: ExchangeApp) -> None:
    exchange_id = await late(app)
    await return_money(app.ports, exchange_id)
    await app.app.work(60)
    assert await app.balance_types(*MONEY) == [0, 0, 0, 0]
    await app.pay(exchange_id, taken_back=True)
    assert await app.balance_types(*MONEY) == [-KOPECKS, KOPECKS, 0, 0]
    assert len(await lost(app)) == 1


@pytest.mark.parametrize("hours", [0, 12])
@pytest.mark.parametrize("end", [RefundStatus.DONE, RefundStatus.FAILED])
async def test_a_return_under_way_ends_first(app: ExchangeApp, end: RefundStatus, hours: int) -> None:
    """This includes a return that begins when the exchange is no longer polled."""
    exchange_id = await late(app)
    await app.app.work(hours * 3600)
    [transfer] = await return_money(app.ports, exchange_id)
    assert transfer.sent_back is not None
    operation = transfer.sent_back.operation
    await app.run_due()
    await app.bank().simulate_refund(operation, RefundStatus.PROCESSING)
    await app.pay(exchange_id, taken_back=True)
    assert await app.balance_types(BalanceType.LOSSES_RUB, BalanceType.SUSPENSE) == [0, KOPECKS]
    await app.bank().simulate_refund(operation, end)
    await app.app.work(6 * 3600)
    back = KOPECKS if end is RefundStatus.DONE else 0
    assert await app.balance_types(*MONEY) == [-back, back, 0, 0]


async def test_late_return_of_rub_taken_back_is_a_loss_until_it_is_reversed(app: ExchangeApp) -> None:
    """The bank refuses a return, the payer's bank takes the money, and then the return is executed nevertheless."""
    exchange_id = await late(app)
    [transfer] = await return_money(app.ports, exchange_id)
    assert transfer.sent_back is not None
    operation = transfer.sent_back.operation
    await app.run_due()
    await app.bank().simulate_refund(operation, RefundStatus.FAILED)
    await app.app.work(6 * 3600)
    await app.pay(exchange_id, taken_back=True)
    assert await app.balance_types(*MONEY) == [0, 0, 0, 0]
    await conclude(app.ports, transfer.id, operation, RefundState(status=RefundStatus.DONE))
    assert await app.balance_types(*MONEY) == [-KOPECKS, KOPECKS, 0, 0]
    assert len(await lost(app)) == 1
    await conclude(app.ports, transfer.id, operation, RefundState(status=RefundStatus.REVERSED))
    assert await app.balance_types(*MONEY) == [0, 0, 0, 0]
    with pytest.raises(Refusal, match="This exchange has no money to send back"):
        await return_money(app.ports, exchange_id)


async def test_forgotten_test_data_leave_no_loss(app: ExchangeApp) -> None:
    await app.pay(await completed(app), taken_back=True)
    await forget_test_data(app.ports, await app.caller())
    assert await app.balance_types(*MONEY, BalanceType.AVAILABLE) == [0, 0, 0, 0, 0]
    assert await lost(app) == []


async def test_simultaneous_polls_book_a_loss_once(url: str, tmp_path: Path) -> None:
    async with open_exchange_app(database_url=url, data_dir=tmp_path) as app:
        exchange_id = await completed(app)
        await app.pay(exchange_id, taken_back=True, silent=True)
        exchange = await app.exchange(exchange_id)
        await asyncio.gather(*(poll_funds(app.ports, exchange) for _ in range(10)))
        assert await app.balance_types(*MONEY) == [-KOPECKS, 0, KOPECKS, 0]

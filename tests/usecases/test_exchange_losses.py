"""RUB that the payer's bank takes back once their exchange is over. If something was given for them, they are the
service's loss, booked as such and shown to operators; if they are in suspense, they leave it (docs/decisions.md
"Invoices and holds"). Each test compares the books with the objects at its end."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.errors import Refusal
from cambist.core.domain.ledger import EntryKind, JournalEntry, Purse
from cambist.core.usecases.exchanges.progress import look_at_funds
from cambist.core.usecases.exchanges.returns import list_suspended, return_money
from cambist.core.usecases.operators.action_items import read_action_items
from cambist.core.usecases.sandbox.data import forget_test_data
from cambist.ports.bank import RefundState, RefundStatus
from cambist.ports.payouts import TransferState
from tests.exchange_house import ExchangeHouse, conclude, open_exchange_house
from tests.invariants import everything

KOPECKS = 10_000_00
MONEY = (Purse.LOSSES_RUB, Purse.BANK, Purse.STOCK_RUB, Purse.SUSPENSE)


@pytest.fixture
async def house() -> AsyncIterator[ExchangeHouse]:
    async with open_exchange_house(receiver=False) as opened:
        yield opened


async def completed(house: ExchangeHouse) -> str:
    """An exchange whose client paid and has its USDT."""
    made = await house.bought()
    await house.pay(made.id)
    await house.house.work(400)
    assert await house.status(made.id) == "completed"
    return made.id


async def late(house: ExchangeHouse) -> str:
    """Make an exchange paid after its end: its RUB wait in suspense."""
    made = await house.bought()
    await house.house.work(1000)
    await house.pay(made.id, KOPECKS, again=True)
    assert await house.purses(*MONEY) == [0, -KOPECKS, 0, KOPECKS]
    return made.id


async def lost(house: ExchangeHouse) -> list[tuple[str, str]]:
    return [(need.object_id, need.text) for need in (await read_action_items(house.ports)).found if need.kind == "loss"]


async def test_what_usdt_went_for_is_the_services_loss_and_no_merchants(house: ExchangeHouse) -> None:
    exchange_id = await completed(house)
    [available] = await house.purses(Purse.AVAILABLE)
    await house.pay(exchange_id, taken_back=True)
    assert await house.purses(*MONEY) == [-KOPECKS, 0, KOPECKS, 0]
    assert await house.purses(Purse.AVAILABLE) == [available]
    assert await house.status(exchange_id) == "completed"
    assert await lost(house) == [(exchange_id, "10000.00 RUB were taken back once the exchange was over: a loss")]


async def test_it_is_booked_once_however_often_it_is_told(house: ExchangeHouse) -> None:
    exchange_id = await completed(house)
    for _ in range(3):
        await house.pay(exchange_id, taken_back=True)
    await house.house.work(7 * 3600)
    entries = [each for each in await everything(house.ports, JournalEntry) if Purse.LOSSES_RUB in str(each.postings)]
    assert [each.kind for each in entries] == [EntryKind.EXCHANGE_TAKEN_BACK]
    assert len(await lost(house)) == 1


async def test_a_loss_of_which_nobody_told_is_found_by_looking(house: ExchangeHouse) -> None:
    exchange_id = await completed(house)
    await house.pay(exchange_id, taken_back=True, silent=True)
    assert await house.purses(*MONEY) == [0, -KOPECKS, KOPECKS, 0]
    await house.house.work(3600)
    assert await house.purses(*MONEY) == [-KOPECKS, 0, KOPECKS, 0]


@pytest.mark.parametrize("end", [TransferState.FINAL, TransferState.FAILED])
async def test_while_usdt_are_on_their_way_nothing_is_decided(house: ExchangeHouse, end: TransferState) -> None:
    """A transfer may still fail, and is then signed anew: only the end tells whether anything was given for the RUB."""
    made = await house.bought()
    await house.pay(made.id)
    await house.house.clock.advance(301)
    assert await house.look(made.id) == "usdt_sending"
    await house.pay(made.id, taken_back=True)
    assert await house.purses(Purse.EXCHANGING_RUB, Purse.LOSSES_RUB) == [KOPECKS, 0]
    exchange = await house.exchange(made.id)
    await house.sender.pretend(exchange.tx_hash or "", end)
    await house.house.work(8 * 3600)
    assert await house.status(made.id) == "completed"
    assert await house.purses(Purse.EXCHANGING_RUB, *MONEY) == [0, -KOPECKS, 0, KOPECKS, 0]


async def test_what_was_taken_back_while_the_usdt_took_hours_is_found_after_the_end(house: ExchangeHouse) -> None:
    """When it is no more looked for late money."""
    made = await house.bought()
    await house.pay(made.id)
    house.sender.script.sign.extend([Twist(ending=Ending.UNAVAILABLE)] * 30)
    await house.house.work(9 * 3600)
    await house.pay(made.id, taken_back=True, silent=True)
    house.sender.script.sign.clear()
    await house.house.work(2 * 3600)
    assert await house.status(made.id) == "completed"
    assert await house.purses(*MONEY) == [-KOPECKS, 0, KOPECKS, 0]


async def test_what_waits_in_suspense_waits_no_more(house: ExchangeHouse) -> None:
    exchange_id = await late(house)
    await house.pay(exchange_id, taken_back=True)
    assert await house.purses(*MONEY) == [0, 0, 0, 0]
    assert await list_suspended(house.ports) == []
    assert await lost(house) == []


async def test_what_we_had_sent_back_already_is_lost(house: ExchangeHouse) -> None:
    exchange_id = await late(house)
    await return_money(house.ports, exchange_id)
    await house.house.work(60)
    assert await house.purses(*MONEY) == [0, 0, 0, 0]
    await house.pay(exchange_id, taken_back=True)
    assert await house.purses(*MONEY) == [-KOPECKS, KOPECKS, 0, 0]
    assert len(await lost(house)) == 1


@pytest.mark.parametrize("hours", [0, 12])
@pytest.mark.parametrize("end", [RefundStatus.DONE, RefundStatus.FAILED])
async def test_a_return_under_way_ends_first(house: ExchangeHouse, end: RefundStatus, hours: int) -> None:
    """This includes a return that begins when the exchange is no longer polled."""
    exchange_id = await late(house)
    await house.house.work(hours * 3600)
    [transfer] = await return_money(house.ports, exchange_id)
    assert transfer.sent_back is not None
    operation = transfer.sent_back.operation
    await house.run_due()
    await house.bank().pretend_refund(operation, RefundStatus.PROCESSING)
    await house.pay(exchange_id, taken_back=True)
    assert await house.purses(Purse.LOSSES_RUB, Purse.SUSPENSE) == [0, KOPECKS]
    await house.bank().pretend_refund(operation, end)
    await house.house.work(6 * 3600)
    back = KOPECKS if end is RefundStatus.DONE else 0
    assert await house.purses(*MONEY) == [-back, back, 0, 0]


async def test_what_goes_back_after_all_is_lost_too_until_it_comes_again(house: ExchangeHouse) -> None:
    """The bank refuses a return, the payer's bank takes the money, and then the return goes through all the same."""
    exchange_id = await late(house)
    [transfer] = await return_money(house.ports, exchange_id)
    assert transfer.sent_back is not None
    operation = transfer.sent_back.operation
    await house.run_due()
    await house.bank().pretend_refund(operation, RefundStatus.FAILED)
    await house.house.work(6 * 3600)
    await house.pay(exchange_id, taken_back=True)
    assert await house.purses(*MONEY) == [0, 0, 0, 0]
    await conclude(house.ports, transfer.id, operation, RefundState(status=RefundStatus.DONE))
    assert await house.purses(*MONEY) == [-KOPECKS, KOPECKS, 0, 0]
    assert len(await lost(house)) == 1
    await conclude(house.ports, transfer.id, operation, RefundState(status=RefundStatus.REVERSED))
    assert await house.purses(*MONEY) == [0, 0, 0, 0]
    with pytest.raises(Refusal, match="Nothing of this exchange waits"):
        await return_money(house.ports, exchange_id)


async def test_forgotten_test_data_leave_no_loss(house: ExchangeHouse) -> None:
    await house.pay(await completed(house), taken_back=True)
    await forget_test_data(house.ports, await house.caller())
    assert await house.purses(*MONEY, Purse.AVAILABLE) == [0, 0, 0, 0, 0]
    assert await lost(house) == []


async def test_of_many_looks_at_once_one_books_it(url: str, tmp_path: Path) -> None:
    async with open_exchange_house(database_url=url, data_dir=tmp_path) as house:
        exchange_id = await completed(house)
        await house.pay(exchange_id, taken_back=True, silent=True)
        exchange = await house.exchange(exchange_id)
        await asyncio.gather(*(look_at_funds(house.ports, exchange) for _ in range(10)))
        assert await house.purses(*MONEY) == [-KOPECKS, 0, KOPECKS, 0]

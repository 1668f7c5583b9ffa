"""Progress of an exchange: deposits, the end of its time, and the payout in its three outcomes (docs/exchanges.md "How
it ends", "Rules"; ARCHITECTURE.md "Three ends")."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.exchanges.payouts import part_operation
from cambist.core.domain.ledger import Purse
from cambist.core.domain.money import Usdt
from cambist.core.usecases.exchanges.steps import WATCH_EXCHANGE
from cambist.core.usecases.sealed import tag_exchange
from cambist.ports.bank_routes import BankRoutes
from cambist.ports.jobs import Job
from cambist.ports.remittances import RemittanceStatus
from tests.exchange_house import EARNED_100, RUB_100, ExchangeHouse, open_exchange_house
from tests.invariants import everything

R = RemittanceStatus
BIG = "10000"
"""USDT whose RUB are above the simulated bank's cap: 906 500 in two parts."""


@pytest.fixture
async def house() -> AsyncIterator[ExchangeHouse]:
    """At its end the books are held against the objects."""
    async with open_exchange_house() as opened:
        yield opened


async def test_usdt_come_rub_go_and_the_remainder_is_the_merchants(house: ExchangeHouse) -> None:
    made = await house.made()
    await house.send(made.id)
    await house.house.work(15)
    exchange = await house.exchange(made.id)
    assert (exchange.status, exchange.completed_at is not None) == ("completed", True)
    assert await house.remitted() == {part_operation(made.id, 1): RUB_100}
    assert await house.purses(Purse.AVAILABLE, Purse.STOCK_RUB, Purse.SUSPENSE_USDT) == [EARNED_100, -RUB_100, 0]


async def test_events_come_at_final_statuses_only(house: ExchangeHouse) -> None:
    made = await house.made()
    await house.send(made.id, "60")
    assert await house.look(made.id) == "partial"
    await house.send(made.id, "40")
    assert await house.look(made.id) == "rub_sending"
    assert await house.house.events(made.id) == []
    shown = await house.shown(made.id)
    assert (shown["amount_usdt_received"], shown["completed_at"]) == (None, None)
    await house.house.work(15)
    [event] = await house.house.events(made.id)
    assert (event["status"], event["previous_status"]) == ("completed", "rub_sending")
    assert event["amount_usdt_received"] == (await house.shown(made.id))["amount_usdt_received"] == "100.00000000"


@pytest.mark.parametrize(
    ("sent", "suspended", "rounded"),
    [
        (["100"], 0, 0),
        (["0.000001", "99.999999"], 0, 0),
        (["60", "50"], 10_00000000, 0),
        (["100.5"], 50000000, 0),
        (["100.00000099"], 0, 99),
    ],
)
async def test_several_deposits_add_up_and_what_is_more_is_suspense(
    house: ExchangeHouse, sent: list[str], suspended: int, rounded: int
) -> None:
    """Pay what was quoted, book the rest to suspense (docs/exchanges.md "Rules")."""
    made = await house.made()
    for amount in sent:
        await house.send(made.id, amount)
    await house.house.work(15)
    assert await house.status(made.id) == "completed"
    assert await house.remitted() == {part_operation(made.id, 1): RUB_100}
    assert await house.purses(Purse.SUSPENSE_USDT) == [suspended]
    assert sum(transfer.rounded for transfer in await house.transfers()) == rounded
    received = sum(Usdt.parse(amount).units for amount in sent)
    assert (await house.exchange(made.id)).amount_usdt_received == Usdt(received)


async def test_a_fake_token_is_nothing(house: ExchangeHouse) -> None:
    made = await house.made()
    await house.send(made.id, genuine=False)
    await house.house.work(900)
    assert await house.status(made.id) == "expired"
    assert await house.transfers() == []


async def test_what_may_be_taken_back_counts_for_nothing_yet(house: ExchangeHouse) -> None:
    made = await house.made()
    address = made.crypto_deposit_address or ""
    tx_hash = await house.send(made.id, final=False)
    assert await house.look(made.id) == "awaiting_usdt"
    await house.watcher.pretend_drop(address, tx_hash)
    await house.house.work(120)
    assert await house.status(made.id) == "awaiting_usdt"
    await house.watcher.pretend_deposit(address, 100_00000000, tx_hash=tx_hash)
    await house.house.work(15)
    assert await house.status(made.id) == "completed"


async def test_usdt_sent_in_time_and_final_after_the_end_are_exchanged(house: ExchangeHouse) -> None:
    """The client did its part: a transfer takes a minute to become final."""
    made = await house.made()
    await house.house.work(890)
    await house.send(made.id, final=False)
    await house.house.work(30)
    assert await house.status(made.id) == "awaiting_usdt"
    await house.house.work(120)
    assert await house.said(made.id) == ["completed"]


async def test_usdt_whose_block_is_taken_back_for_good_let_the_exchange_expire(house: ExchangeHouse) -> None:
    made = await house.made()
    await house.house.work(890)
    tx_hash = await house.send(made.id, final=False)
    await house.house.work(30)
    await house.watcher.pretend_drop((await house.exchange(made.id)).crypto_deposit_address or "", tx_hash)
    await house.house.work(90)
    assert await house.said(made.id) == ["expired"]


async def test_deposits_told_twice_and_in_another_order_count_once(house: ExchangeHouse) -> None:
    made = await house.made()
    await house.send(made.id, "30")
    await house.send(made.id, "20")
    house.watcher.script.deposits.extend([Twist(doubled=True)] * 3)
    for _ in range(3):
        assert await house.look(made.id) == "partial"
    assert [each.amount for each in await house.transfers()] in ([30_00000000, 20_00000000], [20_00000000, 30_00000000])
    assert await house.purses(Purse.EXCHANGING_USDT) == [50_00000000]


@pytest.mark.parametrize("sent", [None, "99.999999"])
async def test_after_15_minutes_what_is_not_complete_expires(house: ExchangeHouse, sent: str | None) -> None:
    made = await house.made()
    if sent is not None:
        await house.send(made.id, sent)
    await house.house.work(899)
    assert await house.status(made.id) == ("awaiting_usdt" if sent is None else "partial")
    await house.house.work(1)
    assert await house.status(made.id) == "expired"
    [event] = await house.house.events(made.id)
    came = Usdt.parse(sent or "0")
    assert (event["status"], event["amount_usdt_received"]) == ("expired", str(came))
    assert await house.purses(Purse.SUSPENSE_USDT, Purse.EXCHANGING_USDT) == [came.units, 0]


async def test_only_what_was_seen_may_expire_an_exchange(house: ExchangeHouse) -> None:
    """USDT that came in time while the node was away are exchanged."""
    made = await house.made()
    await house.house.work(880)
    await house.send(made.id)
    house.watcher.script.deposits.extend([Twist(ending=Ending.UNAVAILABLE)] * 4)
    await house.house.work(60)
    assert await house.status(made.id) == "awaiting_usdt"
    await house.house.work(300)
    assert await house.status(made.id) == "completed"


async def test_usdt_after_the_end_are_suspense_and_move_nothing(house: ExchangeHouse) -> None:
    made = await house.made()
    await house.house.work(900)
    await house.send(made.id)
    await house.house.work(600)
    assert await house.status(made.id) == "expired"
    [transfer] = await house.transfers()
    assert (transfer.suspended, transfer.reason) == (100_00000000, "after_expired")
    assert await house.said(made.id) == ["expired"]
    assert (await house.shown(made.id))["amount_usdt_received"] == "0.00000000"


async def test_the_watch_ends_some_hours_after_the_exchange(house: ExchangeHouse) -> None:
    made = await house.made()
    await house.house.work(900)
    jobs = [job.id for job in await everything(house.ports, Job)]
    assert WATCH_EXCHANGE.id_of(made.id) in jobs
    await house.house.work(7 * 3600)
    jobs = [job.id for job in await everything(house.ports, Job)]
    assert WATCH_EXCHANGE.id_of(made.id) not in jobs


async def test_an_exchange_whose_maker_died_before_its_address_is_gone_on_with(house: ExchangeHouse) -> None:
    made = await house.made()
    async with house.ports.storage.unit() as unit:
        exchange = await house.exchange(made.id)
        pending = msgspec.structs.replace(exchange, status=type(exchange.status).PENDING, crypto_deposit_address=None)
        unit[type(exchange)].save(tag_exchange(house.ports.vault, pending))
        await unit.commit()
    house.watcher.script.address.append(Twist(ending=Ending.UNAVAILABLE))
    await house.house.work(25)
    exchange = await house.exchange(made.id)
    assert (exchange.status, exchange.crypto_deposit_address) == ("awaiting_usdt", made.crypto_deposit_address)


async def test_an_exchange_that_never_got_an_address_fails_in_time(house: ExchangeHouse) -> None:
    made = await house.made()
    async with house.ports.storage.unit() as unit:
        exchange = await house.exchange(made.id)
        pending = msgspec.structs.replace(exchange, status=type(exchange.status).PENDING, crypto_deposit_address=None)
        unit[type(exchange)].save(tag_exchange(house.ports.vault, pending))
        await unit.commit()
    house.watcher.script.address.extend([Twist(ending=Ending.UNAVAILABLE)] * 200)
    await house.house.work(961)
    assert await house.said(made.id) == ["failed"]


# --- the payout


async def sending(house: ExchangeHouse, amount: str = "100") -> str:
    """An exchange whose USDT came; its payout begins at the next look."""
    made = await house.made(amount)
    await house.send(made.id, amount)
    return made.id


async def test_above_the_cap_rub_go_in_parts_one_after_another(house: ExchangeHouse) -> None:
    exchange_id = await sending(house, BIG)
    assert await house.look(exchange_id) == "rub_sending"
    assert await house.remitted() == {part_operation(exchange_id, 1): 500_000_00}
    await house.house.work(30)
    assert await house.remitted() == {
        part_operation(exchange_id, 1): 500_000_00,
        part_operation(exchange_id, 2): 406_500_00,
    }
    assert await house.said(exchange_id) == ["completed"]


@pytest.mark.parametrize("ending", [Ending.UNKNOWN_DONE, Ending.UNKNOWN_NOT_DONE, Ending.UNAVAILABLE], ids=str)
@pytest.mark.parametrize("amount", ["100", BIG])
async def test_an_answer_that_is_lost_pays_nobody_twice(house: ExchangeHouse, ending: Ending, amount: str) -> None:
    """Outcome unknown stays `rub_sending` until known (docs/exchanges.md "Rules")."""
    exchange_id = await sending(house, amount)
    house.house.script.remit.extend([Twist(ending=ending)] * 3)
    house.house.script.find_remittance.extend([Twist(ending=Ending.UNAVAILABLE)] * 2)
    assert await house.look(exchange_id) == "rub_sending"
    await house.house.work(3)
    assert await house.status(exchange_id) == "rub_sending"
    await house.house.work(3 * 3600)
    assert await house.status(exchange_id) == "completed"
    paid = await house.remitted()
    assert sum(paid.values()) == (await house.exchange(exchange_id)).amount_rub.kopecks
    assert len(paid) == (1 if amount == "100" else 2)


async def test_a_payout_that_is_held_stays_until_the_bank_knows(house: ExchangeHouse) -> None:
    exchange_id = await sending(house)
    await house.look(exchange_id)
    await house.bank().pretend_remittance(part_operation(exchange_id, 1), R.PROCESSING)
    await house.house.work(24 * 3600)
    assert await house.status(exchange_id) == "rub_sending"
    assert await house.purses(Purse.REMITTING) == [RUB_100]
    await house.at_bank(part_operation(exchange_id, 1), R.DONE)
    assert await house.said(exchange_id) == ["completed"]


@pytest.mark.parametrize("how", ["at once", "later"])
async def test_a_payout_refused_for_good_fails_and_keeps_the_usdt_in_suspense(house: ExchangeHouse, how: str) -> None:
    exchange_id = await sending(house)
    if how == "at once":
        house.house.script.remit.append(Twist(ending=Ending.REFUSED, reason="recipient"))
        await house.look(exchange_id)
    else:
        await house.look(exchange_id)
        await house.at_bank(part_operation(exchange_id, 1), R.FAILED, "recipient")
    exchange = await house.exchange(exchange_id)
    assert (exchange.status, exchange.failure, exchange.active_slot) == ("failed", "recipient", None)
    assert await house.said(exchange_id) == ["failed"]
    wanted = (Purse.SUSPENSE_USDT, Purse.AVAILABLE, Purse.STOCK_RUB, Purse.REMITTING, Purse.EXCHANGING_USDT)
    assert await house.purses(*wanted) == [100_00000000, 0, 0, 0, 0]
    [transfer] = await house.transfers()
    assert (transfer.suspended, transfer.reason) == (100_00000000, "failed")


async def test_when_a_later_part_is_refused_only_what_was_not_paid_is_suspense(house: ExchangeHouse) -> None:
    exchange_id = await sending(house, BIG)
    await house.look(exchange_id)
    await house.at_bank(part_operation(exchange_id, 1), R.DONE)
    assert list(await house.remitted()) == [part_operation(exchange_id, 1)]
    await house.house.work()
    await house.at_bank(part_operation(exchange_id, 2), R.FAILED)
    assert await house.said(exchange_id) == ["failed"]
    suspended, earned, paid = await house.purses(Purse.SUSPENSE_USDT, Purse.AVAILABLE, Purse.STOCK_RUB)
    assert paid == -500_000_00
    # 10 000 USDT less those of 500 000 of 906 500 RUB, rounded for the client.
    assert suspended == 10_000_00000000 - 10_000_00000000 * 500_000_00 // 906_500_00
    assert 0 < earned < EARNED_100 * 100


async def test_a_payout_waits_for_a_bank_that_is_wired(house: ExchangeHouse) -> None:
    exchange_id = await sending(house)
    whole = house.ports
    house.ports = house.house.ports = msgspec.structs.replace(whole, banks=BankRoutes(banks={}, order={}))
    await house.house.work(30)
    assert await house.status(exchange_id) == "usdt_received"
    house.ports = house.house.ports = whole
    await house.house.work(7200)
    assert await house.said(exchange_id) == ["completed"]


async def test_a_payout_that_was_sent_goes_no_other_way(house: ExchangeHouse) -> None:
    exchange_id = await sending(house)
    house.house.script.remit.append(Twist(ending=Ending.UNKNOWN_DONE))
    await house.look(exchange_id)
    whole = house.ports
    house.ports = house.house.ports = msgspec.structs.replace(
        whole, banks=BankRoutes(banks={"simulator-live": whole.banks.named("simulator-live")}, order=whole.banks.order)
    )
    await house.house.work(3600)
    assert await house.status(exchange_id) == "rub_sending"
    house.ports = house.house.ports = whole
    await house.house.work(3600)
    assert await house.remitted() == {part_operation(exchange_id, 1): RUB_100}
    assert await house.said(exchange_id) == ["completed"]

"""Progress of an exchange: deposits, the end of its time, and the payout in its three outcomes (docs/exchanges.md "How
it ends", "Rules"; ARCHITECTURE.md "Three outcomes")."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.exchanges.payouts import part_operation
from cambist.core.domain.ledger import BalanceType
from cambist.core.domain.money import Usdt
from cambist.core.usecases.common.encrypted import tag_exchange
from cambist.core.usecases.exchanges.steps import WATCH_EXCHANGE
from cambist.ports.bank_routes import BankRoutes
from cambist.ports.jobs import Job
from cambist.ports.remittances import RemittanceStatus
from tests.exchange_app import EARNED_100, RUB_100, ExchangeApp, open_exchange_app
from tests.invariants import everything

R = RemittanceStatus
BIG = "10000"
"""USDT whose RUB are above the simulated bank's cap: 906 500 in two parts."""


@pytest.fixture
async def app() -> AsyncIterator[ExchangeApp]:
    """Yield an app whose books are compared with the objects at the end."""
    async with open_exchange_app() as opened:
        yield opened


async def test_usdt_come_rub_go_and_the_remainder_is_the_merchants(app: ExchangeApp) -> None:
    made = await app.made()
    await app.send(made.id)
    await app.app.work(15)
    exchange = await app.exchange(made.id)
    assert (exchange.status, exchange.completed_at is not None) == ("completed", True)
    assert await app.remitted() == {part_operation(made.id, 1): RUB_100}
    assert await app.balance_types(BalanceType.AVAILABLE, BalanceType.STOCK_RUB, BalanceType.SUSPENSE_USDT) == [
        EARNED_100,
        -RUB_100,
        0,
    ]


async def test_events_come_at_final_statuses_only(app: ExchangeApp) -> None:
    made = await app.made()
    await app.send(made.id, "60")
    assert await app.look(made.id) == "partial"
    await app.send(made.id, "40")
    assert await app.look(made.id) == "rub_sending"
    assert await app.app.events(made.id) == []
    shown = await app.shown(made.id)
    assert (shown["amount_usdt_received"], shown["completed_at"]) == (None, None)
    await app.app.work(15)
    [event] = await app.app.events(made.id)
    assert (event["status"], event["previous_status"]) == ("completed", "rub_sending")
    assert event["amount_usdt_received"] == (await app.shown(made.id))["amount_usdt_received"] == "100.00000000"


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
    app: ExchangeApp, sent: list[str], suspended: int, rounded: int
) -> None:
    """Pay the quoted amount, and book the rest to suspense (docs/exchanges.md "Rules")."""
    made = await app.made()
    for amount in sent:
        await app.send(made.id, amount)
    await app.app.work(15)
    assert await app.status(made.id) == "completed"
    assert await app.remitted() == {part_operation(made.id, 1): RUB_100}
    assert await app.balance_types(BalanceType.SUSPENSE_USDT) == [suspended]
    assert sum(transfer.rounded for transfer in await app.transfers()) == rounded
    received = sum(Usdt.parse(amount).units for amount in sent)
    assert (await app.exchange(made.id)).amount_usdt_received == Usdt(received)


async def test_a_fake_token_is_nothing(app: ExchangeApp) -> None:
    made = await app.made()
    await app.send(made.id, genuine=False)
    await app.app.work(900)
    assert await app.status(made.id) == "expired"
    assert await app.transfers() == []


async def test_deposit_that_is_not_final_does_not_count(app: ExchangeApp) -> None:
    made = await app.made()
    address = made.crypto_deposit_address or ""
    tx_hash = await app.send(made.id, final=False)
    assert await app.look(made.id) == "awaiting_usdt"
    await app.watcher.simulate_drop(address, tx_hash)
    await app.app.work(120)
    assert await app.status(made.id) == "awaiting_usdt"
    await app.watcher.simulate_deposit(address, 100_00000000, tx_hash=tx_hash)
    await app.app.work(15)
    assert await app.status(made.id) == "completed"


async def test_usdt_sent_in_time_and_final_after_the_end_are_exchanged(app: ExchangeApp) -> None:
    """The client did its part: a transfer takes a minute to become final."""
    made = await app.made()
    await app.app.work(890)
    await app.send(made.id, final=False)
    await app.app.work(30)
    assert await app.status(made.id) == "awaiting_usdt"
    await app.app.work(120)
    assert await app.said(made.id) == ["completed"]


async def test_usdt_whose_block_is_taken_back_for_good_let_the_exchange_expire(app: ExchangeApp) -> None:
    made = await app.made()
    await app.app.work(890)
    tx_hash = await app.send(made.id, final=False)
    await app.app.work(30)
    await app.watcher.simulate_drop((await app.exchange(made.id)).crypto_deposit_address or "", tx_hash)
    await app.app.work(90)
    assert await app.said(made.id) == ["expired"]


async def test_deposits_reported_twice_and_in_another_order_count_once(app: ExchangeApp) -> None:
    made = await app.made()
    await app.send(made.id, "30")
    await app.send(made.id, "20")
    app.watcher.script.deposits.extend([Twist(doubled=True)] * 3)
    for _ in range(3):
        assert await app.look(made.id) == "partial"
    assert [each.amount for each in await app.transfers()] in ([30_00000000, 20_00000000], [20_00000000, 30_00000000])
    assert await app.balance_types(BalanceType.EXCHANGING_USDT) == [50_00000000]


@pytest.mark.parametrize("sent", [None, "99.999999"])
async def test_incomplete_exchange_expires_after_15_minutes(app: ExchangeApp, sent: str | None) -> None:
    made = await app.made()
    if sent is not None:
        await app.send(made.id, sent)
    await app.app.work(899)
    assert await app.status(made.id) == ("awaiting_usdt" if sent is None else "partial")
    await app.app.work(1)
    assert await app.status(made.id) == "expired"
    [event] = await app.app.events(made.id)
    came = Usdt.parse(sent or "0")
    assert (event["status"], event["amount_usdt_received"]) == ("expired", str(came))
    assert await app.balance_types(BalanceType.SUSPENSE_USDT, BalanceType.EXCHANGING_USDT) == [came.units, 0]


async def test_only_what_was_seen_may_expire_an_exchange(app: ExchangeApp) -> None:
    """USDT that came in time while the node was away are exchanged."""
    made = await app.made()
    await app.app.work(880)
    await app.send(made.id)
    app.watcher.script.deposits.extend([Twist(ending=Ending.UNAVAILABLE)] * 4)
    await app.app.work(60)
    assert await app.status(made.id) == "awaiting_usdt"
    await app.app.work(300)
    assert await app.status(made.id) == "completed"


async def test_usdt_after_the_end_are_suspense_and_move_nothing(app: ExchangeApp) -> None:
    made = await app.made()
    await app.app.work(900)
    await app.send(made.id)
    await app.app.work(600)
    assert await app.status(made.id) == "expired"
    [transfer] = await app.transfers()
    assert (transfer.suspended, transfer.reason) == (100_00000000, "after_expired")
    assert await app.said(made.id) == ["expired"]
    assert (await app.shown(made.id))["amount_usdt_received"] == "0.00000000"


async def test_the_watch_ends_some_hours_after_the_exchange(app: ExchangeApp) -> None:
    made = await app.made()
    await app.app.work(900)
    jobs = [job.id for job in await everything(app.ports, Job)]
    assert WATCH_EXCHANGE.id_of(made.id) in jobs
    await app.app.work(7 * 3600)
    jobs = [job.id for job in await everything(app.ports, Job)]
    assert WATCH_EXCHANGE.id_of(made.id) not in jobs


async def test_an_exchange_whose_maker_died_before_its_address_is_gone_on_with(app: ExchangeApp) -> None:
    made = await app.made()
    async with app.ports.storage.unit() as unit:
        exchange = await app.exchange(made.id)
        pending = msgspec.structs.replace(exchange, status=type(exchange.status).PENDING, crypto_deposit_address=None)
        unit[type(exchange)].save(tag_exchange(app.ports.vault, pending))
        await unit.commit()
    app.watcher.script.address.append(Twist(ending=Ending.UNAVAILABLE))
    await app.app.work(25)
    exchange = await app.exchange(made.id)
    assert (exchange.status, exchange.crypto_deposit_address) == ("awaiting_usdt", made.crypto_deposit_address)


async def test_an_exchange_that_never_got_an_address_fails_in_time(app: ExchangeApp) -> None:
    made = await app.made()
    async with app.ports.storage.unit() as unit:
        exchange = await app.exchange(made.id)
        pending = msgspec.structs.replace(exchange, status=type(exchange.status).PENDING, crypto_deposit_address=None)
        unit[type(exchange)].save(tag_exchange(app.ports.vault, pending))
        await unit.commit()
    app.watcher.script.address.extend([Twist(ending=Ending.UNAVAILABLE)] * 200)
    await app.app.work(961)
    assert await app.said(made.id) == ["failed"]


# --- the payout


async def sending(app: ExchangeApp, amount: str = "100") -> str:
    """Return an exchange whose USDT arrived; its payout begins at the next poll."""
    made = await app.made(amount)
    await app.send(made.id, amount)
    return made.id


async def test_above_the_cap_rub_go_in_parts_one_after_another(app: ExchangeApp) -> None:
    exchange_id = await sending(app, BIG)
    assert await app.look(exchange_id) == "rub_sending"
    assert await app.remitted() == {part_operation(exchange_id, 1): 500_000_00}
    await app.app.work(30)
    assert await app.remitted() == {
        part_operation(exchange_id, 1): 500_000_00,
        part_operation(exchange_id, 2): 406_500_00,
    }
    assert await app.said(exchange_id) == ["completed"]


@pytest.mark.parametrize("ending", [Ending.UNKNOWN_DONE, Ending.UNKNOWN_NOT_DONE, Ending.UNAVAILABLE], ids=str)
@pytest.mark.parametrize("amount", ["100", BIG])
async def test_an_answer_that_is_lost_pays_nobody_twice(app: ExchangeApp, ending: Ending, amount: str) -> None:
    """Outcome unknown stays `rub_sending` until known (docs/exchanges.md "Rules")."""
    exchange_id = await sending(app, amount)
    app.app.script.remit.extend([Twist(ending=ending)] * 3)
    app.app.script.find_remittance.extend([Twist(ending=Ending.UNAVAILABLE)] * 2)
    assert await app.look(exchange_id) == "rub_sending"
    await app.app.work(3)
    assert await app.status(exchange_id) == "rub_sending"
    await app.app.work(3 * 3600)
    assert await app.status(exchange_id) == "completed"
    paid = await app.remitted()
    assert sum(paid.values()) == (await app.exchange(exchange_id)).amount_rub.kopecks
    assert len(paid) == (1 if amount == "100" else 2)


async def test_a_payout_that_is_held_stays_until_the_bank_knows(app: ExchangeApp) -> None:
    exchange_id = await sending(app)
    await app.look(exchange_id)
    await app.bank().simulate_remittance(part_operation(exchange_id, 1), R.PROCESSING)
    await app.app.work(24 * 3600)
    assert await app.status(exchange_id) == "rub_sending"
    assert await app.balance_types(BalanceType.REMITTING) == [RUB_100]
    await app.at_bank(part_operation(exchange_id, 1), R.DONE)
    assert await app.said(exchange_id) == ["completed"]


@pytest.mark.parametrize("how", ["at once", "later"])
async def test_a_payout_refused_for_good_fails_and_keeps_the_usdt_in_suspense(app: ExchangeApp, how: str) -> None:
    exchange_id = await sending(app)
    if how == "at once":
        app.app.script.remit.append(Twist(ending=Ending.REFUSED, reason="recipient"))
        await app.look(exchange_id)
    else:
        await app.look(exchange_id)
        await app.at_bank(part_operation(exchange_id, 1), R.FAILED, "recipient")
    exchange = await app.exchange(exchange_id)
    assert (exchange.status, exchange.failure, exchange.active_slot) == ("failed", "recipient", None)
    assert await app.said(exchange_id) == ["failed"]
    wanted = (
        BalanceType.SUSPENSE_USDT,
        BalanceType.AVAILABLE,
        BalanceType.STOCK_RUB,
        BalanceType.REMITTING,
        BalanceType.EXCHANGING_USDT,
    )
    assert await app.balance_types(*wanted) == [100_00000000, 0, 0, 0, 0]
    [transfer] = await app.transfers()
    assert (transfer.suspended, transfer.reason) == (100_00000000, "failed")


async def test_when_a_later_part_is_refused_only_what_was_not_paid_is_suspense(app: ExchangeApp) -> None:
    exchange_id = await sending(app, BIG)
    await app.look(exchange_id)
    await app.at_bank(part_operation(exchange_id, 1), R.DONE)
    assert list(await app.remitted()) == [part_operation(exchange_id, 1)]
    await app.app.work()
    await app.at_bank(part_operation(exchange_id, 2), R.FAILED)
    assert await app.said(exchange_id) == ["failed"]
    suspended, earned, paid = await app.balance_types(
        BalanceType.SUSPENSE_USDT, BalanceType.AVAILABLE, BalanceType.STOCK_RUB
    )
    assert paid == -500_000_00
    # 10 000 USDT less those of 500 000 of 906 500 RUB, rounded for the client.
    assert suspended == 10_000_00000000 - 10_000_00000000 * 500_000_00 // 906_500_00
    assert 0 < earned < EARNED_100 * 100


async def test_a_payout_waits_for_a_bank_that_is_wired(app: ExchangeApp) -> None:
    exchange_id = await sending(app)
    whole = app.ports
    app.ports = app.app.ports = msgspec.structs.replace(whole, banks=BankRoutes(banks={}, order={}))
    await app.app.work(30)
    assert await app.status(exchange_id) == "usdt_received"
    app.ports = app.app.ports = whole
    await app.app.work(7200)
    assert await app.said(exchange_id) == ["completed"]


async def test_a_payout_that_was_sent_goes_no_other_way(app: ExchangeApp) -> None:
    exchange_id = await sending(app)
    app.app.script.remit.append(Twist(ending=Ending.UNKNOWN_DONE))
    await app.look(exchange_id)
    whole = app.ports
    app.ports = app.app.ports = msgspec.structs.replace(
        whole, banks=BankRoutes(banks={"simulator-live": whole.banks.named("simulator-live")}, order=whole.banks.order)
    )
    await app.app.work(3600)
    assert await app.status(exchange_id) == "rub_sending"
    app.ports = app.app.ports = whole
    await app.app.work(3600)
    assert await app.remitted() == {part_operation(exchange_id, 1): RUB_100}
    assert await app.said(exchange_id) == ["completed"]

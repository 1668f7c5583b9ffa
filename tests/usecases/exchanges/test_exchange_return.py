"""The operator returns money that arrived for an exchange and could not count, exactly once, whatever answers are lost
(docs/exchanges.md "Rules"). The books are held against the objects at the end of each."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import msgspec
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.errors import Refusal
from cambist.core.domain.exchanges.funds import ExchangeTransfer
from cambist.core.domain.ledger import BalanceType
from cambist.core.usecases.exchanges.returns import exchange_money, list_suspended, return_money
from cambist.core.usecases.jobs import LEASE
from cambist.core.usecases.notifications import on_notification
from cambist.ports.bank import RefundStatus
from cambist.ports.payouts import TransferState
from tests.crash_points import CrashPoint, Killed
from tests.exchange_app import WALLET, ExchangeApp, carry, open_exchange_app
from tests.usecases.accounts.test_own_addresses import OURS, Owner
from tests.usecases.exchanges.test_exchange_crashes import fused_throughout

BACK = "TLyqzVGLV1srkB7dToTAEqgDSfPtXRJZYH"


@pytest.fixture
async def app() -> AsyncIterator[ExchangeApp]:
    async with open_exchange_app(receiver=False) as opened:
        yield opened


async def late_usdt(app: ExchangeApp, *amounts: str) -> str:
    """An exchange that was called off and paid nevertheless."""
    made = await app.made()
    await app.cancel(made.id)
    for amount in amounts or ("7",):
        await app.send(made.id, amount)
    await app.look(made.id)
    return made.id


async def late_rub(app: ExchangeApp, *kopecks: int) -> str:
    """An exchange of RUB that was paid after its end."""
    made = await app.bought()
    await app.app.work(1000)
    for each in kopecks or (10_000_00,):
        await app.pay(made.id, each, again=True)
    assert await app.status(made.id) == "expired"
    return made.id


async def only(app: ExchangeApp) -> ExchangeTransfer:
    [transfer] = await app.transfers()
    return transfer


async def standing(app: ExchangeApp) -> str:
    back = (await only(app)).sent_back
    return "" if back is None else back.status.value


async def test_usdt_go_to_the_address_that_the_operator_names(app: ExchangeApp) -> None:
    exchange_id = await late_usdt(app)
    assert [each.suspended for each in await list_suspended(app.ports)] == [7_00000000]
    await return_money(app.ports, exchange_id, BACK)
    await app.app.work(60)
    [transfer] = await app.transfers()
    assert (await standing(app), transfer.resolved_at is not None) == ("returned", True)
    assert await app.balance_types(BalanceType.SUSPENSE_USDT, BalanceType.CHAIN) == [0, 0]
    assert len(await app.on_chain()) == 1
    assert await list_suspended(app.ports, app.app.account.account_id) == []
    assert await app.status(exchange_id) == "cancelled"


async def test_usdt_go_back_to_no_address_of_the_service(app: ExchangeApp) -> None:
    exchange_id = await late_usdt(app)
    senders = msgspec.structs.replace(app.ports.senders, senders={"own": Owner()})
    ports = msgspec.structs.replace(app.ports, senders=senders)
    with pytest.raises(Refusal, match="of this service"):
        await return_money(ports, exchange_id, OURS)
    assert [each.suspended for each in await list_suspended(app.ports)] == [7_00000000]


async def test_rub_go_back_to_who_paid_each_transfer_by_itself(app: ExchangeApp) -> None:
    exchange_id = await late_rub(app, 10_000_00, 300_00)
    await return_money(app.ports, exchange_id)
    await app.app.work(60)
    assert {each.sent_back.status.value for each in await app.transfers() if each.sent_back} == {"returned"}
    assert await app.balance_types(BalanceType.SUSPENSE, BalanceType.BANK) == [0, 0]
    assert len(await app.transfers()) == 2


async def test_single_transfer_of_several_may_be_returned(app: ExchangeApp) -> None:
    exchange_id = await late_usdt(app, "7", "5")
    _, came = await exchange_money(app.ports, exchange_id)
    await return_money(app.ports, came[0].id, BACK)
    await app.app.work(60)
    assert [each.id for each in await list_suspended(app.ports)] == [came[1].id]


async def test_a_failed_payout_is_sent_back(app: ExchangeApp) -> None:
    """The client gets back everything owed when their bank refuses for good."""
    made = await app.made()
    await app.send(made.id)
    app.app.script.remit.append(Twist(ending=Ending.REFUSED))
    await app.look(made.id)
    assert await app.status(made.id) == "failed"
    await return_money(app.ports, made.id, BACK)
    await app.app.work(60)
    assert await app.balance_types(BalanceType.SUSPENSE_USDT, BalanceType.CHAIN) == [0, 0]


@pytest.mark.parametrize(
    ("what", "address", "code"),
    [
        ("under way", BACK, "INVALID_STATE"),
        ("nothing waits", BACK, "INVALID_STATE"),
        ("late usdt", None, "VALIDATION_ERROR"),
        ("late usdt", BACK[:-1] + "A", "VALIDATION_ERROR"),
        ("late usdt", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", "VALIDATION_ERROR"),
        ("late usdt", "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb", "VALIDATION_ERROR"),
        ("late usdt", "own", "VALIDATION_ERROR"),
        ("late rub", BACK, "VALIDATION_ERROR"),
        ("unknown", BACK, "EXCHANGE_NOT_FOUND"),
    ],
)
async def test_impossible_return_is_refused(app: ExchangeApp, what: str, address: str | None, code: str) -> None:
    exchange_id = "exch_no\0ne"
    if what == "under way":
        exchange_id = (await app.made()).id
        await app.send(exchange_id, "7")
        await app.look(exchange_id)
    elif what == "nothing waits":
        exchange_id = (await app.made()).id
        await app.cancel(exchange_id)
    elif what != "unknown":
        exchange_id = await (late_usdt if what == "late usdt" else late_rub)(app)
    if address == "own":
        address = (await app.exchange(exchange_id)).crypto_deposit_address
    with pytest.raises(Refusal) as refused:
        await return_money(app.ports, exchange_id, address)
    assert refused.value.code == code


async def test_a_return_under_way_is_not_begun_again(app: ExchangeApp) -> None:
    exchange_id = await late_usdt(app)
    done = await asyncio.gather(*(return_money(app.ports, exchange_id, BACK) for _ in range(5)), return_exceptions=True)
    assert sum(isinstance(each, list) for each in done) == 1
    transfer = await only(app)
    await asyncio.gather(*(carry(app.ports, transfer.id) for _ in range(5)))
    await app.app.work(60)
    assert len(await app.on_chain()) == 1


@pytest.mark.parametrize("ending", [Ending.UNKNOWN_DONE, Ending.UNKNOWN_NOT_DONE, Ending.UNAVAILABLE])
async def test_a_broadcast_whose_answer_is_lost_sends_once(app: ExchangeApp, ending: Ending) -> None:
    exchange_id = await late_usdt(app)
    app.sender.script.broadcast.append(Twist(ending=ending))
    await return_money(app.ports, exchange_id, BACK)
    await app.app.work(300)
    assert (await standing(app), len(await app.on_chain())) == ("returned", 1)


async def test_a_transfer_that_is_proven_lost_is_signed_anew(app: ExchangeApp) -> None:
    exchange_id = await late_usdt(app)
    await return_money(app.ports, exchange_id, BACK)
    await app.app.work(1)
    first = (await only(app)).sent_back
    assert first is not None
    await app.sender.simulate(first.tx_hash or "", TransferState.FAILED)
    await app.app.work(120)
    assert (await standing(app), len(await app.on_chain())) == ("returned", 1)


async def test_return_waits_for_the_wallet_and_a_refusal_waits_for_the_operator(
    app: ExchangeApp,
) -> None:
    exchange_id = await late_usdt(app)
    app.sender.script.sign.extend([Twist(ending=Ending.UNAVAILABLE)])
    app.sender.script.sign.extend([Twist(ending=Ending.REFUSED)])
    await return_money(app.ports, exchange_id, BACK)
    await app.app.work(5)
    assert await standing(app) == "planned"
    await app.app.work(30)
    assert await standing(app) == "failed"
    assert await app.balance_types(BalanceType.SUSPENSE_USDT) == [7_00000000]
    await return_money(app.ports, exchange_id, BACK)
    await app.app.work(60)
    assert (await standing(app), len(await app.on_chain())) == ("returned", 1)


@pytest.mark.parametrize("ending", [Ending.UNKNOWN_DONE, Ending.UNKNOWN_NOT_DONE, Ending.UNAVAILABLE])
async def test_a_bank_whose_answer_is_lost_sends_once(app: ExchangeApp, ending: Ending) -> None:
    exchange_id = await late_rub(app)
    app.app.script.refund.append(Twist(ending=ending))
    app.app.script.find_refund.append(Twist(ending=Ending.UNAVAILABLE))
    await return_money(app.ports, exchange_id)
    await app.app.work(3600)
    assert await standing(app) == "returned"
    assert await app.balance_types(BalanceType.SUSPENSE, BalanceType.BANK) == [0, 0]


async def test_a_bank_that_refuses_leaves_it_in_suspense_for_another_attempt(app: ExchangeApp) -> None:
    exchange_id = await late_rub(app)
    app.app.script.refund.append(Twist(ending=Ending.REFUSED))
    await return_money(app.ports, exchange_id)
    await app.app.work(60)
    assert (await standing(app), await app.balance_types(BalanceType.SUSPENSE)) == ("failed", [10_000_00])
    await return_money(app.ports, exchange_id)
    await app.app.work(60)
    assert (await standing(app), await app.balance_types(BalanceType.SUSPENSE)) == ("returned", [0])


@pytest.mark.parametrize("noticed", [True, False])
async def test_rub_that_come_back_wait_again_and_may_be_sent_once_more(app: ExchangeApp, noticed: bool) -> None:
    exchange_id = await late_rub(app)
    await return_money(app.ports, exchange_id)
    await app.app.work(60)
    back = (await only(app)).sent_back
    assert back is not None
    notifications = await app.bank().simulate_refund(back.operation, RefundStatus.REVERSED)
    for notification in [*notifications, *notifications] if noticed else []:
        await on_notification(app.ports, notification)
    if not noticed:
        await app.app.work(2 * 86_400)
    assert (await standing(app), await app.balance_types(BalanceType.SUSPENSE)) == ("reversed", [10_000_00])
    await return_money(app.ports, exchange_id)
    await app.app.work(60)
    assert (await standing(app), await app.balance_types(BalanceType.SUSPENSE, BalanceType.BANK)) == (
        "returned",
        [0, 0],
    )


@pytest.mark.parametrize("currency", ["usdt", "rub"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_crash_at_any_point_sends_it_back_once(currency: str, after: bool) -> None:
    points, at = 1, 0
    while at <= min(points, 12):
        async with open_exchange_app(receiver=False) as app:
            exchange_id = await (late_usdt if currency == "usdt" else late_rub)(app)
            whole, fuse = app.ports, CrashPoint(at, after=after)
            with suppress(Killed):
                app.app.ports = fused_throughout(whole, fuse)
                await return_money(app.app.ports, exchange_id, BACK if currency == "usdt" else None)
                await app.app.work(60)
            app.app.ports = whole
            await app.app.work(LEASE + 30)
            with suppress(Refusal):  # decided before the crash
                await return_money(whole, exchange_id, BACK if currency == "usdt" else None)
            await app.app.work(LEASE + 30)
            assert await standing(app) == "returned"
            assert (
                await app.balance_types(
                    BalanceType.SUSPENSE_USDT, BalanceType.CHAIN, BalanceType.SUSPENSE, BalanceType.BANK
                )
                == [0] * 4
            )
            assert len(await app.on_chain()) == (1 if currency == "usdt" else 0)
            points = fuse.commits if at == 0 else points
        at += 1
    assert points >= 4


async def test_the_sandbox_sends_it_back(app: ExchangeApp) -> None:
    """The sandbox can simulate an operator's decision (docs/sandbox.md "The calls")."""
    exchange_id = await late_usdt(app)
    assert (await app.simulate(exchange_id, "returned")).status_code == 200
    assert await standing(app) == "returned"
    assert (await app.simulate(exchange_id, "returned")).status_code == 409
    other = await late_usdt(app)
    assert (await app.simulate(other, "returned", address=WALLET[:-1])).status_code == 400
    assert (await app.simulate(other, "returned", address=BACK)).status_code == 200

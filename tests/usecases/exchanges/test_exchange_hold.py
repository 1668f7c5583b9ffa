"""The hold of RUB: nothing is paid out for money that the payer's bank has taken back (docs/exchanges.md "RUB to
USDT"). Each test compares the books with the objects at its end."""

from collections.abc import AsyncIterator

import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.exchanges.funds import Incoming, transfer_source
from cambist.core.domain.gateways.gateways import GatewayReason, GatewayStatus
from cambist.core.domain.ledger import BalanceType
from cambist.core.usecases.exchanges.creation import create_rub_usdt
from cambist.core.usecases.exchanges.progress import take_funds
from cambist.core.usecases.gateways.gateways import list_gateways
from cambist.core.usecases.kyc.clients import ClientSimulation, simulate_client
from tests.exchange_app import PHONE, WALLET, ExchangeApp, open_exchange_app

KOPECKS = 10_000_00


@pytest.fixture
async def app() -> AsyncIterator[ExchangeApp]:
    async with open_exchange_app() as opened:
        yield opened


async def test_rub_taken_back_in_the_hold_are_given_nothing_for(app: ExchangeApp) -> None:
    made = await app.bought()
    await app.pay(made.id)
    assert await app.status(made.id) == "rub_received"
    await app.pay(made.id, taken_back=True)
    assert await app.status(made.id) == "partial"
    assert await app.balance_types(BalanceType.EXCHANGING_RUB, BalanceType.BANK) == [0, 0]
    await app.app.work(1000)
    assert (await app.said(made.id), await app.on_chain()) == (["expired"], [])


async def test_payer_who_pays_again_in_time_is_held_again_and_gets_usdt(app: ExchangeApp) -> None:
    made = await app.bought()
    await app.pay(made.id)
    await app.pay(made.id, taken_back=True)
    await app.app.work(120)
    await app.pay(made.id, again=True)
    await app.app.work(299)
    assert await app.status(made.id) == "rub_received"
    await app.app.work(60)
    assert (await app.said(made.id), len(await app.on_chain())) == (["completed"], 1)


async def test_a_surplus_steps_in_for_what_was_taken_back(app: ExchangeApp) -> None:
    made = await app.bought()
    await app.pay(made.id, 6_000_00)
    await app.pay(made.id, 5_000_00, again=True)
    assert await app.balance_types(BalanceType.EXCHANGING_RUB, BalanceType.SUSPENSE) == [KOPECKS, 1_000_00]
    await app.pay(made.id, taken_back=True)
    assert await app.status(made.id) == "partial"
    await app.pay(made.id, KOPECKS, again=True)
    await app.app.work(400)
    assert await app.said(made.id) == ["completed"]
    assert await app.balance_types(BalanceType.SUSPENSE) == [0]


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [
        (KOPECKS, KOPECKS, "rub_received"),
        (KOPECKS, KOPECKS - 1, "partial"),
        (KOPECKS + 1, KOPECKS, "rub_received"),
        (6_000_00, 1_000_00, "partial"),
    ],
)
async def test_second_transfer_counts_if_the_first_is_taken_back(
    app: ExchangeApp, first: int, second: int, status: str
) -> None:
    made = await app.bought()
    await app.pay(made.id, first)
    await app.pay(made.id, second, again=True)
    came = sorted(await app.transfers(), key=lambda each: each.amount != first)
    seen = [
        Incoming(source=transfer_source(each), amount=each.amount, at=each.received_at, is_taken_back=each is came[0])
        for each in came
    ]
    after = await take_funds(app.ports, await app.exchange(made.id), seen)
    assert after.status == status
    assert await app.balance_types(BalanceType.EXCHANGING_RUB, BalanceType.SUSPENSE, BalanceType.BANK) == [
        second,
        0,
        -second,
    ]


async def test_no_usdt_go_while_the_bank_does_not_say_that_the_rub_are_there(app: ExchangeApp) -> None:
    made = await app.bought()
    await app.pay(made.id)
    await app.app.work(299)
    app.app.script.state.extend([Twist(ending=Ending.UNAVAILABLE)] * 2)
    await app.app.work(5)
    assert await app.status(made.id) == "rub_received"
    await app.pay(made.id, taken_back=True, silent=True)
    await app.app.work(600)
    assert (await app.said(made.id), await app.on_chain()) == (["expired"], [])


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        (Ending.UNAVAILABLE, GatewayReason.PROVIDER_ERRORS),
        (Ending.UNKNOWN_NOT_DONE, GatewayReason.PROVIDER_TIMEOUT),
    ],
)
async def test_how_a_bank_answers_exchanges_counts_for_its_gateway(
    app: ExchangeApp, ending: Ending, reason: GatewayReason
) -> None:
    """Invoices, reads of them, and remittances are calls of the gateway like any other
    (docs/webhooks.md "Gateways")."""
    wish = ClientSimulation(phone=PHONE, kyc_status="verified")
    await simulate_client(app.ports, await app.caller(Mode.LIVE), wish)
    app.app.script.create.extend([Twist(ending=ending)] * 12)
    account_id = app.app.account.account_id
    await create_rub_usdt(app.ports, account_id, Mode.LIVE, amount_rub="5000.00", client_phone=PHONE, address=WALLET)
    await app.app.work(120)
    [gateway] = [each for each in await list_gateways(app.ports, Mode.LIVE) if each.gateway_id == "simulator-live"]
    assert (gateway.status, gateway.reason) == (GatewayStatus.DOWN, reason)

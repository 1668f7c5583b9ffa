"""Banks of exchanges: as for payments, a bank whose gateway is down begins nothing new (docs/webhooks.md "Gateways").
Operations that went to a bank before stay with it."""

from collections.abc import AsyncIterator

import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.exchanges.exchanges import Exchange
from cambist.core.domain.exchanges.payouts import part_operation
from cambist.core.domain.gateways.gateways import GatewayStatus
from cambist.core.usecases.gateways.gateways import set_gateway
from cambist.frontends.app.compose import Adapters, FurtherBank
from cambist.ports.bank import BankCapabilities
from cambist.ports.remittances import RemittanceStatus
from tests.exchange_app import ExchangeApp, open_exchange_app
from tests.invariants import everything
from tests.tables import table

FIRST, SECOND = "simulator-test", "second-test"
S = GatewayStatus


@pytest.fixture
async def app() -> AsyncIterator[ExchangeApp]:
    async with open_exchange_app(further_banks=[FurtherBank(name=SECOND)]) as opened:
        yield opened


async def set_status(app: ExchangeApp, status: GatewayStatus, *names: str) -> None:
    for name in names:
        await set_gateway(app.ports, name, status)


@pytest.mark.parametrize(
    ("down", "taken"), [((), FIRST), ((FIRST,), SECOND), ((SECOND,), FIRST)], ids=["none", "first", "second"]
)
async def test_a_payout_goes_by_the_first_bank_that_is_not_down(
    app: ExchangeApp, down: tuple[str, ...], taken: str
) -> None:
    made = await app.made()
    await set_status(app, S.DOWN, *down)
    await app.send(made.id)
    await app.app.work(30)
    exchange = await app.exchange(made.id)
    assert (exchange.bank, exchange.status) == (taken, "completed")


async def test_payout_waits_while_all_banks_are_down(app: ExchangeApp) -> None:
    made = await app.made()
    await set_status(app, S.DOWN, FIRST, SECOND)
    await app.send(made.id)
    await app.app.work(3600)
    exchange = await app.exchange(made.id)
    assert (exchange.status, exchange.bank, exchange.parts) == ("usdt_received", None, ())
    await set_status(app, S.OPERATIONAL, SECOND)
    await app.app.work(3600)
    exchange = await app.exchange(made.id)
    assert (exchange.status, exchange.bank) == ("completed", SECOND)


async def test_a_payout_that_began_stays_with_its_bank(app: ExchangeApp) -> None:
    made = await app.made()
    await app.send(made.id)
    assert await app.look(made.id) == "rub_sending"
    await set_status(app, S.DOWN, FIRST)
    await app.at_bank(part_operation(made.id, 1), RemittanceStatus.DONE)
    exchange = await app.exchange(made.id)
    assert (exchange.status, exchange.bank) == ("completed", FIRST)


async def test_rub_come_to_the_first_bank_that_is_not_down(app: ExchangeApp) -> None:
    await set_status(app, S.DOWN, FIRST)
    assert (await app.bought()).bank == SECOND


async def test_exchange_of_rub_is_refused_while_all_banks_are_down(app: ExchangeApp) -> None:
    await set_status(app, S.DOWN, FIRST, SECOND)
    with pytest.raises(Refusal) as refused:
        await app.bought()
    assert (refused.value.code, refused.value.retry_after) == ("PROVIDER_UNAVAILABLE", 30)
    assert await everything(app.ports, Exchange) == []


@table("others", [(SECOND,), ()], ids=["another takes it", "none does"])
async def test_rub_do_not_come_to_a_bank_that_takes_no_such_amount(others: tuple[str, ...]) -> None:
    small = BankCapabilities(simulated=True, max_kopecks=500_00)
    banks = [FurtherBank(name="small", capabilities=small), *(FurtherBank(name=name) for name in others)]
    async with open_exchange_app(adapters=Adapters(banks={Mode.TEST: []}), further_banks=banks) as app:
        if others:
            assert (await app.bought()).bank == SECOND
            return
        with pytest.raises(Refusal, match=r"amount_rub is 0\.01 to 500\.00") as refused:
            await app.bought()
        assert refused.value.code == "INVALID_AMOUNT"

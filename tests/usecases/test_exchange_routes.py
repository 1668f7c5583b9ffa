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
from cambist.frontends.compose import Adapters, FurtherBank
from cambist.ports.bank import BankCapabilities
from cambist.ports.remittances import RemittanceStatus
from tests.exchange_house import ExchangeHouse, open_exchange_house
from tests.invariants import everything

FIRST, SECOND = "simulator-test", "second-test"
S = GatewayStatus


@pytest.fixture
async def house() -> AsyncIterator[ExchangeHouse]:
    async with open_exchange_house(further_banks=[FurtherBank(name=SECOND)]) as opened:
        yield opened


async def set_status(house: ExchangeHouse, status: GatewayStatus, *names: str) -> None:
    for name in names:
        await set_gateway(house.ports, name, status)


@pytest.mark.parametrize(
    ("down", "taken"), [((), FIRST), ((FIRST,), SECOND), ((SECOND,), FIRST)], ids=["none", "first", "second"]
)
async def test_a_payout_goes_by_the_first_bank_that_is_not_down(
    house: ExchangeHouse, down: tuple[str, ...], taken: str
) -> None:
    made = await house.made()
    await set_status(house, S.DOWN, *down)
    await house.send(made.id)
    await house.house.work(30)
    exchange = await house.exchange(made.id)
    assert (exchange.bank, exchange.status) == (taken, "completed")


async def test_while_all_are_down_it_waits_and_then_goes(house: ExchangeHouse) -> None:
    made = await house.made()
    await set_status(house, S.DOWN, FIRST, SECOND)
    await house.send(made.id)
    await house.house.work(3600)
    exchange = await house.exchange(made.id)
    assert (exchange.status, exchange.bank, exchange.parts) == ("usdt_received", None, ())
    await set_status(house, S.OPERATIONAL, SECOND)
    await house.house.work(3600)
    exchange = await house.exchange(made.id)
    assert (exchange.status, exchange.bank) == ("completed", SECOND)


async def test_a_payout_that_began_stays_with_its_bank(house: ExchangeHouse) -> None:
    made = await house.made()
    await house.send(made.id)
    assert await house.look(made.id) == "rub_sending"
    await set_status(house, S.DOWN, FIRST)
    await house.at_bank(part_operation(made.id, 1), RemittanceStatus.DONE)
    exchange = await house.exchange(made.id)
    assert (exchange.status, exchange.bank) == ("completed", FIRST)


async def test_rub_come_to_the_first_bank_that_is_not_down(house: ExchangeHouse) -> None:
    await set_status(house, S.DOWN, FIRST)
    assert (await house.bought()).bank == SECOND


async def test_while_all_are_down_no_exchange_of_rub_begins(house: ExchangeHouse) -> None:
    await set_status(house, S.DOWN, FIRST, SECOND)
    with pytest.raises(Refusal) as refused:
        await house.bought()
    assert (refused.value.code, refused.value.retry_after) == ("PROVIDER_UNAVAILABLE", 30)
    assert await everything(house.ports, Exchange) == []


@pytest.mark.parametrize("others", [(SECOND,), ()], ids=["another takes it", "none does"])
async def test_rub_do_not_come_to_a_bank_that_takes_no_such_amount(others: tuple[str, ...]) -> None:
    small = BankCapabilities(simulated=True, max_kopecks=500_00)
    banks = [FurtherBank(name="small", capabilities=small), *(FurtherBank(name=name) for name in others)]
    async with open_exchange_house(adapters=Adapters(banks={Mode.TEST: []}), further_banks=banks) as house:
        if others:
            assert (await house.bought()).bank == SECOND
            return
        with pytest.raises(Refusal, match=r"amount_rub is 0\.01 to 500\.00") as refused:
            await house.bought()
        assert refused.value.code == "INVALID_AMOUNT"

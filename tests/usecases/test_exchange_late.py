"""Money that comes after the end of an exchange, while its provider gives no answer (docs/exchanges.md)."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from cambist.ports.faults import Unavailable
from tests.exchange_house import ExchangeHouse, open_exchange_house

HOUR = 3600


@pytest.fixture
async def house() -> AsyncIterator[ExchangeHouse]:
    async with open_exchange_house(receiver=False) as opened:
        yield opened


async def _away(*_: Any, **__: Any) -> Any:
    raise Unavailable("no connection")


@pytest.mark.parametrize("takes_usdt", [True, False])
async def test_it_is_known_once_they_answer_again(
    house: ExchangeHouse, takes_usdt: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look at the end of the six hours is tried until it is answered."""
    made = await (house.made() if takes_usdt else house.bought())
    await house.house.work(1000)
    assert await house.status(made.id) == "expired"
    if takes_usdt:
        await house.send(made.id, "7")
    else:
        await house.pay(made.id, 7_00, again=True, silent=True)
    with monkeypatch.context() as while_away:
        while_away.setattr(
            house.watcher if takes_usdt else house.bank(), "deposits" if takes_usdt else "invoice_state", _away
        )
        await house.house.work(8 * HOUR)
        assert await house.transfers() == []
    await house.house.work(HOUR)
    [known] = await house.transfers()
    assert known.suspended == known.amount


async def test_nobody_is_asked_for_ever(house: ExchangeHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await house.made()
    await house.house.work(1000)
    monkeypatch.setattr(house.watcher, "deposits", _away)
    await house.house.work(31 * HOUR)
    assert await house.ports.storage.next_due() is None, made.id

"""Money that comes after the end of an exchange, while its provider gives no answer (docs/exchanges.md)."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from cambist.ports.faults import Unavailable
from tests.exchange_app import ExchangeApp, open_exchange_app

HOUR = 3600


@pytest.fixture
async def app() -> AsyncIterator[ExchangeApp]:
    async with open_exchange_app(receiver=False) as opened:
        yield opened


async def _away(*_: Any, **__: Any) -> Any:
    raise Unavailable("no connection")


@pytest.mark.parametrize("takes_usdt", [True, False])
async def test_late_money_is_known_once_providers_answer_again(
    app: ExchangeApp, takes_usdt: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The poll after six hours is repeated until it is answered."""
    made = await (app.made() if takes_usdt else app.bought())
    await app.app.work(1000)
    assert await app.status(made.id) == "expired"
    if takes_usdt:
        await app.send(made.id, "7")
    else:
        await app.pay(made.id, 7_00, again=True, silent=True)
    with monkeypatch.context() as while_away:
        while_away.setattr(
            app.watcher if takes_usdt else app.bank(), "deposits" if takes_usdt else "invoice_state", _away
        )
        await app.app.work(8 * HOUR)
        assert await app.transfers() == []
    await app.app.work(HOUR)
    [known] = await app.transfers()
    assert known.suspended == known.amount


async def test_polling_of_an_unreachable_watcher_ends(app: ExchangeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await app.made()
    await app.app.work(1000)
    monkeypatch.setattr(app.watcher, "deposits", _away)
    await app.app.work(31 * HOUR)
    assert await app.ports.storage.next_due() is None, made.id

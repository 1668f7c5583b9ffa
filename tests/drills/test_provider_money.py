"""Payments by each shipped bank, of whose calls and notifications 5 % go wrong in every way that there is, with
processes that are killed at a commit: in the end ledger, provider and the merchant's webhooks agree to the kopeck, and
nobody paid, or got money back, twice.

In full it is 100 000 payments by YooKassa in 250 histories, some twenty minutes of a core, and 40 000 by each of the
others: `nox -s drills -- -k "provider_money and yookassa"`. A history is repeated by its seed, which is its test's
parameter.
"""

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pytest

from cambist.core.usecases.accounts.accounts import set_settings
from tests.patience import FULL
from tests.providers.money_history import MoneyHistory
from tests.providers.raiffeisen.app import RECEIPTS, TERMS, open_raiffeisen_app
from tests.providers.raiffeisen.history import RaiffeisenHistory
from tests.providers.tbank.app import open_tbank_app
from tests.providers.tbank.history import TBankHistory
from tests.providers.yookassa.app import open_yookassa_app
from tests.providers.yookassa.history import YooKassaHistory


class Drilled(NamedTuple):
    """A bank, and how much is played of it."""

    opened: Callable[..., Any]
    history: type[MoneyHistory]
    seeds: int
    orders: int
    """In each history, where not all is played."""
    account: dict[str, str]


BANKS = {
    "yookassa": Drilled(open_yookassa_app, YooKassaHistory, 250, 80, {}),
    "tbank": Drilled(open_tbank_app, TBankHistory, 100, 40, {}),
    "raiffeisen": Drilled(lambda: open_raiffeisen_app(RECEIPTS), RaiffeisenHistory, 100, 40, TERMS),
}
ROWS = [(name, seed) for name, each in BANKS.items() for seed in range(each.seeds if FULL else 1)]


@pytest.mark.drill
@pytest.mark.parametrize(("name", "seed"), ROWS)
async def test_ledger_provider_and_webhooks_agree_to_the_kopeck(
    name: str, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    drilled = BANKS[name]
    orders = 400 if FULL else drilled.orders
    async with drilled.opened() as (app, fake, cabinet):
        if drilled.account:
            await set_settings(app.ports, app.account.account_id, drilled.account)
        history = drilled.history(app, fake, cabinet, Random(seed))
        history.spoil()
        await history.live(orders)
        await history.end()
        found = await history.check()
    with capsys.disabled():
        print(f"\n{name} {seed}: {dict(found)}; {dict(fake.calls)}; the merchant was told {dict(history.refused)}")
    assert found["paid"] > orders // 2
    assert found["refunds"] > orders // 20

"""Payments by YooKassa, of whose calls and notices 5 % go wrong in every way that there is, with processes that are
killed at a commit: in the end ledger, provider and the merchant's webhooks agree to the kopeck, and nobody paid twice.

In full it is 100 000 payments in 250 histories, some twenty minutes of a core: `nox -s drills -- -k provider_money`.
A history is repeated by its seed, which is its test's parameter.
"""

import os
from random import Random

import pytest

from tests.providers.yookassa.history import MoneyHistory
from tests.providers.yookassa.house import open_yookassa_house

IS_FULL = os.environ.get("CAMBIST_DRILLS") == "full"
ORDERS = 400 if IS_FULL else 200
SEEDS = range(250 if IS_FULL else 1)


@pytest.mark.drill
@pytest.mark.parametrize("seed", SEEDS)
async def test_ledger_provider_and_webhooks_agree_to_the_kopeck(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    async with open_yookassa_house() as (house, fake, cabinet):
        history = MoneyHistory(house, fake, cabinet, Random(seed))
        history.spoil()
        await history.live(ORDERS)
        await history.end()
        found = await history.check()
    with capsys.disabled():
        print(f"\nseed {seed}: {dict(found)}; {fake.calls}; the merchant was told {dict(history.refused)}")
    assert found["paid"] > ORDERS // 2
    assert found["refunds"] > ORDERS // 20

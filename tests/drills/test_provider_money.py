"""Payments by YooKassa, of whose calls and notices 5 % go wrong in every way that there is, with processes that are
killed at a commit: in the end ledger, provider and the merchant's webhooks agree to the kopeck, and nobody paid twice.

In full it is 100 000 payments and takes about half an hour; CAMBIST_DRILL_SEED repeats one.
"""

import os
from random import Random

import pytest

from tests.providers.yookassa.history import MoneyHistory
from tests.providers.yookassa.house import open_yookassa_house

IS_FULL = os.environ.get("CAMBIST_DRILLS") == "full"
ORDERS = int(os.environ.get("CAMBIST_DRILL_ORDERS", "100000")) if IS_FULL else 200
SEED = int(os.environ.get("CAMBIST_DRILL_SEED", "1"))


@pytest.mark.drill
@pytest.mark.timeout(4 * 3600)
async def test_ledger_provider_and_webhooks_agree_to_the_kopeck(capsys: pytest.CaptureFixture[str]) -> None:
    async with open_yookassa_house() as (house, fake, cabinet):
        history = MoneyHistory(house, fake, cabinet, Random(SEED))
        history.spoil()
        await history.live(ORDERS)
        await history.end()
        found = await history.check()
        with capsys.disabled():
            print(f"\nseed {SEED}: {dict(found)}; {fake.calls}; the merchant was told {dict(history.refused)}")
    assert found["paid"] > ORDERS // 2
    assert found["refunds"] > ORDERS // 20

"""Payments by T-Bank, of whose calls and notices 5 % go wrong in every way that there is, with processes that are
killed at a commit: in the end ledger, provider and the merchant's webhooks agree to the kopeck, and no money went back
twice.

In full it is 100 histories of 400 payments: `nox -s drills -- -k tbank_money`. A history is repeated by its seed.
"""

import os
from random import Random

import pytest

from tests.providers.tbank.history import TBankHistory
from tests.providers.tbank.house import open_tbank_house

IS_FULL = os.environ.get("CAMBIST_DRILLS") == "full"
ORDERS = 400 if IS_FULL else 60
SEEDS = range(100 if IS_FULL else 1)


@pytest.mark.drill
@pytest.mark.parametrize("seed", SEEDS)
async def test_ledger_provider_and_webhooks_agree_to_the_kopeck(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    async with open_tbank_house() as (house, fake, cabinet):
        history = TBankHistory(house, fake, cabinet, Random(seed))
        history.spoil()
        await history.live(ORDERS)
        await history.end()
        found = await history.check()
    with capsys.disabled():
        print(f"\nseed {seed}: {dict(found)}; {dict(fake.calls)}; the merchant was told {dict(history.refused)}")
    assert found["paid"] > ORDERS // 2
    assert found["refunds"] > ORDERS // 20

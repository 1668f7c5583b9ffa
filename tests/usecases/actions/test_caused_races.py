"""Many callers at once create an object whose id follows from its cause. Exactly one succeeds, on every database,
whichever unique rule refuses the others first."""

import asyncio
from pathlib import Path
from uuid import UUID

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.refunds.refunds import Refund
from cambist.core.usecases.kyc.clients import ClientSimulation, simulate_client
from tests.exchange_app import PHONE, open_exchange_app
from tests.invariants import everything
from tests.payout_kit import open_payouts
from tests.refund_app import open_refund_app

KEY = str(UUID(int=7))
MANY = 8


async def test_a_refund_by_one_key(url: str, tmp_path: Path) -> None:
    async with open_refund_app(database_url=url, data_dir=tmp_path) as app:
        payment_id = await app.paid(mode="live")
        body = {"payment_id": payment_id, "amount_rub": "10.00"}
        answers = await asyncio.gather(*(app.post(body, key=KEY, mode="live") for _ in range(MANY)))
        assert sorted(each.status_code for each in answers) == [200] * (MANY - 1) + [201]
        assert len({each.json()["id"] for each in answers}) == 1
        assert len(await everything(app.ports, Refund)) == 1


async def test_the_payout_of_one_batch(url: str, tmp_path: Path) -> None:
    async with open_payouts(mode=Mode.LIVE, database_url=url, data_dir=tmp_path) as payouts:
        await payouts.credit()
        made = await asyncio.gather(*(payouts.pay_out(batch_id="live:2026-11-22") for _ in range(MANY)))
        assert len([each for each in made if each is not None]) == 1
        assert len(await payouts.every()) == 1


async def test_an_exchange_by_one_key(url: str, tmp_path: Path) -> None:
    async with open_exchange_app(database_url=url, data_dir=tmp_path) as app:
        wish = ClientSimulation(phone=PHONE, kyc_status="verified")
        await simulate_client(app.ports, await app.caller(Mode.LIVE), wish)
        answers = await asyncio.gather(*(app.post(key=KEY, mode="live") for _ in range(MANY)))
        assert sorted(each.status_code for each in answers) == [200] * (MANY - 1) + [201]
        assert len({each.json()["id"] for each in answers}) == 1

"""A client that others wrote passes against the fake: `raifpay`, of github.com/WhiteApfel/raifpay
(docs/providers/raiffeisen.md "Where the wire facts are from"). It is in no package index: where it is not installed,
these tests are skipped."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from tests.providers.raiffeisen.fake import Raiffeisen
from tests.providers.raiffeisen.fake_rules import MERCHANT, SECRET

raifpay: Any = pytest.importorskip("raifpay", reason="raifpay is not installed")


@pytest.fixture
async def books() -> AsyncIterator[Raiffeisen]:
    async with Raiffeisen() as opened:
        yield opened


@pytest.fixture
def client(books: Raiffeisen) -> Any:
    return raifpay.RaifPay(SECRET, base_url=f"{books.url}/api")


async def made(client: Any, **more: Any) -> Any:
    wish = {"qr_type": "Dynamic", "description": "Заказ №1 😀", "amount": 150, "order_id": "o-1", **more}
    return await client.sbp.qr.create(merchant_id=MERCHANT, expiration=timedelta(minutes=15), **wish)


async def test_raifpay_registers_reads_and_cancels_a_qr(books: Raiffeisen, client: Any) -> None:
    qr = await made(client)
    assert (qr.status, qr.subscription_id) == ("NEW", None)
    assert qr.payload == books.qrs[qr.qr_id]["payload"]
    await client.sbp.qr.cancel(qr.qr_id)
    assert (await client.sbp.qr.get_info(qr.qr_id)).status == "CANCELLED"


async def test_raifpay_is_refused_invalid_requests(client: Any) -> None:
    for wrong in ({"order_id": "o/1"}, {"amount": 0}, {"amount": None}):
        with pytest.raises(BaseException, match="code=400"):
            await made(client, **wrong)
    with pytest.raises(BaseException, match="code=404"):
        await client.sbp.qr.cancel("AD00000000000000000000000000000000")


async def test_key_of_raifpay_is_checked(books: Raiffeisen) -> None:
    stranger = raifpay.RaifPay("another", base_url=f"{books.url}/api")
    with pytest.raises(BaseException, match="code=401"):
        await stranger.sbp.qr.get_info("AD00000000000000000000000000000000")


async def test_raifpay_subscribes_and_charges(books: Raiffeisen, client: Any) -> None:
    qr = await made(client, subscription_id="sub-1", subscription_description="Кофе")
    assert qr.subscription_id == "sub-1"
    assert (await client.sbp.subscribe.get_info("sub-1")).status == "INACTIVE"
    books.subscribe("sub-1")
    assert (await client.sbp.subscribe.get_info("sub-1")).status == "SUBSCRIBED"
    charge = await client.sbp.subscribe.pull("sub-1", "Кофе", 300, order_id="o-2", statement_description="Coffee")
    assert (charge.status, charge.amount) == ("IN_PROGRESS", 300)
    books.finish()
    assert (await client.sbp.subscribe.get_pull_info("sub-1", "o-2")).status == "SUCCESS"


async def test_raifpay_sets_the_address_of_notifications(books: Raiffeisen, client: Any) -> None:
    await client.sbp.webhook.set("https://pay.merchant.example/notifications")
    assert books.callback == "https://pay.merchant.example/notifications"

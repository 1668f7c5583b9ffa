"""A payer in a real browser pays at each bank's fake: the window shows the bank's own QR, turns when the bank has told
of the money, and the merchant's server is told (docs/providers/). One service a bank, one browser for all."""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from ipaddress import ip_network
from typing import Any, NamedTuple

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from cambist.adapters.clock import SystemClock
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.notification_addresses import list_addresses
from cambist.frontends.http.payer.window_page import draw_qr
from cambist.frontends.server.server import running
from cambist.frontends.settings.settings import Settings
from tests.patience import HANGS
from tests.providers.raiffeisen.fake import Raiffeisen
from tests.providers.raiffeisen.fake_rules import MERCHANT, SECRET
from tests.providers.tbank.app import settings_of as tbank_settings
from tests.providers.tbank.fake import TBankFake
from tests.providers.yookassa.app import settings_of as yookassa_settings
from tests.providers.yookassa.fake import YooKassaFake
from tests.receivers import Receiver
from tests.stories.browsers import WatchedTab
from tests.stories.merchant import merchant
from tests.stories.processes import WEBHOOK_SECRET

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

Post = Callable[[Any, dict[str, str]], Awaitable[None]]


class Played(NamedTuple):
    """A bank's fake, and what its payer does."""

    settings: dict[str, Any]
    qr_of: Callable[[str], str]
    """Returns the text of our payment's QR at the bank."""
    pays: Callable[[str, Post], Awaitable[None]]
    """Its payer pays what the QR says, and the bank posts that."""


async def yookassa(stack: AsyncExitStack) -> Played:
    fake = await stack.enter_async_context(YooKassaFake(lambda: datetime.now(UTC)))

    async def pays(payment: str, post: Post) -> None:
        fake.books.pay(fake.books.of_operation(payment)["id"])
        while fake.told:
            await post(fake.told.pop(0), {})

    def qr_of(payment: str) -> str:
        return str(fake.books.of_operation(payment)["confirmation"]["confirmation_data"])

    return Played(yookassa_settings(fake), qr_of, pays)


async def tbank(stack: AsyncExitStack) -> Played:
    fake = await stack.enter_async_context(TBankFake(SystemClock()))

    async def pays(payment: str, post: Post) -> None:
        there = fake.payment(payment.removeprefix("pay_"))
        fake.books.pay(there)
        await post(fake.notification(there), {})

    return Played(tbank_settings(fake.url), lambda payment: fake.payment(payment.removeprefix("pay_")).qr or "", pays)


async def raiffeisen(stack: AsyncExitStack) -> Played:
    bank = await stack.enter_async_context(Raiffeisen())

    def qr_of(payment: str) -> dict[str, Any]:
        return next(each for each in bank.qrs.values() if each["order"] == payment)

    async def pays(payment: str, post: Post) -> None:
        bank.pay(qr_of(payment)["qrId"])
        await post(*bank.notification(payment))

    settings = {
        "raiffeisen_merchant_id": MERCHANT,
        "raiffeisen_secret_key": SECRET,
        "raiffeisen_url": f"{bank.url}/api",
    }
    return Played(settings, lambda payment: str(qr_of(payment)["payload"]), pays)


class Till(NamedTuple):
    """A merchant of test mode at a service whose only bank is this one."""

    bank: Played
    edge: Any
    receiver: Receiver
    post: Post


async def opened(stack: AsyncExitStack, play: Callable[[AsyncExitStack], Awaitable[Played]]) -> Till:
    bank, name = await play(stack), play.__name__
    receiver = await stack.enter_async_context(Receiver())
    settings = Settings(
        database_url="memory://",
        port=0,
        test_banks=(name,),
        providers=bank.settings,
        notification_networks={name: (ip_network("127.0.0.0/8"),)},
        allow_loopback_webhooks=True,
    )
    ports = (service := await stack.enter_async_context(running(settings))).app.ports
    account = await accounts.create_account(ports, "Coffee House")
    wish = {"webhook_url": receiver.url, "webhook_secret": WEBHOOK_SECRET}
    await accounts.set_settings(ports, account.account_id, wish)
    [address] = [each.address for each in await list_addresses(ports) if each.adapter == name]
    http = await stack.enter_async_context(aiohttp.ClientSession())
    edge = await stack.enter_async_context(merchant(service.app.settings.base_url, account.test))

    async def post(body: Any, headers: dict[str, str]) -> None:
        told: dict[str, Any] = {"data": body} if isinstance(body, (bytes, str)) else {"json": body}
        async with http.post(str(address), headers=headers, **told) as answer:
            assert answer.status == 200, await answer.text()

    return Till(bank, edge, receiver, post)


@pytest_asyncio.fixture(loop_scope="session")
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as made:
        yield made


@pytest.mark.parametrize("play", [yookassa, tbank, raiffeisen])
async def test_payer_pays_by_the_banks_qr_and_the_merchant_gets_the_event(
    browser: Browser, stack: AsyncExitStack, play: Callable[[AsyncExitStack], Awaitable[Played]]
) -> None:
    till = await opened(stack, play)
    payment = await till.edge.created(amount_rub="490.00", description="Чай")
    page = await (await browser.new_context(locale="en-US")).new_page()
    page.set_default_timeout(HANGS * 1000)
    tab = WatchedTab(page, till.edge.base)
    await page.goto(payment["payment_url"])
    heading = page.get_by_role("heading", level=1)
    await expect(heading).to_have_text("Pay by SBP")
    drawn = await page.evaluate("[...document.querySelectorAll('svg path')].map(each => each.getAttribute('d'))")
    assert _path(till.bank.qr_of(payment["id"])) in drawn
    await till.bank.pays(payment["id"], till.post)
    await expect(heading).to_have_text("Paid")
    [told] = await till.receiver.arrived(1)
    paid = json.loads(told.body)
    assert (paid["payment_id"], paid["status"], paid["actual_amount_rub"]) == (payment["id"], "paid", "490.00")
    await page.context.close()
    assert tab.complaints == []


def _path(payload: str) -> str:
    """Return the path that draws this payload's QR."""
    found = re.search(r' d="([^"]+)"', draw_qr(payload).svg)
    assert found is not None
    return found[1]

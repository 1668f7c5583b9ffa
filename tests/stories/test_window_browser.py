"""A payer in a real browser, at a real service: pays by clicking, with and without script."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Route, expect

from cambist.core.usecases.accounts import accounts, shops
from cambist.frontends.server.server import Running, running
from cambist.frontends.settings.settings import Settings
from tests.patience import HANGS
from tests.stories.browsers import WatchedTab

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SHOP_PAGE = "<!doctype html><title>Shop</title><link rel=icon href='data:,'><p>Thank you"
PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1280, "height": 800}
NO_ROUTES: Mapping[str, Callable[[Route], Awaitable[None]]] = {}


class Shop:
    """A merchant at a running service. One local page simulates its site in the payer's browser."""

    def __init__(self, service: Running, account: accounts.NewAccount) -> None:
        self.base = service.app.settings.base_url
        self.back = f"{self.base}/thanks"
        self._keys = {"X-Api-Key": account.test.api_key, "X-Api-Secret": account.test.api_secret}

    async def sells(self, **order: Any) -> dict[str, Any]:
        """A new payment, made over HTTP."""
        async with httpx.AsyncClient(base_url=self.base, headers=self._keys) as client:
            headers = {"Idempotency-Key": str(uuid4())}
            answer = await client.post("/api/v1/payments", json={"amount_rub": "1234.56", **order}, headers=headers)
        assert answer.status_code == 201, answer.text
        payment: dict[str, Any] = answer.json()
        return payment

    async def subscribes(self, **order: Any) -> dict[str, Any]:
        """A new subscription, made over HTTP; its page is where a payment's would be."""
        body = {"amount_rub": "1234.56", "interval": "month", "description": "Club", "success_url": self.back, **order}
        async with httpx.AsyncClient(base_url=self.base, headers=self._keys) as client:
            headers = {"Idempotency-Key": str(uuid4())}
            answer = await client.post("/api/v1/subscriptions", json=body, headers=headers)
        assert answer.status_code == 201, answer.text
        return {**answer.json(), "payment_url": answer.json()["binding_url"]}

    async def reprices(self, made: dict[str, Any], amount: str) -> None:
        """Change the amount of a subscription."""
        body = {"amount_rub": amount, "cap_amount_rub": amount}
        async with httpx.AsyncClient(base_url=self.base, headers=self._keys) as client:
            answer = await client.patch(f"/api/v1/subscriptions/{made['id']}", json=body)
        assert answer.status_code == 200, answer.text

    async def status(self, payment: dict[str, Any]) -> str:
        async with httpx.AsyncClient(base_url=self.base, headers=self._keys) as client:
            return str((await client.get(f"/api/v1/payments/{payment['id']}")).json()["status"])


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shop() -> AsyncIterator[Shop]:
    async with running(Settings(database_url="memory://", port=0)) as service:
        account = await accounts.create_account(service.app.ports, "Coffee House")
        opened = Shop(service, account)
        await shops.set_shop(service.app.ports, account.default_shop_id, {"return_url": opened.back})
        yield opened


class Tab(WatchedTab):
    """A payer's tab."""

    async def shows(self, text: str) -> None:
        await expect(self.page.get_by_role("heading", level=1)).to_have_text(text)


class Payer:
    """Opens tabs, each in a browser of its own."""

    def __init__(self, browser: Browser, base: str) -> None:
        self._browser = browser
        self._base = base
        self.tabs: list[Tab] = []

    async def opens(
        self,
        payment: dict[str, Any],
        *,
        fake_time: str | None = None,
        stopped_at: str | None = None,
        routes: Mapping[str, Callable[[Route], Awaitable[None]]] = NO_ROUTES,
        **context: Any,
    ) -> Tab:
        """The page's clock goes on by itself from `fake_time`, and by `run_for` alone from `stopped_at`. Nothing on it
        turns or pulses: while it waits it would be drawn anew sixty times a second."""
        wanted = {"viewport": DESKTOP, "locale": "en-US", "reduced_motion": "reduce", **context}
        page = await (await self._browser.new_context(**wanted)).new_page()
        page.set_default_timeout(HANGS * 1000)
        if fake_time is not None:
            await page.clock.install(time=fake_time)
        if stopped_at is not None:
            await page.clock.install(time="2000-01-01T00:00:00Z")
            await page.clock.pause_at(stopped_at)
        tab = Tab(page, self._base)
        self.tabs.append(tab)
        await page.route("**/thanks", lambda route: route.fulfill(content_type="text/html", body=SHOP_PAGE))
        for pattern, answer in routes.items():
            await page.route(pattern, answer)
        await page.goto(payment["payment_url"])
        return tab


@pytest_asyncio.fixture(loop_scope="session")
async def payer(browser: Browser, shop: Shop) -> AsyncIterator[Payer]:
    """Yield a payer. At the end, check that no request left the service, and that no policy was broken."""
    person = Payer(browser, shop.base)
    yield person
    for tab in person.tabs:
        await tab.page.context.close()
    assert [tab.complaints for tab in person.tabs] == [[]] * len(person.tabs)


async def test_payment_in_one_tab_updates_the_other_without_a_reload(shop: Shop, payer: Payer) -> None:
    """The window counts 5 seconds after success and returns the payer (docs/window.md "Back to the shop")."""
    payment = await shop.sells()
    watching = await payer.opens(payment, stopped_at="2031-05-05T00:00:00Z")
    await watching.shows("Pay by SBP")
    await watching.page.evaluate("window.sameDocument = true")
    clicking = await payer.opens(payment)
    await clicking.page.get_by_role("button", name="Pay ₽1,234.56").click()
    await clicking.shows("Paid")
    await watching.shows("Paid")
    assert await watching.page.evaluate("window.sameDocument")
    assert await watching.page.title() == "✓ Paid — Coffee House"
    await expect(watching.page.locator("#announcer")).to_have_text("Paid")
    assert await shop.status(payment) == "paid"
    left = watching.page.locator("#soon-seconds")
    await expect(left).to_be_visible()
    await watching.page.clock.run_for(3000)
    assert await left.inner_text() == "2"
    assert watching.page.url == payment["payment_url"]
    await watching.page.clock.run_for(2000)
    await watching.page.wait_for_url(shop.back)


async def test_payer_stays_until_the_button_without_auto_return(shop: Shop, payer: Payer) -> None:
    """With false there is only a button (docs/window.md "Back to the shop")."""
    payment = await shop.sells(auto_return=False)
    tab = await payer.opens(payment, fake_time="2026-01-01T00:00:00Z")
    await tab.page.get_by_role("button", name="Pay ₽1,234.56").click()
    await tab.shows("Paid")
    await tab.page.clock.run_for(30_000)
    assert tab.page.url == payment["payment_url"]
    await tab.page.get_by_role("link", name="Return to the shop").click()
    await tab.page.wait_for_url(shop.back)


async def test_refusal_is_shown_with_its_reason(shop: Shop, payer: Payer) -> None:
    payment = await shop.sells()
    tab = await payer.opens(payment)
    await tab.page.get_by_label("Reason of the failure").select_option("cancelled_by_customer")
    await tab.page.get_by_role("button", name="Fail").click()
    await tab.shows("Payment did not go through")
    await expect(tab.page.get_by_text("You cancelled the payment in your bank’s app.")).to_be_visible()
    assert await shop.status(payment) == "failed"


async def test_an_underpaid_payment_says_that_it_is_under_review(shop: Shop, payer: Payer) -> None:
    payment = await shop.sells()
    tab = await payer.opens(payment)
    await tab.page.get_by_role("button", name="Underpay").click()
    await tab.shows("Checking the amount")
    await expect(tab.page.get_by_text("Do not pay again")).to_be_visible()
    assert await shop.status(payment) == "amount_mismatch"


async def test_payer_without_script_pays_and_the_page_follows(shop: Shop, payer: Payer) -> None:
    payment = await shop.sells()
    watching = await payer.opens(payment, java_script_enabled=False, locale="ru-RU")
    clicking = await payer.opens(payment, java_script_enabled=False)
    await clicking.page.get_by_role("button", name="Pay ₽1,234.56").click()
    await clicking.shows("Paid")
    await watching.shows("Оплачено")
    await expect(watching.page.get_by_role("link", name="Вернуться в магазин")).to_be_visible()
    await expect(watching.page.locator("#soon")).to_be_hidden()


async def test_page_polls_if_streams_are_blocked(shop: Shop, payer: Payer) -> None:
    payment = await shop.sells()
    tab = await payer.opens(payment, fake_time="2026-01-01T00:00:00Z")
    await tab.page.route("**/events*", lambda route: route.fulfill(status=503))
    await tab.page.reload()
    await tab.page.evaluate("window.sameDocument = true")
    clicking = await payer.opens(payment)
    await clicking.page.get_by_role("button", name="Pay ₽1,234.56").click()
    await clicking.shows("Paid")
    await tab.page.clock.run_for(3000)
    await tab.shows("Paid")
    assert await tab.page.evaluate("window.sameDocument")
    # The browser itself reports the refused stream; there must be no other complaint.
    assert {complaint.split(":")[0] for complaint in tab.complaints} == {"Failed to load resource"}
    tab.complaints.clear()


async def test_open_page_survives_a_rate_limit_of_its_network(shop: Shop, payer: Payer) -> None:
    payment = await shop.sells()
    tab = await payer.opens(payment)
    await tab.shows("Pay by SBP")
    refused = 0

    async def too_many(route: Route) -> None:
        nonlocal refused
        refused += 1
        busy = '<main id="window" data-face="busy"><h1>Too many requests</h1></main>'
        await route.fulfill(status=429, content_type="text/html", body=busy)

    address = f"{shop.base}/p/{payment['id']}"
    await tab.page.route(address, too_many, times=2)
    clicking = await payer.opens(payment)
    await clicking.page.get_by_role("button", name="Pay ₽1,234.56").click()
    await clicking.shows("Paid")
    await tab.shows("Paid")
    assert refused == 2
    assert all("429" in complaint for complaint in tab.complaints)
    tab.complaints.clear()


async def test_offline_payer_sees_a_notification_and_later_the_outcome(shop: Shop, payer: Payer) -> None:
    """docs/window.md "What it shows"."""
    payment = await shop.sells()
    tab = await payer.opens(payment)
    word = tab.page.locator("#offline")
    await expect(word).to_be_hidden()
    # The browser cuts no open stream: a payer in the underground has one that is gone.
    await tab.page.route("**/events*", lambda route: route.abort())
    await tab.page.reload()
    await tab.page.context.set_offline(True)
    await expect(word).to_be_visible()
    await expect(tab.page.locator("#announcer")).to_contain_text("No connection. If you have paid, nothing is lost")
    clicking = await payer.opens(payment)
    await clicking.page.get_by_role("button", name="Pay ₽1,234.56").click()
    await clicking.shows("Paid")
    await tab.shows("Pay by SBP")
    await tab.page.context.set_offline(False)
    await tab.shows("Paid")
    await expect(word).to_be_hidden()
    # The browser itself reports the failed request; there must be no other complaint.
    assert {complaint.split(":")[0] for complaint in tab.complaints} <= {"Failed to load resource"}
    tab.complaints.clear()


async def test_the_button_of_a_simulated_bank_leads_to_the_panel_that_plays_it(shop: Shop, payer: Payer) -> None:
    payment = await shop.sells()
    tab = await payer.opens(payment, viewport=PHONE, is_mobile=True, has_touch=True)
    panel = tab.page.get_by_role("button", name="Pay ₽1,234.56")
    await tab.page.get_by_role("link", name="Pay in your bank’s app").click()
    await expect(panel).to_be_in_viewport()
    await panel.click()
    await tab.shows("Paid")


@pytest.mark.parametrize("locale", ["ru-RU", "en-US"])
async def test_no_button_of_the_pages_breaks_at_a_phone_s_width(shop: Shop, payer: Payer, locale: str) -> None:
    for made in (await shop.sells(), await shop.subscribes()):
        tab = await payer.opens(made, viewport=PHONE, is_mobile=True, has_touch=True, locale=locale)
        press = tab.page.locator(".press button")
        if await press.count():
            assert await press.evaluate("each => each.offsetHeight") == 56
            await press.click()
        button = tab.page.locator("a.button--bank")
        assert await button.evaluate("each => each.offsetHeight") == 56, "one line in its least height"


async def test_the_countdown_follows_the_service_s_clock_and_not_the_payer_s(shop: Shop, payer: Payer) -> None:
    """The page's own data decides, because the service, whose time continues, no longer answers."""

    async def never_answered(_: Route) -> None:
        """Neither the stream nor the poll sets the time again."""

    tab = await payer.opens(
        await shop.sells(ttl_minutes=2),
        fake_time="2001-01-01T00:00:00Z",
        routes={"**/events*": never_answered, "**/state*": never_answered},
    )
    countdown = tab.page.get_by_role("timer")

    async def left() -> int:
        minutes, seconds = (await countdown.inner_text()).split(":")
        return int(minutes) * 60 + int(seconds)

    at_first = await left()
    assert 90 <= at_first <= 120
    await tab.page.clock.run_for(70_000)
    assert 20 <= await left() <= at_first - 69


async def test_on_a_phone_the_bank_button_comes_first_and_the_qr_is_folded(shop: Shop, payer: Payer) -> None:
    payment = await shop.sells(description="A very long description " * 6)
    tab = await payer.opens(payment, viewport=PHONE, color_scheme="dark", is_mobile=True, has_touch=True)
    code = tab.page.get_by_role("img", name="QR code")
    button = tab.page.get_by_role("link", name="Pay in your bank’s app")
    await expect(button).to_be_visible()
    await expect(code).to_have_count(0)
    await tab.page.get_by_text("Show QR code").click()
    await expect(code).to_be_visible()
    above, below = await button.bounding_box(), await code.bounding_box()
    assert above is not None
    assert below is not None
    assert above["y"] < below["y"]
    assert below["width"] >= 200
    assert await tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_on_a_desktop_the_qr_is_large_at_once(shop: Shop, payer: Payer) -> None:
    tab = await payer.opens(await shop.sells())
    code = tab.page.get_by_role("img", name="QR code")
    box = await code.bounding_box()
    assert box is not None
    assert box["width"] >= 240
    await expect(tab.page.get_by_text("Show QR code")).to_be_hidden()
    await tab.page.get_by_role("link", name="Русский").click()
    await tab.shows("Оплата через СБП")
    assert await tab.page.evaluate("document.documentElement.lang") == "ru"


async def test_subscription_confirmed_in_one_tab_updates_the_other(shop: Shop, payer: Payer) -> None:
    """A button, and an automatic return after 5 seconds (docs/window.md "Subscriptions")."""
    made = await shop.subscribes()
    watching = await payer.opens(made, stopped_at="2031-05-05T00:00:00Z")
    await watching.shows("Subscription terms")
    clicking = await payer.opens(made)
    await clicking.page.get_by_role("button", name="Continue").click()
    await clicking.shows("Confirm your subscription")
    await clicking.page.get_by_role("button", name="Confirm").click()
    await clicking.shows("Subscription confirmed")
    await watching.shows("Subscription confirmed")
    await expect(watching.page.locator("#soon-seconds")).to_be_visible()
    await watching.page.clock.run_for(5500)
    await watching.page.wait_for_url(shop.back)


async def test_changed_amount_updates_the_open_page_and_a_key_press_accepts_it(shop: Shop, payer: Payer) -> None:
    """The issued QR is withdrawn, and no page shows it any longer (docs/window.md "Subscriptions")."""
    made = await shop.subscribes()
    tab = await payer.opens(made)
    await tab.page.get_by_role("button", name="Continue").press("Enter")
    await tab.shows("Confirm your subscription")
    await expect(tab.page.locator("#window svg#qr")).to_be_attached()
    await shop.reprices(made, "990.00")
    await tab.shows("Subscription terms")
    await expect(tab.page.locator(".amount")).to_have_text("₽990.00")
    await expect(tab.page.locator("svg#qr")).to_have_count(0)
    await shop.reprices(made, "890.00")
    await expect(tab.page.locator(".amount")).to_have_text("₽890.00")
    await tab.page.get_by_role("button", name="Continue").click()
    await tab.shows("Confirm your subscription")
    await expect(tab.page.locator(".amount")).to_have_text("₽890.00")


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize(("locale", "button"), [("ru-RU", "Продолжить"), ("en-US", "Continue")])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_terms_and_their_button_fit_any_width(
    shop: Shop, payer: Payer, width: int, locale: str, button: str, scheme: str
) -> None:
    """Nothing is cut or scrolls sideways, and the button is large enough for a thumb."""
    made = await shop.subscribes(description="Ж" * 32, external_id="x" * 64)
    tab = await payer.opens(made, viewport={"width": width, "height": 800}, locale=locale, color_scheme=scheme)
    assert await tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    press = tab.page.get_by_role("button", name=button)
    box = await press.bounding_box()
    assert box is not None
    assert box["height"] >= 44
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    await press.click()
    await expect(tab.page.locator("#window")).to_have_attribute("data-face", "waiting")


async def test_payer_without_script_refuses_asks_for_a_new_qr_and_confirms(shop: Shop, payer: Payer) -> None:
    made = await shop.subscribes(binding_charge="none")
    tab = await payer.opens(made, java_script_enabled=False)
    await tab.shows("Subscription terms")
    await tab.page.get_by_role("button", name="Continue").click()
    await tab.shows("Confirm your subscription")
    await tab.page.get_by_role("button", name="Refuse").click()
    await tab.shows("A new QR code is needed")
    await tab.page.get_by_role("button", name="Show a new QR code").click()
    await tab.shows("Confirm your subscription")
    await tab.page.get_by_role("button", name="Confirm").click()
    await tab.shows("Subscription confirmed")

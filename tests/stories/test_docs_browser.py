"""The API reference and the guides in a real browser: search, light and dark, a phone's width, no request to another
server."""

from typing import Any, Literal

import pytest
from playwright.async_api import Browser, Page, expect

from cambist.core.usecases.accounts.accounts import create_account
from cambist.frontends.server.server import running
from cambist.frontends.settings.settings import Settings
from tests.patience import HANGS

FIRST = {
    "refund": "reference/refunds#create_refund",
    "get balance": "reference/money#get_balance",
    "AMOUNT_BELOW_MINIMUM": "reference/payments#create_payment",
    "sdk": "client#the-python-client",
    "test card": "sandbox#amounts-that-act-by-themselves",
    "verify": "webhooks#the-signature",
    "cancel payment": "payments#how-it-ends",
    "currency": "concepts#amounts-and-times",
}
"""The first result of each search."""

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def opened(browser: Browser, **context: Any) -> Page:
    """A tab of its own context, which waits as long as a busy machine takes."""
    page = await browser.new_page(**context)
    page.set_default_timeout(HANGS * 1000)
    return page


async def test_the_reference_is_searched_read_in_the_dark_and_on_a_phone(browser: Browser) -> None:
    async with running(Settings(database_url="memory://", port=0), works=False) as service:
        base = service.app.settings.base_url
        page = await opened(browser, viewport={"width": 360, "height": 740}, color_scheme="light")
        asked: list[str] = []
        said: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        await page.goto(f"{base}/docs")
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360
        await page.click("main a:text-is('Subscriptions')")
        await expect(page).to_have_url(f"{base}/docs/reference/subscriptions")
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360

        await page.fill("#search", "subscription ATTEMPTS_used")
        await expect(page.locator("article:visible")).to_have_count(1)
        await page.fill("#search", "xyzzy")
        await expect(page.locator("#nothing")).to_be_visible()
        await page.evaluate("location.hash = 'cancel_subscription'")
        await expect(page.locator("#cancel_subscription")).to_be_in_viewport()

        ground = "getComputedStyle(document.body).backgroundColor"
        light = await page.evaluate(ground)
        await page.click("#theme")
        dark = await page.evaluate(ground)
        assert dark != light
        await page.reload()
        assert await page.evaluate(ground) == dark, "the choice is kept"

        for guide in ("docs/webhooks", "docs/ru/webhooks", "docs/ru/errors"):
            await page.goto(f"{base}/{guide}")
            assert await page.evaluate("document.documentElement.scrollWidth") <= 360
        await page.keyboard.press("/")
        await page.keyboard.type("идемпотентность")
        await page.locator("#hits a", has_text="Идемпотентность").first.click()
        await expect(page).to_have_url(f"{base}/docs/ru/concepts#idempotency")
        await expect(page.locator("#idempotency")).to_be_in_viewport()
        await page.click("text=English")
        await expect(page).to_have_url(f"{base}/docs/concepts")
        assert [url for url in asked if not url.startswith(base)] == []
        assert said == []
        await page.close()


async def test_samples_have_a_tab_for_each_language_and_can_be_copied(browser: Browser) -> None:
    async with running(Settings(database_url="memory://", port=0), works=False) as service:
        base = service.app.settings.base_url
        page = await opened(browser, permissions=["clipboard-read", "clipboard-write"])
        await page.goto(f"{base}/docs/reference/payments")
        article = page.locator("#create_payment")
        await expect(article.get_by_role("tab")).to_have_text(["curl", "Python", "JavaScript", "PHP"])
        await article.get_by_role("tab", name="PHP").click()
        await expect(article.locator("figure.sample:visible").first).to_contain_text("stream_context_create")
        await expect(page.locator("#list_payments figure.sample:visible").first).to_contain_text("<?php")
        await page.keyboard.press("ArrowLeft")
        await expect(article.get_by_role("tab", name="JavaScript")).to_be_focused()
        await article.locator("figure.sample:visible .copy").first.click()
        assert (await page.evaluate("navigator.clipboard.readText()")).startswith("const response = await fetch(")
        await page.reload()
        await expect(article.get_by_role("tab", name="JavaScript")).to_have_attribute("aria-selected", "true")
        # The client has no call for it, so there is no Python.
        await article.get_by_role("tab", name="Python").click()
        await expect(page.locator("#get_payment_method_rate figure.sample:visible").first).to_contain_text(
            "curl -X GET"
        )
        await page.close()


async def test_search_puts_the_best_hit_first(browser: Browser) -> None:
    async with running(Settings(database_url="memory://", port=0), works=False) as service:
        base = service.app.settings.base_url
        page = await opened(browser)
        for start in ("docs", "docs/reference/refunds"):
            for asked, first in FIRST.items():
                await page.goto(f"{base}/{start}")
                await page.keyboard.press("/")
                await page.keyboard.type(asked)
                await expect(page.locator("#hits a").first).to_be_visible()
                await page.keyboard.press("Enter")
                await expect(page).to_have_url(f"{base}/docs/{first}")
                await expect(page.locator("#hits")).to_be_hidden()
                await expect(page.locator(f"#{first.partition('#')[2]}")).to_be_in_viewport()
        await page.close()


async def test_an_operation_is_tried_with_test_keys_which_stay_in_the_page(browser: Browser) -> None:
    async with running(Settings(database_url="memory://", port=0), works=False) as service:
        base = service.app.settings.base_url
        made = await create_account(service.app.ports, "Merchant")
        page = await opened(browser, viewport={"width": 360, "height": 740})
        await page.goto(f"{base}/docs/reference/payments")
        form = page.locator("#create_payment form.try")
        await form.locator("summary").click()
        await form.get_by_role("button", name="Send").click()
        await expect(form.locator(".said")).to_contain_text("Enter your test keys first")
        await page.fill("#keys [name=key]", made.live.api_key)
        await page.fill("#keys [name=secret]", made.live.api_secret)
        await form.get_by_role("button", name="Send").click()
        await expect(form.locator(".said")).to_contain_text("This is no test key")
        await page.fill("#keys [name=key]", made.test.api_key)
        await page.fill("#keys [name=secret]", made.test.api_secret)
        await form.get_by_role("button", name="Send").click()
        await expect(form.locator(".said")).to_contain_text("201 · X-Request-Id ")
        await expect(form.locator(".said")).to_contain_text('"status": "pending"')
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360
        kept = await page.evaluate(
            "JSON.stringify({...localStorage, ...sessionStorage}) + document.cookie + location.href"
        )
        assert made.test.api_secret not in kept
        assert made.test.api_key not in kept
        await page.reload()
        assert await page.input_value("#keys [name=secret]") == ""
        await page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_first_page_fits_a_phone_and_leads_to_the_reference(
    browser: Browser, scheme: Literal["light", "dark"]
) -> None:
    """docs/operations.md "The first page"."""
    async with running(Settings(database_url="memory://", port=0), works=False) as service:
        base = service.app.settings.base_url
        page = await opened(browser, viewport={"width": 360, "height": 740}, color_scheme=scheme)
        asked: list[str] = []
        said: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        await page.goto(f"{base}/")
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360
        dark = await page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
        assert dark is (scheme == "dark")
        await page.click("text=API reference")
        await page.click("#create_payment a")
        await expect(page.locator("article#create_payment")).to_be_in_viewport()
        assert [url for url in asked if not url.startswith(base)] == []
        assert said == []
        await page.close()

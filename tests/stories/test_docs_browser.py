"""The API reference in a real browser: search, light and dark, a phone's width, and nobody else asked for anything."""

from typing import Literal

import pytest
from playwright.async_api import Browser, expect

from cambist.frontends.http.server import running
from cambist.frontends.settings import Settings

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


async def test_the_reference_is_searched_read_in_the_dark_and_on_a_phone(browser: Browser) -> None:
    async with running(Settings(database_url="memory://", port=0), works=False) as service:
        base = service.house.settings.base_url
        page = await browser.new_page(viewport={"width": 360, "height": 740}, color_scheme="light")
        asked: list[str] = []
        said: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        await page.goto(f"{base}/docs")
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360

        await page.fill("#search", "subscription RETRIES_used")
        await expect(page.locator("article:visible")).to_have_count(1)
        await page.fill("#search", "no such words")
        await expect(page.locator("#nothing")).to_be_visible()
        await page.evaluate("location.hash = 'create_refund'")
        await expect(page.locator("#create_refund")).to_be_in_viewport()

        ground = "getComputedStyle(document.body).backgroundColor"
        light = await page.evaluate(ground)
        await page.click("#theme")
        dark = await page.evaluate(ground)
        assert dark != light
        await page.reload()
        assert await page.evaluate(ground) == dark, "the choice is kept"
        assert [url for url in asked if not url.startswith(base)] == []
        assert said == []
        await page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_first_page_fits_a_phone_and_leads_to_the_reference(
    browser: Browser, scheme: Literal["light", "dark"]
) -> None:
    """docs/operations.md "The first page"."""
    async with running(Settings(database_url="memory://", port=0), works=False) as service:
        base = service.house.settings.base_url
        page = await browser.new_page(viewport={"width": 360, "height": 740}, color_scheme=scheme)
        asked: list[str] = []
        said: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        await page.goto(f"{base}/")
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360
        dark = await page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
        assert dark is (scheme == "dark")
        await page.click("text=API reference")
        await expect(page.locator("#create_payment")).to_be_visible()
        assert [url for url in asked if not url.startswith(base)] == []
        assert said == []
        await page.close()

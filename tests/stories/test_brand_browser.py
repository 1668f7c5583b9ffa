"""A merchant's brand and a payer's second attempt in a real browser, on a phone and on a desktop, light and dark
(docs/window.md "Your brand", "Another attempt")."""

import os
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from cambist.core.domain.people.roles import Role
from tests.domain.test_brand import PNG
from tests.stories.browsers import WatchedTab
from tests.stories.test_dashboard_browser import DESKTOP, PHONE, Company, company, done, joined

__all__ = ["company"]
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SHOTS = os.environ.get("CAMBIST_TEST_SHOTS")
"""Folder for screenshots, for people who look at them."""


async def _look(page: Page, name: str) -> None:
    """Check that nothing is wider than the page, and keep a picture of it if wanted."""
    wide = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, name
    if SHOTS:
        await page.screenshot(path=Path(SHOTS) / f"{name}.png", full_page=True)


async def _failed(company: Company, **order: Any) -> str:
    """Return the page of a new payment that failed."""
    keys = {"X-Api-Key": company.account.test.api_key, "X-Api-Secret": company.account.test.api_secret}
    async with httpx.AsyncClient(base_url=company.service.app.settings.base_url, headers=keys) as client:
        answer = await client.post(
            "/api/v1/payments",
            json={"amount_rub": "1490.00", "description": "Pottery class", **order},
            headers={"Idempotency-Key": str(uuid4())},
        )
        made = answer.json()
        simulated = {"outcome": "failed", "failure_reason": "insufficient_funds"}
        await client.post(f"/api/v1/sandbox/payments/{made['id']}/simulate", json=simulated)
    return str(made["payment_url"])


@pytest.mark.parametrize(
    ("viewport", "scheme"), [(PHONE, "light"), (DESKTOP, "dark")], ids=["phone-light", "desktop-dark"]
)
async def test_owner_brands_the_page_and_a_payer_tries_again_on_it(
    browser: Browser, company: Company, viewport: Any, scheme: Literal["light", "dark"], tmp_path: Path
) -> None:
    name = f"{viewport['width']}-{scheme}"
    page, watched = await joined(browser, company, Role.OWNER, color_scheme=scheme)
    watched = WatchedTab(page, company.app, company.service.app.settings.base_url)
    await page.set_viewport_size(viewport)
    await page.goto(f"{company.app}/settings/brand")
    await page.get_by_label("Colour of buttons and links").fill("#FFDD00")
    await page.get_by_label("Contact for payers").fill("help@shop.example")
    await page.get_by_label("Text after a payment").fill("See you on Saturday")
    await page.get_by_role("button", name="Save").click()
    await expect(done(page)).to_have_text("Saved.")
    await expect(page.get_by_text("The button's text is dark")).to_be_visible()
    picture = tmp_path / "logo.png"
    picture.write_bytes(PNG)
    await page.locator("input[type=file]").set_input_files(picture)
    await page.get_by_role("button", name="Upload the logo").click()
    await expect(done(page)).to_have_text("Saved.")
    paid = page.frame_locator("iframe[title='Paid']")
    await paid.locator("main").scroll_into_view_if_needed()
    await expect(paid.get_by_text("See you on Saturday")).to_be_visible()
    await expect(paid.locator("img.shop__logo")).to_be_visible()
    await _look(page, f"brand-{name}")
    await page.goto(f"{company.app}/settings")
    await page.get_by_label("Let payers try again").check()
    await page.get_by_label("Let payers try again").locator("xpath=ancestor::form").get_by_role("button").click()
    await expect(done(page)).to_have_text("Saved.")
    assert watched.complaints == []

    link = await _failed(company, external_id=f"order-{name}")
    context = await browser.new_context(locale="en-US", viewport=viewport, color_scheme=scheme, reduced_motion="reduce")
    tabs = [await context.new_page() for _ in range(2)]
    payers = [WatchedTab(tab, company.service.app.settings.base_url) for tab in tabs]
    for tab in tabs:
        await tab.goto(link)
        await expect(tab.locator("img.shop__logo")).to_be_visible()
    await _look(tabs[0], f"failed-{name}")
    button = tabs[0].get_by_role("button", name="Try again")
    assert await button.evaluate("each => getComputedStyle(each).backgroundColor") == "rgb(255, 221, 0)"
    assert await button.evaluate("each => getComputedStyle(each).color") == "rgb(0, 0, 0)"
    await button.dblclick()
    await expect(tabs[0].get_by_role("heading", level=1)).to_have_text("Pay by SBP")
    await tabs[1].get_by_role("button", name="Try again").click()
    await expect(tabs[1].get_by_role("heading", level=1)).to_have_text("Pay by SBP")
    assert tabs[0].url == tabs[1].url != link
    await _look(tabs[0], f"waiting-{name}")
    await tabs[0].get_by_role("button", name="Pay ₽1,490.00").click()
    await expect(tabs[0].get_by_role("heading", level=1)).to_have_text("Paid")
    await expect(tabs[1].get_by_text("See you on Saturday")).to_be_visible()
    await _look(tabs[1], f"paid-{name}")
    assert [each.complaints for each in payers] == [[], []]
    await context.close()
    await page.context.close()

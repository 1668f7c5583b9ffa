"""Accessibility of the dashboard's screens, checked by axe-core in a real browser (docs/dashboard.md)."""

import os
from importlib.resources import files
from itertools import product

import pytest
from playwright.async_api import Browser, Page

from cambist.core.domain.people.roles import Role
from tests.stories.test_dashboard_browser import DESKTOP, PAGES, PHONE, Company, company, joined

__all__ = ["company"]
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
VIEWS = tuple(product(("en", "ru"), ("light", "dark"), (PHONE, DESKTOP)))
ALL = os.environ.get("ACCESSIBILITY") == "all"
"""Whether each screen is checked in all views (`nox -s accessibility`), or each in one of them in turn."""


async def violations(page: Page) -> list[str]:
    """What axe-core objects to in the open page. `evaluate` passes the page's strict policy, which blocks added
    scripts."""
    await page.evaluate(AXE)
    found = await page.evaluate("axe.run({resultTypes: ['violations']})")
    return [f"{each['id']}: {node['target']}" for each in found["violations"] for node in each["nodes"]]


async def test_axe_finds_nothing_on_any_screen(browser: Browser, company: Company) -> None:
    payment = await company.pays()
    page, watched = await joined(browser, company, Role.OWNER)
    await page.goto(f"{company.app}/payments/{payment}")
    await page.get_by_label("Amount, empty for all that is left").fill("10")
    await page.get_by_role("button", name="Apply for a refund").click()
    refund = page.url.removeprefix(company.app).partition("?")[0]
    await page.goto(f"{company.app}/people")
    person = await page.locator("main a[href*='/people/usr_']").first.get_attribute("href")
    await page.goto(f"{company.app}/shops")
    shop = await page.locator("main td a[href*='/shops/']").first.get_attribute("href")
    own = (f"/payments/{payment}", refund, str(person), str(shop), "/approvals", "/confirm", "/payments/pay_unknown")
    screens = (*PAGES, *own)
    found = []
    for number, path in enumerate(screens):
        for language, scheme, size in VIEWS if ALL else (VIEWS[number % len(VIEWS)],):
            await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # one of its words
            await page.set_viewport_size(size)  # type: ignore[arg-type]  # width and height
            await page.goto(f"{company.app}{path}{'&' if '?' in path else '?'}lang={language}")
            where = f"{path} {language} {scheme} {size['width']}"
            found += [f"{where}: {each}" for each in await violations(page)]
    await page.context.clear_cookies()
    for path, (language, scheme, size) in product(("/login", "/reset"), VIEWS if ALL else VIEWS[::3]):
        await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # one of its words
        await page.set_viewport_size(size)  # type: ignore[arg-type]  # width and height
        await page.goto(f"{company.app}{path}?lang={language}")
        found += [f"{path} {language} {scheme} {size['width']}: {each}" for each in await violations(page)]
    assert found == []
    assert [each for each in watched.complaints if "404" not in each] == []
    await page.context.close()


async def test_axe_finds_what_is_wrong(browser: Browser) -> None:
    page = await browser.new_page()
    await page.set_content("<html><body><img src='x.png'><input></body></html>")
    assert {each.partition(":")[0] for each in await violations(page)} >= {"image-alt", "label", "html-has-lang"}
    await page.close()

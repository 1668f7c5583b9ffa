"""Merchants' people in a real browser, at a real service: they join, work and sign in again (docs/dashboard.md)."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect

from cambist.core.domain.people.roles import Role
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.people.invitations import invite
from cambist.core.usecases.people.members import switch_user
from cambist.core.usecases.people.sessions import find_actor
from cambist.frontends.server.server import Running, listen, running
from cambist.frontends.settings.settings import Settings
from tests.people_kit import PASSWORD
from tests.stories.browsers import WatchedTab

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1280, "height": 800}
PAGES = (
    *("/home", "/home?period=30-days", "/payments", "/refunds", "/subscriptions", "/exchanges", "/exports", "/balance"),
    *("/payouts", "/payments?q=1490&by=amount", "/payments/views", "/links", "/links/new", "/counter"),
    *("/developers/keys", "/developers/webhooks", "/developers/events", "/developers/requests", "/developers/sandbox"),
    *("/developers/resends", "/clients", "/balance/day", "/receipts"),
    *("/shops", "/people", "/settings", "/settings/notifications", "/audit", "/profile"),
)


async def session_cookie(page: Page) -> str:
    [value] = [each.get("value") for each in await page.context.cookies() if each.get("name") == "__Host-cambist"]
    assert value
    return value


def done(page: Page) -> Locator:
    """Return the message about the last action. Live updates are a status, too, and may come at any moment."""
    return page.locator(".note[role=status]")


class Company:
    """A merchant's account at a running service."""

    def __init__(self, service: Running, account: accounts.NewAccount) -> None:
        self.service = service
        self.account = account
        self.app = service.app.settings.app_url

    async def invited(self, role: Role) -> str:
        """The link of a new invitation, in test mode."""
        ports = self.service.app.ports
        email = f"{role}-{uuid4().hex[:8]}@shop.example"
        made = await invite(ports, self.account.account_id, email, role, live=False, language="en")
        return made.link

    async def pays(self) -> str:
        """The id of a new paid payment."""
        keys = {"X-Api-Key": self.account.test.api_key, "X-Api-Secret": self.account.test.api_secret}
        async with httpx.AsyncClient(base_url=self.service.app.settings.base_url, headers=keys) as client:
            body = {"amount_rub": "1490.00", "external_id": "order-1", "client_phone": "+79001234567"}
            headers = {"Idempotency-Key": str(uuid4())}
            payment = (await client.post("/api/v1/payments", json=body, headers=headers)).json()["id"]
            await client.post(f"/api/v1/sandbox/payments/{payment}/simulate", json={"outcome": "paid"})
        return str(payment)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def company() -> AsyncIterator[Company]:
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    settings = Settings(database_url="memory://", port=port, app_url=f"http://localhost:{port}")
    async with running(settings, listener) as service:
        account = await accounts.create_account(service.app.ports, "Coffee House")
        await accounts.set_settings(service.app.ports, account.account_id, {"refunds": "true"})
        yield Company(service, account)


async def joined(browser: Browser, company: Company, role: Role, **options: object) -> tuple[Page, WatchedTab]:
    """Return a page of a person who has just joined, which records the browser's complaints."""
    context = await browser.new_context(locale="en-US", viewport=DESKTOP, **options)  # type: ignore[arg-type]
    page = await context.new_page()
    watched = WatchedTab(page, company.app)
    await page.goto(await company.invited(role))
    await page.get_by_label("Choose a password").fill(PASSWORD)
    await page.get_by_role("button", name="Join").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Home")
    return page, watched


async def test_support_refunds_an_order_on_a_phone(browser: Browser, company: Company) -> None:
    payment = await company.pays()
    page, watched = await joined(browser, company, Role.SUPPORT)
    await page.set_viewport_size(PHONE)  # type: ignore[arg-type]  # width and height
    await page.goto(f"{company.app}/payments")
    await page.get_by_text("Filter", exact=True).first.click()
    await page.get_by_label("Search", exact=True).fill(payment)
    await page.get_by_role("button", name="Filter").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Payment order-1")
    await page.get_by_label("Amount, empty for all that is left").fill("90,50")
    await page.get_by_role("button", name="Apply for a refund").click()
    await expect(done(page)).to_have_text("Created.")
    await expect(page.get_by_text("90.50")).to_be_visible()
    assert watched.complaints == []
    await page.context.close()


@pytest.mark.parametrize("javascript", [True, False])
async def test_support_searches_and_keeps_the_search(browser: Browser, company: Company, javascript: bool) -> None:
    await company.pays()
    page, watched = await joined(browser, company, Role.SUPPORT, java_script_enabled=javascript)
    await page.set_viewport_size(PHONE)  # type: ignore[arg-type]  # width and height
    await page.goto(f"{company.app}/payments")
    await page.get_by_text("Filter", exact=True).first.click()
    await page.get_by_label("Search", exact=True).fill("4567")
    await page.locator("summary", has_text="Columns").click()
    await page.get_by_label("Payer's phone").check()
    await page.get_by_label("Shop", exact=True).uncheck()
    await page.get_by_role("button", name="Filter").click()
    await expect(page.get_by_text("***4567").first).to_be_visible()
    searched = page.get_by_role("navigation", name="Searched as")
    await expect(searched.locator("[aria-current]")).to_have_text("Phone")
    await page.get_by_label("Name", exact=True).fill("Calls of Anna")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(done(page)).to_have_text("Saved.")
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    await page.goto(f"{company.app}/payments")
    await page.get_by_role("link", name="Calls of Anna").click()
    await expect(page.get_by_text("***4567").first).to_be_visible()
    await searched.get_by_role("link", name="Amount").click()
    await expect(page.get_by_text("Nothing matches the filter.")).to_be_visible()
    await page.get_by_role("link", name="Manage views").click()
    await page.get_by_role("link", name="Rename or delete").click()
    await page.get_by_label("Name", exact=True).fill("Anna")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_role("link", name="Anna", exact=True)).to_be_visible()
    await page.get_by_role("link", name="Rename or delete").click()
    await page.get_by_role("button", name="Delete this view").click()
    await expect(page.get_by_text("No views yet.")).to_be_visible()
    assert watched.complaints == []
    await page.context.close()


@pytest.mark.parametrize("javascript", [True, False])
async def test_support_writes_a_note_on_a_phone(browser: Browser, company: Company, javascript: bool) -> None:
    payment = await company.pays()
    page, watched = await joined(browser, company, Role.SUPPORT, java_script_enabled=javascript)
    await page.set_viewport_size(PHONE)  # type: ignore[arg-type]  # width and height
    await page.goto(f"{company.app}/payments/{payment}")
    await expect(page.get_by_role("heading", name="What happened")).to_be_visible()
    await page.get_by_label("New note").fill("Called: wants the cheque again.\nPromised for tomorrow.")
    await page.get_by_role("button", name="Add the note").click()
    await expect(done(page)).to_have_text("Saved.")
    await expect(page.get_by_text("wants the cheque again")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    await page.get_by_role("button", name=re.compile("Delete your note of")).click()
    await expect(page.get_by_text("No notes yet.")).to_be_visible()
    assert watched.complaints == []
    await page.context.close()


async def test_passkey_signs_in_without_a_name(browser: Browser, company: Company) -> None:
    page, watched = await joined(browser, company, Role.OWNER)
    authenticator = await page.context.new_cdp_session(page)
    await authenticator.send("WebAuthn.enable", {"enableUI": False})
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    await authenticator.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    await page.goto(f"{company.app}/profile")
    await page.locator("form[data-passkey=create]").get_by_label("Name").fill("Laptop")
    await page.get_by_role("button", name="Add a passkey").click()
    await expect(page.get_by_role("cell", name="Laptop")).to_be_visible()
    before = await session_cookie(page)
    await page.goto(f"{company.app}/confirm?next=/people")
    await page.get_by_role("button", name="Confirm with a passkey").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("People")
    after = await session_cookie(page)
    assert before != after
    await page.get_by_role("button", name="Sign out").click()
    await page.get_by_role("button", name="Sign in with a passkey").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Home")
    # The same answer a second time: the challenge counts once.
    await page.goto(f"{company.app}/profile")
    await page.get_by_role("button", name="Sign out").click()
    replies: list[str] = []
    page.on("request", lambda request: replies.append(request.post_data or "") if request.method == "POST" else None)
    await page.get_by_role("button", name="Sign in with a passkey").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Home")
    [reply] = [each for each in replies if "reply=" in each]
    again = await page.context.request.post(
        f"{company.app}/login/passkey",
        data=reply,
        headers={"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"},
    )
    assert again.status in (401, 403)
    assert [each for each in watched.complaints if "favicon" not in each] == []
    await page.context.close()


async def test_everything_works_without_script(browser: Browser, company: Company) -> None:
    payment = await company.pays()
    page, _ = await joined(browser, company, Role.OWNER, java_script_enabled=False)
    await page.goto(f"{company.app}/payments/{payment}")
    await page.get_by_label("Amount, empty for all that is left").fill("10")
    await page.get_by_role("button", name="Apply for a refund").click()
    await expect(done(page)).to_have_text("Created.")
    await page.goto(f"{company.app}/shops")
    await page.get_by_label("Name").fill("No script")
    await page.get_by_role("button", name="Create the shop").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("No script")
    await page.goto(f"{company.app}/login")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Home")
    await page.context.close()


@pytest.mark.parametrize("width", [320, 360, 1280])
async def test_no_page_is_wider_than_the_screen(browser: Browser, company: Company, width: int) -> None:
    await company.pays()
    page, watched = await joined(browser, company, Role.OWNER)
    await page.set_viewport_size({"width": width, "height": 800})
    for path in PAGES:
        for language in ("en", "ru"):
            await page.goto(f"{company.app}{path}{'&' if '?' in path else '?'}lang={language}")
            wide = await page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
            assert not wide, f"{path} at {width}, {language}"
    assert watched.complaints == []
    await page.context.close()


async def test_keyboard_reaches_the_content_at_once(browser: Browser, company: Company) -> None:
    page, _ = await joined(browser, company, Role.VIEWER)
    await page.goto(f"{company.app}/payments")
    await page.keyboard.press("Tab")
    assert await page.evaluate("document.activeElement.className") == "skip"
    await page.keyboard.press("Enter")
    assert await page.evaluate("document.activeElement.id") == "main"
    await page.context.close()


async def test_test_mode_is_said_on_every_page(browser: Browser, company: Company) -> None:
    page, _ = await joined(browser, company, Role.VIEWER)
    for path in ("/home", "/payments", "/profile"):
        await page.goto(f"{company.app}{path}")
        await expect(page.get_by_text(re.compile("no real money moves"))).to_be_visible()
    await page.context.close()


async def test_open_page_says_that_there_is_something_new(browser: Browser, company: Company) -> None:
    page, watched = await joined(browser, company, Role.OWNER)
    async with page.expect_response("**/stream*"):
        await page.goto(f"{company.app}/payments")
    news = page.locator("[data-stream]")
    await expect(news).to_be_hidden()
    payment = await company.pays()
    await expect(news).to_contain_text("There is something new.", timeout=15_000)
    await news.get_by_role("link", name="Load it").click()
    await expect(page.locator(f"a[href*='{payment}']")).to_be_visible()
    assert watched.complaints == []
    await page.context.close()


@pytest.mark.parametrize("with_script", [True, False], ids=["script", "plain"])
async def test_owner_exports_payments_and_downloads_the_file(
    browser: Browser, company: Company, tmp_path: Path, with_script: bool
) -> None:
    payment = await company.pays()
    page, watched = await joined(browser, company, Role.OWNER, java_script_enabled=with_script)
    await page.goto(f"{company.app}/payments?status=paid")
    await page.get_by_label("Format").select_option("csv")
    await page.get_by_role("button", name="Export").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Exports")
    link = page.get_by_role("link", name=re.compile("Download"))
    while not await link.count():  # the service's worker writes it meanwhile
        await page.goto(f"{company.app}/exports")
    async with page.expect_download() as coming:
        await link.click()
    download = await coming.value
    assert re.fullmatch(r"payments-\d{4}-\d\d-\d\d\.csv", download.suggested_filename)
    await download.save_as(tmp_path / "file.csv")
    assert payment in (tmp_path / "file.csv").read_text("utf-8-sig")
    await page.get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("No exports.")).to_be_visible()
    assert watched.complaints == []
    await page.context.close()


async def test_open_page_of_exports_says_that_a_file_is_ready(browser: Browser, company: Company) -> None:
    await company.pays()
    page, watched = await joined(browser, company, Role.FINANCE)
    async with page.expect_response("**/stream?about=exports"):
        await page.goto(f"{company.app}/exports")
    other = await page.context.new_page()
    await other.goto(f"{company.app}/payments")
    await other.get_by_role("button", name="Export").click()
    await expect(other.get_by_role("heading", level=1)).to_have_text("Exports")
    await other.close()
    await page.bring_to_front()
    news = page.locator("[data-stream]")
    await expect(news).to_contain_text("There is something new.", timeout=15_000)
    await news.get_by_role("link", name="Load it").click()
    await expect(page.get_by_role("cell", name="Payments, XLSX: all")).to_be_visible()
    assert watched.complaints == []
    await page.context.close()


async def test_live_updates_end_when_the_person_is_disabled(browser: Browser, company: Company) -> None:
    page, _ = await joined(browser, company, Role.OWNER)
    session = await session_cookie(page)
    headers = {"Cookie": f"__Host-cambist={session}"}
    await page.context.close()
    async with httpx.AsyncClient(base_url=company.app, headers=headers, timeout=15) as client:
        assert (await client.head("/stream")).status_code == 200
        async with client.stream("GET", "/stream") as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            lines = answer.aiter_lines()
            while not (line := await anext(lines)).startswith("data:"):
                pass
            assert "news" in line
            ports = company.service.app.ports
            actor = await find_actor(ports, session)
            assert actor is not None
            await switch_user(ports, actor.user.id, enabled=False)
            assert [each async for each in lines if "data:" in each] == ['data: {"status":null,"face":"closed"}']


async def test_password_can_be_read_while_it_is_typed(browser: Browser, company: Company) -> None:
    page = await (await browser.new_context(locale="en-US")).new_page()
    await page.goto(f"{company.app}/login")
    field = page.get_by_label("Password", exact=True)
    await field.fill("horse")
    await page.get_by_role("button", name="Show").click()
    await expect(field).to_have_attribute("type", "text")
    await page.get_by_role("button", name="Hide").click()
    await expect(field).to_have_attribute("type", "password")
    await page.context.close()

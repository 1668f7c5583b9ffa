"""A client in a real browser, at a real service: uploads documents and is verified
(docs/kyc.md "A page that does it")."""

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from cambist.adapters.kyc.simulator import SimulatedVerifier
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.kyc.clients import operation_of
from cambist.core.usecases.accounts.accounts import NewAccount, create_account, set_settings
from cambist.core.usecases.kyc.gate import find_client
from cambist.frontends.http.payer.kyc_texts import KYC_TEXTS
from cambist.frontends.server.server import Running, running
from cambist.frontends.settings.settings import Settings
from cambist.ports.kyc import CheckStatus, DocumentState, Verdict
from tests.kyc_kit import JPEG, PNG
from tests.patience import HANGS
from tests.stories.kyc_tab import PHONE, TEXTS, Tab, give, picture

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


class Merchant:
    """A merchant that requires KYC, at a running service."""

    def __init__(self, service: Running, account: NewAccount) -> None:
        self.service = service
        self.account = account
        self.base = service.app.settings.base_url

    async def link(self, phone: str) -> str:
        """The hosted page for a client, as POST /kyc/check gives it."""
        keys = {"X-Api-Key": self.account.live.api_key, "X-Api-Secret": self.account.live.api_secret}
        async with httpx.AsyncClient(base_url=self.base, headers=keys) as client:
            answer = await client.post("/api/v1/kyc/check", json={"phone": phone})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["kyc_url"])

    async def set(self, **settings: str) -> None:
        await set_settings(self.service.app.ports, self.account.account_id, settings)

    @property
    def verifier(self) -> SimulatedVerifier:
        verifier = self.service.app.ports.kyc
        assert isinstance(verifier, SimulatedVerifier)
        return verifier


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def merchant(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Merchant]:
    folder = tmp_path_factory.mktemp("kyc")
    async with running(Settings(database_url="memory://", data_dir=folder, port=0)) as service:
        account = await create_account(service.app.ports, "Coffee House")
        merchant = Merchant(service, account)
        await merchant.set(kyc="required", return_url="https://shop.example/cabinet")
        yield merchant


@pytest_asyncio.fixture(loop_scope="session")
async def tab(browser: Browser, merchant: Merchant) -> AsyncIterator[Tab]:
    context = await browser.new_context(viewport=PHONE, locale="en-US", reduced_motion="reduce")  # type: ignore[arg-type]  # a plain dict
    context.set_default_timeout(HANGS * 1000)
    opened = Tab(await context.new_page(), merchant.base)
    yield opened
    await context.close()
    assert opened.complaints == []


async def test_documents_are_uploaded_and_the_page_turns_by_itself(tab: Tab, merchant: Merchant) -> None:
    await tab.page.goto(await merchant.link("+79001234501"))
    await tab.shows("documents")
    await tab.fits()
    await tab.page.click("#kyc-send")
    await expect(tab.page.locator("#kyc-error")).to_have_text(TEXTS["error_missing"])
    await give(tab, "selfie", picture(b"x", "a.gif", "image/gif"))
    await give(tab, "document", picture(PNG, "b.png", "image/png"))
    await tab.page.click("#kyc-send")
    await expect(tab.page.locator("#kyc-error")).to_have_text(TEXTS["error_type"])
    await give(tab, "selfie", picture(JPEG + bytes(3_000_000)))
    await tab.page.click("#kyc-send")
    await tab.shows("processing")
    await tab.fits()
    await tab.shows("verified")
    await tab.fits()
    await expect(tab.page.locator("#return")).to_have_attribute("href", "https://shop.example/")


async def test_a_refused_client_sees_why_and_tries_again(tab: Tab, merchant: Merchant) -> None:
    phone = "+79001234502"
    await tab.page.goto(await merchant.link(phone))
    await give(tab, "selfie", picture(JPEG))
    await give(tab, "document", picture(JPEG))
    await tab.page.click("#kyc-send")
    await tab.shows("processing")
    ports = merchant.service.app.ports
    async with ports.storage.unit() as unit:
        client = await find_client(ports, unit, merchant.account.account_id, Mode.LIVE, phone)
    assert client is not None
    await merchant.verifier.simulate(
        operation_of(client), Verdict(status=CheckStatus.FAILED, passport=DocumentState.FAILED)
    )
    await tab.shows("documents")
    await expect(tab.page.locator(".kyc__again")).to_have_text(TEXTS["again_text"])
    await tab.fits()


async def test_the_form_s_details_lead_to_the_verifier(tab: Tab, merchant: Merchant) -> None:
    await merchant.set(kyc_flow="redirect")
    try:
        await tab.page.goto(await merchant.link("+79001234503"))
        await tab.shows("details")
        await tab.fits()
        await tab.page.fill("input[name=email]", "client@example.com")
        await tab.page.click("#kyc-send")
        await tab.shows("form")
        await tab.fits()
        href = await tab.page.locator("#kyc-go").get_attribute("href")
        assert href is not None
        assert href.startswith("https://kyc.example/form/")
        await tab.shows("verified")
    finally:
        await merchant.set(kyc_flow="documents")


async def test_page_speaks_russian_when_asked(tab: Tab, merchant: Merchant) -> None:
    await tab.page.goto(await merchant.link("+79001234504"))
    await tab.page.click("a[hreflang=ru]")
    await tab.shows("documents", KYC_TEXTS["ru"])
    await tab.fits()


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_visitor_without_a_link_enters_the_phone_and_goes_on(
    browser: Browser, merchant: Merchant, width: int, scheme: Any
) -> None:
    """docs/kyc.md "Without a link of yours": without a script, too, as far as the documents."""
    view: Any = {"width": width, "height": 740}
    context = await browser.new_context(viewport=view, color_scheme=scheme, locale="en-US")
    context.set_default_timeout(HANGS * 1000)
    tab = Tab(await context.new_page(), merchant.base)
    await tab.page.goto(f"{merchant.base}/kyc?redirect=https://evil.example/")
    await tab.shows("ask")
    await tab.fits()
    await tab.page.fill("input[name=phone]", "12")
    await tab.page.click("button")
    await expect(tab.page.get_by_role("alert")).to_have_text(TEXTS["error_phone"])
    await tab.fits()
    await tab.page.fill("input[name=phone]", f"8 900 1{width:04}-{len(scheme)}1")
    await tab.page.click("button")
    await tab.shows("documents")
    assert f"9001{width:04}" not in tab.page.url
    await give(tab, "selfie", picture(JPEG))
    await give(tab, "document", picture(PNG, "b.png", "image/png"))
    await tab.page.click("#kyc-send")
    await expect(tab.page.locator("h1")).to_have_text(
        re.compile(f"{TEXTS['processing_head']}|{TEXTS['verified_head']}|{TEXTS['received_head']}")
    )
    await expect(tab.page.locator("#return")).to_have_attribute("href", "https://shop.example/")
    await context.close()

"""A merchant's clients are verified by Sumsub's fake, over real HTTP and in a real browser, and Sumsub's notifications
come to the address that its cabinet was told (docs/providers/sumsub.md "How a check goes")."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from cambist.adapters.clock import SystemClock
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.kyc.clients import Client, operation_of
from cambist.core.usecases.accounts.accounts import NewAccount, create_account, set_settings
from cambist.core.usecases.kyc.gate import find_client
from cambist.core.usecases.notification_addresses import list_addresses
from cambist.frontends.server.server import Running, running
from cambist.frontends.settings.settings import Settings
from tests.kyc_kit import JPEG, PNG
from tests.patience import HANGS
from tests.providers.sumsub.fake import LEVEL, NOTIFICATION_SECRET, SECRET, TOKEN, FakeSumsub
from tests.stories.kyc_tab import PHONE, Tab, give, picture
from tests.stories.processes import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")


class World:
    """A merchant at a running service whose verifier is Sumsub's fake."""

    def __init__(self, service: Running, account: NewAccount, fake: FakeSumsub, http: httpx.AsyncClient) -> None:
        self.service, self.account, self.fake, self.http = service, account, fake, http
        self.base = service.app.settings.base_url
        self.ports = service.app.ports

    async def set(self, **settings: str) -> None:
        await set_settings(self.ports, self.account.account_id, settings)

    async def post(self, path: str, body: Any) -> httpx.Response:
        keys = {"X-Api-Key": self.account.live.api_key, "X-Api-Secret": self.account.live.api_secret}
        return await self.http.post(f"{self.base}/api/v1{path}", json=body, headers=keys)

    async def check(self, phone: str) -> dict[str, Any]:
        answer = await self.post("/kyc/check", {"phone": phone})
        assert answer.status_code == 200, answer.text
        said: dict[str, Any] = answer.json()
        return said

    async def uploaded(self, content: bytes, content_type: str) -> str:
        grant = (await self.post("/kyc/upload-url", {"content_type": content_type})).json()
        put = await self.http.put(grant["upload_url"], content=content, headers={"Content-Type": content_type})
        assert put.status_code == 200, put.text
        return str(grant["file_key"])

    async def client(self, phone: str) -> Client:
        async with self.ports.storage.unit() as unit:
            client = await find_client(self.ports, unit, self.account.account_id, Mode.LIVE, phone)
        assert client is not None
        return client

    async def operation(self, phone: str) -> str:
        return operation_of(await self.client(phone))

    async def tell(self, phone: str, **more: str) -> int:
        """Let Sumsub post a notification about the client's check, and return our status."""
        [address] = [each for each in await list_addresses(self.ports) if each.adapter == "sumsub"]
        headers, body = self.fake.post(await self.operation(phone), **more)
        return (await self.http.post(address.address or "", content=body, headers=dict(headers))).status_code

    async def becomes(self, phone: str, holds: Callable[[Client], bool]) -> None:
        """Wait until the stored client has this state, without polling the service: only notifications may change
        it."""

        async def look() -> bool:
            return holds(await self.client(phone))

        await eventually(look)

    async def events(self) -> list[tuple[str, str]]:
        keys = {"X-Api-Key": self.account.live.api_key, "X-Api-Secret": self.account.live.api_secret}
        listed = (await self.http.get(f"{self.base}/api/v1/events", headers=keys)).json()["data"]
        one: Callable[[str], Awaitable[httpx.Response]] = lambda event: self.http.get(  # noqa: E731
            f"{self.base}/api/v1/events/{event}", headers=keys
        )
        told = [(await one(each["id"])).json()["payload"] for each in listed]
        return [(each["phone"], each["status"]) for each in told if each["event"] == "kyc.status_changed"]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with FakeSumsub(SystemClock().now) as fake, httpx.AsyncClient() as http:
        providers = {
            "sumsub_token": TOKEN,
            "sumsub_secret": SECRET,
            "sumsub_notification_secret": NOTIFICATION_SECRET,
            "sumsub_level": LEVEL,
            "sumsub_url": fake.url,
        }
        settings = Settings(
            database_url="memory://", data_dir=tmp_path_factory.mktemp("kyc"), port=0, kyc="sumsub", providers=providers
        )
        async with running(settings) as service:
            account = await create_account(service.app.ports, "Coffee House")
            world = World(service, account, fake, http)
            await world.set(kyc="required", return_url="https://shop.example/cabinet")
            yield world


async def test_client_is_verified_by_documents_after_sumsubs_notification(world: World) -> None:
    phone = "+79001234601"
    assert (await world.check(phone))["status"] == "required"
    body = {
        "phone": phone,
        "selfie_key": await world.uploaded(JPEG, "image/jpeg"),
        "document_key": await world.uploaded(PNG, "image/png"),
    }
    assert (await world.post("/kyc/register", body)).json() == {"status": "processing"}
    applicant = world.fake.world.named(await world.operation(phone))
    assert [image.kind for image in applicant.images] == ["SELFIE", "PASSPORT"]
    world.fake.decide(applicant.external, "GREEN")
    assert await world.tell(phone, algorithm="HMAC_SHA1_HEX") == 403
    assert await world.tell(phone) == 200
    await world.becomes(phone, lambda client: client.verified_at is not None)
    assert (await world.check(phone))["status"] == "verified"
    assert (phone, "verified") in await world.events()


async def test_a_green_that_turns_red_blocks_the_client(world: World) -> None:
    """The merchant learns it from refusals, because no event reports it."""
    phone = "+79001234602"
    await world.set(kyc_flow="redirect")
    try:
        form = {"phone": phone, "email": "client@example.com", "user_type": "individual"}
        begun = (await world.post("/kyc/register", form)).json()
        assert begun["status"] == "required"
        assert begun["kycUrl"].startswith("https://in.sumsub.com/websdk/p/")
        operation = await world.operation(phone)
        world.fake.fill_in(operation)
        world.fake.decide(operation, "RED", "RETRY", ("IDENTITY",))
        assert await world.tell(phone) == 200
        assert (await world.check(phone))["kyc_url"] == begun["kycUrl"], "it may be mended there"
        world.fake.fill_in(operation)
        world.fake.decide(operation, "GREEN")
        assert await world.tell(phone) == 200
        await world.becomes(phone, lambda client: client.verified_at is not None)
        world.fake.decide(operation, "RED", "RETRY", ("IDENTITY",))
        assert await world.tell(phone) == 200
        await world.becomes(phone, lambda client: client.blocked)
    finally:
        await world.set(kyc_flow="documents")
    assert (await world.check(phone))["status"] == "failed"
    assert [status for told, status in await world.events() if told == phone] == ["verified"]


@pytest.mark.browser
async def test_a_client_is_verified_on_the_hosted_page(browser: Browser, world: World) -> None:
    """Documents are uploaded in the browser and reach Sumsub, and the page updates when Sumsub decides."""
    phone = "+79001234603"
    context = await browser.new_context(viewport=PHONE, locale="en-US", reduced_motion="reduce")  # type: ignore[arg-type]  # a plain dict
    context.set_default_timeout(HANGS * 1000)
    tab = Tab(await context.new_page(), world.base)
    try:
        await tab.page.goto(str((await world.check(phone))["kyc_url"]))
        await tab.shows("documents")
        await give(tab, "selfie", picture(JPEG + bytes(2_000_000)))
        await give(tab, "document", picture(PNG, "b.png", "image/png"))
        await tab.page.click("#kyc-send")
        await tab.shows("processing")
        operation = await world.operation(phone)
        assert len(world.fake.world.named(operation).images) == 2
        world.fake.decide(operation, "RED", "RETRY", ("IDENTITY",))
        assert await world.tell(phone) == 200
        await tab.shows("documents")  # another try, with other documents, is another check
        await give(tab, "selfie", picture(JPEG))
        await give(tab, "document", picture(PNG, "b.png", "image/png"))
        await tab.page.click("#kyc-send")
        await tab.shows("processing")
        again = await world.operation(phone)
        assert again != operation
        world.fake.decide(again, "GREEN")
        assert await world.tell(phone) == 200
        await tab.shows("verified")
        await expect(tab.page.locator("#return")).to_have_attribute("href", "https://shop.example/")
    finally:
        await context.close()
    assert tab.complaints == []


async def test_two_registrations_and_their_notification_at_once_are_one_check(world: World) -> None:
    phone = "+79001234604"
    keys = [(await world.uploaded(JPEG, "image/jpeg"), await world.uploaded(PNG, "image/png")) for _ in range(2)]
    bodies = [{"phone": phone, "selfie_key": selfie, "document_key": document} for selfie, document in keys]
    answers = await asyncio.gather(*(world.post("/kyc/register", body) for body in bodies))
    assert [answer.json() for answer in answers] == [{"status": "processing"}] * 2
    mine = [each for each in world.fake.world.applicants.values() if each.told["phone"] == phone]
    assert [applicant.reviews for applicant in mine] == [1]

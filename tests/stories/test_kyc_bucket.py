"""A client is verified on the hosted page in a real browser, with documents that go straight to a bucket and from there
to Sumsub (docs/providers/s3.md, docs/providers/sumsub.md)."""

import httpx
import pytest
from playwright.async_api import Browser

from cambist.adapters.clock import SystemClock
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.kyc.clients import operation_of
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.core.usecases.kyc.gate import find_client
from cambist.core.usecases.notification_addresses import list_addresses
from cambist.frontends.server.server import running
from cambist.frontends.settings.settings import Settings
from tests.fake_s3 import ACCESS, BUCKET, REGION, SECRET, FakeS3
from tests.kyc_kit import JPEG, PNG
from tests.patience import HANGS
from tests.providers.sumsub.fake import LEVEL, NOTIFICATION_SECRET, TOKEN, FakeSumsub
from tests.providers.sumsub.fake import SECRET as SUMSUB_SECRET
from tests.stories.kyc_tab import PHONE, Tab, give, picture

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


def settings(sumsub: FakeSumsub, bucket: FakeS3) -> Settings:
    providers = {
        "sumsub_token": TOKEN,
        "sumsub_secret": SUMSUB_SECRET,
        "sumsub_notification_secret": NOTIFICATION_SECRET,
        "sumsub_level": LEVEL,
        "sumsub_url": sumsub.url,
        "s3_bucket": BUCKET,
        "s3_region": REGION,
        "s3_endpoint": bucket.url,
        "s3_access_key": ACCESS,
        "s3_secret_key": SECRET,
        "s3_single_use": True,
    }
    return Settings(database_url="memory://", port=0, kyc="sumsub", files="s3", providers=providers)


async def test_documents_reach_bucket_and_verifier_by_single_use_addresses(browser: Browser) -> None:
    clock, phone, selfie = SystemClock(), "+79001234701", JPEG + bytes(2_000_000)
    async with (
        FakeSumsub(clock.now) as sumsub,
        FakeS3(clock) as bucket,
        httpx.AsyncClient() as http,
        running(settings(sumsub, bucket)) as service,
    ):
        ports, base = service.app.ports, service.app.settings.base_url
        bucket.origin = base
        account = await create_account(ports, "Coffee House")
        await set_settings(ports, account.account_id, {"kyc": "required"})
        keys = {"X-Api-Key": account.live.api_key, "X-Api-Secret": account.live.api_secret}
        asked = await http.post(f"{base}/api/v1/kyc/check", json={"phone": phone}, headers=keys)
        context = await browser.new_context(viewport=PHONE, locale="en-US", reduced_motion="reduce")  # type: ignore[arg-type]  # a plain dict
        context.set_default_timeout(HANGS * 1000)
        tab = Tab(await context.new_page(), base, bucket.url)
        try:
            await tab.page.goto(asked.json()["kyc_url"])
            await give(tab, "selfie", picture(selfie))
            await give(tab, "document", picture(PNG, "b.png", "image/png"))
            await tab.page.click("#kyc-send")
            await tab.shows("processing")
            assert sorted(bucket.files.values()) == [("image/jpeg", selfie), ("image/png", PNG)]
            async with ports.storage.unit() as unit:
                client = await find_client(ports, unit, account.account_id, Mode.LIVE, phone)
            assert client is not None
            operation = operation_of(client)
            assert [image.kind for image in sumsub.world.named(operation).images] == ["SELFIE", "PASSPORT"]
            sumsub.decide(operation, "GREEN")
            [address] = [each for each in await list_addresses(ports) if each.adapter == "sumsub"]
            headers, body = sumsub.post(operation)
            told = await http.post(address.address or "", content=body, headers=dict(headers))
            assert told.status_code == 200
            await tab.shows("verified")
        finally:
            await context.close()
    assert tab.complaints == []
    sent = [each for each in bucket.requests if each.method == "PUT" and "probe" not in each.path]
    assert {each.headers["if-none-match"] for each in sent} == {"*"}

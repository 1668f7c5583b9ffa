"""Makes the picture of the payer window: `nox -s pictures`. It needs Chromium, and shows a service of its own."""

import asyncio
import shutil
import sys
from pathlib import Path

import httpx2
from playwright.async_api import Browser, async_playwright

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from cambist.core.usecases.accounts import accounts  # noqa: E402  (the program need not be installed)
from cambist.frontends.server.server import running  # noqa: E402
from cambist.frontends.settings.settings import Settings  # noqa: E402

IMAGES = ROOT / "docs" / "images"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
KEY = "6f1c6f0e-8f0b-4a57-9d0e-0f0a5f3c2b11"


async def main() -> None:
    """The page of a payment that waits for its payer."""
    IMAGES.mkdir(exist_ok=True)
    async with running(Settings(database_url="memory://", port=0)) as service, async_playwright() as playwright:
        account = await accounts.create_account(service.app.ports, "Coffee House")
        base_url = service.app.settings.base_url
        found = next((path for path in map(shutil.which, CHROMIUM) if path), playwright.chromium.executable_path)
        browser = await playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        headers = {"X-Api-Key": account.test.api_key, "X-Api-Secret": account.test.api_secret, "Idempotency-Key": KEY}
        async with httpx2.AsyncClient(base_url=base_url, headers=headers) as client:
            order = {"amount_rub": "490.00", "description": "Two tickets", "external_id": "order-7"}
            payment = (await client.post("/api/v1/payments", json=order)).json()
        await picture(browser, f"{payment['payment_url']}?lang=en", IMAGES / "window.png", 860, 800)
        await browser.close()


async def picture(browser: Browser, address: str, path: Path, width: int, height: int) -> None:
    """The first screen of a page."""
    page = await browser.new_page(viewport={"width": width, "height": height})
    await page.goto(address)
    await page.screenshot(path=path)
    await page.close()


if __name__ == "__main__":
    asyncio.run(main())

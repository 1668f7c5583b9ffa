"""Makes the pictures of docs/console.md and docs/dashboard.md: `nox -s screenshots`. Needs Chromium; shows the
demonstration."""

import asyncio
import re
import shutil
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4  # noqa: TID251 - a merchant's own keys

import httpx2
from playwright.async_api import Browser, async_playwright

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from cambist.core.domain.people.roles import Role  # noqa: E402
from cambist.core.usecases.accounts.accounts import create_account, set_settings  # noqa: E402
from cambist.core.usecases.accounts.shops import create_shop  # noqa: E402
from cambist.core.usecases.people.invitations import invite  # noqa: E402
from cambist.frontends.console.app import Console  # noqa: E402  (the program need not be installed)
from cambist.frontends.console.demo import living  # noqa: E402
from cambist.frontends.server.server import listen, running  # noqa: E402
from cambist.frontends.settings.settings import Settings  # noqa: E402

IMAGES = ROOT / "docs" / "images"
CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
SIZE = (120, 34)
WALKS: dict[str, tuple[str, ...]] = {
    "console-home": ("0",),
    "console-payments": ("0", "1", "m", "down", "down"),
    "console-timeline": ("0", "1", "m", "f", "down", "enter", *("down",) * 4, "enter", "enter"),
    "console-settlement": ("0", "4", "s", "enter", "down", "enter", "tab", "enter", "down", "enter"),
}
"""The keys that lead to each picture."""


async def main() -> None:
    """Each picture in turn, of one sitting."""
    IMAGES.mkdir(exist_ok=True)
    drawn: dict[str, str] = {}
    async with living("olga") as shared:
        console = Console(shared)
        async with console.run_test(size=SIZE) as pilot:
            await pilot.pause(4)
            for name, keys in WALKS.items():
                for key in keys:
                    await pilot.press(key)
                    await pilot.pause(0.3)
                await pilot.pause(1)
                drawn[name] = console.export_screenshot(title="cambist console --demo")
                while console.screen.is_modal:
                    await pilot.press("escape")
    async with async_playwright() as playwright:
        found = next((path for path in map(shutil.which, CHROMIUM) if path), playwright.chromium.executable_path)
        browser = await playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        for name, svg in drawn.items():
            await picture(browser, svg, IMAGES / f"{name}.png")
        await dashboard(browser, IMAGES / "dashboard.png")
        await browser.close()


async def picture(browser: Browser, svg: str, path: Path) -> None:
    """Draw what Textual exported; its fonts would come from elsewhere."""
    plain = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL).replace("Fira Code", "monospace")
    page = await browser.new_page(viewport={"width": 1480, "height": 900})
    await page.set_content(f"<style>body {{ margin: 0 }}</style>{plain}")
    await page.locator("svg").first.screenshot(path=path)
    await page.close()


async def dashboard(browser: Browser, path: Path) -> None:
    """Draw the dashboard's home of a merchant with some days of payments."""
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    base = f"http://localhost:{port}"
    settings = Settings(database_url="memory://", port=port, base_url=base, app_url=base)
    async with running(settings, listener) as service:
        ports = service.app.ports
        account = await create_account(ports, "Coffee House")
        await set_settings(ports, account.account_id, {"refunds": "true", "refund_approval": "manual"})
        shop = await create_shop(ports, account.account_id, "Roastery", "0.03")
        keys = {"X-Api-Key": account.test.api_key, "X-Api-Secret": account.test.api_secret}
        async with httpx2.AsyncClient(base_url=f"{base}/api/v1", headers=keys) as client:
            await _days_of_payments(client, shop.id)
        invited = await invite(ports, account.account_id, "olga@shop.example", Role.OWNER, live=False, language="en")
        page = await browser.new_page(viewport={"width": 1280, "height": 860}, locale="en-US")
        await page.goto(invited.link)
        await page.get_by_label("Choose a password").fill("four words of nobody")
        await page.get_by_role("button", name="Join").click()
        await page.goto(f"{base}/home?period=7-days")
        await page.screenshot(path=path)
        await page.close()


async def _days_of_payments(client: httpx2.AsyncClient, shop_id: str) -> None:
    async def post(path: str, body: object) -> Any:
        answer = await client.post(path, json=body, headers={"Idempotency-Key": str(uuid4())})
        return answer.json()

    for day, count in enumerate((3, 5, 4, 6, 8, 7, 5)):
        for number in range(count):
            amount = f"{300 + 137 * ((day * 7 + number * 5) % 11)}.00"
            where = {"shop_id": shop_id} if number % 3 == 0 else {}
            made = await post("/payments", {"amount_rub": amount, **where})
            outcome = "failed" if (day + number) % 6 == 5 else "paid"
            await post(f"/sandbox/payments/{made['id']}/simulate", {"outcome": outcome})
        if day < 6:
            await post("/sandbox/clock/advance", {"seconds": 24 * 3600})
    await post("/refunds", {"payment_id": made["id"], "amount_rub": "100.00"})


if __name__ == "__main__":
    asyncio.run(main())

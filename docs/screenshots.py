"""Makes the pictures of docs/console.md: `nox -s screenshots`. Needs Chromium; shows the demonstration."""

import asyncio
import re
import shutil
import sys
from pathlib import Path

from playwright.async_api import Browser, async_playwright

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from cambist.frontends.console.app import Console  # noqa: E402  (the program need not be installed)
from cambist.frontends.console.demo import living  # noqa: E402

IMAGES = ROOT / "docs" / "images"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
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
        app = Console(shared)
        async with app.run_test(size=SIZE) as pilot:
            await pilot.pause(4)
            for name, keys in WALKS.items():
                for key in keys:
                    await pilot.press(key)
                    await pilot.pause(0.3)
                await pilot.pause(1)
                drawn[name] = app.export_screenshot(title="cambist console --demo")
                while app.screen.is_modal:
                    await pilot.press("escape")
    async with async_playwright() as playwright:
        found = next((path for path in map(shutil.which, CHROMIUM) if path), playwright.chromium.executable_path)
        browser = await playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        for name, svg in drawn.items():
            await picture(browser, svg, IMAGES / f"{name}.png")
        await browser.close()


async def picture(browser: Browser, svg: str, path: Path) -> None:
    """Draw what Textual exported; its fonts would come from elsewhere."""
    plain = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL).replace("Fira Code", "monospace")
    page = await browser.new_page(viewport={"width": 1480, "height": 900})
    await page.set_content(f"<style>body {{ margin: 0 }}</style>{plain}")
    await page.locator("svg").first.screenshot(path=path)
    await page.close()


if __name__ == "__main__":
    asyncio.run(main())

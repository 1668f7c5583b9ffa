"""A Chromium for stories of payers, clients and readers."""

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright, expect

from tests.patience import HANGS

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first has no windows to draw: a test takes half of the CPU."""


def leave_out(reason: str) -> None:
    """Skip, but not where the whole suite must run."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Open one browser for each worker: a launch takes a second of CPU. Tests that use it run in its loop."""
    async with async_playwright() as playwright:
        found = next((path for path in map(shutil.which, NAMES) if path), playwright.chromium.executable_path)
        if not Path(found).exists():
            leave_out("no Chromium: install chromium-headless-shell, or run `playwright install chromium`")
        opened = await playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        expect.set_options(timeout=HANGS * 1000)
        yield opened
        await opened.close()


class WatchedTab:
    """A tab that notes every request that leaves the service at `base` for another than these `others`, and everything
    the browser complains about."""

    def __init__(self, page: Page, base: str, *others: str) -> None:
        self.page = page
        self.complaints: list[str] = []
        origins = [urlsplit(each)[:2] for each in (base, *others)]

        def asked(request: Any) -> None:
            if urlsplit(request.url)[:2] not in origins:
                self.complaints.append(f"asked for {request.url}")

        def said(message: Any) -> None:
            if message.type in ("error", "warning"):
                self.complaints.append(message.text)

        page.on("request", asked)
        page.on("console", said)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

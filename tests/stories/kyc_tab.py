"""A client's tab on the hosted KYC page."""

from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Page, expect

from cambist.frontends.http.payer.kyc_texts import KYC_TEXTS

PHONE = {"width": 360, "height": 740}
TEXTS = KYC_TEXTS["en"]


class Tab:
    """A client's tab. It notes every request that leaves the service, and everything the browser complains about."""

    def __init__(self, page: Page, base: str) -> None:
        self.page = page
        self.complaints: list[str] = []
        origin = urlsplit(base)[:2]

        def asked(request: Any) -> None:
            if urlsplit(request.url)[:2] != origin:
                self.complaints.append(f"asked for {request.url}")

        def said(message: Any) -> None:
            if message.type in ("error", "warning"):
                self.complaints.append(message.text)

        page.on("request", asked)
        page.on("console", said)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    async def shows(self, face: str, texts: Any = TEXTS) -> None:
        heading = self.page.get_by_role("heading", level=1)
        await expect(heading).to_have_text(texts[f"{face}_head"])

    async def fits(self) -> None:
        """Nothing sticks out to the side at phone width, and what is pressed is large enough for a thumb."""
        wide = await self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide == 0
        for each in await self.page.locator("button, a.button, input[type=file], input[type=email]").all():
            box = await each.bounding_box()
            assert box is not None
            assert box["height"] >= 44


def picture(content: bytes, name: str = "photo.jpg", kind: str = "image/jpeg") -> Any:
    return {"name": name, "mimeType": kind, "buffer": content}


async def give(tab: Tab, field: str, file: Any) -> None:
    await tab.page.set_input_files(f"input[name={field}_key]", file)

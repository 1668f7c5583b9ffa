"""A client's tab on the hosted KYC page."""

from typing import Any

from playwright.async_api import expect

from cambist.frontends.http.payer.kyc_texts import KYC_TEXTS
from tests.stories.browsers import WatchedTab

PHONE = {"width": 360, "height": 740}
TEXTS = KYC_TEXTS["en"]


class Tab(WatchedTab):
    """A client's tab."""

    async def shows(self, face: str, texts: Any = TEXTS) -> None:
        heading = self.page.get_by_role("heading", level=1)
        await expect(heading).to_have_text(texts[f"{face}_head"])

    async def fits(self) -> None:
        """Check that nothing overflows sideways at phone width, and that controls are large enough for a thumb."""
        wide = await self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide == 0
        for each in await self.page.locator("button, a.button, input:not([type=radio]):not([type=hidden])").all():
            box = await each.bounding_box()
            assert box is not None
            assert box["height"] >= 44


def picture(content: bytes, name: str = "photo.jpg", kind: str = "image/jpeg") -> Any:
    return {"name": name, "mimeType": kind, "buffer": content}


async def give(tab: Tab, field: str, file: Any) -> None:
    await tab.page.set_input_files(f"input[name={field}_key]", file)

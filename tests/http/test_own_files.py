"""Documents in another package's store (ports/files.py: ElsewhereFiles): the store grants and reports uploads, and our
front end takes no part."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from cambist.frontends.app.own_adapters import Adapters
from cambist.frontends.conformance.uploads import Uploads
from cambist.ports.faults import Unavailable
from cambist.ports.files import StoredFile
from tests.kyc_kit import JPEG, PHONE, KycApp, code, open_kyc_app


class Bucket(Uploads):
    """A bucket that keeps the uploads to its addresses."""

    upload_origin = "https://bucket.example"

    def __init__(self) -> None:
        super().__init__({})
        self.hangs = False
        self.fault: Exception | None = None

    def grant(
        self, key: str, content_type: str, max_bytes: int, expires_at: datetime, *, size: int | None = None
    ) -> str:
        return f"{self.upload_origin}/{key}?signed"

    async def stat(self, key: str) -> StoredFile | None:
        if self.hangs:
            await asyncio.Event().wait()
        if self.fault is not None:
            raise self.fault
        return await super().stat(key)

    def put(self, url: str, content: bytes) -> None:
        self._files[url.removeprefix(f"{self.upload_origin}/").removesuffix("?signed")] = content


@pytest.fixture
def bucket() -> Bucket:
    return Bucket()


@pytest.fixture
async def kyc(tmp_path: Path, bucket: Bucket) -> AsyncIterator[KycApp]:
    async with open_kyc_app(tmp_path, adapters=Adapters(files=bucket)) as opened:
        yield opened


async def documents(kyc: KycApp, bucket: Bucket) -> dict[str, str]:
    grants = [await kyc.grant(), await kyc.grant()]
    for grant in grants:
        bucket.put(grant["upload_url"], JPEG)
    return {"phone": PHONE, "selfie_key": grants[0]["file_key"], "document_key": grants[1]["file_key"]}


async def test_a_client_s_documents_lie_there_and_leave_it_again(kyc: KycApp, bucket: Bucket) -> None:
    body = await documents(kyc, bucket)
    assert (await kyc.register(body)).status_code == 200
    await kyc.app.work(10)
    assert [event[0] for event in await kyc.events()] == ["verified"]
    assert await bucket.stat(body["selfie_key"]) is not None
    await kyc.app.work(3 * 86_400)
    assert await bucket.stat(body["selfie_key"]) is None


async def test_our_front_end_takes_no_upload_and_the_page_may_send_to_the_bucket(kyc: KycApp) -> None:
    assert (await kyc.app.http.put(f"/uploads/{'0' * 64}?sig=x", content=JPEG)).status_code == 404
    page = await kyc.app.http.get((await kyc.check())["kyc_url"])
    assert "connect-src 'self' https://bucket.example;" in page.headers["Content-Security-Policy"]


async def test_the_page_sends_what_the_store_s_addresses_want(kyc: KycApp, bucket: Bucket, tmp_path: Path) -> None:
    async def place(app: KycApp) -> dict[str, str]:
        session = parse_qs(urlsplit((await app.check())["kyc_url"]).query)["session"][0]
        body = {"session": session, "content_type": "image/jpeg"}
        answer = await app.app.http.post("/kyc/upload-url", json=body)
        headers: dict[str, str] = answer.json()["upload_headers"]
        return headers

    assert await place(kyc) == {}

    class Headed(Bucket):
        upload_headers: ClassVar = {"If-None-Match": "*"}

    (tmp_path / "headed").mkdir()
    async with open_kyc_app(tmp_path / "headed", adapters=Adapters(files=Headed())) as headed:
        assert await place(headed) == {"If-None-Match": "*"}


async def test_a_store_that_fails_or_hangs_is_away_for_now(kyc: KycApp, bucket: Bucket) -> None:
    body = await documents(kyc, bucket)
    for fault in (Unavailable("away"), RuntimeError("hunter2")):
        bucket.fault = fault
        assert code(await kyc.register(body)) == (503, "PROVIDER_UNAVAILABLE")
    bucket.fault, bucket.hangs = None, True
    asking = asyncio.create_task(kyc.register(body))
    await kyc.app.clock.advance(25)
    assert code(await asking) == (503, "PROVIDER_UNAVAILABLE")
    bucket.hangs = False
    assert (await kyc.register(body)).status_code == 200

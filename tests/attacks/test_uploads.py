"""One granted upload address does not keep others from uploading (docs/limits.md "Sizes")."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from litestar import Litestar

from cambist.adapters.clock import VirtualClock
from cambist.adapters.files.local import GRACE, LEAST_RATE, LocalFiles
from cambist.adapters.vault.memory import MemoryVault
from cambist.core.domain.kyc.kyc import UPLOAD_EMPTY, UPLOAD_TIME
from cambist.core.usecases.kyc import uploads
from cambist.frontends.http.uploads import PER_ADDRESS, uploads_router
from cambist.ports.files import UploadFault
from tests.apps import TestApp
from tests.kyc_kit import KycApp, code, open_kyc_app

FEW = 5
JPEG = b"\xff\xd8\xff" + b"x" * 100
URL = "https://pay.example"


class Slow:
    """A file that continues on request."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.begun = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield JPEG
        self.begun.set()
        await self.go_on.wait()


@pytest.fixture
def files(tmp_path: Path) -> LocalFiles:
    return LocalFiles(tmp_path, URL, MemoryVault(), VirtualClock())


def granted(files: LocalFiles, number: int) -> str:
    """An address, without its host."""
    url = files.grant(f"{number:064x}", "image/jpeg", 1000, VirtualClock().now() + timedelta(minutes=10))
    return url.removeprefix(URL)


async def test_a_file_is_uploaded_once_at_a_time_and_again_after_a_failure(files: LocalFiles) -> None:
    key, slow = f"{1:064x}", Slow()
    query = dict(httpx.URL(granted(files, 1)).params)
    first = asyncio.create_task(files.receive(key, query, aiter(slow)))
    await slow.begun.wait()
    with pytest.raises(UploadFault) as caught:
        await files.receive(key, query, aiter(Slow()))
    assert caught.value.reason == "busy"
    first.cancel()
    await asyncio.wait([first])
    slow.go_on.set()
    assert (await files.receive(key, query, aiter(slow))).size == len(JPEG)


async def test_an_address_has_four_uploads_under_way_and_others_have_theirs(app: TestApp, files: LocalFiles) -> None:
    asgi = Litestar(
        [uploads_router(msgspec.structs.replace(app.ports, files=files))], openapi_config=None, logging_config=None
    )
    slow = [Slow() for _ in range(PER_ADDRESS)]

    def client(address: str) -> httpx.AsyncClient:
        transport: Any = httpx.ASGITransport(asgi, client=(address, 1))  # type: ignore[arg-type]  # as in other tests
        return httpx.AsyncClient(transport=transport, base_url=URL, headers={"Content-Type": "image/jpeg"})

    async with client("192.0.2.1") as one, client("192.0.2.2") as other:
        held = [asyncio.create_task(one.put(granted(files, n), content=aiter(each))) for n, each in enumerate(slow)]
        for each in slow:
            await each.begun.wait()
        refused, taken = (
            await one.put(granted(files, 8), content=JPEG),
            await other.put(granted(files, 9), content=JPEG),
        )
        for each in slow:
            each.go_on.set()
        answers = [*await asyncio.gather(*held), await one.put(granted(files, 8), content=JPEG)]
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "10")
    assert {answer.status_code for answer in (taken, *answers)} == {200}


async def test_an_upload_that_comes_drop_by_drop_gives_its_place_back(tmp_path: Path) -> None:
    clock = VirtualClock()
    files = LocalFiles(tmp_path, URL, MemoryVault(), clock, at_once=1)
    query = dict(httpx.URL(granted(files, 1)).params)

    async def drops() -> AsyncIterator[bytes]:
        yield JPEG
        for _ in range(100):
            await clock.advance(5)
            yield b"x"

    began = clock.monotonic()
    with pytest.raises(UploadFault, match="slower than"):
        await files.receive(f"{1:064x}", query, drops())
    assert clock.monotonic() - began <= GRACE + 5
    query = dict(httpx.URL(granted(files, 2)).params)
    assert (await files.receive(f"{2:064x}", query, _whole())).size == len(JPEG)


async def test_an_upload_at_the_least_rate_is_taken(tmp_path: Path) -> None:
    clock = VirtualClock()
    files = LocalFiles(tmp_path, URL, MemoryVault(), clock)
    url = files.grant(f"{1:064x}", "image/jpeg", 10**6, clock.now() + timedelta(minutes=10))

    async def slowly() -> AsyncIterator[bytes]:
        yield JPEG
        for _ in range(20):
            await clock.advance(5)
            yield b"x" * (LEAST_RATE * 5)

    stored = await files.receive(f"{1:064x}", dict(httpx.URL(url).params), slowly())
    assert stored.size == len(JPEG) + 100 * LEAST_RATE


async def _whole() -> AsyncIterator[bytes]:
    yield JPEG


@pytest.fixture
async def kyc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[KycApp]:
    """A merchant who may have few unused places."""
    monkeypatch.setattr(uploads, "UNUSED_AT_ONCE", FEW)
    async with open_kyc_app(tmp_path) as opened:
        yield opened


async def test_the_refusal_is_the_documented_envelope(kyc: KycApp) -> None:
    for _ in range(FEW):
        await kyc.grant()
    refused = await kyc.post("/kyc/upload-url", {"content_type": "image/jpeg"})
    assert code(refused) == (409, "UPLOAD_LIMIT")
    assert int(refused.headers["retry-after"]) == 15 * 60, "as docs/kyc.md tells"


async def test_a_place_that_a_check_uses_or_that_stays_empty_makes_room(kyc: KycApp) -> None:
    await kyc.register(await kyc.documents())
    for _ in range(FEW - 1):
        await kyc.grant()
    kept = await kyc.uploaded()
    assert code(await kyc.post("/kyc/upload-url", {"content_type": "image/jpeg"}))[0] == 409
    await kyc.app.work((UPLOAD_TIME + UPLOAD_EMPTY).total_seconds())
    assert await kyc.upload(kept) is not None, "what was uploaded stays for a day"
    for _ in range(FEW - 1):
        await kyc.grant()
    assert code(await kyc.post("/kyc/upload-url", {"content_type": "image/jpeg"}))[0] == 409

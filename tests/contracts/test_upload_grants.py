"""Upload slots for documents, on every storage: however many requests come at once, an account never exceeds its number
of unused slots (docs/limits.md "Sizes")."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from cambist.adapters.clock import VirtualClock
from cambist.core.domain.accounts.accounts import Caller, Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.kyc.kyc import UploadOrder
from cambist.core.usecases.accounts.access import authenticate
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.core.usecases.kyc import uploads
from cambist.core.usecases.kyc.uploads import Grant, grant_to_client, grant_upload
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.bundle import Ports
from cambist.ports.storage import Storage

FEW = 5


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "UNUSED_AT_ONCE", FEW)


@pytest.fixture
async def ports(storage: Storage, tmp_path: Path) -> AsyncIterator[Ports]:
    """Ports over an empty storage of each kind."""
    settings = Settings(database_url="memory://", data_dir=tmp_path)
    async with open_app(settings, clock=VirtualClock()) as app:
        yield msgspec.structs.replace(app.ports, storage=storage)


async def caller(ports: Ports) -> Caller:
    """A merchant of live mode that requires KYC."""
    made = await create_account(ports, "Merchant")
    await set_settings(ports, made.account_id, {"kyc": "required"})
    return await authenticate(ports, made.live.api_key, made.live.api_secret)


async def asked(ports: Ports, by: Caller) -> Grant | str:
    try:
        return await grant_upload(ports, by, lambda: UploadOrder(content_type="image/jpeg"))
    except Refusal as refusal:
        return refusal.code


async def test_simultaneous_requests_get_no_more_grants_than_there_are(ports: Ports) -> None:
    by, other = await caller(ports), await caller(ports)
    answers = await asyncio.gather(*(asked(ports, by) for _ in range(4 * FEW)))
    assert sum(isinstance(answer, Grant) for answer in answers) == FEW
    assert {answer for answer in answers if isinstance(answer, str)} == {"UPLOAD_LIMIT"}
    assert isinstance(await asked(ports, other), Grant), "another account has its own"


async def test_simultaneous_requests_of_a_client_stay_within_its_limit(
    ports: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "HELD_AT_ONCE", 2)
    by = await caller(ports)

    async def of_client() -> Grant:
        return await grant_to_client(
            ports, by.account_id, Mode.LIVE, UploadOrder(content_type="image/jpeg"), b"a client"
        )

    answers = await asyncio.gather(*(of_client() for _ in range(8)), return_exceptions=True)
    assert sum(isinstance(answer, Grant) for answer in answers) == 2

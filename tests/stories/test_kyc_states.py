"""One scenario for each row of the state table of verifications, over HTTP with live keys and a scripted verifier:
test keys get `400 SANDBOX_NOT_SUPPORTED` from the three KYC endpoints (docs/kyc.md "KYC: verifying your clients").
The merchant's view is checked against docs/kyc.md "In live mode" and docs/exchanges.md "Finding exchanges and
clients". Rows within the sandbox's reach have a second scenario that uses the sandbox alone (docs/sandbox.md "The
calls"). A row without a scenario fails."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

import msgspec
import pytest

from cambist.adapters.script import Ending
from cambist.core.domain.kyc.clients import KYC_MOVES, Client, ClientStatus, KycStatus
from cambist.ports.kyc import CheckStatus
from tests.kyc_kit import FORM, PHONE, KycApp, open_kyc_app
from tests.moves import pairs

K, C = KycStatus, CheckStatus
Story = Callable[[KycApp], Awaitable[None]]


@pytest.fixture
async def kyc(tmp_path: Path) -> AsyncIterator[KycApp]:
    async with open_kyc_app(tmp_path) as opened:
        yield opened


async def registers(kyc: KycApp) -> None:
    await kyc.register()


async def goes_to_a_form(kyc: KycApp) -> None:
    await kyc.set(kyc_flow="redirect")
    assert (await kyc.register({"phone": PHONE, **FORM})).json()["status"] == "required"


async def gives_too_little(kyc: KycApp) -> None:
    assert (await kyc.register({"phone": PHONE})).status_code == 502


def silently(ending: Ending) -> Story:
    """The verifier's answer is lost, so the outcome of starting the check is unknown."""

    async def story(kyc: KycApp) -> None:
        kyc.twist("register", ending)
        assert (await kyc.register()).status_code == 502

    return story


def decides(status: CheckStatus) -> Story:
    async def story(kyc: KycApp) -> None:
        await kyc.decide(status)

    return story


async def loses_its_verifier(kyc: KycApp) -> None:
    """The verifier is no longer configured; no endpoint shows that."""
    client = await kyc.client()
    async with kyc.ports.storage.unit() as unit:
        unit[Client].save(msgspec.structs.replace(client, verifier="elsewhere"))
        await unit.commit()


LOST = silently(Ending.UNKNOWN_DONE)

STORIES: Mapping[tuple[KycStatus, KycStatus], tuple[Story, ...]] = {
    (K.REQUIRED, K.REGISTERING): (LOST,),
    (K.REGISTERING, K.REGISTERING): (LOST, loses_its_verifier, LOST),
    (K.PROCESSING, K.REGISTERING): (registers, loses_its_verifier, LOST),
    (K.REGISTERING, K.REQUIRED): (gives_too_little,),
    (K.REGISTERING, K.PROCESSING): (registers,),
    (K.REGISTERING, K.VERIFIED): (LOST, decides(C.VERIFIED)),
    (K.REGISTERING, K.FAILED): (LOST, decides(C.FAILED)),
    (K.REQUIRED, K.PROCESSING): (goes_to_a_form, decides(C.PROCESSING)),
    (K.REQUIRED, K.VERIFIED): (goes_to_a_form, decides(C.VERIFIED)),
    (K.REQUIRED, K.FAILED): (goes_to_a_form, decides(C.FAILED)),
    (K.PROCESSING, K.REQUIRED): (registers, decides(C.FORM)),
    (K.PROCESSING, K.VERIFIED): (registers, decides(C.VERIFIED)),
    (K.PROCESSING, K.FAILED): (registers, decides(C.FAILED)),
    (K.FAILED, K.REGISTERING): (registers, decides(C.FAILED), LOST),
    (K.FAILED, K.VERIFIED): (registers, decides(C.FAILED), decides(C.VERIFIED)),
}

PLAYED: Mapping[tuple[KycStatus, KycStatus], tuple[str, str]] = {
    (K.REQUIRED, K.VERIFIED): ("pending", "verified"),
    (K.REQUIRED, K.FAILED): ("pending", "rejected"),
    (K.FAILED, K.VERIFIED): ("rejected", "verified"),
}
"""In the sandbox, as `kyc_status`."""
LIVE_ONLY = {K.REGISTERING, K.PROCESSING}
"""Rows from or to these have no story in the sandbox: only `/kyc/register` leads there, and a client in them is shown
as `pending`, as any other."""

CHECKED: Mapping[KycStatus, str] = {
    K.REQUIRED: "required",
    K.PROCESSING: "processing",
    K.VERIFIED: "verified",
    K.FAILED: "failed",
}
"""Answers of POST /kyc/check. During a registration the service asks the verifier, and answers with its status."""

LISTED: Mapping[KycStatus, ClientStatus] = {
    K.VERIFIED: ClientStatus.VERIFIED,
    K.FAILED: ClientStatus.REJECTED,
}


@pytest.mark.parametrize("row", pairs(KYC_MOVES), ids="-".join)
async def test_a_verification(kyc: KycApp, row: tuple[KycStatus, KycStatus]) -> None:
    assert row in STORIES, "tell in STORIES how this move happens"
    before, after = row
    for step in STORIES[row]:
        await step(kyc)
    assert (await kyc.client()).kyc is after
    decided = [status for status, _ in await kyc.events()]
    assert decided[-1:] == ([after.value] if after in LISTED else ["failed"] if before is K.FAILED else [])
    [listed] = (await kyc.app.get("/exchange-clients", mode="live")).json()["data"]
    assert listed["kyc_status"] == LISTED.get(after, ClientStatus.PENDING)
    assert (listed["kyc_verified_at"] is not None) is (after is K.VERIFIED)
    if after in CHECKED:
        answer = await kyc.check()
        extra = {"required": "kyc_url", "verified": "accountNumber", "failed": "error"}.get(answer["status"])
        assert (answer["status"], set(answer)) == (CHECKED[after], {"status", extra} - {None})


@pytest.mark.parametrize("row", PLAYED, ids="-".join)
async def test_a_verification_in_the_sandbox(kyc: KycApp, row: tuple[KycStatus, KycStatus]) -> None:
    for status in PLAYED[row]:
        simulated = await kyc.post("/sandbox/exchange-clients", {"phone": PHONE, "kyc_status": status}, "test")
        assert (simulated.status_code, simulated.json()["kyc_status"]) == (200, status)
    [client] = (await kyc.app.get("/exchange-clients")).json()["data"]
    events = (await kyc.app.get(f"/events?object_id={client['id']}")).json()["data"]
    last = (await kyc.app.get(f"/events/{events[0]['id']}")).json()["payload"]
    before = "failed" if row[0] is K.FAILED else "pending"
    assert (last["event"], last["previous_status"], last["status"]) == ("kyc.status_changed", before, row[1].value)
    assert (await kyc.app.get("/events", mode="live")).json()["data"] == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/kyc/check", {"phone": PHONE}),
        ("/kyc/upload-url", {"content_type": "image/png"}),
        ("/kyc/register", {"phone": PHONE}),
    ],
)
async def test_other_transitions_are_not_supported_in_the_sandbox(kyc: KycApp, path: str, body: dict[str, str]) -> None:
    refused = await kyc.post(path, body, "test")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "SANDBOX_NOT_SUPPORTED")


def test_every_row_is_played_or_said_to_be_of_live_mode() -> None:
    assert {row for row in pairs(KYC_MOVES) if not LIVE_ONLY & set(row)} == set(PLAYED)


def test_every_story_is_of_an_existing_row() -> None:
    assert set(STORIES) == set(pairs(KYC_MOVES))

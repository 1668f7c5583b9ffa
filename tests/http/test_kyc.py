"""KYC over HTTP: both flows end to end, the answers' spellings, and every refusal (docs/kyc.md "In live mode",
"Answers and errors")."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from cambist.adapters.script import Ending
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.kyc.clients import Client, KycStatus
from cambist.core.usecases.kyc.check import check_client
from cambist.core.usecases.kyc.clients import set_blocked
from cambist.frontends.http.openapi.openapi import openapi_document
from cambist.ports.kyc import CheckStatus, DocumentState
from tests.apps import open_test_app
from tests.http.documents import Document
from tests.invariants import everything
from tests.kyc_kit import FORM, JPEG, OTHER, PDF, PHONE, KycApp, code, open_kyc_app
from tests.tables import table

_F, _P = DocumentState.FAILED, DocumentState.PASSED


@pytest.fixture
async def kyc(tmp_path: Path) -> AsyncIterator[KycApp]:
    async with open_kyc_app(tmp_path) as opened:
        yield opened


async def test_documents_from_check_to_verified(kyc: KycApp) -> None:
    """Check, an address for each file, PUT, register, and check until verified (docs/kyc.md "In live mode")."""
    first = await kyc.check()
    assert set(first) == {"status", "kyc_url"}
    assert first["status"] == "required"
    address = urlsplit(first["kyc_url"])
    assert (address.scheme, address.netloc, address.path) == ("https", "pay.example", "/kyc")
    # Addresses end in histories and logs: the phone is sealed in the session.
    assert set(parse_qs(address.query)) == {"session"}
    assert PHONE.removeprefix("+") not in first["kyc_url"]
    body = {**await kyc.documents(), "address_key": await kyc.uploaded(PDF, "application/pdf")}
    response = await kyc.register(body)
    assert (response.status_code, response.json()) == (200, {"status": "processing"})
    assert await kyc.check() == {"status": "processing"}
    assert await kyc.events() == []
    await kyc.app.work(10)
    verified = await kyc.check()
    assert set(verified) == {"status", "accountNumber"}
    assert verified["status"] == "verified"
    assert verified["accountNumber"]
    assert (await kyc.register({"phone": PHONE})).json() == verified
    assert await kyc.events() == [("verified", "pending")]
    [event] = await kyc.app.events((await kyc.client()).id)
    assert event["phone"] == PHONE
    assert await kyc.begun() == 1
    [shown] = (await kyc.app.get("/exchange-clients", mode="live")).json()["data"]
    assert shown["kyc_details"] == {"level": 2, "passport_state": "passed", "address_state": "passed"}
    assert shown["client_ref"] == verified["accountNumber"]


async def test_redirect_from_register_to_verified(kyc: KycApp) -> None:
    """A verifier with a form of its own gets `email` and `user_type`, and no files (docs/kyc.md "In live mode")."""
    await kyc.set(kyc_flow="redirect")
    response = await kyc.register({"phone": PHONE, **FORM})
    assert response.status_code == 200
    assert set(response.json()) == {"status", "kycUrl"}
    assert response.json()["status"] == "required"
    link = response.json()["kycUrl"]
    assert await kyc.check() == {"status": "required", "kyc_url": link}
    assert (await kyc.register({"phone": PHONE, **FORM})).json() == {"status": "required", "kycUrl": link}
    await kyc.decide(CheckStatus.PROCESSING)
    assert await kyc.check() == {"status": "processing"}
    await kyc.decide(CheckStatus.VERIFIED)
    assert (await kyc.check())["status"] == "verified"
    assert await kyc.events() == [("verified", "pending")]
    assert await kyc.begun() == 1


@pytest.mark.parametrize(
    ("passport", "address", "error"),
    [(_F, None, "The identity document was refused"), (_P, _F, "The proof of address was refused")],
)
async def test_refused_client_makes_an_event_and_may_register_again(
    kyc: KycApp, passport: DocumentState, address: DocumentState | None, error: str
) -> None:
    """A repeat gets the stored result, except after a refusal: it begins a new check (docs/kyc.md "Answers and
    errors")."""
    await kyc.register()
    await kyc.decide(CheckStatus.FAILED, passport=passport, address=address)
    assert await kyc.check() == {"status": "failed", "error": error}
    [shown] = (await kyc.app.get("/exchange-clients", mode="live")).json()["data"]
    assert (shown["kyc_status"], shown["kyc_verified_at"]) == ("rejected", None)
    assert shown["kyc_details"]["passport_state"] == passport.value
    assert (await kyc.register()).json() == {"status": "processing"}
    assert await kyc.begun() == 2
    assert await kyc.check() == {"status": "processing"}
    await kyc.app.work(10)
    assert (await kyc.check())["status"] == "verified"
    assert await kyc.events() == [("failed", "pending"), ("verified", "failed")]


async def test_second_refusal_makes_an_event_as_well(kyc: KycApp) -> None:
    await kyc.register()
    await kyc.decide(CheckStatus.FAILED)
    await kyc.register()
    await kyc.decide(CheckStatus.FAILED)
    assert await kyc.events() == [("failed", "pending"), ("failed", "failed")]


async def test_a_verifier_that_decides_at_once_is_answered_at_once(kyc: KycApp) -> None:
    """A refused client is 200 with `failed` (docs/kyc.md "In live mode")."""
    client = await kyc.register()
    assert client.json() == {"status": "processing"}
    kyc.twist("register", Ending.UNKNOWN_DONE)
    body = await kyc.documents(OTHER)
    assert code(await kyc.register(body)) == (502, "PROVIDER_ERROR")
    await kyc.decide(CheckStatus.FAILED, OTHER, told=False)
    assert (await kyc.register(body)).json() == {"status": "failed", "error": "The identity document was refused"}


async def test_a_blocked_client_is_refused_and_no_new_check_starts(kyc: KycApp) -> None:
    await kyc.register()
    await kyc.app.work(10)
    client = await kyc.client()
    await set_blocked(kyc.ports, client.id, True)
    assert await kyc.check() == {"status": "failed", "error": "The client is blocked"}
    assert (await kyc.register()).json() == {"status": "failed", "error": "The client is blocked"}
    await set_blocked(kyc.ports, client.id, False)
    assert (await kyc.check())["status"] == "verified"
    assert await kyc.begun() == 1


BODIES: dict[str, dict[str, Any]] = {
    "/kyc/check": {"phone": PHONE},
    "/kyc/upload-url": {"content_type": "image/png"},
    "/kyc/register": {"phone": PHONE},
}


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("mode", ["live", "test"])
async def test_disabled_account_is_refused_before_any_other_check(kyc: KycApp, path: str, mode: str) -> None:
    """`403 PROVIDER_DISABLED` comes before anything else (docs/kyc.md "Answers and errors")."""
    await kyc.set(kyc="disabled")
    for body in (BODIES[path], {"odd": 1}, None):
        assert code(await kyc.post(path, body, mode)) == (403, "PROVIDER_DISABLED")


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("demand", ["required", "off"])
async def test_test_mode_is_refused_before_the_demand_and_the_body(kyc: KycApp, path: str, demand: str) -> None:
    await kyc.set(kyc=demand)
    for body in (BODIES[path], {"odd": 1}):
        assert code(await kyc.post(path, body, "test")) == (400, "SANDBOX_NOT_SUPPORTED")


@pytest.mark.parametrize("path", ["/kyc/upload-url", "/kyc/register"])
async def test_kyc_that_is_not_required_is_refused_before_the_body_is_read(kyc: KycApp, path: str) -> None:
    await kyc.set(kyc="off")
    for body in (BODIES[path], {"odd": 1}):
        assert code(await kyc.post(path, body)) == (400, "KYC_NOT_REQUIRED")


async def test_check_answers_that_kyc_is_not_required_once_the_body_is_right(kyc: KycApp) -> None:
    await kyc.set(kyc="off")
    assert await kyc.check() == {"status": "not_required"}
    assert code(await kyc.post("/kyc/check", {"phone": "x"})) == (400, "VALIDATION_ERROR")


KEY = "0" * 64
WRONG: list[tuple[str, Any]] = [
    ("/kyc/check", None),
    ("/kyc/check", {}),
    ("/kyc/check", {"phone": PHONE, "more": 1}),
    *(
        (path, {"phone": phone})
        for path in ("/kyc/check", "/kyc/register")
        for phone in (
            "79001234567",
            "+7900123456",
            "+790012345678",
            "+89001234567",
            "+7 9001234567",
            "+7٩٠٠١٢٣٤٥٦٧",
            7,
            None,
        )
    ),
    ("/kyc/check", {"phone": f"{PHONE}\n"}),
    ("/kyc/upload-url", {}),
    ("/kyc/upload-url", {"content_type": "image/gif"}),
    ("/kyc/upload-url", {"content_type": "image/jpeg; charset=x"}),
    ("/kyc/upload-url", {"content_type": "image/jpeg", "phone": PHONE}),
    ("/kyc/register", {}),
    ("/kyc/register", {"phone": PHONE, "more": 1}),
    ("/kyc/register", {"phone": PHONE, "selfie_key": "../../etc/passwd"}),
    ("/kyc/register", {"phone": PHONE, "selfie_key": KEY}),
    ("/kyc/register", {"phone": PHONE, "selfie_key": KEY, "document_key": KEY}),
    ("/kyc/register", {"phone": PHONE, "email": "nobody"}),
    ("/kyc/register", {"phone": PHONE, "email": f"a@{'b' * 250}"}),
    ("/kyc/register", {"phone": PHONE, "email": "a b@example.com"}),
    ("/kyc/register", {"phone": PHONE, "user_type": "company"}),
]


@table(("path", "body"), WRONG)
async def test_a_wrong_body_is_a_validation_error_and_begins_nothing(kyc: KycApp, path: str, body: Any) -> None:
    await kyc.app.clock.advance(60)  # so many requests at once would be limited
    assert code(await kyc.post(path, body)) == (400, "VALIDATION_ERROR")
    assert await kyc.begun() == 0
    assert (await kyc.app.get("/exchange-clients", mode="live")).json()["data"] == []


@pytest.mark.parametrize("missing", ["selfie_key", "document_key"])
async def test_missing_documents_are_refused_by_the_verifier(kyc: KycApp, missing: str) -> None:
    """The verifier refuses missing documents, not we (docs/kyc.md "In live mode")."""
    body = await kyc.documents()
    kept = {name: value for name, value in body.items() if name != missing}
    assert code(await kyc.register(kept)) == (502, "PROVIDER_ERROR")
    assert (await kyc.check())["status"] == "required"
    assert await kyc.begun() == 0
    # The documents are free again: the same request, made whole, begins the check.
    assert (await kyc.register(body)).json() == {"status": "processing"}


@pytest.mark.parametrize("body", [{}, {"email": FORM["email"]}, {"user_type": "individual"}])
async def test_the_form_needs_both_its_fields(kyc: KycApp, body: dict[str, str]) -> None:
    await kyc.set(kyc_flow="redirect")
    assert code(await kyc.register({"phone": PHONE, **body})) == (502, "PROVIDER_ERROR")
    assert await kyc.begun() == 0


VERIFIER_ROWS = [
    (Ending.UNKNOWN_DONE, 502, "PROVIDER_ERROR"),
    (Ending.UNKNOWN_NOT_DONE, 502, "PROVIDER_ERROR"),
    (Ending.UNAVAILABLE, 503, "KYC_UNAVAILABLE"),
    (Ending.NOT_CONFIGURED, 503, "KYC_UNAVAILABLE"),
    (Ending.REFUSED, 502, "PROVIDER_ERROR"),
]


@pytest.mark.parametrize(("ending", "status", "expected"), VERIFIER_ROWS)
async def test_register_reports_a_fault_of_the_verifier(
    kyc: KycApp, ending: Ending, status: int, expected: str
) -> None:
    kyc.twist("register", ending)
    assert code(await kyc.register()) == (status, expected)


@pytest.mark.parametrize(("ending", "status", "expected"), VERIFIER_ROWS)
async def test_check_reports_a_fault_of_the_verifier(kyc: KycApp, ending: Ending, status: int, expected: str) -> None:
    """All three calls have the same errors (docs/kyc.md "Answers and errors"). A decided check is answered without the
    verifier."""
    await kyc.register()
    kyc.twist("state", ending)
    response = await kyc.post("/kyc/check", {"phone": PHONE})
    assert code(response) == (status, expected)
    assert int(response.headers["Retry-After"]) >= 30
    await kyc.app.work(10)
    kyc.twist("state", ending)
    assert (await kyc.check())["status"] == "verified"


async def test_a_key_is_of_one_account_and_of_one_check(kyc: KycApp) -> None:
    """The key of another client, and a key that was used (docs/decisions.md "Uploads")."""
    mine = await kyc.documents()
    assert (await kyc.register(mine)).status_code == 200
    for name in ("selfie_key", "document_key"):
        body = {**await kyc.documents(OTHER), name: mine[name]}
        response = await kyc.register(body)
        assert code(response) == (400, "VALIDATION_ERROR")
        assert response.json()["error"]["details"][0]["path"] == name
    theirs = await kyc.documents(OTHER)
    await kyc.other_account()
    assert code(await kyc.register(theirs)) == (400, "VALIDATION_ERROR")
    assert await kyc.begun() == 1


async def test_a_key_without_a_file_is_refused(kyc: KycApp) -> None:
    grant = await kyc.grant()
    body = {**await kyc.documents(), "selfie_key": grant["file_key"]}
    assert code(await kyc.register(body)) == (400, "VALIDATION_ERROR")
    await kyc.put(grant["upload_url"], JPEG)
    assert (await kyc.register(body)).json() == {"status": "processing"}


async def test_clients_of_other_accounts_are_other_clients(kyc: KycApp) -> None:
    await kyc.register()
    await kyc.app.work(10)
    await kyc.other_account()
    assert (await kyc.check())["status"] == "required"
    assert (await kyc.app.get("/exchange-clients", mode="live")).json()["data"] == []


async def test_the_payment_s_gate_follows_the_registration(kyc: KycApp) -> None:
    """An account that requires KYC (docs/kyc.md "In payments")."""

    async def paid() -> tuple[int, str]:
        response = await kyc.app.create({"client_phone": PHONE}, mode="live")
        return response.status_code, response.json().get("error", {}).get("code", "")

    assert await paid() == (400, "KYC_REQUIRED")
    await kyc.register()
    assert await paid() == (400, "KYC_PROCESSING")
    await kyc.decide(CheckStatus.FAILED)
    assert await paid() == (400, "KYC_FAILED")
    await kyc.register()
    await kyc.decide(CheckStatus.VERIFIED, told=False)
    assert await paid() == (201, "")
    assert (await kyc.client()).kyc is KycStatus.VERIFIED


async def test_answers_are_as_documented(kyc: KycApp) -> None:
    document = Document(openapi_document("https://pay.example"))
    grant = await kyc.post("/kyc/upload-url", {"content_type": "image/jpeg"})
    kyc.twist("register", Ending.UNKNOWN_NOT_DONE)
    body = await kyc.documents()
    for response in (
        grant,
        await kyc.post("/kyc/check", {"phone": PHONE}),
        await kyc.post("/kyc/check", {"phone": "x"}),
        await kyc.post("/kyc/check", {"phone": PHONE}, "test"),
        await kyc.register(body),
        await kyc.register(body),
        await kyc.register({"phone": "x"}),
        await kyc.post("/kyc/upload-url", {}, "test"),
        await kyc.app.get("/exchange-clients", mode="live"),
        await kyc.app.get("/exchange-clients?page=0", mode="live"),
        await kyc.post("/sandbox/exchange-clients", {"phone": PHONE, "kyc_status": "verified"}, "test"),
        await kyc.post("/sandbox/exchange-clients", {"phone": PHONE, "kyc_status": "x"}, "test"),
        await kyc.post("/sandbox/exchange-clients", {"phone": PHONE, "kyc_status": "verified"}),
    ):
        document.check(response)


async def test_documents_are_not_uploaded_without_a_verifier(tmp_path: Path) -> None:
    """Live mode may not use its simulator at an address that others reach (docs/kyc.md "Answers and errors")."""
    async with open_test_app(data_dir=tmp_path, base_url="https://api.example.com", allow_live_simulators=None) as app:
        kyc = KycApp(app)
        await kyc.set(kyc="required")
        for path, body in (
            ("/kyc/check", {"phone": PHONE}),
            ("/kyc/upload-url", {"content_type": "image/jpeg"}),
            ("/kyc/register", {"phone": PHONE, **FORM}),
        ):
            assert code(await kyc.post(path, body)) == (503, "KYC_UNAVAILABLE"), path
        assert await everything(app.ports, Client) == [], "nobody is left as in progress"


async def test_verified_clients_stay_verified_without_a_verifier(kyc: KycApp) -> None:
    await kyc.register()
    await kyc.app.work(10)
    ports = msgspec.structs.replace(kyc.ports, has_verifier=False)
    answer = await check_client(ports, kyc.account.account_id, Mode.LIVE, PHONE)
    assert answer.status == "verified"
    with pytest.raises(Refusal, match="KYC is required"):
        await check_client(ports, kyc.account.account_id, Mode.LIVE, OTHER)

"""The hosted KYC page over HTTP (docs/kyc.md "A page that does it")."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest

from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.core.usecases.kyc.clients import set_blocked
from cambist.core.usecases.kyc.links import hosted_url
from cambist.core.usecases.kyc.uploads import HELD_AT_ONCE
from cambist.core.usecases.payer.kyc_page import PER_MINUTE
from cambist.frontends.http.payer.kyc_texts import KYC_TEXTS
from cambist.ports.kyc import CheckStatus
from tests.kyc_kit import JPEG, OTHER, PHONE, PNG, KycApp, code, open_kyc_app
from tests.tables import table
from tests.windows import Page

SHOP = "https://shop.example/cabinet"


@pytest.fixture
async def kyc(tmp_path: Path) -> AsyncIterator[KycApp]:
    async with open_kyc_app(tmp_path, return_url=SHOP) as opened:
        yield opened


async def link(kyc: KycApp, phone: str = PHONE) -> str:
    """Return the link that the merchant hands to the client."""
    answer = await kyc.check(phone)
    url: str = answer["kyc_url"] if "kyc_url" in answer else hosted_url(kyc.ports, kyc.account.account_id, phone)
    return url


def session_of(url: str) -> str:
    return parse_qs(urlsplit(url).query)["session"][0]


async def show(kyc: KycApp, url: str, language: str = "en") -> tuple[int, Page, httpx.Response]:
    response = await kyc.app.http.get(url, headers={"Accept-Language": language})
    return response.status_code, Page(response.text), response


async def face(kyc: KycApp, url: str) -> str:
    status, page, _ = await show(kyc, url)
    assert status == 200
    return page.main["data-face"] or ""


async def call(kyc: KycApp, path: str, session: str, **body: Any) -> httpx.Response:
    """Call the service as the page's script does: without an API key."""
    return await kyc.app.http.post(f"/kyc/{path}", json={"session": session, **body})


async def upload(kyc: KycApp, session: str, content: bytes = JPEG, content_type: str = "image/jpeg") -> str:
    grant = (await call(kyc, "upload-url", session, content_type=content_type)).json()
    assert (await kyc.put(grant["upload_url"], content, content_type)).status_code == 200
    key: str = grant["file_key"]
    return key


async def test_a_client_goes_from_the_link_to_verified_by_documents(kyc: KycApp) -> None:
    url = await link(kyc)
    session = session_of(url)
    assert await face(kyc, url) == "documents"
    keys = {"selfie_key": await upload(kyc, session), "document_key": await upload(kyc, session, PNG, "image/png")}
    done = await call(kyc, "register", session, **keys)
    assert (done.status_code, done.json()) == (200, {"status": "processing"})
    assert await face(kyc, url) == "processing"
    assert (await call(kyc, "state", session)).json() == {"face": "processing"}
    await kyc.app.work(10)
    assert (await call(kyc, "state", session)).json() == {"face": "verified"}
    assert await face(kyc, url) == "verified"
    assert (await kyc.check())["status"] == "verified"
    assert await kyc.events() == [("verified", "pending")]


async def test_a_client_goes_on_to_the_verifier_s_form(kyc: KycApp) -> None:
    await kyc.set(kyc_flow="redirect")
    url = await link(kyc)
    assert await face(kyc, url) == "details"
    done = await call(kyc, "register", session_of(url), email="a@example.com", user_type="individual")
    assert done.json() == {"status": "required"}
    _, page, _ = await show(kyc, url)
    assert page.main["data-face"] == "form"
    form = (await kyc.check())["kyc_url"]
    assert form in [a["href"] for a in page.all("a")]


async def test_a_refused_client_sees_the_form_again_and_a_blocked_one_does_not(kyc: KycApp) -> None:
    await kyc.register()
    await kyc.decide(CheckStatus.FAILED)
    url = await link(kyc)
    _, page, _ = await show(kyc, url)
    assert page.main["data-face"] == "documents"
    assert KYC_TEXTS["en"]["again_text"] in page.text
    await set_blocked(kyc.ports, (await kyc.client()).id, True)
    assert await face(kyc, url) == "failed"


@pytest.mark.parametrize(
    ("demand", "status", "shown"), [("off", 200, "not_required"), ("disabled", 403, "unavailable")]
)
async def test_accounts_that_require_no_kyc(kyc: KycApp, demand: str, status: int, shown: str) -> None:
    url = await link(kyc)
    await kyc.set(kyc=demand)
    got, page, _ = await show(kyc, url)
    assert (got, page.main["data-face"]) == (status, shown)
    expected = "KYC_NOT_REQUIRED" if demand == "off" else "PROVIDER_DISABLED"
    for path, body in (("upload-url", {"content_type": "image/png"}), ("register", {})):
        assert code(await call(kyc, path, session_of(url), **body))[1] == expected


async def test_page_needs_a_living_link(kyc: KycApp) -> None:
    url = await link(kyc)
    session = session_of(url)
    for wrong in ("/kyc?session=", "/kyc?session=x", f"/kyc?session={session[:-8]}"):
        status, page, _ = await show(kyc, wrong)
        assert (status, page.main["data-face"]) == (404, "link")
        assert PHONE not in page.text
    other = urlencode({"phone": OTHER, "session": session})
    assert (await show(kyc, f"/kyc?{other}"))[0] == 404
    for path, body in (("state", {}), ("upload-url", {"content_type": "image/png"}), ("register", {})):
        assert code(await call(kyc, path, "x", **body)) == (404, "NOT_FOUND")
    await kyc.app.clock.advance(3600)
    assert (await show(kyc, url))[0] == 404
    assert code(await call(kyc, "register", session)) == (404, "NOT_FOUND")


async def test_link_works_for_its_own_client_only(kyc: KycApp) -> None:
    """Another client's file key counts as unknown (docs/decisions.md "Hosted page")."""
    mine, theirs = session_of(await link(kyc)), session_of(await link(kyc, OTHER))
    keys = {"selfie_key": await upload(kyc, mine), "document_key": await upload(kyc, mine)}
    assert code(await call(kyc, "register", theirs, **keys)) == (400, "VALIDATION_ERROR")
    assert code(await kyc.register({"phone": OTHER, **keys})) == (400, "VALIDATION_ERROR")
    assert code(await call(kyc, "register", mine, phone=OTHER, **keys)) == (400, "VALIDATION_ERROR")
    assert (await call(kyc, "register", mine, **keys)).status_code == 200


async def test_a_place_is_granted_for_documents_alone(kyc: KycApp) -> None:
    session = session_of(await link(kyc))
    for content_type in ("text/html", "image/svg+xml", "", "IMAGE/PNG"):
        assert code(await call(kyc, "upload-url", session, content_type=content_type)) == (400, "VALIDATION_ERROR")


async def test_a_link_holds_so_many_documents_and_calls(kyc: KycApp) -> None:
    session = session_of(await link(kyc))
    for _ in range(HELD_AT_ONCE):
        assert (await call(kyc, "upload-url", session, content_type="image/png")).status_code == 200
    assert code(await call(kyc, "upload-url", session, content_type="image/png")) == (409, "UPLOAD_LIMIT")
    answers = [await call(kyc, "state", session) for _ in range(PER_MINUTE)]
    assert code(answers[-1]) == (429, "RATE_LIMIT_EXCEEDED")


@table("path", ["state", "upload-url", "register"])
@table("body", [None, {}, [], {"session": 1}, {"session": "x", "odd": 1}])
async def test_odd_bodies_are_refused(kyc: KycApp, path: str, body: Any) -> None:
    assert code(await kyc.app.http.post(f"/kyc/{path}", json=body)) == (400, "VALIDATION_ERROR")


@pytest.mark.parametrize(
    ("redirect", "back"),
    [
        (None, "https://shop.example/"),
        ("https://shop.example/done?a=1", "https://shop.example/done?a=1"),
        ("https://evil.example/", "https://shop.example/"),
        ("javascript:alert(1)", "https://shop.example/"),
    ],
)
async def test_the_way_back_is_the_merchant_s(kyc: KycApp, redirect: str | None, back: str) -> None:
    await kyc.register()
    await kyc.app.work(10)
    url = await link(kyc)
    if redirect is not None:
        url += f"&{urlencode({'redirect': redirect})}"
    _, page, response = await show(kyc, url)
    [button] = [a for a in page.all("a") if a.get("id") == "return"]
    assert button["href"] == back
    assert response.headers["Referrer-Policy"] == "no-referrer"
    await kyc.set(return_url="")
    _, page, _ = await show(kyc, url)
    assert [a for a in page.all("a") if a.get("id") == "return"] == []


async def test_the_page_asks_nobody_else_for_anything(kyc: KycApp) -> None:
    _, page, response = await show(kyc, await link(kyc))
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "connect-src 'self' https://pay.example;" in policy
    loaded = [tag.get("src") or tag.get("href") for tag in (*page.all("script"), *page.all("link"))]
    assert len(loaded) >= 5
    for address in loaded:
        assert address is not None
        assert address.startswith("/kyc/assets/")
        asset = await kyc.app.http.get(address)
        assert asset.status_code == 200
        assert "immutable" in asset.headers["Cache-Control"]
    assert response.headers["Cache-Control"] == "no-store"
    assert (await kyc.app.http.get("/kyc/assets/../app.py")).status_code == 404
    assert all("style" not in attrs and not any(name.startswith("on") for name in attrs) for _, attrs in page.tags)


async def test_page_speaks_russian_and_english_and_keeps_the_link(kyc: KycApp) -> None:
    assert KYC_TEXTS["ru"].keys() == KYC_TEXTS["en"].keys()
    url = await link(kyc)
    for language in KYC_TEXTS:
        _, page, response = await show(kyc, url, language)
        assert KYC_TEXTS[language]["documents_head"] in page.text
        assert response.headers["Content-Language"] == language
        switches = [a["href"] or "" for a in page.all("a") if a.get("hreflang")]
        for switch in switches:
            assert session_of(switch) == session_of(url)
            assert (await show(kyc, f"/kyc{switch}"))[0] == 200


async def test_names_are_text_and_nothing_else(kyc: KycApp) -> None:
    kyc.app.account = kyc.account = await create_account(kyc.ports, "<script>alert(1)</script>")
    await set_settings(kyc.ports, kyc.account.account_id, {"kyc": "required"})
    _, _, response = await show(kyc, await link(kyc))
    assert "<script>alert" not in response.text


async def test_page_reports_an_unavailable_verifier(kyc: KycApp) -> None:
    await kyc.register()
    kyc.verifier.away = True
    url = hosted_url(kyc.ports, kyc.account.account_id, PHONE)
    status, page, _ = await show(kyc, url)
    assert (status, page.main["data-face"]) == (503, "unavailable")

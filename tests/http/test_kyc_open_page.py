"""The hosted KYC page without a link from the merchant. It asks for missing data, and reveals nothing to strangers
(docs/kyc.md "Without a link of yours")."""

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest

from cambist.core.domain.accounts.accounts import Account
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.core.usecases.kyc.clients import set_blocked
from cambist.core.usecases.kyc.uploads import HELD_AT_ONCE, OPEN_AT_ONCE
from cambist.core.usecases.payer.kyc_begin import PER_ADDRESS, PER_PHONE
from cambist.frontends.http.payer.kyc_texts import EN
from cambist.ports.kyc import CheckStatus
from tests.kyc_kit import JPEG, OTHER, PHONE, PNG, KycApp, code, open_kyc_app
from tests.windows import Page

SHOP = "https://shop.example/cabinet"


@pytest.fixture
async def kyc(tmp_path: Path) -> AsyncIterator[KycApp]:
    async with open_kyc_app(tmp_path, return_url=SHOP) as opened:
        yield opened


async def second_merchant(kyc: KycApp, **settings: str) -> str:
    """Create a second merchant that the page knows, and before it one without KYC."""
    await create_account(kyc.ports, "Shop without KYC")
    other = await create_account(kyc.ports, "Other shop")
    await set_settings(kyc.ports, other.account_id, {"kyc": "required", **settings})
    await kyc.app.clock.advance(60)  # the page's list of merchants is a minute old
    return other.account_id


async def come(kyc: KycApp, **query: str) -> httpx.Response:
    text = f"?{urlencode(query)}" if query else ""
    return await kyc.app.http.get(f"/kyc{text}", headers={"Accept-Language": "en"})


async def give(kyc: KycApp, **form: str) -> httpx.Response:
    """The page's form."""
    return await kyc.app.http.post("/kyc/begin", data=form, headers={"Accept-Language": "en"})


def face(response: httpx.Response) -> str:
    return Page(response.text).main["data-face"] or ""


def begun(response: httpx.Response) -> str:
    """The session that came of it."""
    assert response.status_code == 303, response.text
    to = urlsplit(response.headers["Location"])
    assert (to.scheme, to.netloc, to.path) == ("", "", "/kyc"), "to this page, and nowhere else"
    return parse_qs(to.query)["session"][0]


async def call(kyc: KycApp, path: str, session: str, **body: str) -> httpx.Response:
    return await kyc.app.http.post(f"/kyc/{path}", json={"session": session, **body})


async def documents(kyc: KycApp, session: str) -> dict[str, str]:
    keys = {}
    for name, content, media in (("selfie_key", JPEG, "image/jpeg"), ("document_key", PNG, "image/png")):
        grant = (await call(kyc, "upload-url", session, content_type=media)).json()
        assert (await kyc.put(grant["upload_url"], content, media)).status_code == 200
        keys[name] = grant["file_key"]
    return keys


async def test_open_page_asks_for_the_phone_and_leads_to_the_check(kyc: KycApp) -> None:
    page = await come(kyc)
    assert (page.status_code, face(page)) == (200, "ask")
    assert [each["name"] for each in Page(page.text).all("input")] == ["phone"], "the only merchant is known"
    session = begun(await give(kyc, phone="8 (900) 123-45-67"))
    assert face(await come(kyc, session=session)) == "documents"
    done = (await call(kyc, "register", session, **await documents(kyc, session))).json()
    assert done["status"] == "processing"
    assert face(await come(kyc, session=done["session"])) == "processing", "what he began himself he may follow"
    await kyc.app.work(10)
    assert face(await come(kyc, session=done["session"])) == "verified"
    assert (await kyc.check())["status"] == "verified"


@pytest.mark.parametrize("phone", [PHONE, PHONE.replace("+", " ")])
async def test_complete_link_goes_on_to_the_documents(kyc: KycApp, phone: str) -> None:
    """`phone` as the interface writes it; an unescaped + comes as a space."""
    back = "https://shop.example/done"
    response = await come(kyc, phone=phone, redirect=back)
    session = begun(response)
    assert parse_qs(urlsplit(response.headers["Location"]).query)["redirect"] == [back]
    assert PHONE[1:] not in response.headers["Location"]
    assert face(await come(kyc, session=session)) == "documents"


@pytest.mark.parametrize(
    "phone", ["", "1", "+7900123456", "+15551234567", "x" * 40, "+7900123456a", "<script>", "9" * 5000]
)
async def test_invalid_phone_is_reported_and_requested_again(kyc: KycApp, phone: str) -> None:
    page = await give(kyc, phone=phone)
    assert (page.status_code, face(page)) == (422, "ask")
    assert EN["error_phone"] in Page(page.text).text
    assert "<script>" not in page.text
    assert face(await come(kyc, phone=phone)) == "ask"


async def test_the_shop_is_asked_for_where_there_are_several(kyc: KycApp) -> None:
    """The page finds the shop by its return address, or else by the typed site. An unknown or ambiguous site is
    ignored."""
    other = await second_merchant(kyc, return_url="https://www.other.example/")
    assert [each["name"] for each in Page((await come(kyc)).text).all("input")] == ["phone", "site"]
    for redirect in ("https://shop.example/x", "https://www.other.example:443/y?z=1"):
        begun(await come(kyc, phone=PHONE, redirect=redirect))
    for site in ("shop.example", "https://SHOP.example/cart", "www.shop.example", "other.example"):
        session = begun(await give(kyc, phone=PHONE, site=site))
        name = "Other shop" if "other" in site else "Merchant"
        assert name in Page((await come(kyc, session=session)).text).text
    for site in ("", "nobody.example", "shop.example.evil.example", "https://evil@shop.example", "\\shop.example"):
        page = await give(kyc, phone=PHONE, site=site)
        assert (page.status_code, face(page)) == (422, "ask"), site
    await set_settings(kyc.ports, other, {"return_url": "https://shop.example"})
    await kyc.app.clock.advance(60)
    assert face(await give(kyc, phone=PHONE, site="shop.example")) == "link", "an origin of two is nobody's"


async def test_strangers_have_the_accounts_read_once_a_minute(kyc: KycApp, monkeypatch: pytest.MonkeyPatch) -> None:
    walks, scan = 0, kyc.ports.storage.scan

    def counted(kind: Any, **how: Any) -> Any:
        nonlocal walks
        walks += kind is Account
        return scan(kind, **how)

    monkeypatch.setattr(kyc.ports.storage, "scan", counted)
    for seconds in (0, 59, 1):
        await kyc.app.clock.advance(seconds)
        await come(kyc)
        begun(await give(kyc, phone=PHONE))
        assert walks == (2 if seconds == 1 else 1)


@pytest.mark.parametrize(
    "redirect", ["https://evil.example/", "javascript:alert(1)", "//evil.example", "http://shop.example/"]
)
async def test_redirect_elsewhere_leads_to_the_merchants_site(kyc: KycApp, redirect: str) -> None:
    """`redirect` is https and of the merchant's origin, else it is the merchant's `/`."""
    response = await come(kyc, phone=PHONE, redirect=redirect)
    session = begun(response)
    done = (await call(kyc, "register", session, **await documents(kyc, session))).json()
    page = Page((await come(kyc, session=done["session"], redirect=redirect)).text)
    [back] = [each["href"] for each in page.all("a") if each.get("id") == "return"]
    assert back == "https://shop.example/"


@pytest.mark.parametrize("standing", ["processing", "verified", "blocked"])
async def test_stranger_does_not_learn_the_status_of_a_known_client(kyc: KycApp, standing: str) -> None:
    await kyc.register()
    if standing != "processing":
        await kyc.app.work(10)
    if standing == "blocked":
        await set_blocked(kyc.ports, (await kyc.client()).id, True)
    session = begun(await give(kyc, phone=PHONE))
    page = await come(kyc, session=session)
    assert face(page) == "received"
    assert (await call(kyc, "state", session)).json() == {"face": "received"}
    keys = await documents(kyc, session)
    assert (await call(kyc, "register", session, **keys)).json() == {"status": "received"}
    assert face(await come(kyc, session=session)) == "received"


async def test_refused_client_uploads_again_and_does_not_see_the_refusal(kyc: KycApp) -> None:
    kyc.verifier.decides = False  # type: ignore[attr-defined]  # what the test decides
    await kyc.register()
    await kyc.decide(CheckStatus.FAILED)
    page = await come(kyc, session=begun(await give(kyc, phone=PHONE)))
    assert face(page) == "documents"
    assert EN["again_text"] not in page.text


async def test_strangers_documents_use_no_rate_limit_of_client_or_merchant(kyc: KycApp) -> None:
    session = begun(await give(kyc, phone=PHONE))
    for _ in range(HELD_AT_ONCE):
        assert (await call(kyc, "upload-url", session, content_type="image/png")).status_code == 200
    assert code(await call(kyc, "upload-url", session, content_type="image/png")) == (409, "UPLOAD_LIMIT")
    vouched = parse_qs(urlsplit((await kyc.check())["kyc_url"]).query)["session"][0]
    assert (await call(kyc, "upload-url", vouched, content_type="image/png")).status_code == 200
    answers = []
    for number in range(1, OPEN_AT_ONCE // HELD_AT_ONCE + 1):
        session = begun(await give(kyc, phone=f"+790012345{number:02}"))
        answers = [await call(kyc, "upload-url", session, content_type="image/png") for _ in range(HELD_AT_ONCE)]
    assert answers[-1].status_code == 409, "as many as strangers may have"
    await kyc.grant()


async def test_one_address_and_one_phone_begin_so_many_a_minute(kyc: KycApp) -> None:
    for _ in range(PER_PHONE):
        begun(await give(kyc, phone=PHONE))
    refused = await give(kyc, phone=PHONE)
    assert (refused.status_code, face(refused)) == (429, "busy")
    assert int(refused.headers["Retry-After"]) > 0
    for number in range(PER_ADDRESS - PER_PHONE - 1):
        begun(await give(kyc, phone=f"+790012346{number:02}"))
    assert (await give(kyc, phone=OTHER)).status_code == 429
    await kyc.app.clock.advance(60)
    begun(await give(kyc, phone=OTHER))


async def test_open_page_is_404_unless_a_merchant_enabled_it(kyc: KycApp) -> None:
    for settings in ({"kyc_open_page": "false"}, {"kyc_open_page": "true", "kyc": "off"}, {"kyc": "disabled"}):
        await kyc.set(**settings)
        await kyc.app.clock.advance(60)
        page = await come(kyc, phone=PHONE)
        assert page.status_code == 404, settings
        assert face(page) == "link"


async def test_a_form_of_another_site_and_a_body_that_is_none_begin_nothing(kyc: KycApp) -> None:
    foreign = await kyc.app.http.post("/kyc/begin", data={"phone": PHONE}, headers={"Sec-Fetch-Site": "cross-site"})
    assert foreign.status_code == 403
    for body in (b"\xff\xfe=\x00", b"phone=" + b"%ff" * 9000, b"&" * 50_000, b'{"phone": "+79001234567"}', b""):
        response = await kyc.app.http.post("/kyc/begin", content=body)
        assert (response.status_code, face(response)) == (422, "ask")


async def test_the_phone_is_in_no_log(kyc: KycApp, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "httpx")  # the browser's own
    with caplog.at_level(logging.DEBUG):
        session = begun(await come(kyc, phone=PHONE))
        begun(await give(kyc, phone=PHONE))
        await come(kyc, session=session)
        await give(kyc, phone="+7900123456x")
    assert "9001234567" not in caplog.text
    assert "900123456" not in caplog.text

"""The payer window keeps to itself: strict headers, own files only, no markup from outside, nothing personal."""

import re
from typing import Any

import httpx
import pytest

from cambist.core.usecases.accounts import accounts, shops
from cambist.frontends.http.payer.pages import HEADERS
from cambist.frontends.http.payer.window_page import WindowPage
from cambist.frontends.http.payer.window_texts import EN
from cambist.ports.faults import Unavailable
from tests.apps import TestApp
from tests.subscription_app import subscribed
from tests.windows import FACES, Page, page_of, with_face

NOBODY = "0190a5f2-7b1c-7def-8abc-0123456789ab"

UNKNOWN = (
    f"pay_{NOBODY}",
    f"PAY_{NOBODY}",
    f"pay_{NOBODY.upper()}",
    f"pay_{{{NOBODY}}}",
    NOBODY,
    "pay_",
    "x",
    "pay_%00",
    "%00",
    "%ff%fe",
    "<script>alert(1)",
    "a" * 4000,
)


async def test_an_unknown_link_is_a_friendly_404_in_the_payer_s_language(app: TestApp) -> None:
    for payment_id in UNKNOWN:
        response = await page_of(app, payment_id, **{"Accept-Language": "en-GB"})
        assert response.status_code == 404, payment_id
        assert response.headers["content-type"] == "text/html; charset=utf-8", payment_id
        assert EN["closed_head"] in response.text
        assert "<script>alert" not in response.text
    assert (await page_of(app, "..%2f..%2fetc%2fpasswd")).status_code == 404


# Safety


def assert_safe(response: httpx.Response) -> None:
    for name, value in HEADERS.items():
        assert response.headers[name] == value


async def test_every_answer_carries_the_safety_headers(app: TestApp) -> None:
    """Strict CSP, no-store, nosniff, no referrer, noindex: on pages, states, refusals and redirects alike."""
    payment = await app.created()
    path = f"/p/{payment['id']}"
    answers = [
        await app.http.get(path),
        await app.http.head(path),
        await app.http.get(f"{path}/state"),
        await app.http.get("/p/nothing"),
        await app.http.get("/p/nothing/state"),
        await app.http.post(f"{path}/simulate", data={"action": "dance"}),
        await app.http.post(f"{path}/simulate", data={"action": "pay"}, headers={"Sec-Fetch-Site": "cross-site"}),
        await app.http.post(f"{path}/simulate", data={"action": "pay"}),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 404, 404, 400, 403, 303]
    for answer in answers:
        assert_safe(answer)
        assert "set-cookie" not in answer.headers


async def test_the_policy_allows_own_files_only() -> None:
    policy = dict(part.split(" ", 1) for part in HEADERS["Content-Security-Policy"].split("; "))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self'",
        "connect-src": "'self'",
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
    }


async def test_no_page_has_inline_code_or_asks_another_host_for_anything(app: TestApp) -> None:
    await accounts.set_settings(app.ports, app.account.account_id, {"return_url": "https://shop.example/back"})
    pages = [await page_of(app, await with_face(app, face)) for face in FACES]
    pages.append(await page_of(app, "nothing"))
    for response in pages:
        page = Page(response.text)
        for tag, attrs in page.tags:
            assert "style" not in attrs, attrs
            assert not [name for name in attrs if name.startswith("on")], attrs
            assert tag != "style"
            assert tag != "script" or (attrs["src"] or "").startswith("/p/assets/")
            for name in ("src", "action", "poster", "data", "srcset"):
                assert not (attrs.get(name) or "").startswith(("http", "//")), attrs
            if tag != "a":
                assert not (attrs.get("href") or "").startswith(("http", "//")), attrs


async def test_merchants_text_is_never_markup(app: TestApp) -> None:
    nasty = "\"'><script>alert(1)</script><img src=x onerror=alert(1)> {{ 7*7 }}"
    await shops.rename_shop(app.ports, app.account.default_shop_id, nasty)
    payment = await app.created({"description": nasty})
    response = await page_of(app, payment)
    page = Page(response.text)
    assert page.text.count(nasty) >= 2
    assert page.all("img") == []
    assert len(page.all("script")) == 1


@pytest.mark.parametrize("path", ["/p", "/s", "closed"])
async def test_merchants_text_is_isolated_in_its_direction(app: TestApp, path: str) -> None:
    """A name written from right to left moves nothing beside it (docs/limits.md "Sizes")."""
    hebrew = {name: f"{name} חנות 7 (!)" for name in ("shop", "description", "order")}
    await shops.rename_shop(app.ports, app.account.default_shop_id, hebrew["shop"])
    order = {"description": hebrew["description"], "external_id": hebrew["order"]}
    if path == "/s":
        page = await app.http.get(f"/s/{(await subscribed(app, **order))['id']}")
    else:
        payment = await app.created(order)
        if path == "closed":
            await app.simulate(payment["id"], outcome="paid")
            await app.clock.advance(61)
        page = await page_of(app, payment)
    body = page.text.partition("<body>")[2]
    isolated = re.findall(r"<bdi[^>]*>([^<]*)</bdi>", body)
    assert set(isolated) == ({hebrew["shop"], hebrew["order"]} if path == "closed" else set(hebrew.values()))
    assert re.sub(r"<bdi[^>]*>[^<]*</bdi>", "", body).count("חנות") == 0


async def test_nothing_personal_is_on_the_page(app: TestApp) -> None:
    """Payer data, phones and the name that the bank reported stay inside."""
    payment = await app.created(
        {
            "client_phone": "+79991234567",
            "client_email": "payer@example.com",
            "payer": {"full_name": "Ivan Petrov", "document_number": "4509123456"},
            "client_info": {"ip": "203.0.113.77"},
            "metadata": {"note": "inner-note"},
        }
    )
    before = (await page_of(app, payment)).text
    await app.simulate(payment["id"], outcome="paid", payer_name="Anna Sidorova")
    after = (await page_of(app, payment)).text
    state = (await app.http.get(f"/p/{payment['id']}/state")).text
    secrets = ("4567", "payer@", "Petrov", "45091", "203.0.113", "inner-note", "Sidorova")
    for html in (before, after, state):
        # Ids are long numbers in hexadecimal and may hold any four digits.
        text = html.replace(payment["id"], "")
        assert [secret for secret in secrets if secret in re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "", text)] == []


# Assets, and what goes wrong


async def test_assets_are_kept_by_their_hash_and_checked_by_their_tag(app: TestApp) -> None:
    page = Page((await page_of(app, "nothing")).text)
    links = [tag["src"] or "" for tag in page.all("script")] + [tag["href"] or "" for tag in page.all("link")]
    assert len(links) == 3
    for link in links:
        fresh = await app.http.get(link)
        assert fresh.status_code == 200
        assert fresh.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert fresh.headers["X-Content-Type-Options"] == "nosniff"
        known = await app.http.get(link, headers={"If-None-Match": fresh.headers["ETag"]})
        assert (known.status_code, known.content) == (304, b"")
        assert (await app.http.get(link.split("?")[0])).headers["Cache-Control"] == "no-cache"
    for name in ("window.html", "..%2fwindow.py", "nothing.css"):
        assert (await app.http.get(f"/p/assets/{name}")).status_code == 404


def test_a_qr_is_drawn_once_and_only_so_many_are_kept() -> None:
    """Drawing takes 12 ms, and a page without script asks every five seconds."""
    drawn = WindowPage("/p")._qr
    assert drawn("https://qr.example/1") is drawn("https://qr.example/1")
    assert drawn.cache_info().maxsize == 512


@pytest.mark.parametrize(("fault", "expected"), [(Unavailable("inner words"), 503), (RuntimeError("inner words"), 500)])
async def test_failure_gives_a_page_that_reloads_itself(
    app: TestApp,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    fault: Exception,
    expected: int,
) -> None:
    """The page asks the payer not to pay again; the cause goes to the log."""
    payment = await app.created()

    def broken() -> Any:
        raise fault

    monkeypatch.setattr(app.ports.storage, "unit", broken)
    response = await page_of(app, payment, "?lang=en")
    assert response.status_code == expected
    assert EN["unavailable_text"] in response.text
    assert "inner words" not in response.text
    assert 'http-equiv="refresh"' in response.text
    assert "inner words" in caplog.text
    assert_safe(response)

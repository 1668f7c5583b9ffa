"""The brand of the payer's pages: people set it, payers see it (docs/dashboard.md "Brand")."""

import re

from cambist.core.domain.people.roles import Role
from cambist.core.usecases.accounts.shops import create_shop
from tests.apps import TestApp
from tests.dashboard.browser import BASE, Browser, in_test_mode, joined
from tests.dashboard.test_pages import check
from tests.domain.test_brand import PNG

LOGO = re.compile(r'src="(/p/logos/logo_[0-9a-f-]+)"')


async def _upload(person: Browser, path: str, body: bytes) -> int:
    form = next(each for each in person.page.forms if each.action == path)
    answer = await person.http.post(
        path,
        data={"csrf": form.values["csrf"][0]},
        files={"logo": ("logo.png", body, "image/png")},
        headers={"Origin": BASE, "Sec-Fetch-Site": "same-origin"},
    )
    return answer.status_code


async def _window(app: TestApp, **order: object) -> str:
    payment = await app.created({"amount_rub": "500.00", **order})
    return (await app.http.get(f"/p/{payment['id']}", headers={"Accept-Language": "en"})).text


async def test_owner_sets_the_brand_and_payers_see_it(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open("/settings/brand")
    await owner.send(
        "/settings/brand", brand_color="#FFDD00", brand_contact="help@shop.example", brand_success_text="See you soon"
    )
    owner.sees("Saved", "The button's text is dark")
    check(owner.page, "brand")
    assert await _upload(owner, "/settings/brand/logo", PNG) == 303
    text = await _window(app)
    assert "/p/colors/ffdd00.css" in text
    assert 'href="mailto:help@shop.example"' in text
    logo = LOGO.search(text)
    assert logo is not None
    picture = await app.http.get(logo[1])
    assert picture.headers["content-type"] == "image/png"
    assert "sandbox" in picture.headers["content-security-policy"]
    assert "immutable" in picture.headers["cache-control"]
    colors = await app.http.get("/p/colors/ffdd00.css")
    assert "--on-accent: #000000" in colors.text
    assert (await app.http.get("/p/colors/x.css")).status_code == 404
    assert (await app.http.get("/p/logos/logo_x")).status_code == 404
    for language in ("en", "ru"):
        await owner.open(f"/audit?lang={language}")
    owner.sees("изменён логотип", "цвет: #ffdd00")
    await owner.open("/settings/brand")
    await owner.send("/settings/brand/logo/remove")
    assert (await app.http.get(logo[1])).status_code == 404
    assert not LOGO.search(await _window(app))


async def test_shop_replaces_the_parts_of_the_brand_that_it_sets(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    shop = await create_shop(app.ports, app.account.account_id, "Flowers", "0.03")
    await owner.open("/settings/brand")
    await owner.send("/settings/brand", brand_color="#2152d9", brand_contact="help@shop.example")
    await owner.open(f"/shops/{shop.id}/brand")
    await owner.send(f"/shops/{shop.id}/brand", brand_contact="+7 900 123-45-67")
    text = await _window(app, shop_id=shop.id)
    assert "tel:+79001234567" in text
    assert "/p/colors/2152d9.css" in text
    assert "mailto:" in await _window(app)


async def test_wrong_brand_is_refused_by_field_and_changes_nothing(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    for language, says in (("en", "a colour such as #2152d9"), ("ru", "цвет, например #2152d9")):
        await owner.open(f"/settings/brand?lang={language}")
        await owner.send("/settings/brand", brand_color="red", brand_contact="x")
        assert owner.answer.status_code == 400
        owner.sees(says)
    await owner.open("/settings/brand")
    assert await _upload(owner, "/settings/brand/logo", b"<svg/>") == 400
    assert await _upload(owner, "/settings/brand/logo", b"") == 400
    assert await _upload(owner, "/settings/brand/logo", bytes(70_000)) == 400
    assert await _upload(owner, "/settings/brand/logo", bytes(100_000)) == 413
    assert "mailto" not in await _window(app)
    support = await in_test_mode(await joined(app, Role.SUPPORT))
    await support.open("/settings/brand")
    assert support.answer.status_code == 403


async def test_preview_shows_every_state_in_frames_of_our_own_only(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open("/settings/brand")
    frames = [given["src"] for tag, given in owner.page.tags if tag == "iframe"]
    assert len(frames) == 11
    assert "frame-src 'self'" in owner.answer.headers["content-security-policy"]
    for frame in frames:
        await owner.open(frame)
        assert owner.answer.status_code == 200, frame
        assert "frame-ancestors 'self'" in owner.answer.headers["content-security-policy"]
        owner.sees("1042")
    await owner.open("/settings/brand/preview/none")
    assert owner.answer.status_code == 404

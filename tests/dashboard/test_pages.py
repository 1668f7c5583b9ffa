"""Every page of the dashboard, in both languages and for every role (docs/dashboard.md "Roles")."""

import re
from pathlib import Path

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.people.roles import PersonRight, Role, grant
from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.accounts.shops import create_shop
from cambist.frontends.dashboard.app import ROWS
from cambist.frontends.dashboard.assets import FOLDER
from cambist.frontends.dashboard.rows import Row
from cambist.frontends.dashboard.serving import SECTIONS
from cambist.frontends.dashboard.texts import PAIRS
from tests.apps import TestApp
from tests.dashboard.browser import Browser, Html, in_test_mode, joined
from tests.tables import table

PLAIN = [row for row in ROWS if row.method == "GET" and "{" not in row.path and not row.is_stream]
GUARDED = [row for row in ROWS if row.right is not None and not row.is_stream]
BY_LINK = ("/invite", "/profile/email", "/unsubscribe")
"""Pages that need the token of a letter."""
UNKNOWN = "01a21ea4-2c55-7c99-82bc-e03e87ee0495"


def address(row: Row) -> str:
    """Return a path of the row, with unknown ids."""
    return re.sub(r"\{[^}]+\}", UNKNOWN, row.path)


def check(page: Html, path: str) -> None:
    """Check what WCAG and our headers demand of every page."""
    names = [tag for tag, _ in page.tags]
    assert names.count("h1") == 1, path
    assert names.count("main") == 1, path
    assert len(page.ids) == len(set(page.ids)), f"{path}: an id occurs twice"
    labelled = {given["for"] for tag, given in page.tags if tag == "label" and "for" in given}
    for tag, given in page.tags:
        assert "style" not in given, f"{path}: inline style"
        assert not any(name.startswith("on") for name in given), f"{path}: inline handler"
        if tag in ("input", "select", "textarea") and given.get("type") not in ("hidden", "checkbox"):
            assert given.get("id") in labelled, f"{path}: {given.get('name')} has no label"
    for form in page.forms:
        assert form.method == "get" or form.values.get("csrf"), f"{path}: a form without its lock"


async def test_every_page_renders_in_both_languages(app: TestApp) -> None:
    payment = await app.created({"external_id": "order-1"})
    await app.simulate(payment["id"], outcome="paid")
    await app.work(5)
    owner = await in_test_mode(await joined(app, Role.OWNER))
    for row in PLAIN:
        for language in ("en", "ru"):
            await owner.open(f"{row.path}?lang={language}")
            if owner.answer.headers["content-type"].startswith("text/html"):
                assert owner.answer.status_code == (404 if row.path in BY_LINK else 200), row.path
                check(owner.page, row.path)
                assert f'<html lang="{language}">' in owner.answer.text


@table("role", list(Role))
async def test_role_opens_the_pages_of_its_rights_and_no_other(app: TestApp, role: Role) -> None:
    """Each row of the table of routes is tried by each role, in test mode and freshly confirmed."""
    await app.clock.advance(60)  # the limit of pages counts by the minute
    person = await in_test_mode(await joined(app, role))
    await person.open("/profile")
    csrf = person.page.forms[0].values["csrf"][0]
    for row in GUARDED:
        assert row.right is not None
        allowed = grant(role, row.right, Mode.TEST) is not None
        if row.method == "GET":
            await person.open(address(row))
        else:
            await person.post(address(row), {"csrf": csrf})
        denied = "Your role does not have the right" in person.text
        assert denied is not allowed, f"{role} {row.method} {row.path}: {person.text[:300]}"
        assert person.answer.status_code < 500, f"{row.path}: {person.text[:300]}"
        if row.method != "GET":
            await person.open("/profile")
            csrf = person.page.forms[0].values["csrf"][0]


def test_sections_are_those_of_the_routes() -> None:
    assert {row.path.split("/")[1] for row in ROWS} | {"dashboard"} == SECTIONS


async def test_unknown_page_says_so(app: TestApp) -> None:
    browser = await Browser(app).open("/payments/a/b/c")
    assert (browser.answer.status_code, browser.page.headings) == (404, ["Page not found"])
    answer = await browser.http.delete("/payments")
    assert answer.status_code == 404


async def test_anonymous_visitor_is_sent_to_the_sign_in(app: TestApp) -> None:
    stranger = Browser(app)
    for row in ROWS:
        if not row.is_public:
            if row.method == "GET":
                await stranger.open(address(row))
                assert stranger.path == "/login", row.path
            else:
                await stranger.post(address(row), {"csrf": "x"})
                assert stranger.answer.status_code == 403, row.path


async def test_limited_member_sees_one_shop_only(app: TestApp) -> None:
    shop = await create_shop(app.ports, app.account.account_id, "Second", "0.05")
    own = await app.created({"external_id": "own-order", "shop_id": shop.id})
    foreign = await app.created({"external_id": "foreign-order"})
    for each in (own, foreign):
        await app.simulate(each["id"], outcome="paid")
    member = await in_test_mode(await joined(app, Role.ADMIN, shops=(shop.id,)))
    await member.open("/payments")
    member.sees("own-order")
    assert "foreign-order" not in member.text
    await member.open(f"/payments/{foreign['id']}")
    assert member.answer.status_code == 404
    await member.open(f"/payments?shop_id={app.account.default_shop_id}")
    assert "foreign-order" not in member.text
    for path in ("/balance", "/payouts", "/subscriptions", "/exchanges", "/audit", "/developers/events"):
        await member.open(path)
        assert member.answer.status_code == 403, path
    await member.open("/payments")
    await member.send("/exports", format="csv")
    await app.work(1)
    await member.open("/exports")
    await member.open(next(link for link in member.page.links if link.endswith("/file")))
    assert "own-order" in member.answer.text
    assert "foreign-order" not in member.answer.text


async def test_objects_of_another_account_do_not_exist(app: TestApp) -> None:
    payment = (await app.created())["id"]
    other = await create_account(app.ports, "Other")
    app.account = other
    stranger = await in_test_mode(await joined(app, Role.OWNER))
    await stranger.open(f"/payments/{payment}")
    assert stranger.answer.status_code == 404
    await stranger.open("/payments")
    assert payment[-12:] not in stranger.text


async def test_live_objects_are_invisible_in_test_mode(app: TestApp) -> None:
    live = (await app.create(mode="live")).json()["id"]
    owner = await joined(app, Role.OWNER)
    await owner.open(f"/payments/{live}")
    assert owner.answer.status_code == 200
    await in_test_mode(owner)
    await owner.open(f"/payments/{live}")
    assert owner.answer.status_code == 404


def test_templates_have_no_text_of_their_own() -> None:
    for path in sorted((FOLDER / "templates").glob("*.html")):
        text = re.sub(r"\{[{%#].*?[}%#]\}|<[^>]*>", "", path.read_text("utf-8"), flags=re.DOTALL)
        words = [word for word in re.findall(r"[A-Za-zА-Яа-я]{3,}", text) if word != "cambist"]
        assert not words, f"{path.name}: {words}"


def test_texts_have_the_same_values_in_both_languages() -> None:
    for key, (english, russian) in PAIRS.items():
        assert sorted(re.findall(r"\{\w+\}", english)) == sorted(re.findall(r"\{\w+\}", russian)), key


@table("folder", ["pages", "."])
def test_every_text_that_a_page_names_exists(folder: str) -> None:
    for path in sorted((Path(FOLDER) / folder).glob("*.py")):
        for key in re.findall(r'ask\.t\("([^"]+)"', path.read_text("utf-8")):
            assert key in PAIRS, f"{path.name}: {key}"


def test_each_right_of_people_guards_something() -> None:
    used = {row.right for row in ROWS}
    beside = {PersonRight.EXCHANGES, PersonRight.KYC, PersonRight.OWNER}
    assert set(PersonRight) - used - beside == set()

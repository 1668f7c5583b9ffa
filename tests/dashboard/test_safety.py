"""Attacks on the dashboard: forms of others, cookies, redirects, guesses (docs/dashboard.md "Safety")."""

import base64
import re
from urllib.parse import urlsplit

from cambist.core.domain.people.passwords import totp_code
from cambist.core.domain.people.people import User
from cambist.core.domain.people.roles import Role
from cambist.core.usecases.people.invitations import invite
from cambist.frontends.dashboard.app import ROWS
from cambist.frontends.dashboard.cookies import SESSION, read_cookie
from tests.apps import TestApp
from tests.dashboard.browser import BASE, Browser, in_test_mode, joined
from tests.invariants import everything
from tests.people_kit import PASSWORD
from tests.tables import table


@table(
    ("cookies", "value"),
    [
        ([b"__Host-cambist=good"], "good"),
        ([b"a=1; __Host-cambist=good; b=2"], "good"),
        ([b"\xa0__Host-cambist=evil"], ""),
        ([b"__Host-cambist=good; \xa0__Host-cambist=evil"], ""),
        ([b"__Host-cambist=good; __Host-cambist=evil"], ""),
        ([b"__Host-cambist=good", b"__Host-cambist=evil"], ""),
        ([b"x__Host-cambist=evil"], ""),
        ([b"__host-cambist=evil"], ""),
        ([b"__Host-cambist=\xff"], ""),
        ([b"__Host-cambist=" + b"a" * 600], ""),
        ([b"__Host-cambist"], ""),
        ([], ""),
    ],
)
def test_look_alikes_and_repeated_cookies_are_no_session(cookies: list[bytes], value: str) -> None:
    assert read_cookie([(b"cookie", each) for each in cookies], SESSION) == value


FOREIGN = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
    {"Sec-Fetch-Site": "", "Origin": "https://evil.example"},
    {"Sec-Fetch-Site": "", "Origin": "null"},
    {"Sec-Fetch-Site": "", "Origin": "http://pay.example"},
    {"Sec-Fetch-Site": "", "Origin": "https://pay.example.evil.example"},
]


@table("headers", FOREIGN)
async def test_form_of_another_site_is_refused(app: TestApp, headers: dict[str, str]) -> None:
    address = f"{abs(hash(str(headers)))}@shop.example"
    owner = await in_test_mode(await joined(app, Role.OWNER, email=address))
    await owner.open("/shops")
    await owner.send("/shops", headers, name="Planted")
    assert owner.answer.status_code == 403
    await owner.open("/shops")
    assert "Planted" not in owner.text


async def test_form_without_its_field_or_with_anothers_is_refused(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    admin = await in_test_mode(await joined(app, Role.ADMIN))
    await admin.open("/shops")
    foreign = admin.page.forms[-1].values["csrf"][0]
    for csrf in ("", "x", foreign):
        await owner.post("/shops", {"csrf": csrf, "name": "Planted"})
        assert owner.answer.status_code == 403
        assert "not from this page" in owner.text


async def test_program_without_browser_headers_may_send_forms(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open("/shops")
    await owner.send("/shops", {"Origin": "", "Sec-Fetch-Site": ""}, name="By a program")
    owner.sees("By a program")


async def test_get_of_an_unsafe_address_changes_nothing(app: TestApp) -> None:
    owner = await joined(app, Role.OWNER)
    reading = {row.path for row in ROWS if row.method == "GET"}
    for row in ROWS:
        if row.method == "POST" and row.path not in reading and "{" not in row.path:
            answer = await owner.http.get(row.path)
            assert answer.status_code in (404, 405), row.path


async def test_other_content_types_are_no_forms(app: TestApp) -> None:
    owner = await joined(app, Role.OWNER)
    for kind in ("application/json", "text/plain", "multipart/form-data; boundary=x"):
        headers = {"Content-Type": kind, "Origin": BASE, "Sec-Fetch-Site": "same-origin"}
        answer = await owner.http.post("/shops", content=b'{"name": "x"}', headers=headers)
        assert answer.status_code == 403


async def test_session_cookie_changes_at_sign_in_and_at_confirmation(app: TestApp) -> None:
    owner = await joined(app, Role.OWNER)
    first = owner.http.cookies["__Host-cambist"]
    await owner.open("/confirm")
    await owner.send("/confirm", password=PASSWORD)
    assert owner.http.cookies["__Host-cambist"] != first
    thief = Browser(app)
    thief.http.cookies.set("__Host-cambist", first, domain="pay.example", path="/")
    assert (await thief.open("/home")).path == "/login"


async def test_given_session_cookie_is_never_taken_over(app: TestApp) -> None:
    """Fixation: a cookie that an attacker planted before the sign-in is worth nothing after it."""
    await joined(app, Role.OWNER)
    victim = Browser(app)
    victim.http.cookies.set("__Host-cambist", "planted", domain="pay.example", path="/")
    await victim.open("/login")
    await victim.send("/login", email="owner@shop.example", password=PASSWORD)
    assert victim.path == "/home"
    assert "planted" not in [cookie.value for cookie in victim.http.cookies.jar]


async def test_signed_out_session_opens_nothing(app: TestApp) -> None:
    owner = await joined(app, Role.OWNER)
    kept = owner.http.cookies["__Host-cambist"]
    await owner.open("/profile")
    await owner.send("/logout")
    thief = Browser(app)
    thief.http.cookies.set("__Host-cambist", kept, domain="pay.example", path="/")
    assert (await thief.open("/home")).path == "/login"


STRANGE = [
    "//evil.example", "/\\evil.example", "https://evil.example", "javascript:alert(1)", "/%2f%2fevil.example",
    "/payments@evil.example", "/unknown", "/\nevil", "///evil.example", "/api/v1/payments", "/payments/..",
    "/payments/../../evil", "/payments#@evil.example", "/payments\\@evil.example?status=paid", "?next=//evil.example",
    "//evil.example?status=paid", "/\t/evil.example", "/payments;@evil.example", "/.evil.example", "/%0d%0aevil",
    "/\u2028/payments", "/payments\u200b", "data:text/html,x", "/login/../\\evil.example?a=b",
    "/payments?" + "&".join(f"a{number}=1" for number in range(60)) + "#/unknown\\",
]  # fmt: skip
"""Values of `next` of which none may lead anywhere but to a page of ours."""


@table("following", STRANGE)
async def test_sign_in_and_confirmation_lead_to_our_pages_only(app: TestApp, following: str) -> None:
    await app.clock.advance(60)  # the limit of pages counts by the minute
    if not await everything(app.ports, User):
        await joined(app, Role.OWNER)
    browser = Browser(app)
    sent = {"Origin": BASE, "Sec-Fetch-Site": "same-origin"}
    for path, values in (("/login", {"email": "owner@shop.example", "password": PASSWORD}), ("/confirm", {})):
        await browser.open(path)
        form = {**browser.page.forms[-1 if path == "/confirm" else 0].values, "password": PASSWORD, **values}
        csrf = next(each.values["csrf"] for each in browser.page.forms if "csrf" in each.values)
        answer = await browser.http.post(path, data={**form, "csrf": csrf, "next": following}, headers=sent)
        assert answer.status_code == 303, answer.text
        expected = "/payments" if following.startswith("/payments?") else "/home"
        assert answer.headers["location"] == expected, path


@table(
    ("following", "location"),
    [
        ("/payments?status=paid&q=order-1", "/payments?status=paid&q=order-1"),
        ("/payments?q=//evil.example", "/payments?q=%2F%2Fevil.example"),
        ("/payments?q=%0d%0aSet-Cookie:a=b", "/payments?q=%0D%0ASet-Cookie%3Aa%3Db"),
        ("/payments?q=\\evil", "/payments?q=%5Cevil"),
        ("/payments?path=1&ask=2&self=3", "/payments?path=1&ask=2&self=3"),
        ("/payments?q=%d0%a6%d0%b2%d0%b5%d1%82%d1%8b", "/payments?q=%D0%A6%D0%B2%D0%B5%D1%82%D1%8B"),
        ("/payments?", "/payments"),
    ],
)
async def test_sign_in_keeps_the_query_of_the_page(app: TestApp, following: str, location: str) -> None:
    if not await everything(app.ports, User):
        await joined(app, Role.OWNER)
    browser = Browser(app)
    await browser.open("/login")
    values = {**browser.page.forms[0].values, "email": "owner@shop.example", "password": PASSWORD, "next": following}
    sent = {"Origin": BASE, "Sec-Fetch-Site": "same-origin"}
    answer = await browser.http.post("/login", data=values, headers=sent)
    assert answer.headers["location"] == location


async def test_filter_survives_sign_in_code_and_confirmation(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await app.clock.advance(601)
    await owner.open("/exports/exp_1/file?status=paid&lang=en")
    assert owner.path == "/confirm"
    assert owner.answer.url.params["next"] == "/exports/exp_1/file?status=paid"
    await owner.send("/confirm", password="a wrong sentence")
    assert owner.page.forms[-1].values["next"] == ["/exports/exp_1/file?status=paid"]
    await owner.send("/confirm", password=PASSWORD)
    assert str(owner.answer.url).endswith("/exports/exp_1/file?status=paid&lang=en")
    stranger = Browser(app)
    await stranger.open("/payments?status=paid&done=saved")
    assert stranger.page.forms[0].values["next"] == ["/payments?status=paid"]
    await stranger.send("/login", email="owner@shop.example", password=PASSWORD)
    assert str(stranger.answer.url).endswith("/payments?status=paid")


async def test_headers_forbid_framing_scripts_of_others_and_caching(app: TestApp) -> None:
    answer = (await Browser(app).open("/login")).answer
    policy = answer.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "'unsafe" not in policy
    assert (answer.headers["x-frame-options"], answer.headers["cache-control"]) == ("DENY", "no-store")
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["referrer-policy"] == "same-origin"


async def test_cookies_are_secure_and_hidden_from_scripts(app: TestApp) -> None:
    await joined(app, Role.OWNER)
    browser = Browser(app)
    await browser.open("/login")
    sent = {"Origin": BASE, "Sec-Fetch-Site": "same-origin"}
    values = {**browser.page.forms[0].values, "email": "owner@shop.example", "password": PASSWORD}
    answer = await browser.http.post("/login", data=values, headers=sent)
    for cookie in answer.headers.get_list("set-cookie"):
        assert cookie.startswith("__Host-cambist")
        for word in ("Path=/", "Secure", "HttpOnly", "SameSite=lax"):
            assert word.lower() in cookie.lower(), cookie
        assert "domain" not in cookie.lower()


async def test_second_factor_cannot_be_skipped(app: TestApp) -> None:
    owner = await joined(app, Role.OWNER)
    await owner.open("/profile")
    await owner.send("/profile/app")
    found = re.search(r"[A-Z2-7]{32}", owner.text)
    assert found is not None
    secret = base64.b32decode(found[0])
    code = totp_code(secret, int(app.clock.now().timestamp()) // 30)
    await owner.send("/profile/app/confirm", code=code)
    owner.sees("Recovery codes")
    browser = Browser(app)
    await browser.open("/login")
    await browser.send("/login", email="owner@shop.example", password=PASSWORD)
    assert browser.path == "/login/code"
    for path in ("/home", "/payments", "/profile", "/developers/keys"):
        assert (await browser.open(path)).path == "/login", path
    await browser.open("/login/code")
    await browser.send("/login/code", code=code)
    assert browser.path == "/login/code", "the code was used already"
    await app.clock.advance(60)
    fresh = totp_code(secret, int(app.clock.now().timestamp()) // 30)
    await browser.send("/login/code", code=fresh)
    assert browser.path == "/home"


async def test_confirmed_work_asks_for_the_password_after_ten_minutes(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await app.clock.advance(601)
    await owner.open("/shops")
    await owner.send("/shops", name="Late")
    assert owner.path == "/confirm"
    await owner.send("/confirm", password=PASSWORD)
    assert owner.path == "/shops"
    await owner.send("/shops", name="Late")
    owner.sees("Late")


async def test_repeated_fields_and_planted_fields_are_refused_or_ignored(app: TestApp) -> None:
    admin = await in_test_mode(await joined(app, Role.ADMIN))
    await admin.open("/people")
    csrf = admin.page.forms[0].values["csrf"][0]
    await admin.post("/people/invite", {"csrf": csrf, "email": ["a@shop.example", "b@shop.example"], "role": "viewer"})
    assert admin.answer.status_code == 400
    await admin.open("/people")
    csrf = admin.page.forms[0].values["csrf"][0]
    planted = {"csrf": csrf, "email": "c@shop.example", "role": "owner", "account_id": "acc_1", "live": "yes"}
    await admin.post("/people/invite", planted)
    assert admin.answer.status_code == 403


async def test_invitation_of_another_person_is_not_attached(app: TestApp) -> None:
    viewer = await joined(app, Role.VIEWER)
    made = await invite(app.ports, app.account.account_id, "owner2@shop.example", Role.OWNER, language="en")
    await viewer.open(made.link.removeprefix(BASE))
    viewer.sees("owner2@shop.example")
    await viewer.send("/invite", password="a wholly new sentence")
    await viewer.open("/profile")
    viewer.sees("owner2@shop.example")


@table(
    "text",
    ["<script>alert(1)</script>", "'\"><img src=x onerror=alert(1)>", "=HYPERLINK(1)", "{{7*7}}"],
)
async def test_stored_texts_are_shown_as_text(app: TestApp, text: str) -> None:
    payment = await app.created({"external_id": text})
    owner = await in_test_mode(await joined(app, Role.OWNER, email=f"o{abs(hash(text))}@shop.example"))
    for path in ("/payments", f"/payments/{payment['id']}"):
        await owner.open(path)
        assert "<script>alert" not in owner.answer.text
        assert "<img src=x" not in owner.answer.text
    await owner.open("/payments")
    await owner.send("/exports", format="csv")
    await app.work(1)
    await owner.open("/exports")
    await owner.open(next(link for link in owner.page.links if link.endswith("/file")))
    if text.startswith("="):
        assert f",'{text}," in owner.answer.text


async def test_strange_forms_get_a_page_and_no_error(app: TestApp) -> None:
    browser = Browser(app)
    await browser.open("/login")
    base = {**browser.page.forms[0].values, "email": "owner@shop.example"}
    for password in ("x" * 60_000, "\0", "\ud83d".encode("utf-16", "surrogatepass").decode("utf-16", "replace")):
        await browser.post("/login", {**base, "password": password})
        assert browser.answer.status_code in (400, 401), password[:10]
    answer = await browser.http.post(
        "/login", content=b"a=" + b"x" * 70_000, headers={"Content-Type": "application/x-www-form-urlencoded"}
    )
    assert answer.status_code == 413


async def test_live_updates_need_a_session_and_the_whole_account(app: TestApp) -> None:
    assert (await Browser(app).open("/stream")).path == "/login"
    shop = app.account.default_shop_id
    member = await joined(app, Role.VIEWER, shops=(shop,))
    assert (await member.open("/stream")).answer.status_code == 403
    await member.open("/payments")
    assert "data-stream" not in member.answer.text
    owner = await joined(app, Role.OWNER)
    await owner.open("/payments")
    assert "data-stream" in owner.answer.text
    assert (await owner.http.head("/stream")).headers["cache-control"] == "no-store"
    viewer = await joined(app, Role.VIEWER, email="reader@shop.example")
    for about, allowed in {"": 200, "clients": 200, "settlements": 403, "events": 403, "requests": 403}.items():
        assert (await viewer.http.head(f"/stream?about={about}")).status_code == allowed, about


async def test_session_ends_with_a_change_of_the_role(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    admin = await joined(app, Role.ADMIN)
    await owner.open("/people")
    [other] = [link for link in owner.page.links if "/people/usr_" in link][1:]
    await owner.open(other)
    await owner.send(urlsplit(other).path, role="viewer")
    assert (await admin.open("/shops")).path == "/login"


async def test_other_site_cannot_sign_a_member_in_or_out(app: TestApp) -> None:
    owner = await joined(app, Role.OWNER)
    for values in ({}, {"csrf": "x"}):
        await owner.post("/logout", values, {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"})
        assert owner.answer.status_code == 403
    assert (await owner.open("/home")).path == "/home"
    victim = Browser(app)
    values = {"email": "owner@shop.example", "password": PASSWORD}
    await victim.post("/login", values, {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"})
    assert victim.answer.status_code == 403
    assert "__Host-cambist" not in victim.http.cookies


async def test_no_parameter_or_header_turns_a_get_into_a_change(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open("/shops")
    csrf = owner.page.forms[-1].values["csrf"][0]
    query = {"csrf": csrf, "name": "Planted", "_method": "POST"}
    headers = {"X-HTTP-Method-Override": "POST", "X-Method-Override": "POST"}
    await owner.http.get("/shops", params=query, headers=headers)
    for method in ("PUT", "PATCH", "DELETE"):
        assert (await owner.http.request(method, "/shops", params=query)).status_code in (404, 405)
    await owner.open("/shops")
    assert "Planted" not in owner.text


async def test_addresses_never_come_from_the_host_header(app: TestApp) -> None:
    headers = {"Host": "evil.example", "X-Forwarded-Host": "evil.example"}
    for path in ("/login", "/home", "/reset"):
        answer = await Browser(app).http.get(path, headers=headers)
        assert "evil.example" not in answer.text + str(answer.headers)

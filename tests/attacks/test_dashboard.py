"""Attacks on people, their sign-in and their pages: links, budgets, foreign objects, planted fields
(docs/dashboard.md "Safety"). tests/dashboard/test_safety.py has those on forms, cookies and redirects."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
import pytest

from cambist.adapters.passwords.argon2 import AT_ONCE, MEMORY, PASSES, WAITING_MOST, Argon2Passwords
from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.core.domain.accounts.accounts import ApiKey, KeyUse, Mode
from cambist.core.domain.accounts.request_log import RequestBatch, RequestCount
from cambist.core.domain.accounts.shops import Shop
from cambist.core.domain.errors import Refusal
from cambist.core.domain.exchanges.exchanges import Exchange
from cambist.core.domain.exports.exports import Export
from cambist.core.domain.kyc.clients import Client
from cambist.core.domain.ledger import JournalEntry
from cambist.core.domain.movements import Movement
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.people.payment_notes import PaymentNotes
from cambist.core.domain.people.people import Invitation, Membership, ResetToken, Session, User
from cambist.core.domain.people.roles import Role
from cambist.core.domain.people.views import SavedViews
from cambist.core.domain.receipts.receipts import FiscalReceipt
from cambist.core.domain.refunds.refunds import Refund
from cambist.core.domain.reports.reports import Report
from cambist.core.domain.settlement.rates import KnownRate
from cambist.core.domain.settlement.settlement import Settlement
from cambist.core.domain.settlement.withdrawals import Withdrawal
from cambist.core.domain.subscriptions.subscriptions import Subscription
from cambist.core.domain.webhooks.endpoints import WebhookEndpoint
from cambist.core.domain.webhooks.feed import Feed, FeedEntry
from cambist.core.domain.webhooks.resends import ResendRun
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.core.usecases.jobs import run_due
from cambist.core.usecases.people.invitations import accept_invitation, invite
from cambist.core.usecases.people.resets import new_reset_link
from cambist.core.usecases.people.sign_in import check_password
from cambist.frontends.dashboard.app import ROWS
from cambist.frontends.http.operations import OPERATIONS
from cambist.ports.faults import Unavailable
from cambist.ports.passwords import PasswordHasher
from tests.app_pool import lent_app
from tests.apps import TestApp
from tests.dashboard.browser import BASE, Browser, in_test_mode, joined
from tests.exchange_app import ExchangeApp
from tests.invariants import everything
from tests.payout_kit import WALLET, Payouts
from tests.people_kit import PASSWORD, Mailbox, token_of, with_mail
from tests.subscription_app import bound, play
from tests.tables import table

UNKNOWN = "01a21ea4-2c55-7c99-82bc-e03e87ee0495"
OWNER = "owner@shop.example"


@contextmanager
def mailed(app: TestApp) -> Iterator[Mailbox]:
    """The service with e-mail, and the mailbox of everybody."""
    mailbox = with_mail(app)
    with lent_app(app.ports) as face:
        app.http = httpx.AsyncClient(transport=httpx.ASGITransport(face), base_url=BASE)
        yield mailbox


def plain(text: str) -> str:
    """A page without what differs from one answer to the next."""
    return re.sub(r'value="[0-9a-f]{40}"|data-options="[^"]*"|req_[0-9A-Za-z-]+', "", text)


async def test_open_stream_ends_when_its_person_is_removed(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    admin = await in_test_mode(await joined(app, Role.ADMIN))
    following = asyncio.create_task(admin.http.get("/stream"))
    await app.clock.advance(10)
    assert not following.done()
    await owner.open("/people")
    [member] = [link for link in owner.page.links if "/people/usr_" in link][1:]
    await owner.open(member)
    await owner.send(f"{member}/remove")
    await app.created()
    await app.clock.advance(10)
    assert following.done()
    assert "pay_" not in following.result().text


async def test_file_of_a_removed_person_is_gone_for_them(app: TestApp) -> None:
    await app.created()
    owner = await in_test_mode(await joined(app, Role.OWNER))
    admin = await in_test_mode(await joined(app, Role.ADMIN))
    await admin.open("/payments")
    await admin.send("/exports", format="csv")
    await app.work(1)
    await admin.open("/exports")
    link = next(each for each in admin.page.links if each.endswith("/file"))
    await owner.open("/people")
    [member] = [each for each in owner.page.links if "/people/usr_" in each][1:]
    await owner.open(member)
    await owner.send(f"{member}/remove")
    assert (await admin.open(link)).path == "/login"
    assert (await owner.open(link)).answer.status_code == 404


async def test_field_of_another_browser_is_refused_without_browser_headers(app: TestApp) -> None:
    """A program sends neither Origin nor Sec-Fetch-Site: then the hidden field alone decides."""
    await joined(app, Role.OWNER)
    attacker, victim = await Browser(app).open("/login"), await Browser(app).open("/login")
    silent = {"Origin": "", "Sec-Fetch-Site": ""}
    planted = {**attacker.page.forms[0].values, "email": OWNER, "password": PASSWORD}
    await victim.post("/login", planted, silent)
    assert (victim.answer.status_code, victim.http.cookies.get("__Host-cambist")) == (403, None)
    victim.http.cookies.clear()
    await victim.post("/login", planted, silent)
    assert victim.answer.status_code == 403


async def test_reset_mail_names_no_host_of_the_request(app: TestApp) -> None:
    with mailed(app) as mailbox:
        await joined(app, Role.OWNER)
        browser = await Browser(app).open("/reset")
        sent = {"Host": "evil.example", "X-Forwarded-Host": "evil.example", "Forwarded": "host=evil.example"}
        await browser.send("/reset", sent, email=OWNER)
        await run_due(app.ports)
        assert f"{BASE}/reset?token=" in mailbox.letters[-1].text
        assert "evil" not in mailbox.letters[-1].text


@table(
    ("address", "letters"),
    [
        (OWNER, 1),
        ("OWNER@SHOP.EXAMPLE", 1),
        (f" {OWNER} ", 1),
        (f"{OWNER},evil@evil.example", 0),
        (f"{OWNER} evil@evil.example", 0),
        (f"{OWNER}\nBcc: evil@evil.example", 0),
        (f"{OWNER}\r\nBcc: evil@evil.example", 0),
        (f"{OWNER};evil@evil.example", 0),
        (f"<{OWNER}>", 0),
        ("owner@ſhop.example", 0),
        ("owner@shop.example\u200b", 0),
        ("оwner@shop.example", 0),
        ("owner+x@shop.example", 0),
        ("%", 0),
    ],
)
async def test_reset_mail_goes_to_the_stored_address_alone(app: TestApp, address: str, letters: int) -> None:
    with mailed(app) as mailbox:
        if not await everything(app.ports, User):
            await joined(app, Role.OWNER)
        await app.clock.advance(1801)
        await run_due(app.ports)
        before = len(mailbox.letters)
        browser = await Browser(app).open("/reset")
        await browser.send("/reset", email=address)
        browser.sees("If somebody has this address")
        await run_due(app.ports)
        assert [each.to for each in mailbox.letters[before:]] == [OWNER] * letters


async def test_reset_form_with_two_addresses_is_refused(app: TestApp) -> None:
    with mailed(app) as mailbox:
        await joined(app, Role.OWNER)
        await run_due(app.ports)
        before = len(mailbox.letters)
        browser = await Browser(app).open("/reset")
        await browser.post("/reset", {**browser.page.forms[0].values, "email": [OWNER, "evil@evil.example"]})
        assert browser.answer.status_code == 400
        await run_due(app.ports)
        assert mailbox.letters[before:] == []


async def test_token_opens_nothing_of_another_purpose(app: TestApp) -> None:
    owner = await joined(app, Role.OWNER)
    made = await invite(app.ports, app.account.account_id, "new@shop.example", Role.OWNER)
    reset = await new_reset_link(app.ports, OWNER)
    assert reset is not None
    paths = ("/invite", "/reset", "/profile/email", "/unsubscribe")
    for right, token in (("/invite", token_of(made.link)), ("/reset", token_of(reset))):
        for path in paths:
            await owner.open(f"{path}?token={token}")
            assert (owner.answer.status_code == 200) is (path == right), f"{right} at {path}"


async def test_scanner_that_opens_a_link_spends_nothing(app: TestApp) -> None:
    await joined(app, Role.OWNER)
    made = await invite(app.ports, app.account.account_id, "new@shop.example", Role.VIEWER)
    reset = await new_reset_link(app.ports, OWNER)
    assert reset is not None
    before = [await everything(app.ports, kind) for kind in (User, Membership, Invitation, ResetToken)]
    for link in (made.link, reset):
        scanner = Browser(app)
        for _ in range(3):
            await scanner.http.head(link.removeprefix(BASE))
            assert (await scanner.open(link.removeprefix(BASE))).answer.status_code == 200
    assert [await everything(app.ports, kind) for kind in (User, Membership, Invitation, ResetToken)] == before
    person = await Browser(app).open(reset.removeprefix(BASE))
    await person.send("/reset", password="a wholly new sentence")
    assert person.path == "/login"


class Counting:
    """A PasswordHasher that counts its checks."""

    def __init__(self, inner: PasswordHasher) -> None:
        self.inner = inner
        self.verified: list[bool] = []

    async def hash(self, password: str, /) -> str:
        return await self.inner.hash(password)

    async def verify(self, stored: str | None, password: str, /) -> bool:
        self.verified.append(stored is not None)
        return await self.inner.verify(stored, password)

    def is_outdated(self, stored: str, /) -> bool:
        return self.inner.is_outdated(stored)


async def test_unknown_address_costs_one_hash_like_a_known_one(app: TestApp) -> None:
    await joined(app, Role.OWNER)
    hasher = Counting(app.ports.passwords)
    ports = msgspec.structs.replace(app.ports, passwords=hasher)
    for address in (OWNER, "nobody@shop.example", "no address"):
        with pytest.raises(Refusal):
            await check_password(ports, address, "a wrong password", "")
    assert hasher.verified == [True, False, False]


async def test_pages_do_not_reveal_which_addresses_are_known(app: TestApp) -> None:
    await joined(app, Role.OWNER)
    for path in ("/login", "/reset"):
        shown = []
        for address in (OWNER, "nobody@shop.example"):
            browser = await Browser(app).open(path)
            await browser.send(path, email=address, **({"password": "a wrong password"} if path == "/login" else {}))
            shown.append((browser.answer.status_code, plain(browser.answer.text)))
        assert shown[0] == shown[1], path


async def test_password_is_hashed_by_the_parameters_of_owasp() -> None:
    hashed = await Argon2Passwords(memory=MEMORY, passes=PASSES).hash("a password")
    assert hashed.startswith("$argon2id$v=19$m=19456,t=2,p=1$")


async def test_three_hundred_sign_ins_at_once_hash_two_at_a_time() -> None:
    hasher = Argon2Passwords(memory=64, passes=1)
    running = most = 0
    fits = hasher._fits

    def counted(stored: str | None, given: bytes) -> bool:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            return fits(stored, given)
        finally:
            running -= 1

    hasher._fits = counted  # type: ignore[method-assign]  # observed
    ends = await asyncio.gather(*(hasher.verify(None, "a guess") for _ in range(300)), return_exceptions=True)
    assert sum(isinstance(end, Unavailable) for end in ends) == 300 - WAITING_MOST
    assert ends.count(False) == WAITING_MOST
    assert most <= AT_ONCE


async def test_planted_fields_change_neither_role_nor_account_of_an_invitation(app: TestApp) -> None:
    other = await create_account(app.ports, "Other")
    made = await invite(app.ports, app.account.account_id, "new@shop.example", Role.VIEWER, live=False)
    guest = await Browser(app).open(made.link.removeprefix(BASE))
    planted = {"role": "owner", "account_id": other.account_id, "live": "yes", "email": OWNER, "shops": ""}
    await guest.post("/invite", {**guest.page.forms[0].values, **planted, "password": PASSWORD})
    assert guest.path == "/home"
    [membership] = await everything(app.ports, Membership)
    assert (membership.account_id, membership.role, membership.live) == (app.account.account_id, "viewer", False)
    await guest.open("/profile")
    assert "new@shop.example" in guest.text
    assert OWNER not in guest.text


async def test_admin_raises_nobody_to_owner_by_planted_fields(app: TestApp) -> None:
    await joined(app, Role.OWNER)
    admin = await in_test_mode(await joined(app, Role.ADMIN))
    before = await everything(app.ports, Membership)
    for membership in before:
        for values in ({"role": "owner"}, {"role": ["admin", "owner"]}, {"role": "viewer", "role[]": "owner"}):
            if membership.role is Role.ADMIN and values == {"role": "viewer", "role[]": "owner"}:
                continue  # stepping down is allowed
            await admin.open("/people")
            csrf = admin.page.forms[0].values["csrf"][0]
            await admin.post(f"/people/{membership.user_id}", {"csrf": csrf, **values})
            assert admin.answer.status_code in (400, 403)
    assert await everything(app.ports, Membership) == before
    await admin.open("/profile")
    csrf = admin.page.forms[0].values["csrf"][0]
    await admin.post("/profile/language", {"csrf": csrf, "language": "en", "role": "owner", "email": OWNER})
    assert [each.role for each in await everything(app.ports, Membership)] == [each.role for each in before]


@pytest.fixture
async def objects(app: TestApp) -> dict[str, str]:
    """Objects of the account in test mode, by the name of the parameter or field that takes their ids."""
    wish = {"refund_approval": "manual", "exchange": "true", "payout_wallet": WALLET, "second_person": "true"}
    await set_settings(app.ports, app.account.account_id, wish)
    payment = (await app.created({"external_id": "secret-order"}))["id"]
    await app.simulate(payment, outcome="paid")
    boots = {"name": "Boots", "price": "70.00", "vat": "22", "subject": "commodity", "method": "full_payment"}
    terms = {"items": [boots], "tax_system": "osn", "customer": {"email": "buyer@shop.example"}}
    sold = (await app.created({"amount_rub": "70.00", "receipt": terms}))["id"]
    await app.simulate(sold, outcome="paid")
    await app.work(2)
    [receipt] = await everything(app.ports, FiscalReceipt)
    exchange = (await ExchangeApp(app).created())["id"]
    client = {"phone": "+79001234567", "kyc_status": "verified"}
    await app.http.post("/api/v1/sandbox/exchange-clients", json=client, headers=app.headers())
    lost = (await bound(app))["id"]
    await play(app, lost, "mandate_lost")
    settlement, payout = await paid_out(app)
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open(f"/payments/{payment}")
    await owner.send("/refunds", amount_rub="10")
    refund = owner.path.split("/")[-1]
    await owner.open(f"/payments/{payment}")
    await owner.send(f"/payments/{payment}/note", text="secret-note")
    await owner.open("/developers/webhooks")
    await owner.send("/developers/webhooks", url="https://books.example/hooks", types=[])
    await owner.open("/developers/webhooks")
    endpoint = next(each for each in owner.page.links if "/we_" in each).split("/")[-1]
    await owner.open("/developers/events")
    event = next(each for each in owner.page.links if "/evt_" in each).split("/")[-1]
    await owner.open("/reports")
    await owner.send("/reports", first_day="2026-01-01", last_day="2026-01-01")
    await app.work(1)
    [report] = await everything(app.ports, Report)
    await owner.open("/payments")
    await owner.send("/exports", format="csv")
    await app.work(1)
    await owner.open("/exports")
    export = next(each for each in owner.page.links if each.endswith("/file")).split("/")[-2]
    await owner.open("/payments?status=paid")
    await owner.send("/payments/views", name="secret-view")
    await owner.open("/payments/views")
    view = next(each for each in owner.page.links if "/payments/views/" in each).split("/")[-1]
    await owner.open("/developers/resends")
    await owner.send("/developers/resends", **{"from": "2026-01-01T03:00", "to": "2026-01-01T04:00"})
    await owner.open("/links/new")
    await owner.send("/links", description="secret-link", amount_rub="100", label_0="secret-label")
    link = owner.path.split("/")[-1]
    await invite(app.ports, app.account.account_id, "secret-guest@shop.example", Role.VIEWER)
    await owner.open("/settings")
    await owner.send("/settings/wallet", payout_wallet="")
    request = owner.path.split("/")[-1]
    return {
        "payment_id": payment,
        "refund_id": refund,
        "link_id": link,
        "receipt_id": receipt.id,
        "report_id": report.id,
        "kind": "act",
        "face": "none_such",
        "subscription_id": lost,
        "exchange_id": exchange,
        "client_id": (await everything(app.ports, Client))[0].id,
        "payout_id": payout,
        "settlement_id": settlement,
        "view_id": view,
        "endpoint_id": endpoint,
        "event_id": event,
        "export_id": export,
        "shop_id": app.account.default_shop_id,
        "action_id": request,
        "user_id": (await everything(app.ports, User))[0].id,
        "run": (await everything(app.ports, ResendRun))[0].id,
        "invitation": (await everything(app.ports, Invitation))[-1].id,
        "key": app.account.test.api_key,
    }


async def paid_out(app: TestApp) -> tuple[str, str]:
    """Ids of a settlement and of the payout of its USDT."""
    payouts = Payouts(app, Mode.TEST)
    settlement = await payouts.credit()
    payout = await payouts.pay_out()
    assert payout is not None
    await app.work(600)
    return settlement, payout.id


BY_FIELD: dict[str, tuple[str, dict[str, str]]] = {
    "/refunds": ("payment_id", {"amount_rub": "1"}),
    "/exports/delete": ("export_id", {}),
    "/developers/resends/stop": ("run", {}),
    "/people/revoke": ("invitation", {}),
    "/developers/keys/rotate": ("key", {}),
    "/developers/keys/end": ("key", {}),
}
"""Forms that take an id as a field: the field, and the other fields of the form."""

FIELDS = {
    "reason": "x",
    "name": "x",
    "outcome": "paid",
    "role": "viewer",
    "text": "x",
    "url": "https://x.example/",
    "email": "thief@other.example",
    "language": "en",
    "note": UNKNOWN,
}


GONE = ("/payments/views/{view_id:str}/delete",)
"""Forms that delete, and say so, even if there is nothing to delete."""


def unknown(known: str) -> str:
    """Return an id of the same kind that belongs to nothing."""
    prefix, underscore, _ = known.rpartition("_")
    return f"{prefix}{underscore}{UNKNOWN}"


async def tried(app: TestApp, thief: Browser, objects: dict[str, str]) -> None:
    """Check that each address or field with one of these ids answers as for an unknown id."""
    for row in ROWS:
        in_path = re.findall(r"\{(\w+):str\}", row.path)
        if not in_path and (row.method != "POST" or row.path not in BY_FIELD):
            continue
        name, fields = (in_path[0], FIELDS) if in_path else BY_FIELD[row.path]
        answers = []
        for value in (objects[name], unknown(objects[name])):
            await app.clock.advance(3)
            path = re.sub(r"\{[^}]+\}", value, row.path)
            await thief.open("/profile")
            csrf = thief.page.forms[0].values["csrf"][0]
            if row.method == "GET":
                await thief.open(path)
            else:
                field = {} if in_path else {name: value}
                key = {"key": str(app.ports.ids.uuid())}
                await thief.post(path, {"csrf": csrf, **key, **fields, **field})
            answers.append((thief.answer.status_code, plain(thief.answer.text).replace(value, "")))
        assert answers[0] == answers[1], row.path
        refused = (200,) if row.path in GONE else (400, 404)
        assert answers[0][0] in refused, f"{row.method} {row.path}: {answers[0][0]}"


MONEY = (Payment, Refund, Subscription, Exchange, Withdrawal, Settlement)
OTHERS = (Client, Export, ResendRun, Shop, Invitation, ApiKey, WebhookEndpoint, PaymentNotes)


async def owned(app: TestApp, account_id: str) -> list[object]:
    """Return the records of an account that people can change by their pages."""
    found: list[object] = []
    for kind in (*MONEY, *OTHERS):
        found += [each for each in await everything(app.ports, kind) if each.account_id == account_id]
    views = await everything(app.ports, SavedViews)
    return found + [each for each in views if each.id.startswith(account_id)]


async def test_ids_of_another_account_are_ids_of_nothing(app: TestApp, objects: dict[str, str]) -> None:
    victim = app.account.account_id
    app.account = await create_account(app.ports, "Other")
    await app.work(600)
    thief = await in_test_mode(await joined(app, Role.OWNER, email="thief@other.example"))
    before = await owned(app, victim)
    await tried(app, thief, objects)
    assert await owned(app, victim) == before
    secrets = [OWNER, "secret-", *(objects[name] for name in objects if name not in ("key", "shop_id", "kind"))]
    given = [(name, objects["payment_id"]) for name in ("q", "cursor", "before", "object_id")]
    given += [("shop_id", objects["shop_id"]), ("q", "secret-order"), ("", "")]
    for row in ROWS:
        if row.method != "GET" or "{" in row.path or row.is_stream:
            continue
        for name, value in given:
            await thief.open(f"{row.path}?{name}={value}" if name else row.path)
            shown = thief.answer.text.replace(value, "") if value else thief.answer.text
            assert not [each for each in secrets if each in shown], f"{row.path}?{name}={value}"


async def test_ids_of_test_mode_are_ids_of_nothing_in_live_mode(app: TestApp, objects: dict[str, str]) -> None:
    await app.create(mode="live")  # otherwise people come to test mode
    viewer = await joined(app, Role.VIEWER)
    viewer.sees("Live mode")
    for name in ("payment_id", "refund_id", "link_id", "subscription_id", "exchange_id", "client_id"):
        path = f"/{name.removesuffix('_id')}s/{objects[name]}"
        assert (await viewer.open(path)).answer.status_code == 404, path
    finance = await joined(app, Role.FINANCE)
    for name in ("payout_id", "settlement_id"):
        path = f"/{name.removesuffix('_id')}s/{objects[name]}"
        assert (await finance.open(path)).answer.status_code in (403, 404), path
    await viewer.open("/payments?q=secret-order")
    assert objects["payment_id"] not in viewer.answer.text


async def test_own_refund_is_not_approved_by_a_second_session(app: TestApp, objects: dict[str, str]) -> None:
    second = await Browser(app).open("/login")
    await second.send("/login", email=OWNER, password=PASSWORD)
    await in_test_mode(second)
    await second.open(f"/refunds/{objects['refund_id']}")
    csrf = second.page.forms[0].values["csrf"][0]
    await second.post(f"/refunds/{objects['refund_id']}/approve", {"csrf": csrf})
    assert second.answer.status_code == 409


@table(
    "text",
    ["<b>x</b>", '"><script>alert(1)</script>', "=cmd|'/C calc'!A0", "{{7*7}}", "Shop \u202egnp.exe", "&lt;x&gt;"],
)
async def test_texts_of_people_are_shown_as_text_on_their_pages(app: TestApp, text: str) -> None:
    await app.clock.advance(60)
    address = f"o{abs(hash(text))}@shop.example"
    made = await invite(app.ports, app.account.account_id, address, Role.OWNER, language="en")
    await accept_invitation(app.ports, token_of(made.link), PASSWORD, "en")
    owner = Browser(app)
    owner.http.headers["User-Agent"] = f"{text.encode('ascii', 'ignore').decode()} Firefox/1"
    await owner.open("/login")
    await owner.send("/login", email=address, password=PASSWORD)
    await in_test_mode(owner)
    await owner.open("/shops")
    await owner.send("/shops", name=text)
    for path in ("/shops", "/profile", "/audit", "/payments", "/home"):
        await owner.open(path)
        assert "<b>x" not in owner.answer.text
        assert "<script>alert" not in owner.answer.text
        assert "49" not in owner.page.headings
        assert "cmd|" not in owner.answer.text or path in ("/shops", "/audit", "/payments"), path


@pytest.mark.parametrize("way", ["make", "replace"])
async def test_refund_by_a_key_is_not_approved_by_its_maker(app: TestApp, way: str) -> None:
    wish = {"refunds": "true", "refund_approval": "manual"}
    await set_settings(app.ports, app.account.account_id, wish)
    payment = (await app.created())["id"]
    await app.simulate(payment, outcome="paid")
    await app.work(2)
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open("/developers/keys")
    if way == "make":
        await owner.send("/developers/keys", name="robot", rights=["read", "refunds"])
    else:
        csrf = owner.page.forms[0].values["csrf"][0]
        await owner.post("/developers/keys/rotate", {"csrf": csrf, "key": app.account.test.api_key})
    key, secret = re.findall(r"svc_test_[0-9a-f]+|\b[0-9a-f]{64}\b", owner.answer.text)[:2]
    headers = {"X-Api-Key": key, "X-Api-Secret": secret, "Idempotency-Key": UNKNOWN}
    answer = await app.http.post("/api/v1/refunds", json={"payment_id": payment}, headers=headers)
    assert answer.status_code == 201, answer.text
    refund = f"/refunds/{answer.json()['id']}"
    await owner.open(refund)
    owner.sees("API key that you made")
    csrf = owner.page.forms[0].values["csrf"][0]
    await owner.post(f"{refund}/approve", {"csrf": csrf})
    assert owner.answer.status_code == 409
    finance = await in_test_mode(await joined(app, Role.FINANCE))
    await finance.open(refund)
    await finance.send(f"{refund}/approve")
    finance.sees("Approved.")


STAMPS: dict[type, tuple[str, ...]] = {
    # The end of an unused session is counted from there, so it cannot be left out.
    Session: ("seen_at", "version"),
    # People see which keys are in use before they end one.
    KeyUse: ("used_at", "version"),
    # An entry gets its place in the list of movements when somebody reads the list, or within an hour.
    JournalEntry: ("place", "version"),
    # An entry of the test feed gets its position when somebody reads the feed.
    FeedEntry: ("position", "version"),
}
"""Fields that a GET may change."""
LOGS = (RequestBatch, RequestCount, Movement, Feed, KnownRate)
"""The log of API requests has a row for each of them. Movements and the test feed number the rows of other tables, and
are brought up to date when somebody reads them (core/usecases/ledger/listing.py). A rate that was asked for is kept,
so that the provider is not asked by each request."""
AUDITED = ("/exports/{export_id:str}/file", "/reports/{report_id:str}/file")
"""A download of payers' data leaves a row in the audit log, and nothing else."""


async def whole_database(app: TestApp) -> dict[str, list[Any]]:
    """Every record of every table, without stamps of the last use and without what is derived from other records."""
    found: dict[str, list[Any]] = {}
    for each_table in CATALOGUE:
        kind = each_table.kind
        if kind not in LOGS:
            blank = dict.fromkeys(STAMPS.get(kind, ()))
            rows = [msgspec.structs.replace(each, **blank) for each in await everything(app.ports, kind)]
            found[each_table.name] = sorted(rows, key=lambda each: str(each.id))
    return found


def moved(before: dict[str, list[Any]], after: dict[str, list[Any]], where: str) -> list[str]:
    """Return the tables that differ; `before` becomes the present state."""
    found = [f"{where}: {name}" for name in after if after[name] != before[name]]
    before.update(after)
    return found


async def test_no_get_changes_the_database(app: TestApp, objects: dict[str, str]) -> None:
    """All pages of the dashboard, all GET operations of the API, and the payer's pages to which their answers link."""
    owner = await again_signed_in(app)
    await app.http.get("/api/v1/account", headers=app.headers())
    links: set[str] = set()
    faults: list[str] = []
    before = await whole_database(app)
    for path in [*(row.path for row in ROWS if row.method == "GET" and not row.is_stream), "/stream"]:
        await app.clock.advance(3)
        place = re.sub(r"\{(\w+):str\}", lambda found: objects[found[1]], path)
        if path == "/stream":
            assert (await owner.http.head(place)).status_code == 200
            continue
        await owner.open(f"{place}?token=x&q=secret&status=paid" if "token" in place else place)
        assert owner.answer.status_code in (200, 400, 404, 409), f"{path}: {owner.answer.status_code}"
        after = await whole_database(app)
        if path in AUDITED:
            assert len(after["audit"]) == len(before["audit"]) + 1
            before["audit"] = after["audit"]
        faults += moved(before, after, path)
    api = 0
    for operation in OPERATIONS:
        if operation.method.upper() == "GET" and operation.id != "stream_events":
            await app.clock.advance(3)
            place = re.sub(r"\{(\w+)\}", lambda found: objects.get(found[1], UNKNOWN), operation.path)
            answer = await app.http.get(place, headers=app.headers())
            assert answer.status_code < 500 or place.endswith("/health"), place
            api += answer.is_success
            links |= set(re.findall(rf'{re.escape(app.ports.urls.base_url)}[^"\\\s]+', answer.text))
            faults += moved(before, await whole_database(app), operation.id)
    assert api > 20
    pages = {urlsplit(link).path for link in links if "/api/v1/" not in link}
    for path in sorted(pages):
        for end in ("", "/state"):
            await app.clock.advance(3)
            assert (await app.http.get(path + end, headers={"Accept": "text/html"})).status_code < 500
            faults += moved(before, await whole_database(app), path + end)
    assert pages
    assert faults == []


async def again_signed_in(app: TestApp) -> Browser:
    """The owner of the objects in a new session, in test mode, who has just confirmed the password."""
    browser = await Browser(app).open("/login")
    await browser.send("/login", email=OWNER, password=PASSWORD)
    return await in_test_mode(browser)

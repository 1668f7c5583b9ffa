"""The confirmation of a payment, by page and by mail, and the number that payers read out
(docs/window.md "The confirmation")."""

import re
from urllib.parse import urlsplit

from cambist.core.domain.people.people import Letter
from cambist.core.domain.people.roles import Role
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.browse.search import search
from tests.apps import TestApp
from tests.dashboard.browser import in_test_mode, joined
from tests.people_kit import with_mail
from tests.windows import Page


async def _paid(app: TestApp) -> tuple[str, str]:
    """Return a paid payment, and the path of its confirmation."""
    payment = await app.created({"amount_rub": "1490.00", "description": "Pottery class", "external_id": "order-9"})
    await app.simulate(payment["id"], outcome="paid")
    page = Page((await app.http.get(f"/p/{payment['id']}", headers={"Accept-Language": "en"})).text)
    [address] = [tag["href"] for tag in page.all("a") if tag.get("id") == "confirmation"]
    assert address is not None
    return payment["id"], urlsplit(address).path


async def test_confirmation_stays_when_the_window_is_closed_and_says_what_it_is(app: TestApp) -> None:
    payment_id, path = await _paid(app)
    await app.clock.advance(90)
    assert (await app.http.get(f"/p/{payment_id}")).status_code == 404
    answer = await app.http.get(path, headers={"Accept-Language": "en"})
    assert answer.status_code == 200
    text = Page(answer.text).text
    for word in ("₽1,490.00", "Pottery class", "order-9", payment_id, payment_id[-8:], "not a fiscal receipt"):
        assert word in text
    assert answer.headers["cache-control"] == "no-store"
    assert "noindex" in answer.headers["x-robots-tag"]


async def test_confirmation_needs_its_own_key_and_a_payment_with_money(app: TestApp) -> None:
    _, path = await _paid(app)
    other = await app.created()
    base, key = path.rsplit("/", 1)
    for wrong in (f"{base}/{'0' * 32}", f"{base}/{key[:-1]}", f"{base}/ключ", f"/p/{other['id']}/confirmation/{key}"):
        assert (await app.http.get(wrong)).status_code == 404
        assert (await app.http.post(wrong, data={"email": "anna@mail.example"})).status_code == 404
    assert (await app.http.get(f"/p/{other['id']}/confirmation/")).status_code == 404


async def test_payer_gets_the_confirmation_by_mail_a_few_times_and_no_row_keeps_the_address(app: TestApp) -> None:
    box = with_mail(app)
    await set_settings(app.ports, app.account.account_id, {"brand_contact": "help@shop.example"})
    payment_id, path = await _paid(app)
    wrong = await app.http.post(path, data={"email": "nobody"}, headers={"Accept-Language": "en"})
    assert wrong.status_code == 422
    assert "This is no e-mail address." in wrong.text
    sent = await app.http.post(path, data={"email": "anna@mail.example"}, headers={"Accept-Language": "en"})
    assert sent.status_code == 200
    assert "The letter is on its way." in sent.text
    async with app.ports.storage.unit() as unit:
        rows = await unit[Letter].find(order="id")
    assert rows
    assert not any(b"anna" in row.body for row in rows)
    await app.work(1)
    [letter] = box.letters
    assert letter.to == "anna@mail.example"
    for word in ("1490.00", path, payment_id[-8:], "order-9", "help@shop.example"):
        assert word in letter.text
    statuses = [(await app.http.post(path, data={"email": "anna@mail.example"})).status_code for _ in range(5)]
    assert statuses[-1] == 429
    foreign = await app.http.post(path, data={"email": "a@b.example"}, headers={"Sec-Fetch-Site": "cross-site"})
    assert foreign.status_code == 403


async def test_stranger_gets_few_letters_however_many_payments_there_are(app: TestApp) -> None:
    with_mail(app)
    statuses, path = [], ""
    for _ in range(6):
        _, path = await _paid(app)
        await app.clock.advance(61)
        statuses += [(await app.http.post(path, data={"email": "A@mail.example"})).status_code for _ in range(2)]
    assert statuses == [200] * 10 + [429] * 2
    assert (await app.http.post(path, data={"email": "b@mail.example"})).status_code == 200


async def test_support_finds_a_payment_by_the_number_that_its_payer_reads_out(app: TestApp) -> None:
    payment_id, _ = await _paid(app)
    number = payment_id[-8:]
    [hit] = await search(app.ports, number.upper())
    assert hit.object_id == payment_id
    support = await in_test_mode(await joined(app, Role.SUPPORT))
    await support.open(f"/payments?q={number}")
    assert payment_id in str(support.answer.url) + support.answer.text
    assert re.search("order-9", support.text)

"""Payment links, from the merchant's call to the payer's payment (docs/payment-links.md)."""

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import msgspec
import pytest

from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payment_links import LinkAnswers, LinkTotals, PaymentLink
from cambist.core.domain.payments.payments import Payment
from cambist.core.usecases.accounts import accounts, shops
from cambist.core.usecases.payment_links import link_page
from cambist.core.usecases.payment_links.link_page import press_link
from cambist.core.usecases.payments.tallies import check_tallies
from cambist.frontends.http.payer.link_texts import LINK_TEXTS
from cambist.frontends.http.payer.pages import HEADERS
from tests.apps import TestApp
from tests.planting import beneath
from tests.race_barriers import BarrierStorage
from tests.windows import Page

MINUTES = 60


async def made(app: TestApp, **order: Any) -> dict[str, Any]:
    response = await app.http.post(
        "/api/v1/payment-links",
        json={"description": "Pottery class", "amount_rub": "2500.00", **order},
        headers=app.headers("test", Idempotency_Key=str(uuid4())),
    )
    assert response.status_code == 201, response.text
    link: dict[str, Any] = response.json()
    return link


async def page(app: TestApp, link: dict[str, Any], query: str = "?lang=en") -> httpx.Response:
    return await app.http.get(f"/l/{link['id']}{query}")


async def press(app: TestApp, link: dict[str, Any], **typed: str) -> httpx.Response:
    """Open the page as a payer does, fill in its form, and send it."""
    form = Page((await page(app, link)).text)
    [attempt] = [tag["value"] for tag in form.all("input") if tag.get("name") == "attempt"]
    return await app.http.post(f"/l/{link['id']}?lang=en", data={"attempt": attempt or "", **typed})


def payment_of(answer: httpx.Response) -> str:
    assert answer.status_code == 303, answer.text
    return answer.headers["location"].partition("?")[0].rpartition("/")[2]


async def paid(app: TestApp, link: dict[str, Any], **typed: str) -> str:
    payment_id = payment_of(await press(app, link, **typed))
    await app.simulate(payment_id, outcome="paid")
    return payment_id


async def state(app: TestApp, link: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = (await app.get(f"/payment-links/{link['id']}")).json()
    return found


async def test_payer_pays_by_a_link_and_the_merchant_sees_it(app: TestApp) -> None:
    fields = [{"label": "Your name"}, {"label": "E-mail", "kind": "email", "required": False}]
    link = await made(
        app, fields=fields, success_text="See you on Friday.", metadata={"room": 7}, external_id="class-1"
    )
    assert link["url"] == f"https://pay.example/l/{link['id']}"
    shown = await page(app, link)
    assert (shown.status_code, shown.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert all(shown.headers[name] == value for name, value in HEADERS.items())
    for text in ("Merchant", "Pottery class", "₽2,500.00", "Your name", "Test mode", "Pay ₽2,500.00"):
        assert text in shown.text, text
    payment_id = payment_of(await press(app, link, field_0="Anna Petrova", field_1="anna@mail.example"))
    payment = (await app.get(f"/payments/{payment_id}")).json()
    assert (payment["amount_rub"], payment["external_id"], payment["metadata"]) == ("2500.00", "class-1", {"room": 7})
    assert (await state(app, link))["payments"] == 0
    await app.simulate(payment_id, outcome="paid")
    assert "See you on Friday." in (await app.http.get(f"/p/{payment_id}")).text
    after = await state(app, link)
    assert (after["status"], after["payments"], after["paid_rub"]) == ("used_up", 1, "2500.00")
    [listed] = (await app.get(f"/payment-links/{link['id']}/payments")).json()["data"]
    assert listed["payment"]["id"] == payment_id
    answers = [{"label": "Your name", "value": "Anna Petrova"}, {"label": "E-mail", "value": "anna@mail.example"}]
    assert listed["fields"] == answers
    assert "Already paid" in (await page(app, link)).text


async def test_what_a_payer_filled_in_is_stored_encrypted(app: TestApp) -> None:
    link = await made(app, fields=[{"label": "Name"}])
    payment_id = payment_of(await press(app, link, field_0="Anna Petrova"))
    found = await app.ports.storage.get(LinkAnswers, payment_id)
    assert found is not None
    assert b"Anna" not in found.body


async def test_open_amount_is_the_payers_choice_within_its_bounds(app: TestApp) -> None:
    link = await made(app, amount_rub=None, amount_min_rub="100", amount_max_rub="5000", reusable=True)
    assert (link["amount_rub"], link["amount_min_rub"], link["amount_max_rub"]) == (None, "100.00", "5000.00")
    for typed, text in (("", "Fill in this field."), ("99", "At least ₽100.00."), ("5000.01", "At most ₽5,000.00.")):
        refused = await press(app, link, amount=typed)
        assert refused.status_code == 422
        assert text in refused.text.replace("\N{NO-BREAK SPACE}", " ")
        [field] = [tag for tag in Page(refused.text).all("input") if tag.get("name") == "amount"]
        assert (field["value"], field["aria-invalid"]) == (typed, "true")
    payment = await app.payment(payment_of(await press(app, link, amount="1 500,50")))
    assert str(payment.amount) == "1500.50"


async def test_missing_field_keeps_what_was_typed(app: TestApp) -> None:
    link = await made(app, fields=[{"label": "Name"}, {"label": "Phone", "kind": "phone"}])
    refused = await press(app, link, field_0="<b>Anna</b>", field_1="12")
    assert refused.status_code == 422
    assert "Enter a phone number" in refused.text
    assert "&lt;b&gt;Anna&lt;/b&gt;" in refused.text
    assert "<b>Anna" not in refused.text


async def test_link_for_one_payment_has_one_open_payment_at_a_time(app: TestApp) -> None:
    link = await made(app)
    first = payment_of(await press(app, link))
    assert payment_of(await press(app, link)) == first, "another browser gets the open payment"
    await app.work(20 * MINUTES)
    assert (await app.payment(first)).status == "expired"
    second = await paid(app, link)
    assert second != first
    refused = await press_again(app, link)
    assert "Already paid" in refused.text


async def press_again(app: TestApp, link: dict[str, Any]) -> httpx.Response:
    """Send the form of a page that was opened earlier."""
    return await app.http.post(f"/l/{link['id']}?lang=en", data={"attempt": str(uuid4())})


async def test_payers_at_the_same_time_share_the_one_payment(app: TestApp) -> None:
    link = await made(app)
    app.connect(storage=BarrierStorage(app.ports.storage, 2))
    pressed = await asyncio.gather(
        *(press_link(app.ports, link["id"], {}, str(uuid4()), f"192.0.2.{number}") for number in range(2))
    )
    ids = {each.payment_id for each in pressed if each is not None}
    assert len(ids) == 1
    assert None not in ids


async def test_limited_link_never_takes_more_open_payments_than_its_limit(app: TestApp) -> None:
    link = await made(app, reusable=True, payments_max=3)
    pressed = await asyncio.gather(
        *(press_link(app.ports, link["id"], {}, str(uuid4()), f"192.0.2.{number}") for number in range(8))
    )
    ids = [each.payment_id for each in pressed if each is not None and each.payment_id is not None]
    assert len(set(ids)) == 3
    await app.work(20 * MINUTES)
    assert await paid(app, link), "expired payments free their places"


async def test_same_form_sent_twice_makes_one_payment(app: TestApp) -> None:
    link = await made(app, reusable=True)
    data = {"attempt": str(uuid4())}
    answers = [await app.http.post(f"/l/{link['id']}", data=data) for _ in range(2)]
    assert len({payment_of(each) for each in answers}) == 1
    assert len({payment_of(await press(app, link)) for _ in range(2)}) == 2


@pytest.mark.parametrize(
    ("order", "wait", "archived", "text"),
    [
        ({}, 0, True, "This link is closed"),
        ({"expires_at": "2026-01-02T00:00:00Z"}, 86_400, False, "This link has expired"),
    ],
)
async def test_link_that_is_over_takes_no_payment(
    app: TestApp, order: dict[str, Any], wait: float, archived: bool, text: str
) -> None:
    link = await made(app, **order)
    if archived:
        path = f"/api/v1/payment-links/{link['id']}/archive"
        for _ in range(2):
            assert (await app.http.post(path, headers=app.headers())).json()["status"] == "archived"
    await app.clock.advance(wait)
    assert text in (await page(app, link)).text
    assert text in (await press_again(app, link)).text
    async with app.ports.storage.unit() as unit:
        assert await unit[Payment].total() == 0


async def test_shop_that_is_switched_off_is_a_problem_that_may_pass(app: TestApp) -> None:
    shop = await shops.create_shop(app.ports, app.account.account_id, "Second", "0.03")
    link = await made(app, shop_id=shop.id)
    await shops.disable_shop(app.ports, shop.id)
    refused = await press(app, link)
    assert refused.status_code == 503
    assert "cannot take this payment at the moment" in refused.text
    await shops.enable_shop(app.ports, shop.id)
    assert payment_of(await press(app, link))


async def test_address_that_presses_too_often_waits(app: TestApp) -> None:
    link = await made(app, reusable=True)
    codes = [(await press_again(app, link)).status_code for _ in range(link_page.PRESSES_PER_MINUTE + 1)]
    assert codes == [303] * link_page.PRESSES_PER_MINUTE + [503]
    await app.clock.advance(61)
    assert (await press_again(app, link)).status_code == 303


async def test_opening_a_link_changes_nothing(app: TestApp) -> None:
    link = await made(app)
    before = await app.ports.storage.get(PaymentLink, link["id"])
    for _ in range(3):
        assert (await page(app, link)).status_code == 200
    assert await app.ports.storage.get(PaymentLink, link["id"]) == before
    async with app.ports.storage.unit() as unit:
        assert await unit[Payment].total() == 0


async def test_unknown_links_and_foreign_forms_are_refused(app: TestApp) -> None:
    link = await made(app)
    for unknown in ("plink_0", "plink_" + "0" * 36, link["id"][:-1] + "g"):
        assert (await app.http.get(f"/l/{unknown}")).status_code == 404
        assert (await app.http.post(f"/l/{unknown}")).status_code == 404
    foreign = await app.http.post(f"/l/{link['id']}", headers={"Sec-Fetch-Site": "cross-site"})
    assert foreign.status_code == 403


async def test_refund_leaves_the_sums_of_a_link(app: TestApp) -> None:
    await accounts.set_settings(app.ports, app.account.account_id, {"refunds": "true"})
    link = await made(app, reusable=True)
    first, _ = [await paid(app, link) for _ in range(2)]
    wish = {"payment_id": first}
    headers = app.headers("test", Idempotency_Key=str(uuid4()))
    refund = (await app.http.post("/api/v1/refunds", json=wish, headers=headers)).json()
    path = f"/api/v1/sandbox/refunds/{refund['id']}/simulate"
    await app.http.post(path, json={"outcome": "completed"}, headers=app.headers())
    assert (await app.payment(first)).status == "refunded"
    assert [(await state(app, link))[name] for name in ("payments", "paid_rub")] == [2, "5000.00"]


async def test_link_whose_payment_is_under_review_says_that_others_pay(app: TestApp) -> None:
    link = await made(app)
    payment_id = payment_of(await press(app, link))
    await app.simulate(payment_id, outcome="amount_mismatch")
    refused = await press(app, link)
    assert refused.status_code == 503
    assert "Others are paying by this link" in refused.text


async def test_forgotten_test_data_take_links_answers_and_sums_along(app: TestApp) -> None:
    link = await made(app, fields=[{"label": "Name"}], reusable=True)
    await paid(app, link, field_0="Anna")
    answer = await app.http.delete("/api/v1/sandbox/data", headers=app.headers())
    assert answer.is_success, answer.text
    for kind in (PaymentLink, LinkAnswers, Payment):
        async with app.ports.storage.unit() as unit:
            assert await unit[kind].total() == 0
    assert (await page(app, link)).status_code == 404


def test_both_languages_have_every_text() -> None:
    assert LINK_TEXTS["ru"].keys() == LINK_TEXTS["en"].keys()


async def test_check_of_sums_names_a_link_whose_sums_were_altered(app: TestApp) -> None:
    link = await made(app)
    payment_id = payment_of(await press(app, link))
    await app.simulate(payment_id, outcome="paid")
    assert await check_tallies(app.ports) == []
    async with beneath(app.ports).unit() as unit:
        totals = await unit[LinkTotals].get(link["id"])
        assert totals is not None
        unit[LinkTotals].accrue(msgspec.structs.replace(totals, payments=1, amount=Rub(0)))
        await unit.commit()
    app.made_up = True
    [found] = await check_tallies(app.ports)
    assert (found.id, found.field, found.kept, found.counted) == (link["id"], "payments", 2, 1)

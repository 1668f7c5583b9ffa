"""The payer window: its contents, and how long it is available (docs/window.md "How long it is there")."""

import re

import pytest

from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import FailureReason, LinkKind, Payment, PaymentStatus
from cambist.core.usecases.accounts import shops
from cambist.frontends.http.payer.window_page import draw_qr, print_amount
from cambist.frontends.http.payer.window_texts import EN, TEXTS
from tests.apps import TestApp
from tests.tables import table
from tests.windows import FACES, Page, page_of, store, with_face

S = PaymentStatus


async def test_new_payments_link_shows_shop_amount_description_qr_and_button(app: TestApp) -> None:
    await shops.rename_shop(app.ports, app.account.default_shop_id, "Coffee House")
    payment = await app.created({"amount_rub": "1234.50", "description": "Two cups"})
    response = await app.http.get(payment["payment_url"], headers={"Accept-Language": "en"})
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    page = Page(response.text)
    for text in ("Coffee House", "₽1,234.50", "Two cups", payment["id"], "Waiting for payment", "15:00"):
        assert text in page.text
    link = (await app.get(f"/payments/{payment['id']}/sbp-link")).json().get("sbp_link")
    async with app.ports.storage.unit() as unit:
        stored = await unit[Payment].get(payment["id"])
    assert stored is not None
    assert stored.qr_payload is not None
    assert str(draw_qr(stored.qr_payload).svg) in response.text
    assert [tag["href"] for tag in page.all("a") if "button--bank" in (tag.get("class") or "")] == ["#test"]
    assert "test" in [tag.get("id") for tag in page.all("form")], "the panel stands in for the simulated bank's app"
    assert link in (None, stored.bank_link)


@table(
    ("external_id", "shown"),
    [
        ("order-1043", True),
        ("9" * 64, True),
        ("9" * 65, False),
        ("<b>7</b>", True),
        (None, False),
    ],
)
async def test_payers_see_the_numbers_by_which_a_shop_s_support_finds_a_payment(
    app: TestApp, external_id: str | None, shown: bool
) -> None:
    """docs/window.md "What it shows"."""
    payment = await app.created({"external_id": external_id})
    page = Page((await page_of(app, payment, "?lang=en")).text)
    assert (EN["order_number_label"] in page.text) is shown
    assert shown is (external_id is not None and external_id in page.text)
    assert payment["id"] in page.text


async def test_countdown_follows_the_service_s_clock(app: TestApp) -> None:
    """Both moments are on the page, so that a wrong clock of the payer does not change the remaining time."""
    payment = await app.created()
    await app.clock.advance(28)
    main = Page((await page_of(app, payment)).text).main
    now = app.clock.now().timestamp()
    assert int(main["data-now"] or 0) == round(now * 1000)
    assert int(main["data-deadline"] or 0) - int(main["data-now"] or 0) == (15 * 60 - 28) * 1000
    assert "14:32" in (await page_of(app, payment)).text


@pytest.mark.parametrize("face", FACES)
async def test_every_state_is_drawn_in_both_languages(app: TestApp, face: str) -> None:
    payment = await with_face(app, face)
    for language, texts in TEXTS.items():
        response = await page_of(app, payment, f"?lang={language}")
        assert response.status_code == 200
        page = Page(response.text)
        assert page.main["data-face"] == face
        assert page.all("html")[0]["lang"] == language == response.headers["Content-Language"]
        assert texts[f"{face}_head"] in page.text
        assert print_amount(Rub(1234_56), language) in page.text
        assert "{" not in page.text


async def test_failed_payment_shows_its_reason_in_plain_words(app: TestApp) -> None:
    payment = await with_face(app, "failed")
    for reason in FailureReason:
        await store(app, payment["id"], failure_reason=reason)
        for language, texts in TEXTS.items():
            page = Page((await page_of(app, payment, f"?lang={language}")).text)
            assert texts[f"reason_{reason}"] in page.text, reason
            assert "_" not in page.text.replace(payment["id"], ""), "no word of the interface shows"


async def test_expired_and_review_ask_not_to_pay_again(app: TestApp) -> None:
    """A mismatch says that it is under review and not to pay again; a late payment may still come
    (docs/window.md "How long it is there")."""
    review = Page((await page_of(app, await with_face(app, "review"), "?lang=en")).text).text
    assert "Do not pay again: the payment is under review" in review
    assert "₽1,000.00 arrived, while ₽1,234.56 was expected" in review
    expired = Page((await page_of(app, await with_face(app, "expired"), "?lang=en")).text).text
    assert "do not pay again: a late payment may still arrive" in expired


async def test_only_a_waiting_payment_offers_ways_to_pay(app: TestApp) -> None:
    """Past the deadline, and while the bank already works on it, nobody shall start to pay."""
    for face in FACES:
        payment = await with_face(app, face)
        html = (await page_of(app, payment)).text
        assert ('id="qr"' in html) is (face == "waiting"), face
        assert ("button--bank" in html) is (face == "waiting"), face


async def test_a_payment_without_a_bank_link_shows_its_qr_at_once(app: TestApp) -> None:
    payment = await app.created()
    await store(app, payment["id"], bank_link="javascript:alert(1)")
    page = Page((await page_of(app, payment)).text)
    assert page.all("details") == [{"class": "more", "open": None}]
    assert "javascript:" not in "".join(tag["href"] or "" for tag in page.all("a"))


PAGE, DEEPLINK = LinkKind.PAGE, LinkKind.DEEPLINK


@pytest.mark.parametrize(
    ("kind", "link", "href"),
    [
        (PAGE, "https://bank.test/pay/1", "https://bank.test/pay/1"),
        (PAGE, "bankapp://pay/1", None),
        (DEEPLINK, "https://bank.test/app/1", "https://bank.test/app/1"),
        (DEEPLINK, "bank100000000004://qr.nspk.ru/AD1?type=02", "bank100000000004://qr.nspk.ru/AD1?type=02"),
        (DEEPLINK, "javascript://bank.test/%0aalert(1)", None),
        (DEEPLINK, "bankapp:pay", None),
        (DEEPLINK, "bankapp://pay 1", None),
        (None, "bank100000000004://qr.nspk.ru/AD1", None),
    ],
)
async def test_an_invoice_without_a_qr_shows_a_button_in_its_place(
    app: TestApp, kind: LinkKind | None, link: str, href: str | None
) -> None:
    """docs/window.md "Without a QR"."""
    payment = await app.created()
    await store(app, payment["id"], link_kind=kind, qr_payload=None, bank_link=link)
    for language, texts in TEXTS.items():
        html = (await page_of(app, payment, f"?lang={language}")).text
        buttons = [tag["href"] for tag in Page(html).all("a") if "button--bank" in (tag.get("class") or "")]
        assert buttons == ([] if href is None else [href])
        assert 'id="qr"' not in html
        assert texts["waiting_text"] not in html
        if kind is not None:
            assert texts[f"waiting_text_{kind}"] in Page(html).text


# Availability


async def test_the_link_answers_for_a_minute_after_paid_and_404_then(app: TestApp) -> None:
    """The window closes a minute after the end (docs/window.md "How long it is there")."""
    payment = await app.created({"external_id": "order-1043"})
    await app.work(120)
    await app.simulate(payment["id"], outcome="paid")
    await app.clock.advance(59)
    assert (await page_of(app, payment)).status_code == 200
    await app.clock.advance(1)
    gone = await page_of(app, payment, "?lang=en")
    assert gone.status_code == 404
    assert EN["closed_head"] in gone.text
    assert EN["closed_known"] in gone.text
    assert "Merchant" in gone.text
    assert payment["external_id"] in gone.text
    assert "490" not in gone.text.replace(payment["id"], ""), "it is no receipt"
    for part in ("state", "events"):
        assert (await app.http.get(f"/p/{payment['id']}/{part}")).status_code == 404


async def test_a_late_payment_reopens_the_link_for_a_minute(app: TestApp) -> None:
    """docs/window.md "How long it is there"."""
    payment = await app.created()
    await app.work(5 * 3600)
    assert Page((await page_of(app, payment)).text).main["data-face"] == "expired"
    await app.simulate(payment["id"], outcome="paid")
    assert Page((await page_of(app, payment)).text).main["data-face"] == "paid"
    await app.clock.advance(60)
    assert (await page_of(app, payment)).status_code == 404


async def test_settlement_does_not_reopen_the_link(app: TestApp) -> None:
    """The minute runs from the first end (docs/window.md "How long it is there")."""
    payment = await app.created()
    await app.simulate(payment["id"], outcome="paid")
    await app.clock.advance(3600)
    await store(app, payment["id"], status=S.SETTLED, settled_at=app.clock.now())
    assert (await page_of(app, payment)).status_code == 404


async def test_refund_within_the_paid_minute_keeps_the_window_open(app: TestApp) -> None:
    """docs/window.md "How long it is there"."""
    payment = await app.created()
    await app.simulate(payment["id"], outcome="paid")
    await app.clock.advance(30)
    await store(app, payment["id"], status=S.REFUNDED)
    assert Page((await page_of(app, payment)).text).main["data-face"] == "paid"
    await app.clock.advance(30)
    assert (await page_of(app, payment)).status_code == 404


# Without script


@pytest.mark.parametrize(("face", "seconds"), [("waiting", "5"), ("preparing", "5"), ("expired", "30"), ("paid", None)])
async def test_page_without_script_reloads_itself_while_it_may_change(
    app: TestApp, face: str, seconds: str | None
) -> None:
    html = (await page_of(app, await with_face(app, face))).text
    found = re.findall(r'<noscript><meta http-equiv="refresh" content="(\d+)"></noscript>', html)
    assert found == ([] if seconds is None else [seconds])


async def test_the_state_for_polling_pages_is_the_standing_and_nothing_else(app: TestApp) -> None:
    payment = await app.created()
    response = await app.http.get(f"/p/{payment['id']}/state")
    now = round(app.clock.now().timestamp() * 1000)
    assert response.json() == {"status": "pending", "face": "waiting", "now": now, "deadline": now + 15 * 60 * 1000}
    await app.simulate(payment["id"], outcome="paid")
    assert (await app.http.get(f"/p/{payment['id']}/state")).json()["face"] == "paid"
    await app.clock.advance(60)
    gone = await app.http.get(f"/p/{payment['id']}/state")
    assert (gone.status_code, gone.json()) == (404, {"status": None, "face": "closed"})

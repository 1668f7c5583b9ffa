"""The page where a payer confirms a subscription (docs/window.md "Subscriptions")."""

import httpx
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.usecases.accounts import shops
from cambist.frontends.http.payer.binding_texts import BINDING_TEXTS
from cambist.frontends.http.payer.pages import HEADERS
from cambist.ports.mandates import MandateEvent
from tests.houses import TestHouse
from tests.subscription_house import bindings, bound, call, open_link, patch, play, pretend, record, shown, subscribed
from tests.windows import Page

SHOP = "https://shop.example/thanks"


async def page(house: TestHouse, made: dict[str, str] | str, query: str = "", **headers: str) -> httpx.Response:
    subscription_id = made if isinstance(made, str) else made["id"]
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return await house.http.get(f"/s/{subscription_id}{query}", headers=sent)


async def face(house: TestHouse, made: dict[str, str], query: str = "?keep=1") -> str | None:
    return Page((await page(house, made, query)).text).main["data-face"]


async def test_opening_asks_the_bank_and_shows_shop_terms_and_qr(house: TestHouse) -> None:
    made = await subscribed(house, amount_rub="1490", description="Coffee club", interval="day", interval_count=3)
    assert await bindings(house, made["id"]) == []
    answer = await page(house, made, "?lang=en")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert all(answer.headers[name] == value for name, value in HEADERS.items())
    [payment] = await bindings(house, made["id"])
    drawn = Page(answer.text)
    for text in ("Merchant", "₽1,490.00", "every 3 days", "Coffee club", made["id"], "15:00", "Test mode"):
        assert text in drawn.text
    assert payment.bank_link is not None
    assert "#test" in [tag["href"] for tag in drawn.all("a")], "the panel stands in for the simulated bank's app"
    assert 'id="qr"' in answer.text


async def test_a_page_that_looks_by_itself_opens_nothing(house: TestHouse) -> None:
    """A reload by script or by refresh, a look at the headers, and a prefetch ask no bank; a payer's reload does."""
    made = await subscribed(house)
    await house.http.head(f"/s/{made['id']}")
    await page(house, made, "?keep=1")
    await page(house, made, sec_purpose="prefetch;prerender")
    await house.http.get(f"/s/{made['id']}/state")
    assert await bindings(house, made["id"]) == []
    assert await face(house, made) == "lapsed"
    first = Page((await page(house, made)).text)
    assert "keep=1" in str(first.main["data-page"])
    [refresh] = [tag for tag in first.all("meta") if tag.get("http-equiv") == "refresh"]
    assert "keep=1" in str(refresh["content"])
    await house.work(15 * 60)
    assert await face(house, made) == "lapsed"
    assert await face(house, made, "") == "waiting"
    assert len(await bindings(house, made["id"])) == 2


async def with_face(house: TestHouse, wanted: str) -> dict[str, str]:
    made: dict[str, str] = await subscribed(house, success_url=SHOP)
    if wanted in ("active", "paused"):
        await play(house, made["id"], "confirm")
    if wanted == "paused":
        await play(house, made["id"], "mandate_lost")
    if wanted == "cancelled":
        await call(house, made["id"], "cancel")
    if wanted == "expired":
        await house.work(25 * 3600)
    if wanted == "preparing":
        house.script.bind.append(Twist(ending=Ending.UNAVAILABLE))
    if wanted in ("waiting", "preparing"):
        await open_link(house, made["id"])
    if wanted in ("processing", "lapsed_paid"):
        await open_link(house, made["id"])
        binding = (await record(house, made["id"])).binding
        assert binding is not None
        await pretend(house, binding.operation, MandateEvent.PAID_NOT_BOUND)
    if wanted == "lapsed_paid":
        await house.work(16 * 60)
    return made


@pytest.mark.parametrize("wanted", ["paused", "cancelled", "expired", "active"])
async def test_who_did_not_confirm_is_led_to_the_shop_and_not_to_where_success_is_told(
    house: TestHouse, wanted: str
) -> None:
    """docs/window.md "Subscriptions"."""
    made = await with_face(house, wanted)
    await shops.set_shop(house.ports, house.account.default_shop_id, {"return_url": "https://shop.example/cart"})
    drawn = Page((await page(house, made, "?keep=1")).text)
    buttons = [tag["href"] for tag in drawn.all("a") if tag.get("id") == "return"]
    assert buttons == [SHOP if wanted == "active" else "https://shop.example/cart"]


FACES = ("preparing", "waiting", "processing", "lapsed", "lapsed_paid", "active", "paused", "cancelled", "expired")


@pytest.mark.parametrize("wanted", FACES)
async def test_every_face_is_drawn_in_both_languages(house: TestHouse, wanted: str) -> None:
    made = await with_face(house, wanted)
    for language, texts in BINDING_TEXTS.items():
        answer = await page(house, made, f"?keep=1&lang={language}")
        drawn = Page(answer.text)
        assert (answer.status_code, drawn.main["data-face"]) == (200, wanted)
        assert drawn.all("html")[0]["lang"] == language
        assert texts[f"{wanted}_head"] in drawn.text
        assert "{" not in drawn.text
    state = await house.http.get(f"/s/{made['id']}/state")
    assert state.json()["face"] == wanted


async def test_success_leads_back_to_the_shop_after_five_seconds_once(house: TestHouse) -> None:
    """A button, and the way back by itself after 5 seconds (docs/window.md "Subscriptions"); who comes later is left
    alone."""
    made = await with_face(house, "active")
    fresh = Page((await page(house, made)).text)
    assert (fresh.main["data-return"], fresh.main["data-return-after"]) == (SHOP, "5")
    await house.clock.advance(61)
    later = Page((await page(house, made)).text)
    assert "data-return" not in later.main
    assert SHOP in [tag.get("href") for tag in later.all("a")]
    without = await bound(house)
    assert "data-return" not in Page((await page(house, without)).text).main


@pytest.mark.parametrize("charge", ["first", "none"])
async def test_the_terms_say_whether_anything_is_charged_now(house: TestHouse, charge: str) -> None:
    """Before a QR is asked for and beside it, and beside another one, once the first charge is paid."""
    made = await subscribed(house, binding_charge=charge)
    for query, shown_face in (("?lang=en&keep=1", "lapsed"), ("?lang=en", "waiting")):
        drawn = Page((await page(house, made, query)).text)
        assert drawn.main["data-face"] == shown_face
        assert ("now, then the same" in drawn.text) is (charge == "first")
        assert ("nothing is charged now" in drawn.text) is (charge == "none")
    for outcome in ("confirm", "mandate_lost"):
        await play(house, made["id"], outcome)
    await call(house, made["id"], "rebind", Idempotency_Key="00000000-0000-4000-8000-000000000001")
    again = Page((await page(house, made, "?lang=en")).text)
    assert (again.main["data-face"], "nothing is charged now" in again.text) == ("waiting", True)


async def test_while_a_qr_waits_the_amount_is_the_one_that_it_takes(house: TestHouse) -> None:
    made = await subscribed(house)
    await page(house, made)
    changed = await patch(house, made["id"], {"amount_rub": "400.00"})
    assert changed.status_code == 200, changed.text
    amounts = []
    for seconds in (0, 16 * 60):
        await house.work(seconds)
        text = Page((await page(house, made, "?lang=en&keep=1")).text).text
        amounts.append([each for each in ("₽500.00", "₽400.00") if each in text])
    assert amounts == [["₽500.00"], ["₽400.00"]]


async def test_a_symbolic_qr_says_that_its_rouble_is_not_charged(house: TestHouse) -> None:
    made = await subscribed(house, binding_charge="none")
    text = Page((await page(house, made, "?lang=en")).text).text
    assert "That rouble is not charged" in text
    assert "nothing is charged now" in text


async def test_the_panel_plays_the_payer(house: TestHouse) -> None:
    made = await subscribed(house)
    await page(house, made)
    refused = await house.http.post(f"/s/{made['id']}/simulate", data={"act": "refuse", "reason": "declined_by_bank"})
    assert (refused.status_code, refused.headers["location"]) == (303, f"/s/{made['id']}?keep=1")
    [payment] = await bindings(house, made["id"])
    assert (payment.status, payment.failure_reason) == ("failed", "declined_by_bank")
    for is_open in (True, False):
        forms = Page((await page(house, made)).text).all("form")
        assert ("test" in [tag.get("id") for tag in forms]) is is_open
        await house.http.post(f"/s/{made['id']}/simulate", data={"act": "confirm"})
    assert (await shown(house, made["id"]))["status"] == "active"
    foreign = await house.http.post(
        f"/s/{made['id']}/simulate", data={"act": "confirm"}, headers={"Sec-Fetch-Site": "cross-site"}
    )
    assert foreign.status_code == 403
    assert (await house.http.post(f"/s/{made['id']}/simulate", data={"act": "steal"})).status_code == 400


@pytest.mark.parametrize("path", ["", "/state", "/events"])
async def test_unknown_ids_are_not_found(house: TestHouse, path: str) -> None:
    for subscription_id in ("sub_00000000-0000-4000-8000-000000000000", "pay_x", "x"):
        assert (await house.http.get(f"/s/{subscription_id}{path}")).status_code == 404


async def test_a_binding_payment_has_no_window_of_its_own(house: TestHouse) -> None:
    made = await subscribed(house)
    payment = await open_link(house, made["id"])
    assert (await house.http.get(f"/p/{payment.id}")).status_code == 404


async def test_the_page_follows_live(house: TestHouse) -> None:
    """A final face ends the stream; the words are those of the payer window's script."""
    made = await with_face(house, "active")
    answer = await house.http.get(f"/s/{made['id']}/events")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert '"face":"active"' in answer.text


async def test_a_rebinding_page_waits_for_the_merchant_to_ask(house: TestHouse) -> None:
    made = await with_face(house, "paused")
    assert await face(house, made, "") == "paused"
    key = "00000000-0000-4000-8000-000000000001"
    await call(house, made["id"], "rebind", Idempotency_Key=key)
    assert await face(house, made, "") == "waiting"

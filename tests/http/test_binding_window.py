"""The page where a payer confirms a subscription (docs/window.md "Subscriptions")."""

import httpx
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.gateways.gateways import GatewayStatus
from cambist.core.usecases.accounts import shops
from cambist.core.usecases.gateways.gateways import set_gateway
from cambist.frontends.http.payer.binding_texts import BINDING_TEXTS
from cambist.frontends.http.payer.pages import HEADERS
from cambist.ports.mandates import MandateEvent
from tests.apps import TestApp
from tests.subscription_app import (
    bindings,
    bound,
    button,
    call,
    open_link,
    patch,
    play,
    press,
    record,
    shown,
    simulate,
    subscribed,
)
from tests.windows import Page, store

SHOP = "https://shop.example/thanks"


async def page(app: TestApp, made: dict[str, str] | str, query: str = "", **headers: str) -> httpx.Response:
    subscription_id = made if isinstance(made, str) else made["id"]
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return await app.http.get(f"/s/{subscription_id}{query}", headers=sent)


async def face(app: TestApp, made: dict[str, str]) -> str | None:
    return Page((await page(app, made)).text).main["data-face"]


async def test_the_payers_press_asks_the_bank_and_shows_shop_terms_and_qr(app: TestApp) -> None:
    made = await subscribed(app, amount_rub="1490", description="Coffee club", interval="day", interval_count=3)
    before = Page((await page(app, made, "?lang=en")).text)
    for text in ("Merchant", "₽1,490.00", "every 3 days", "Coffee club", made["id"], "Test mode", "Continue"):
        assert text in before.text
    assert await bindings(app, made["id"]) == []
    answer = await press(app, made["id"], "?lang=en")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert all(answer.headers[name] == value for name, value in HEADERS.items())
    [payment] = await bindings(app, made["id"])
    drawn = Page(answer.text)
    for text in ("Merchant", "₽1,490.00", "every 3 days", "Coffee club", made["id"], "15:00", "Test mode"):
        assert text in drawn.text
    assert payment.bank_link is not None
    assert "#test" in [tag["href"] for tag in drawn.all("a")], "the panel stands in for the simulated bank's app"
    assert 'id="qr"' in answer.text


PREVIEWS = (
    "TelegramBot (like TwitterBot)",
    "WhatsApp/2.24.1.78 A",
    "facebookexternalhit/1.1",
    "Slackbot-LinkExpanding 1.0",
    "Mozilla/5.0 (compatible; vkShare; +http://vk.com/dev/Share)",
    "Viber/20",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/131.0 Safari/537.36",
    "curl/8",
)


async def test_no_reading_of_the_page_asks_a_bank_or_fixes_the_amount(app: TestApp) -> None:
    """Previews of messengers, mail scanners and prefetching browsers bind nobody
    (docs/window.md "Subscriptions")."""
    made = await subscribed(app)
    for agent in PREVIEWS:
        await page(app, made, User_Agent=agent)
    for query in ("?lang=en", "?say=away", "?say=x", "?keep=1"):
        await page(app, made, query)
    await page(app, made, sec_purpose="prefetch;prerender")
    await app.http.head(f"/s/{made['id']}")
    await app.http.get(f"/s/{made['id']}/state")
    for path in ("", "/simulate", "/open"):
        assert (await app.http.put(f"/s/{made['id']}{path}")).status_code == 405
    assert (await app.http.get(f"/s/{made['id']}/open")).status_code == 405
    assert await bindings(app, made["id"]) == []
    assert (await record(app, made["id"])).binding is None
    raised = await patch(app, made["id"], {"amount_rub": "690.00", "cap_amount_rub": "690.00"})
    assert raised.status_code == 200, raised.text
    assert await face(app, made) == "terms"


async def test_a_press_shows_the_same_qr_while_it_lives_and_a_new_one_after(app: TestApp) -> None:
    made = await subscribed(app)
    action, fields = await button(app, made["id"])
    for _ in range(2):
        assert (await app.http.post(action, data=fields)).status_code == 303
    assert len(await bindings(app, made["id"])) == 1
    await app.work(15 * 60)
    assert await face(app, made) == "lapsed"
    assert Page((await press(app, made["id"])).text).main["data-face"] == "waiting"
    assert len(await bindings(app, made["id"])) == 2


async def test_a_press_needs_no_cookie_and_no_script_and_comes_from_the_page(app: TestApp) -> None:
    """docs/window.md "Subscriptions"."""
    made = await subscribed(app)
    action, fields = await button(app, made["id"], "?lang=en")
    assert (action, fields) == (f"/s/{made['id']}/open?lang=en", {"amount": "500.00"})
    for site in ("cross-site", "same-site"):
        refused = await app.http.post(action, data=fields, headers={"Sec-Fetch-Site": site})
        assert (refused.status_code, "Set-Cookie" in refused.headers) == (403, False)
    unknown = await app.http.post("/s/sub_00000000-0000-4000-8000-000000000000/open", data=fields)
    assert unknown.status_code == 404
    assert await bindings(app, made["id"]) == []
    for site in ("same-origin", "none"):
        sent = await app.http.post(action, data=fields, headers={"Sec-Fetch-Site": site, "Origin": "null"})
        assert (sent.status_code, sent.headers["location"]) == (303, f"/s/{made['id']}?lang=en")
    assert len(await bindings(app, made["id"])) == 1


@pytest.mark.parametrize("seen", ["500.00", "690.0", "", "x" * 100_000, None])
async def test_a_press_for_other_terms_than_the_present_shows_them_first(app: TestApp, seen: str | None) -> None:
    """The merchant changed the amount between the page and the press (docs/subscriptions.md "Changing and ending")."""
    made = await subscribed(app)
    await patch(app, made["id"], {"amount_rub": "690.00", "cap_amount_rub": "690.00"})
    sent = await app.http.post(f"/s/{made['id']}/open?lang=en", data={} if seen is None else {"amount": seen})
    assert (sent.status_code, sent.headers["location"]) == (303, f"/s/{made['id']}?lang=en&say=changed")
    assert await bindings(app, made["id"]) == []
    drawn = Page((await app.http.get(sent.headers["location"])).text)
    assert "The terms have just changed" in drawn.text
    assert "₽690.00" in drawn.text
    assert drawn.main["data-page"] == f"/s/{made['id']}?lang=en", "a page that draws itself anew says it no more"
    assert Page((await press(app, made["id"])).text).main["data-face"] == "waiting"


@pytest.mark.parametrize("how", ["refused", "out of service"])
async def test_a_press_that_no_bank_answers_says_to_try_again(app: TestApp, how: str) -> None:
    made = await subscribed(app)
    if how == "refused":
        app.script.bind.append(Twist(ending=Ending.REFUSED))
    else:
        await set_gateway(app.ports, "simulator-test", GatewayStatus.DOWN)
    drawn = Page((await press(app, made["id"], "?lang=en")).text)
    assert (drawn.main["data-face"], "Try again in a minute" in drawn.text) == ("terms", True)
    await set_gateway(app.ports, "simulator-test", GatewayStatus.OPERATIONAL)
    assert Page((await press(app, made["id"], "?lang=en")).text).main["data-face"] == "waiting"


async def test_a_page_is_drawn_anew_when_amount_or_qr_changes(app: TestApp) -> None:
    """The face alone is not enough: it may be the same again when the page's script polls."""
    made = await subscribed(app)

    async def drawn() -> str:
        told = (await app.http.get(f"/s/{made['id']}/state")).json()["drawn"]
        assert Page((await page(app, made)).text).main["data-drawn"] == told
        return str(told)

    seen = [await drawn()]
    await patch(app, made["id"], {"amount_rub": "400"})
    seen.append(await drawn())
    for _ in range(2):
        await press(app, made["id"])
        seen.append(await drawn())
        await app.work(15 * 60)
    assert len(set(seen)) == 4


async def test_payer_with_a_refunded_first_payment_sees_that_charges_go_on(app: TestApp) -> None:
    """The first charge was paid and refunded, and nothing bound: the next binding charges again, and its page announces
    this."""
    made = await with_face(app, "lapsed_paid")
    [payment] = await bindings(app, made["id"])
    assert "nothing is charged now" not in Page((await page(app, made, "?lang=en")).text).text
    await store(app, payment.id, status="refunded")
    drawn = Page((await page(app, made, "?lang=en")).text)
    assert (drawn.main["data-face"], "now, then the same" in drawn.text) == ("lapsed", True)
    await press(app, made["id"])
    assert [each.binding for each in await bindings(app, made["id"])] == ["first", "first"]


async def with_face(app: TestApp, wanted: str) -> dict[str, str]:
    made: dict[str, str] = await subscribed(app, success_url=SHOP)
    if wanted in ("active", "paused"):
        await play(app, made["id"], "confirm")
    if wanted == "paused":
        await play(app, made["id"], "mandate_lost")
    if wanted == "cancelled":
        await call(app, made["id"], "cancel")
    if wanted == "expired":
        await app.work(25 * 3600)
    if wanted == "preparing":
        app.script.bind.append(Twist(ending=Ending.UNAVAILABLE))
    if wanted in ("waiting", "preparing", "lapsed"):
        await open_link(app, made["id"])
    if wanted == "lapsed":
        await app.work(16 * 60)
    if wanted in ("processing", "lapsed_paid"):
        await open_link(app, made["id"])
        binding = (await record(app, made["id"])).binding
        assert binding is not None
        await simulate(app, binding.operation, MandateEvent.PAID_NOT_BOUND)
    if wanted == "lapsed_paid":
        await app.work(16 * 60)
    return made


@pytest.mark.parametrize("wanted", ["paused", "cancelled", "expired", "active"])
async def test_unconfirmed_payer_returns_to_the_shop_and_not_the_success_page(app: TestApp, wanted: str) -> None:
    """docs/window.md "Subscriptions"."""
    made = await with_face(app, wanted)
    await shops.set_shop(app.ports, app.account.default_shop_id, {"return_url": "https://shop.example/cart"})
    drawn = Page((await page(app, made)).text)
    buttons = [tag["href"] for tag in drawn.all("a") if tag.get("id") == "return"]
    assert buttons == [SHOP if wanted == "active" else "https://shop.example/cart"]


FACES = (
    "terms",
    "preparing",
    "waiting",
    "processing",
    "lapsed",
    "lapsed_paid",
    "active",
    "paused",
    "cancelled",
    "expired",
)


@pytest.mark.parametrize("wanted", FACES)
async def test_every_face_is_drawn_in_both_languages(app: TestApp, wanted: str) -> None:
    made = await with_face(app, wanted)
    for language, texts in BINDING_TEXTS.items():
        answer = await page(app, made, f"?lang={language}")
        drawn = Page(answer.text)
        assert (answer.status_code, drawn.main["data-face"]) == (200, wanted)
        assert drawn.all("html")[0]["lang"] == language
        assert texts[f"{wanted}_head"] in drawn.text
        assert "{" not in drawn.text
    state = await app.http.get(f"/s/{made['id']}/state")
    assert state.json()["face"] == wanted


async def test_success_leads_back_to_the_shop_after_five_seconds_once(app: TestApp) -> None:
    """The page has a button, and redirects after 5 seconds (docs/window.md "Subscriptions"). A later visitor stays on
    the page."""
    made = await with_face(app, "active")
    fresh = Page((await page(app, made)).text)
    assert (fresh.main["data-return"], fresh.main["data-return-after"]) == (SHOP, "5")
    await app.clock.advance(61)
    later = Page((await page(app, made)).text)
    assert "data-return" not in later.main
    assert SHOP in [tag.get("href") for tag in later.all("a")]
    without = await bound(app)
    assert "data-return" not in Page((await page(app, without)).text).main


@pytest.mark.parametrize("charge", ["first", "none"])
async def test_the_terms_say_whether_anything_is_charged_now(app: TestApp, charge: str) -> None:
    """Before a QR is requested and beside it, and beside another one, once the first charge is paid."""
    made = await subscribed(app, binding_charge=charge)
    for shown_face, answer in (
        ("terms", await page(app, made, "?lang=en")),
        ("waiting", await press(app, made["id"], "?lang=en")),
    ):
        drawn = Page(answer.text)
        assert drawn.main["data-face"] == shown_face
        assert ("now, then the same" in drawn.text) is (charge == "first")
        assert ("nothing is charged now" in drawn.text) is (charge == "none")
    for outcome in ("confirm", "mandate_lost"):
        await play(app, made["id"], outcome)
    await call(app, made["id"], "rebind", Idempotency_Key="00000000-0000-4000-8000-000000000001")
    for shown_face, answer in (
        ("terms", await page(app, made, "?lang=en")),
        ("waiting", await press(app, made["id"], "?lang=en")),
    ):
        again = Page(answer.text)
        assert (again.main["data-face"], "nothing is charged now" in again.text) == (shown_face, True)


async def test_changed_amount_withdraws_the_qr_and_shows_the_new_terms(app: TestApp) -> None:
    made = await subscribed(app)
    await press(app, made["id"])
    changed = await patch(app, made["id"], {"amount_rub": "400.00"})
    assert changed.status_code == 200, changed.text
    for shown_face in ("terms", "waiting"):
        drawn = Page((await page(app, made, "?lang=en")).text)
        assert drawn.main["data-face"] == shown_face
        assert [each for each in ("₽500.00", "₽400.00") if each in drawn.text] == ["₽400.00"]
        if shown_face == "terms":
            await press(app, made["id"])
    assert [(each.amount.kopecks, each.status) for each in await bindings(app, made["id"])] == [
        (500_00, "expired"),
        (400_00, "pending"),
    ]


async def test_a_symbolic_qr_says_that_its_rouble_is_not_charged(app: TestApp) -> None:
    made = await subscribed(app, binding_charge="none")
    text = Page((await press(app, made["id"], "?lang=en")).text).text
    assert "That rouble is not charged" in text
    assert "nothing is charged now" in text


async def test_the_panel_plays_the_payer(app: TestApp) -> None:
    made = await subscribed(app)
    await press(app, made["id"])
    refused = await app.http.post(f"/s/{made['id']}/simulate", data={"action": "refuse", "reason": "declined_by_bank"})
    assert (refused.status_code, refused.headers["location"]) == (303, f"/s/{made['id']}")
    [payment] = await bindings(app, made["id"])
    assert (payment.status, payment.failure_reason) == ("failed", "declined_by_bank")
    for is_open in (True, False):
        answer = await press(app, made["id"]) if is_open else await page(app, made)
        forms = Page(answer.text).all("form")
        assert ("test" in [tag.get("id") for tag in forms]) is is_open
        await app.http.post(f"/s/{made['id']}/simulate", data={"action": "confirm"})
    assert (await shown(app, made["id"]))["status"] == "active"
    foreign = await app.http.post(
        f"/s/{made['id']}/simulate", data={"action": "confirm"}, headers={"Sec-Fetch-Site": "cross-site"}
    )
    assert foreign.status_code == 403
    assert (await app.http.post(f"/s/{made['id']}/simulate", data={"action": "steal"})).status_code == 400


@pytest.mark.parametrize("path", ["", "/state", "/events"])
async def test_unknown_ids_are_not_found(app: TestApp, path: str) -> None:
    for subscription_id in ("sub_00000000-0000-4000-8000-000000000000", "pay_x", "x"):
        assert (await app.http.get(f"/s/{subscription_id}{path}")).status_code == 404


async def test_a_binding_payment_has_no_window_of_its_own(app: TestApp) -> None:
    made = await subscribed(app)
    payment = await open_link(app, made["id"])
    assert (await app.http.get(f"/p/{payment.id}")).status_code == 404


async def test_the_page_follows_live(app: TestApp) -> None:
    """A final face ends the stream; the words are those of the payer window's script."""
    made = await with_face(app, "active")
    answer = await app.http.get(f"/s/{made['id']}/events")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert '"face":"active"' in answer.text


async def test_a_rebinding_page_waits_for_the_merchant_to_ask(app: TestApp) -> None:
    made = await with_face(app, "paused")
    assert await face(app, made) == "paused"
    key = "00000000-0000-4000-8000-000000000001"
    await call(app, made["id"], "rebind", Idempotency_Key=key)
    assert await face(app, made) == "terms"
    assert Page((await press(app, made["id"])).text).main["data-face"] == "waiting"

"""Another attempt on the payer's page (docs/window.md "Another attempt")."""

import asyncio
from typing import Any

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import RETRIES_MOST, Payment
from cambist.core.usecases.accounts.accounts import set_settings
from tests.apps import TestApp
from tests.windows import Page, page_of

ORDER: dict[str, Any] = {
    "amount_rub": "490.00",
    "external_id": "order-7",
    "description": "Two cups",
    "metadata": {"cups": 2},
    "client_phone": "+79001234567",
    "client_email": "anna@mail.example",
}


async def _offered(app: TestApp) -> None:
    await set_settings(app.ports, app.account.account_id, {"payer_retry": "true"})


async def _press(app: TestApp, payment_id: str, **headers: str) -> str:
    """Press the button, and return the id of the payment whose page comes next."""
    answer = await app.http.post(f"/p/{payment_id}/retry", headers=headers)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"].rpartition("/")[2]


async def _seen(app: TestApp, payment_id: str) -> Page:
    answer = await app.http.get(f"/p/{payment_id}", headers={"Accept-Language": "en"})
    return Page(answer.text)


async def test_failed_payment_is_tried_again_once_from_two_tabs_and_double_presses(app: TestApp) -> None:
    await _offered(app)
    first = await app.created(ORDER)
    assert await _press(app, first["id"]) == first["id"], "an open payment is not doubled"
    await app.simulate(first["id"], outcome="failed", failure_reason="insufficient_funds")
    assert "retry" in [tag.get("id") for tag in (await _seen(app, first["id"])).all("button")]
    pressed = await asyncio.gather(*(_press(app, first["id"]) for _ in range(4)))
    [second] = set(pressed)
    assert second != first["id"]
    made = (await app.get(f"/payments/{second}")).json()
    for name in ("amount_rub", "external_id", "description", "metadata", "shop_id"):
        assert made.get(name) == first.get(name)
    assert made["retry_of"] == first["id"]
    assert (await app.get(f"/payments/{first['id']}")).json()["retried_by"] == second
    both = [await app.payment(each) for each in (first["id"], second)]
    assert both[0].payer_email_digest == both[1].payer_email_digest
    assert both[0].payer_contact == both[1].payer_contact
    tab = await _seen(app, first["id"])
    assert [tag["href"] for tag in tab.all("a") if tag.get("id") == "newest"] == [f"/p/{second}"]
    assert (await app.get("/payments?external_id=order-7")).json()["pagination"]["total"] == 2
    await app.simulate(second, outcome="paid")
    assert await _press(app, second) == second, "a paid order is not paid again"
    assert (await _seen(app, first["id"])).main["data-face"] == "overtaken"


async def test_webhooks_of_another_attempt_name_the_first_payment(app: TestApp) -> None:
    await _offered(app)
    first = await app.created(ORDER)
    await app.simulate(first["id"], outcome="failed")
    second = await _press(app, first["id"])
    await app.simulate(second, outcome="paid")
    await app.work(5)
    named = {
        body["payment_id"]: webhook.headers.get("X-Webhook-Retry-Of")
        for body, webhook in zip(app.postman.bodies, app.postman.webhooks, strict=True)
    }
    assert named == {first["id"]: None, second: first["id"]}
    app.check_signatures()


async def test_late_money_of_the_first_payment_warns_on_the_page_of_the_second(app: TestApp) -> None:
    await _offered(app)
    first = await app.created(ORDER)
    await app.simulate(first["id"], outcome="expired")
    assert "I have not paid: try again" in (await _seen(app, first["id"])).text
    second = await _press(app, first["id"])
    assert (await _seen(app, second)).main["data-face"] == "waiting"
    await app.simulate(first["id"], outcome="paid")
    page = await _seen(app, second)
    assert page.main["data-face"] == "overtaken"
    assert "do not pay again" in page.text
    assert not [tag for tag in page.all("div") if "qr" in (tag.get("class") or "").split()]
    state = (await app.http.get(f"/p/{second}/state")).json()
    assert state["face"] == "overtaken"
    assert (await app.payment(first["id"])).actual_amount == Rub(490_00)
    await app.simulate(second, outcome="failed")
    assert await _press(app, second) == second


async def test_attempt_that_every_bank_refuses_leaves_the_order_free(app: TestApp) -> None:
    await _offered(app)
    first = await app.created()
    await app.simulate(first["id"], outcome="failed")
    app.script.create.append(Twist(ending=Ending.REFUSED))
    refused = await app.http.post(f"/p/{first['id']}/retry", headers={"Accept-Language": "en"})
    assert refused.status_code == 503
    assert (await app.payment(first["id"])).retried_by is None
    assert await _press(app, first["id"]) != first["id"]


async def test_retry_is_offered_by_setting_for_plain_payments_up_to_a_bound(app: TestApp) -> None:
    off = await app.created()
    await app.simulate(off["id"], outcome="failed")
    assert not [tag for tag in (await _seen(app, off["id"])).all("button") if tag.get("id") == "retry"]
    assert await _press(app, off["id"]) == off["id"]
    await _offered(app)
    chain = [(await app.created())["id"]]
    for _ in range(RETRIES_MOST):
        await app.simulate(chain[-1], outcome="failed")
        chain.append(await _press(app, chain[-1]))
    await app.simulate(chain[-1], outcome="failed")
    assert len({*chain}) == RETRIES_MOST + 1
    assert await _press(app, chain[-1]) == chain[-1]
    assert await _press(app, chain[0]) == chain[-1]
    assert (await app.http.post("/p/pay_none/retry")).status_code == 404
    foreign = await app.http.post(f"/p/{chain[-1]}/retry", headers={"Sec-Fetch-Site": "cross-site"})
    assert foreign.status_code == 403
    statuses: list[int] = []
    for _ in range(10):
        fresh = await app.created()
        await app.simulate(fresh["id"], outcome="failed")
        statuses.append((await app.http.post(f"/p/{fresh['id']}/retry")).status_code)
    assert statuses[-1] == 429


async def test_window_that_closed_offers_no_retry(app: TestApp) -> None:
    await _offered(app)
    first = await app.created()
    await app.simulate(first["id"], outcome="failed")
    await app.clock.advance(61)
    assert (await page_of(app, first)).status_code == 404
    assert await _press(app, first["id"]) == first["id"]
    async with app.ports.storage.unit() as unit:
        assert await unit[Payment].total(account_id=app.account.account_id) == 1

"""In which order POST /subscriptions and PATCH refuse (docs/concepts.md "What is refused first"; the rules themselves
are `subscription_orders.RULES`): the test starts from a request that breaks every rule, and heals one after the
other."""

from typing import Any
from uuid import uuid4

import httpx
import msgspec

from cambist.core.domain.accounts.terminals import TerminalWish
from cambist.core.domain.gateways.gateways import GatewayStatus
from cambist.core.domain.subscriptions.orders import RULES
from cambist.core.domain.subscriptions.subscriptions import Subscription
from cambist.core.usecases.accounts import shops, terminals
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.gateways.gateways import set_gateway
from tests.apps import TestApp
from tests.invariants import everything
from tests.subscription_app import bound, call, subscribe, subscribed

NOWHERE = "00000000-0000-4000-8000-000000000000"


async def test_post_refuses_in_the_order_of_decisions_and_rules(app: TestApp) -> None:
    account_id, ports = app.account.account_id, app.ports
    await set_settings(ports, account_id, {"acceptance": "false", "kyc": "required"})
    shop = await shops.create_shop(ports, account_id, "New")
    await shops.set_shop(ports, shop.id, {"markup": ""})
    await shops.disable_shop(ports, shop.id)
    wish = TerminalWish(label="Any", required_fields=("client_phone",))
    terminal = await terminals.create_terminal(ports, account_id, wish)
    headers = {**app.headers(), "X-Api-Secret": "0" * 64, "Content-Type": "text/plain"}
    body: dict[str, Any] = {"amount_rub": "0", "shop_id": NOWHERE, "method_id": NOWHERE, "filler": "x" * 102_400}
    codes: list[tuple[int, str]] = []

    async def told() -> None:
        answer = await app.http.post("/api/v1/subscriptions", content=msgspec.json.encode(body), headers=headers)
        codes.append((answer.status_code, answer.json()["error"]["code"] if answer.status_code != 201 else "made"))

    await told()
    del body["filler"]
    await told()
    headers |= app.headers()
    await told()
    headers["Idempotency-Key"] = "none"
    await told()
    headers["Idempotency-Key"] = str(uuid4())
    await told()
    headers["Content-Type"] = "application/json"
    body |= {"interval": "year", "description": "Club"}
    await told()
    body["interval"] = "month"
    await told()
    await set_settings(ports, account_id, {"acceptance": "true"})
    await told()
    body["shop_id"] = shop.id
    await told()
    await shops.enable_shop(ports, shop.id)
    await told()
    await shops.set_shop(ports, shop.id, {"markup": "0.03"})
    await told()
    await set_settings(ports, account_id, {"terminals": "true"})
    await told()
    body["method_id"] = terminal.id
    await told()
    body["amount_rub"] = "1"
    await told()
    body["client_phone"] = "+79001234567"
    await told()
    body["client_phone"] = "+70000000001"
    await set_gateway(ports, "simulator-test", GatewayStatus.DOWN)
    await set_settings(ports, account_id, {"subscription_scheme": "calendar"})
    await told()
    await set_gateway(ports, "simulator-test", GatewayStatus.OPERATIONAL)
    await told()
    assert codes == [
        (413, "PAYLOAD_TOO_LARGE"),
        (401, "Unauthorized"),
        (400, "MISSING_IDEMPOTENCY_KEY"),
        (400, "VALIDATION_ERROR"),
        (400, "VALIDATION_ERROR"),
        (400, "VALIDATION_ERROR"),
        (422, "PAYMENT_UNAVAILABLE"),
        (400, "SHOP_NOT_FOUND"),
        (403, "SHOP_DISABLED"),
        (422, "SHOP_MARKUP_NOT_SET"),
        (400, "METHOD_SELECTION_DISABLED"),
        (400, "METHOD_NOT_AVAILABLE"),
        (400, "INVALID_AMOUNT"),
        (422, "PAYER_DATA_REQUIRED"),
        (400, "KYC_REQUIRED"),
        (503, "PAYMENT_ROUTE_UNAVAILABLE"),
        (201, "made"),
    ]
    assert len(RULES) == 9
    assert len(await everything(ports, Subscription)) == 1


async def test_the_object_has_the_documented_fields_and_no_other(app: TestApp) -> None:
    """`client_ref` and `client_phone` are never returned, `rebind_required` only when true, `cap_window_rub` only when
    set, `sandbox` only in test mode (docs/subscriptions.md "Making one")."""
    always = {
        "id",
        "status",
        "past_due",
        "amount_rub",
        "interval",
        "interval_count",
        "cap_amount_rub",
        "description",
        "external_id",
        "binding_url",
        "binding_url_pending",
        "binding_charge",
        "current_period_start",
        "current_period_end",
    }
    made = await subscribed(app, client_ref="c", client_phone="+79001234567")
    assert set(made) == {*always, "sandbox"}
    live = (await subscribe(app, mode="live")).json()
    assert set(live) == always


async def test_unknown_keys_are_refused_also_the_caps(app: TestApp) -> None:
    for name in ("cap_amount_rub", "cap_window_rub", "period"):
        refused = await subscribe(app, **{name: "1.00"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "VALIDATION_ERROR")


async def test_foreign_and_unknown_ones_are_not_found_everywhere(app: TestApp) -> None:
    """Another account's is 404, never 403 (docs/subscriptions.md "Making one")."""
    made = await bound(app)
    live, key = app.headers("live"), str(uuid4())
    for subscription_id in (made["id"], f"sub_{NOWHERE}", "sub_x", "garbage"):
        path = f"/api/v1/subscriptions/{subscription_id}"
        answers: list[httpx.Response] = [
            await app.http.get(path, headers=live),
            await app.http.patch(path, json={"amount_rub": "1"}, headers=live),
            await app.http.post(f"{path}/cancel", headers=live),
            await app.http.post(f"{path}/rebind", headers={**live, "Idempotency-Key": key}),
        ]
        for answer in answers:
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, "SUBSCRIPTION_NOT_FOUND")


async def test_patch_refuses_by_body_then_state_then_amounts(app: TestApp) -> None:
    made = await bound(app)
    await call(app, made["id"], "cancel")
    path = f"/api/v1/subscriptions/{made['id']}"
    for body, code in (
        ({}, "VALIDATION_ERROR"),
        ({"interval": "day"}, "VALIDATION_ERROR"),
        ({"amount_rub": 5}, "VALIDATION_ERROR"),
        ({"amount_rub": "0"}, "INVALID_STATE"),
    ):
        answer = await app.http.patch(path, json=body, headers=app.headers())
        assert answer.json()["error"]["code"] == code


async def test_posting_is_counted_with_money_and_cancelling_is_not(app: TestApp) -> None:
    """It is a money call (docs/limits.md "Requests")."""
    made = await subscribe(app)
    assert made.headers["X-RateLimit-Limit"] == "120"
    assert (await call(app, made.json()["id"], "cancel")).headers["X-RateLimit-Limit"] == "60"


async def test_the_sandbox_is_for_test_keys_and_says_what_it_knows(app: TestApp) -> None:
    """The bank's side is played (docs/sandbox.md "The calls")."""
    made = await subscribed(app)
    path = f"/api/v1/sandbox/subscriptions/{made['id']}/simulate"
    live = await app.http.post(path, json={"outcome": "confirm"}, headers=app.headers("live"))
    assert (live.status_code, live.json()["error"]["code"]) == (404, "NOT_FOUND")
    unknown = await app.http.post(path, json={"outcome": "paid"}, headers=app.headers())
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert "confirm, refuse, link_ready" in unknown.json()["error"]["message"]


SENSELESS = {
    "pending_binding": {
        "link_ready",
        "mandate_lost",
        "mandate_restored",
        "past_due",
        "past_due_cleared",
        "consent_ended",
    },
    "active": {"confirm", "refuse", "link_ready", "no_link", "mandate_restored", "past_due_cleared"},
    "paused": {
        "confirm",
        "refuse",
        "link_ready",
        "no_link",
        "mandate_lost",
        "past_due",
        "past_due_cleared",
        "consent_ended",
    },
    "cancelled": {
        "confirm",
        "refuse",
        "link_ready",
        "no_link",
        "mandate_lost",
        "mandate_restored",
        "past_due",
        "past_due_cleared",
        "consent_ended",
    },
}


async def test_impossible_outcome_is_refused(app: TestApp) -> None:
    for status, outcomes in SENSELESS.items():
        made = await (subscribed(app) if status in ("pending_binding", "cancelled") else bound(app))
        path = f"/api/v1/sandbox/subscriptions/{made['id']}/simulate"
        if status == "cancelled":
            await call(app, made["id"], "cancel")
        if status == "paused":
            await app.http.post(path, json={"outcome": "mandate_lost"}, headers=app.headers())
        for outcome in sorted(outcomes):
            refused = await app.http.post(path, json={"outcome": outcome}, headers=app.headers())
            assert (refused.status_code, refused.json()["error"]["code"]) == (409, "INVALID_STATE"), (status, outcome)
        await app.clock.advance(60)

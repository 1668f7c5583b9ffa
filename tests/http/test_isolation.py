"""Test and live mode never see each other, and neither do accounts (docs/concepts.md "Accounts, keys, modes"). The
test tries every operation of the interface, and fails at an unknown one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest

from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.core.domain.accounts.accounts import Account, Mode
from cambist.core.domain.accounts.terminals import TerminalWish
from cambist.core.domain.receipts.receipts import ReceiptKind, receipt_id
from cambist.core.usecases.accounts import accounts, shops, terminals
from cambist.core.usecases.settlement.settlement import settle_now
from cambist.frontends.http.edge.operation import Operation
from cambist.frontends.http.operations import OPERATIONS
from tests.apps import TestApp
from tests.invariants import everything
from tests.payout_kit import WALLET
from tests.refund_app import RefundApp
from tests.subscription_app import SUBSCRIPTION, play, subscribe
from tests.tables import table

API = "/api/v1"
Named = tuple[str, str]
"""Method and path of an operation."""

NOT_FOUND: Mapping[str, str] = {
    "payment_id": "PAYMENT_NOT_FOUND",
    "payment_link_id": "PAYMENT_LINK_NOT_FOUND",
    "refund_id": "REFUND_NOT_FOUND",
    "receipt_id": "RECEIPT_NOT_FOUND",
    "settlement_id": "SETTLEMENT_NOT_FOUND",
    "withdrawal_id": "WITHDRAWAL_NOT_FOUND",
    "event_id": "EVENT_NOT_FOUND",
    "subscription_id": "SUBSCRIPTION_NOT_FOUND",
    "exchange_id": "EXCHANGE_NOT_FOUND",
    "endpoint_id": "WEBHOOK_ENDPOINT_NOT_FOUND",
    "export_id": "EXPORT_NOT_FOUND",
    "report_id": "REPORT_NOT_FOUND",
}
"""The answer of a path with such an id to any other party."""

BODIES: Mapping[str, Any] = {
    "PaymentSimulation": {"outcome": "failed"},
    "Review": {"outcome": "paid"},
    "RefundSimulation": {"outcome": "reversed"},
    "EndpointPatch": {"description": "theirs"},
    "ProofOrder": {"network": "TRC20", "tx_hash": "ab" * 32},
    "SubscriptionPatch": {"amount_rub": "700.00"},
    "SubscriptionSimulation": {"outcome": "mandate_lost"},
    "ChargeOrder": {"amount_rub": "500.00"},
    "NextChargeWish": {"result": "declined_by_bank"},
    "ExchangeSimulation": {"outcome": "failed"},
    "WithdrawalSimulation": {"outcome": "failed"},
}
"""A good body for each operation on an object, so that nothing but whose it is refuses."""

LISTS: Mapping[str, tuple[str, ...]] = {
    "/payments": ("external_id", "subscription_id"),
    "/refunds": ("payment_id", "external_id"),
    "/receipts": ("payment_id",),
    "/payment-links": (),
    "/withdrawals": (),
    "/settlements": (),
    "/subscriptions": (),
    "/exchange-clients": (),
    "/exchanges": (),
    "/events": ("object_id",),
    "/sandbox/letters": (),
    "/shops/turnover": (),
    "/balance/movements": ("object_id",),
    "/webhook-endpoints": (),
    "/requests": (),
    "/exports": (),
    "/reports": (),
}
"""Lists of objects, and their filters that accept another party's ids."""

CREATING: Mapping[Named, str] = {
    ("post", "/payments"): "payment",
    ("post", "/payment-links"): "payment-link",
    ("post", "/refunds"): "refund",
    ("post", "/receipts"): "receipt",
    ("post", "/subscriptions"): "subscription",
    ("post", "/subscriptions/{subscription_id}/charges"): "charge",
    ("post", "/subscriptions/{subscription_id}/rebind"): "rebind",
    ("post", "/exchanges"): "exchange",
    ("post", "/webhook-endpoints"): "webhook-endpoint",
    ("post", "/exports"): "export",
    ("post", "/reports"): "report",
}
"""Operations with an Idempotency-Key, and the arguments with which `Party.create` calls them."""

OF_THE_ACCOUNT: Mapping[Named, str] = {
    ("get", "/balance"): "test_a_balance_is_of_one_account_and_mode",
    ("get", "/balance/at"): "test_a_balance_is_of_one_account_and_mode",
    ("get", "/webhook-endpoint"): "test_a_receivers_state_is_of_one_account_and_mode",
    ("post", "/webhook-endpoint/test"): "test_a_receivers_state_is_of_one_account_and_mode",
    ("post", "/events/resend"): "test_a_range_is_resent_to_its_account_and_mode_only",
    ("get", "/payment-methods"): "test_shops_and_terminals_of_another_account_are_refused",
    ("get", "/gateways"): "test_a_played_gateway_is_seen_by_its_player_only",
    ("post", "/sandbox/gateways/{gateway_id}/simulate"): "test_a_played_gateway_is_seen_by_its_player_only",
    ("post", "/sandbox/settlements"): "test_settling_and_forgetting_touch_nobody_else",
    ("delete", "/sandbox/data"): "test_settling_and_forgetting_touch_nobody_else",
    ("get", "/sandbox/clock"): "test_a_clock_moves_for_its_own_account_only",
    ("post", "/sandbox/clock/advance"): "test_a_clock_moves_for_its_own_account_only",
    ("post", "/sandbox/exchanges"): "test_an_exchange_begun_in_the_sandbox_is_its_makers_only",
    ("post", "/sandbox/exchange-clients"): "test_clients_of_one_phone_are_one_for_each_account_and_mode",
}
"""Operations without an id of an object, and the test that tries each."""

NOBODYS: Mapping[Named, str] = {
    ("get", "/account"): "the account of the key itself (test_account.py)",
    ("get", "/rates"): "a market rate and the caller's own markup",
    ("post", "/withdrawals"): "answers 410 to everybody",
    ("get", "/payment-methods/{method_id}/exchange-rate"): "answers 404 to everybody",
    ("post", "/kyc/check"): "refused in test mode; a client is found by account, mode and phone (test_kyc.py)",
    ("post", "/kyc/upload-url"): "refused in test mode; a file is of its account (test_kyc.py)",
    ("post", "/kyc/register"): "refused in test mode; a client is found by account, mode and phone (test_kyc.py)",
}
"""Operations that show nobody's objects, and why."""


def name_of(operation: Operation[Any]) -> Named:
    return operation.method, operation.path.removeprefix(API)


def parameter(operation: Operation[Any]) -> str | None:
    """The id in its path that belongs to somebody."""
    _, brace, rest = operation.path.partition("{")
    name = rest.partition("}")[0]
    return name if brace and name in NOT_FOUND else None


KEYED = [each for each in OPERATIONS if each.keyed]
ON_OBJECTS = [each for each in KEYED if parameter(each) is not None]
OF_SANDBOX = [each for each in KEYED if each.path.startswith(f"{API}/sandbox")]


def named(operation: Operation[Any]) -> str:
    return " ".join(name_of(operation))


@dataclass
class Party:
    """One account's keys in one mode, and the objects made with them."""

    app: TestApp
    mode: str
    ids: dict[str, str] = field(default_factory=dict)
    """Ids by the name of the path's parameter."""
    words: dict[str, str] = field(default_factory=dict)
    """Values of filters that lead to its objects."""
    prepaid: str = ""
    """A payment that awaits its second receipt."""

    async def ask(
        self, method: str, path: str, *, key: str | None = None, body: Any = None, **query: str
    ) -> httpx.Response:
        """Make one request, with pauses so long that no limit is reached."""
        await self.app.clock.advance(1.1)
        headers = self.app.headers(self.mode, **({} if key is None else {"Idempotency_Key": key}))
        return await self.app.http.request(
            method.upper(), f"{API}{path}", headers=headers, json=body, params=query or None
        )

    async def good(self, method: str, path: str, *, key: str | None = None, body: Any = None) -> dict[str, Any]:
        response = await self.ask(method, path, key=key, body=body)
        assert response.is_success, response.text
        answer: dict[str, Any] = response.json()
        return answer

    async def create(self, what: str, key: str) -> httpx.Response:
        """Create an object under a key, referring to the party's own objects."""
        subscription = self.ids["subscription_id"]
        paths = {"charge": f"/subscriptions/{subscription}/charges", "rebind": f"/subscriptions/{subscription}/rebind"}
        bodies: dict[str, Any] = {
            "payment": {"amount_rub": "40.00"},
            "payment-link": {"description": "Class", "amount_rub": "50.00"},
            "refund": {"payment_id": self.ids["payment_id"], "amount_rub": "3.00"},
            "receipt": {"payment_id": self.prepaid},
            "subscription": SUBSCRIPTION,
            "charge": {"amount_rub": "500.00"},
            "export": {"kind": "payments", "format": "csv"},
            "report": {"first_day": "2026-01-01", "last_day": "2026-01-01"},
            "webhook-endpoint": {"url": "https://books.example/hooks"},
            "exchange": {"amount_usdt": "50", "client_phone": "+70000000005", "client_bank_id": "bank100000000004"},
        }
        return await self.ask("post", paths.get(what, f"/{what}s"), key=key, body=bodies.get(what))


async def settings_of_everything(app: TestApp) -> None:
    wish = {"refunds": "true", "refund_approval": "auto", "exchange": "true", "payout_wallet": WALLET}
    wish |= {"direct_links": "true", "terminals": "true", "refund_overdraft_usdt": "50"}
    await accounts.set_settings(app.ports, app.account.account_id, wish)


async def furnish(party: Party) -> None:
    """Make one object of every kind that the mode allows."""
    refunds, mark = RefundApp(party.app), f"mark-{uuid4()}"
    payment = await refunds.paid("100.00", mode=party.mode, external_id=mark)
    refund = await refunds.apply(payment, "10.00", mode=party.mode, external_id=mark)
    response = await subscribe(party.app, mode=party.mode, external_id=mark, interval="day")
    assert response.status_code == 201, response.text
    subscription = response.json()["id"]
    party.ids |= {"payment_id": payment, "refund_id": refund, "subscription_id": subscription}
    if party.mode == "test":  # the simulated bank of live mode writes no receipts
        boots = {"name": "Boots", "price": "100.00", "vat": "22/122", "subject": "commodity", "method": "prepayment"}
        receipt = {"items": [boots], "tax_system": "osn", "customer": {"email": "b@c.ru"}}
        party.prepaid = await refunds.paid("100.00", mode=party.mode, receipt=receipt)
        party.ids["receipt_id"] = receipt_id(ReceiptKind.SALE, party.prepaid)
    further = await party.create("webhook-endpoint", str(uuid4()))
    party.ids["endpoint_id"] = further.json()["id"]
    party.ids["export_id"] = (await party.create("export", str(uuid4()))).json()["id"]
    party.ids["report_id"] = (await party.create("report", str(uuid4()))).json()["id"]
    party.ids["payment_link_id"] = (await party.create("payment-link", str(uuid4()))).json()["id"]
    if party.mode == "test":
        assert (await play(party.app, subscription, "confirm")).status_code == 200
        made = await party.create("exchange", str(uuid4()))
        assert made.status_code == 201, made.text
        party.ids["exchange_id"] = made.json()["id"]
    await party.app.work(10)


async def note_the_rest(party: Party) -> None:
    """Record the objects that settlement and events made."""
    settlement = (await party.good("get", "/settlements"))["data"][0]
    withdrawal = (await party.good("get", "/withdrawals"))["data"][0]
    event = (await party.good("get", f"/events?object_id={party.ids['payment_id']}"))["data"][0]
    party.ids |= {"settlement_id": settlement["id"], "withdrawal_id": withdrawal["id"], "event_id": event["id"]}
    shown = await party.good("get", f"/payments/{party.ids['payment_id']}")
    party.words = {
        "external_id": shown["external_id"],
        "payment_id": party.ids["payment_id"],
        "subscription_id": party.ids["subscription_id"],
        "object_id": party.ids["payment_id"],
    }


@dataclass
class Street:
    """Two merchants, each with both modes."""

    test: Party
    live: Party
    other: Party
    other_live: Party

    @property
    def parties(self) -> tuple[Party, ...]:
        return self.test, self.live, self.other, self.other_live

    def strangers(self, party: Party) -> list[Party]:
        return [each for each in self.parties if each is not party]


@pytest.fixture
async def street(app: TestApp) -> Street:
    account = await accounts.create_account(app.ports, "Another")
    second = TestApp(app.ports, app.clock, app.postman, app.script, app.http, account)
    for each in (app, second):
        await settings_of_everything(each)
    opened = Street(Party(app, "test"), Party(app, "live"), Party(second, "test"), Party(second, "live"))
    for party in opened.parties:
        await furnish(party)
    for mode in Mode:
        await settle_now(app.ports, mode, cutoff=app.clock.now() + timedelta(seconds=1))
    await app.work(120)
    for party in opened.parties:
        await note_the_rest(party)
    return opened


def test_every_operation_is_tried() -> None:
    unknown = [
        named(operation)
        for operation in KEYED
        if parameter(operation) is None
        and name_of(operation) not in {**OF_THE_ACCOUNT, **NOBODYS, **CREATING}
        and (operation.method != "get" or name_of(operation)[1] not in LISTS)
    ]
    assert unknown == [], (
        "say how these are tried with others' keys: an id of an object in NOT_FOUND, a list in LISTS, what creates in "
        "CREATING, all else with a test in OF_THE_ACCOUNT, or with a reason in NOBODYS"
    )
    bodiless = [named(each) for each in ON_OBJECTS if each.body is not None and each.body.__name__ not in BODIES]
    assert bodiless == [], "give each of these a good body in BODIES"
    assert {name_of(each) for each in KEYED if each.creates} == set(CREATING), "say in CREATING what it creates"
    assert {*OF_THE_ACCOUNT, *NOBODYS} <= {name_of(each) for each in KEYED}
    assert set(OF_THE_ACCOUNT.values()) <= set(globals())


async def test_no_operation_on_an_object_answers_to_others_keys(street: Street) -> None:
    async def stored() -> dict[str, list[Any]]:
        return {table.name: await everything(street.test.app.ports, table.kind) for table in CATALOGUE}

    before = await stored()
    tried = set()
    for operation in ON_OBJECTS:
        name = parameter(operation) or ""
        for owner in street.parties:
            if name not in owner.ids:
                continue
            path = operation.path.removeprefix(API).replace(f"{{{name}}}", owner.ids[name])
            body = None if operation.body is None else BODIES[operation.body.__name__]
            for stranger in street.strangers(owner):
                key = str(uuid4()) if operation.creates else None
                response = await stranger.ask(operation.method, path, key=key, body=body)
                in_sandbox = operation in OF_SANDBOX and stranger.mode == "live"
                expected = "NOT_FOUND" if in_sandbox else NOT_FOUND[name]
                told = (response.status_code, response.json()["error"]["code"])
                if "delivery-proof" in path and told == (400, "FEATURE_NOT_ENABLED"):
                    # No payment of test mode and no other terminal is looked up.
                    assert stranger.mode == "test"
                    continue
                assert told == (404, expected), (named(operation), owner.mode, stranger.mode, response.text)
                tried.add((named(operation), owner.mode, stranger.mode))
    assert {mode for _, mode, _ in tried} == {"test", "live"}
    assert await stored() == before


async def test_each_finds_its_own_objects_by_the_same_paths(street: Street) -> None:
    """Without this, the refusals above would prove nothing."""
    for party in street.parties:
        for name, object_id in party.ids.items():
            kinds = {
                "exchange_id": "/exchanges",
                "endpoint_id": "/webhook-endpoints",
                "payment_link_id": "/payment-links",
            }
            kind = kinds.get(name, f"/{name.removesuffix('_id')}s")
            assert (await party.ask("get", f"{kind}/{object_id}")).status_code == 200, (party.mode, name)


@table("operation", OF_SANDBOX, ids=named)
async def test_the_sandbox_is_not_there_for_live_keys(app: TestApp, operation: Operation[Any]) -> None:
    party = Party(app, "live")
    name = operation.path.partition("{")[2].partition("}")[0]
    path = operation.path.removeprefix(API).replace(f"{{{name}}}", f"pay_{uuid4()}")
    response = await party.ask(operation.method, path, body=None if operation.body is None else {})
    assert (response.status_code, response.json()["error"]["code"]) == (404, "NOT_FOUND")


@pytest.mark.parametrize("path", LISTS)
async def test_lists_show_ones_own_objects_only(street: Street, path: str) -> None:
    seen = 0
    for owner in street.parties:
        if path.startswith("/sandbox") and owner.mode == "live":
            continue
        own = (await owner.ask("get", path, per_page="100")).text
        marks = {*owner.ids.values(), owner.words["external_id"]}
        seen += any(mark in own for mark in marks)
        for stranger in street.strangers(owner):
            theirs = {*stranger.ids.values(), stranger.words["external_id"]}
            assert [mark for mark in theirs if mark in own] == []
            for name in LISTS[path]:
                response = await owner.ask("get", path, **{name: stranger.words[name]})
                assert response.status_code == 200, response.text
                assert response.json()["data"] == [], (path, name)
                assert response.json()["pagination"]["total"] == 0
    assert seen or path in ("/exchange-clients", "/shops/turnover", "/requests")


@pytest.mark.parametrize("what", CREATING.values())
async def test_a_key_of_one_never_replays_what_it_made_for_another(street: Street, what: str) -> None:
    owner, key = street.test, str(uuid4())
    if what == "charge":
        # Move into the period after the one that the binding paid for.
        await owner.app.work(86_400 * 1.5)
    if what in ("exchange", "rebind"):
        for party in (street.test, street.other):
            await party.good("post", f"/exchanges/{party.ids['exchange_id']}/cancel")
            if what == "rebind":
                await play(party.app, party.ids["subscription_id"], "mandate_lost")
    made = await owner.create(what, key)
    assert made.status_code == 201, made.text
    repeat = await owner.create(what, key)
    assert (repeat.status_code, repeat.headers.get("idempotent-replayed")) == (200, "true"), repeat.text
    for stranger in street.strangers(owner):
        response = await stranger.create(what, key)
        assert "idempotent-replayed" not in response.headers
        assert response.json().get("id") != made.json()["id"]
        assert response.status_code != 409 or response.json()["error"]["code"] != "IDEMPOTENCY_KEY_REUSED"
        if stranger is street.other:
            assert response.status_code == 201, response.text


async def test_shops_and_terminals_of_another_account_are_refused(street: Street) -> None:
    app = street.test.app
    theirs = street.other.app.account.account_id
    shop = await shops.create_shop(app.ports, theirs, "Theirs")
    terminal = await terminals.create_terminal(app.ports, theirs, TerminalWish(label="Theirs"))
    assert terminal.id not in (await street.test.ask("get", "/payment-methods")).text
    assert terminal.id in (await street.other.ask("get", "/payment-methods")).text
    bodies = {"/payments": {"amount_rub": "100.00"}, "/subscriptions": SUBSCRIPTION}
    for mode in (street.test, street.live):
        for path, body in bodies.items():
            refused = await mode.ask("post", path, key=str(uuid4()), body={**body, "shop_id": shop.id})
            assert (refused.status_code, refused.json()["error"]["code"]) == (400, "SHOP_NOT_FOUND")
            refused = await mode.ask("post", path, key=str(uuid4()), body={**body, "method_id": terminal.id})
            assert (refused.status_code, refused.json()["error"]["code"]) == (400, "METHOD_NOT_AVAILABLE")
        for path in ("/payments", "/refunds"):
            refused = await mode.ask("get", path, shop_id=shop.id)
            assert (refused.status_code, refused.json()["error"]["code"]) == (400, "SHOP_NOT_FOUND")


async def test_refund_or_receipt_of_anothers_payment_is_refused(street: Street) -> None:
    for owner in street.parties:
        for stranger in street.strangers(owner):
            body = {"payment_id": owner.ids["payment_id"], "amount_rub": "1.00"}
            refused = await stranger.ask("post", "/refunds", key=str(uuid4()), body=body)
            assert (refused.status_code, refused.json()["error"]["code"]) == (404, "PAYMENT_NOT_FOUND")
            refused = await stranger.ask("post", "/receipts", key=str(uuid4()), body={"payment_id": body["payment_id"]})
            assert (refused.status_code, refused.json()["error"]["code"]) == (404, "PAYMENT_NOT_FOUND")


async def test_a_balance_is_of_one_account_and_mode(street: Street) -> None:
    paths = ("/balance", "/balance/at?at=2199-01-01T00:00:00Z")
    before = [await party.good("get", path) for path in paths for party in street.parties]
    await RefundApp(street.test.app).paid("250.00")
    after = [await party.good("get", path) for path in paths for party in street.parties]
    moved = [new["pending_rub"] != old["pending_rub"] for old, new in zip(before, after, strict=True)]
    assert moved == [True, False, False, False] * 2


async def test_a_receivers_state_is_of_one_account_and_mode(street: Street) -> None:
    # Only the first account has a receiver, and only its test mode gets the webhook.
    for party in (street.other, street.other_live):
        assert (await party.ask("get", "/webhook-endpoint")).json().get("url") is None
        refused = await party.ask("post", "/webhook-endpoint/test")
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "INVALID_STATE")
    untouched = await street.live.good("get", "/webhook-endpoint")
    await street.test.good("post", "/webhook-endpoint/test")
    assert await street.live.good("get", "/webhook-endpoint") == untouched


async def test_a_range_is_resent_to_its_account_and_mode_only(street: Street) -> None:
    app = street.test.app
    now = app.clock.now()
    span = {"from": (now - timedelta(days=1)).isoformat(), "to": (now + timedelta(hours=1)).isoformat()}
    own = (await street.test.good("get", "/events"))["pagination"]["total"]
    app.postman.webhooks.clear()
    assert (await street.test.good("post", "/events/resend", body=span))["events"] == own
    await app.work(5)
    sent = {webhook.headers["X-Webhook-Id"] for webhook in app.postman.webhooks}
    assert len(sent) == own
    assert not sent & {party.ids["event_id"] for party in street.strangers(street.test)}


async def test_a_played_gateway_is_seen_by_its_player_only(street: Street) -> None:
    before = [(await party.ask("get", "/gateways")).json() for party in street.parties]
    await street.test.good("post", "/sandbox/gateways/simulator-test/simulate", body={"status": "down"})
    after = [(await party.ask("get", "/gateways")).json() for party in street.parties]
    assert [new != old for old, new in zip(before, after, strict=True)] == [True, False, False, False]
    other = await street.test.ask("post", "/sandbox/gateways/simulator-live/simulate", body={"status": "down"})
    assert (other.status_code, other.json()["error"]["code"]) == (404, "GATEWAY_NOT_FOUND")


async def test_an_exchange_begun_in_the_sandbox_is_its_makers_only(street: Street) -> None:
    before = [(await stranger.ask("get", "/exchanges")).text for stranger in street.strangers(street.test)]
    body = {"amount_rub": "10000.00", "client_phone": "+70000000007"}
    made = await street.test.good("post", "/sandbox/exchanges", body=body)
    assert [(await stranger.ask("get", "/exchanges")).text for stranger in street.strangers(street.test)] == before
    for stranger in street.strangers(street.test):
        refused = await stranger.ask("get", f"/exchanges/{made['id']}")
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "EXCHANGE_NOT_FOUND")
    # The same phone is another client with every other merchant.
    assert (await street.other.ask("post", "/sandbox/exchanges", body=body)).status_code == 201
    again = await street.test.ask("post", "/sandbox/exchanges", body=body)
    assert (again.status_code, again.json()["error"]["code"]) == (409, "EXCHANGE_IN_PROGRESS")


async def test_clients_of_one_phone_are_one_for_each_account_and_mode(street: Street) -> None:
    body = {"phone": "+79990000001", "kyc_status": "blocked"}
    await street.test.good("post", "/sandbox/exchange-clients", body=body)
    assert (await street.test.good("get", "/exchange-clients"))["pagination"]["total"] == 1
    for stranger in street.strangers(street.test):
        assert (await stranger.good("get", "/exchange-clients"))["data"] == []
    mine = await street.test.good("get", "/exchange-clients")
    theirs = await street.other.good("post", "/sandbox/exchange-clients", body={**body, "kyc_status": "verified"})
    assert theirs["id"] != mine["data"][0]["id"]
    assert await street.test.good("get", "/exchange-clients") == mine


async def test_a_clock_moves_for_its_own_account_only(street: Street) -> None:
    async def payment(party: Party) -> dict[str, Any]:
        return await party.good("post", "/payments", key=str(uuid4()), body={"amount_rub": "40.00"})

    made = {id(party): await payment(party) for party in street.parties}
    moved = await street.test.good("post", "/sandbox/clock/advance", body={"seconds": 86_400})
    assert (await street.test.good("get", "/sandbox/clock"))["now"] >= moved["now"]
    statuses = {
        party.mode + ("" if party is not street.test else " moved"): (
            await party.good("get", f"/payments/{made[id(party)]['id']}")
        )["status"]
        for party in street.parties
    }
    assert statuses.pop("test moved") == "expired"
    assert set(statuses.values()) == {"pending"}
    assert (await street.other.good("get", "/sandbox/clock"))["now"] < moved["now"]
    for stranger in street.strangers(street.test):
        assert (await payment(stranger))["created_at"] < moved["now"]


async def test_settling_and_forgetting_touch_nobody_else(street: Street) -> None:
    async def seen(party: Party) -> list[str]:
        paths = LISTS.keys() - {"/sandbox/letters", "/exports"}  # the link of an export is new at each reading
        return [(await party.ask("get", path, per_page="100")).text for path in sorted(paths)]

    for party in street.parties:
        await RefundApp(party.app).paid("70.00", mode=party.mode)
    before = [await seen(stranger) for stranger in street.strangers(street.test)]
    await street.test.good("post", "/sandbox/settlements")
    assert [await seen(stranger) for stranger in street.strangers(street.test)] == before
    await street.test.good("delete", "/sandbox/data")
    assert [await seen(stranger) for stranger in street.strangers(street.test)] == before
    assert (await street.test.good("get", "/payments"))["data"] == []
    async with street.test.app.ports.storage.unit() as unit:
        assert await unit[Account].get(street.test.app.account.account_id) is not None

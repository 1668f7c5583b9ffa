"""Exchanges over HTTP: shapes, the order of refusals, idempotency, modes and accounts, lists, the sandbox
(docs/exchanges.md "Making one", "Rules")."""

from collections.abc import AsyncIterator, Awaitable, Callable
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import httpx
import msgspec
import pytest

from cambist.adapters.rates.simulator import SimulatedRates
from cambist.core.domain.exchanges.exchanges import Direction, Exchange
from cambist.core.domain.exchanges.orders import RULES
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.exchanges.exchanges import set_direction
from cambist.frontends.http.openapi.openapi import openapi_document
from cambist.ports.rates import RateSimulation
from tests.exchange_app import BANK_ID, PHONE, ExchangeApp, open_exchange_app, told
from tests.http.documents import Document
from tests.invariants import everything
from tests.tables import table

OTHER = "+70000000002"
NO_EXCHANGE = "exch_00000000-0000-4000-8000-000000000000"


@pytest.fixture
async def app() -> AsyncIterator[ExchangeApp]:
    async with open_exchange_app() as opened:
        yield opened


async def test_a_new_exchange_answers_with_exactly_these_fields(app: ExchangeApp) -> None:
    response = await app.post({"external_id": "order-1"})
    exchange = await app.exchange(response.json()["id"])
    assert (response.status_code, response.json()) == (
        201,
        {
            "id": exchange.id,
            "status": "awaiting_usdt",
            "crypto_deposit_address": exchange.crypto_deposit_address,
            "network": "tron",
            "amount_usdt": "100.00000000",
            "amount_rub": "9065.00",
            "rate": "90.65",
            "expires_at": "2026-01-01T00:15:00.000Z",
            "external_id": "order-1",
        },
    )


async def test_the_exchange_object_has_exactly_these_fields(app: ExchangeApp) -> None:
    made = await app.created()
    assert await app.shown(made["id"]) == {
        **made,
        "direction": "usdt_to_rub",
        "amount_usdt_received": None,
        "client_phone": PHONE,
        "completed_at": None,
        "created_at": "2026-01-01T00:00:00.000Z",
    }


async def test_repeat_is_marked_as_one_and_shows_the_present_state(app: ExchangeApp) -> None:
    key = str(uuid4())
    made = await app.post(key=key)
    await app.simulate(made.json()["id"], "usdt_received", amount_usdt="1")
    again = await app.post({"amount_usdt": 5, "client_phone": None}, key=key.upper())
    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (200, "true")
    assert again.json() == {**made.json(), "status": "partial"}
    await app.simulate(made.json()["id"], "completed")
    assert told(await app.post(key=key)) == (409, "IDEMPOTENCY_TERMINAL")


async def test_a_key_is_one_over_kinds_and_two_over_modes(app: ExchangeApp) -> None:
    key = str(uuid4())
    await app.post(key=key)
    assert told(await app.app.create(key=key)) == (409, "IDEMPOTENCY_KEY_REUSED")
    assert told(await app.post(key=key, mode="live")) == (422, "CLIENT_NOT_REGISTERED")


@pytest.mark.parametrize("mode", ["other mode", "other account"])
async def test_exchanges_of_another_mode_or_account_are_not_there(app: ExchangeApp, mode: str) -> None:
    exchange_id = (await app.created())["id"]
    headers = app.app.headers("live")
    if mode == "other account":
        other = await accounts.create_account(app.ports, "Another")
        headers = {"X-Api-Key": other.test.api_key, "X-Api-Secret": other.test.api_secret}
    http, path = app.app.http, "/api/v1/exchanges"
    found = await http.get(f"{path}/{exchange_id}", headers=headers)
    cancelled = await http.post(f"{path}/{exchange_id}/cancel", headers=headers)
    assert told(found) == told(cancelled) == (404, "EXCHANGE_NOT_FOUND")
    assert (await http.get(path, headers=headers)).json()["pagination"]["total"] == 0
    simulated = await http.post(f"/api/v1/sandbox/exchanges/{exchange_id}/simulate", headers=headers, json={})
    assert told(simulated) == (404, "NOT_FOUND" if mode == "other mode" else "EXCHANGE_NOT_FOUND")


@pytest.mark.parametrize("path", [NO_EXCHANGE, "exch_1", "pay_1", "%00"])
async def test_unknown_exchange_is_not_found(app: ExchangeApp, path: str) -> None:
    assert told(await app.app.get(f"/exchanges/{path}")) == (404, "EXCHANGE_NOT_FOUND")
    assert told(await app.cancel(path)) == (404, "EXCHANGE_NOT_FOUND")


async def test_lists_have_pages_and_statuses(app: ExchangeApp) -> None:
    made = []
    for number in range(3):
        made.append((await app.created(client_phone=f"+7000000000{number}"))["id"])
        await app.app.clock.advance(1)
    page = (await app.app.get("/exchanges?per_page=2&page=2")).json()
    assert [each["id"] for each in page["data"]] == [made[0]]
    assert page["pagination"] == {"page": 2, "per_page": 2, "total": 3, "total_pages": 2}
    await app.cancel(made[1])
    cancelled = (await app.app.get("/exchanges?status=CANCELLED")).json()
    assert [each["id"] for each in cancelled["data"]] == [made[1]]


@pytest.mark.parametrize("query", ["status=gone", "status=", "page=0", "per_page=101", "page=250001"])
async def test_bad_query_values_are_refused(app: ExchangeApp, query: str) -> None:
    response = await app.app.get(f"/exchanges?{query}")
    assert told(response) == (400, "VALIDATION_ERROR")
    if "gone" in query:
        assert "usdt_sending" in response.json()["error"]["message"]


async def test_creating_is_in_the_money_bucket_and_all_else_is_not(app: ExchangeApp) -> None:
    """It is a money call (docs/limits.md "Requests")."""
    made = await app.post()
    assert made.headers["X-RateLimit-Limit"] == "120"
    cancelled = await app.cancel(made.json()["id"])
    assert cancelled.headers["X-RateLimit-Limit"] == "60"


# --- the order of refusals


class Attempt:
    """A request that breaks every rule, made better one rule at a time."""

    def __init__(self, app: ExchangeApp) -> None:
        self.app = app
        self.headers = {**app.app.headers(), "X-Api-Secret": "0" * 64, "Content-Type": "text/plain"}
        self.body: dict[str, Any] = {"external_id": "x" * 102_400}

    async def prepare(self) -> None:
        await self.app.created()
        await self.app.set(exchange="false")
        await set_direction(self.app.ports, Direction.USDT_TO_RUB, is_on=False)
        await self.rate(silent=True)

    async def rate(self, *, silent: bool) -> None:
        source = self.app.ports.rates.of_mode("test")[0]
        assert isinstance(source, SimulatedRates)
        await source.simulate(RateSimulation(rate=Decimal("92.50"), silent=silent))
        await self.app.app.clock.advance(31)

    async def send(self) -> httpx.Response:
        return await self.app.app.http.post(
            "/api/v1/exchanges", content=msgspec.json.encode(self.body), headers=self.headers
        )


Heal = Callable[[Attempt], Awaitable[Any] | None]


class Row(msgspec.Struct, frozen=True):
    """A rule, what breaking it is answered with, and how it is healed."""

    rule: str
    status: int
    code: str
    heal: Heal


def put(**fields: Any) -> Heal:
    def heal(attempt: Attempt) -> None:
        attempt.body |= fields

    return heal


def head(**headers: str) -> Heal:
    return lambda attempt: attempt.headers.update({name.replace("_", "-"): value for name, value in headers.items()})


def switch(attempt: Attempt) -> Awaitable[Any]:
    return set_direction(attempt.app.ports, Direction.USDT_TO_RUB, is_on=True)


_FILLED = {"amount_usdt": "0.1.1", "client_phone": "89990000001", "client_bank_id": "tinkoff", "external_id": "x"}

ROWS = (
    Row("body size", 413, "PAYLOAD_TOO_LARGE", put(external_id="x" * 41)),
    Row("authorization", 401, "Unauthorized", lambda a: a.headers.update(a.app.app.headers())),
    Row("key is given", 400, "MISSING_IDEMPOTENCY_KEY", head(Idempotency_Key="no-uuid")),
    Row("key is a uuid", 400, "VALIDATION_ERROR", head(Idempotency_Key=str(UUID(int=3)))),
    Row("content type", 400, "VALIDATION_ERROR", head(Content_Type="application/json")),
    Row("fields", 400, "VALIDATION_ERROR", put(**_FILLED)),
    Row("shape", 400, "VALIDATION_ERROR", put(amount_usdt="0", client_bank_id=BANK_ID)),
    Row("phone", 422, "VALIDATION_ERROR", put(client_phone="+79990000001")),
    Row("connected", 400, "FEATURE_NOT_ENABLED", lambda a: a.app.set(exchange="true")),
    Row("direction is on", 503, "FEATURE_DISABLED", switch),
    Row("above zero", 400, "INVALID_AMOUNT", put(amount_usdt="11.03")),
    Row("client", 422, "CLIENT_NOT_REGISTERED", put(client_phone=PHONE)),
    Row("rate", 502, "RATE_INVALID", lambda a: a.rate(silent=False)),
    Row("bounds", 400, "AMOUNT_TOO_LOW", put(amount_usdt="11.04")),
    Row("one active", 409, "EXCHANGE_IN_PROGRESS", put(client_phone=OTHER)),
)


def test_every_rule_of_the_domain_has_its_row() -> None:
    # tests/usecases/gateways/test_members.py covers the rule about banks.
    rules = [rule.name for rule in RULES if rule.name != "bank is known"]
    assert [row.rule for row in ROWS][-len(rules) :] == rules


@pytest.mark.parametrize("number", range(len(ROWS) + 1), ids=[*(row.rule for row in ROWS), "nothing is wrong"])
async def test_each_refusal_beats_those_below_it_and_locks_no_key(app: ExchangeApp, number: int) -> None:
    attempt = Attempt(app)
    await attempt.prepare()
    for row in ROWS[:number]:
        healed = row.heal(attempt)
        if healed is not None:
            await healed
    response = await attempt.send()
    if number == len(ROWS):
        assert response.status_code == 201
    else:
        assert told(response) == (ROWS[number].status, ROWS[number].code)
        assert len(await everything(app.ports, Exchange)) == 1


async def test_refused_request_leaves_its_key_free(app: ExchangeApp) -> None:
    key = str(uuid4())
    assert told(await app.post({"amount_usdt": "1"}, key=key)) == (400, "AMOUNT_TOO_LOW")
    assert (await app.post(key=key)).status_code == 201


@table(
    ("body", "expected"),
    [
        ({"amount_usdt": 100}, (400, "VALIDATION_ERROR")),
        ({"amount_usdt": "1e2"}, (400, "VALIDATION_ERROR")),
        ({"amount_usdt": "1.123456789"}, (400, "VALIDATION_ERROR")),
        ({"amount_usdt": "-1"}, (400, "INVALID_AMOUNT")),
        ({"amount_usdt": "0.00000000"}, (400, "INVALID_AMOUNT")),
        ({"amount_usdt": "11.03"}, (400, "AMOUNT_TOO_LOW")),
        ({"amount_usdt": "11031.44"}, (400, "AMOUNT_TOO_HIGH")),
        ({"client_phone": "+7000000000"}, (422, "CLIENT_NOT_REGISTERED")),
        ({"client_phone": "+700000000011 "}, (422, "VALIDATION_ERROR")),
        ({"client_phone": "70000000001"}, (422, "VALIDATION_ERROR")),
        ({"client_bank_id": "bank"}, (400, "VALIDATION_ERROR")),
        ({"client_bank_id": "bankX1"}, (400, "VALIDATION_ERROR")),
        ({"external_id": "x" * 41}, (400, "VALIDATION_ERROR")),
        ({"comment": "hello"}, (400, "VALIDATION_ERROR")),
    ],
)
async def test_values_that_are_refused(app: ExchangeApp, body: dict[str, Any], expected: tuple[int, str]) -> None:
    assert told(await app.post(body)) == expected


@pytest.mark.parametrize("amount", ["11.04", "11031.43"])
async def test_bounds_are_inclusive_of_what_lies_within(app: ExchangeApp, amount: str) -> None:
    assert (await app.post({"amount_usdt": amount})).status_code == 201


# --- the sandbox


@pytest.mark.parametrize(
    ("way", "status"),
    [
        ([("usdt_received", {})], "usdt_received"),
        ([("usdt_received", {"amount_usdt": "40"})], "partial"),
        ([("usdt_received", {"amount_usdt": "40"}), ("usdt_received", {})], "usdt_received"),
        ([("completed", {})], "completed"),
        ([("usdt_received", {"amount_usdt": "40"}), ("completed", {})], "completed"),
        ([("completed", {}), ("completed", {})], "completed"),
        ([("failed", {})], "failed"),
        ([("usdt_received", {}), ("failed", {})], "failed"),
    ],
)
async def test_the_sandbox_leads_an_exchange(
    app: ExchangeApp, way: list[tuple[str, dict[str, str]]], status: str
) -> None:
    made = await app.created()
    answers = [await app.simulate(made["id"], outcome, **more) for outcome, more in way]
    assert [response.status_code for response in answers] == [200] * len(way)
    assert answers[-1].json()["status"] == status
    assert answers[-1].json() == await app.shown(made["id"])
    assert await app.said(made["id"]) == ([status] if status in ("completed", "failed") else [])


async def test_the_sandbox_fails_a_payout_that_is_at_the_bank(app: ExchangeApp) -> None:
    made = await app.created()
    await app.send(made["id"])
    await app.look(made["id"])
    assert (await app.simulate(made["id"], "failed")).json()["status"] == "failed"


async def test_an_exchange_of_two_parts_is_completed_by_one_call(app: ExchangeApp) -> None:
    made = await app.created(amount_usdt="10000")
    assert (await app.simulate(made["id"], "completed")).json()["status"] == "completed"
    assert sum((await app.remitted()).values()) == 906_500_00


@pytest.mark.parametrize(
    ("first", "body", "expected"),
    [
        (None, {"outcome": "sent"}, (400, "VALIDATION_ERROR")),
        (None, {"outcome": "usdt_received", "amount_usdt": "x"}, (400, "VALIDATION_ERROR")),
        (None, {"outcome": "usdt_received", "amount_usdt": "0"}, (400, "INVALID_AMOUNT")),
        (None, {}, (400, "VALIDATION_ERROR")),
        ("completed", {"outcome": "failed"}, (409, "INVALID_STATE")),
        ("completed", {"outcome": "usdt_received"}, (409, "INVALID_STATE")),
        ("failed", {"outcome": "completed"}, (409, "INVALID_STATE")),
    ],
)
async def test_the_sandbox_refuses(
    app: ExchangeApp, first: str | None, body: dict[str, str], expected: tuple[int, str]
) -> None:
    made = await app.created()
    if first is not None:
        await app.simulate(made["id"], first)
    assert told(await app.action(f"/sandbox/exchanges/{made['id']}/simulate", body)) == expected


async def test_answers_are_as_the_document_promises(app: ExchangeApp) -> None:
    document = Document(openapi_document(app.ports.urls.base_url))
    made = await app.post()
    exchange_id = made.json()["id"]
    answers = [
        made,
        await app.post(),
        await app.post({"amount_usdt": "1"}),
        await app.app.get(f"/exchanges/{exchange_id}"),
        await app.app.get("/exchanges?status=pending"),
        await app.app.get("/exchanges"),
        await app.simulate(exchange_id, "usdt_received"),
        await app.cancel(exchange_id),
        await app.app.get(f"/exchanges/{NO_EXCHANGE}"),
    ]
    for response in answers:
        document.check(response)

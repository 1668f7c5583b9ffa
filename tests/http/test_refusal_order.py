"""The order in which POST /payments refuses (docs/concepts.md "What is refused first"; `orders.RULES` holds the
rules). The test starts from a request that breaks every rule at once. Each row heals one rule. A row therefore
expects the answer to a request that breaks its own rule and every later rule that can be broken at the same time."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import httpx
import msgspec
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.terminals import Terminal, TerminalWish
from cambist.core.domain.payments.orders import RULES
from cambist.core.domain.payments.payments import Payment
from cambist.core.usecases.accounts import accounts, shops, terminals
from tests.apps import TestApp

NO = Twist(ending=Ending.REFUSED)


class Attempt:
    """A request and the world it meets, both bad in every way; the rows make them better one by one."""

    def __init__(self, app: TestApp) -> None:
        self.app = app
        self.method, self.path = "PUT", "/api/v1/nothing"
        self.headers: dict[str, str] = {**app.headers(), "X-Api-Secret": "0" * 64, "Content-Type": "text/plain"}
        self.body: dict[str, Any] = {
            "amount_rub": 0,
            "client_phone": "12",
            "metadata": {"filler": "x" * 102_400},
            "payment_method": "sbp",
        }
        self.names: dict[str, str] = {}
        """Ids of the shops and terminals at hand."""

    async def prepare(self) -> None:
        ports, account_id = self.app.ports, self.app.account.account_id
        other = (await accounts.create_account(ports, "Other")).account_id
        plain = await shops.create_shop(ports, account_id, "Without markup")
        disabled = await shops.create_shop(ports, account_id, "Disabled, without markup")
        theirs = await shops.create_shop(ports, other, "Theirs, disabled, without markup")
        for shop in (disabled, theirs):
            await shops.disable_shop(ports, shop.id)
        wish = TerminalWish(label="Any", required_fields=("payer", "description"))
        exchange = msgspec.structs.replace(wish, kind="exchange")
        mine = await terminals.create_terminal(ports, account_id, exchange)
        ordinary = await terminals.create_terminal(ports, account_id, wish)
        # As if cards were supported, too: so far there is only one method.
        odd = msgspec.structs.replace(mine, id=str(UUID(int=2)), payment_method="card")
        foreign = msgspec.structs.replace(odd, id=str(UUID(int=1)), account_id=other)
        async with ports.storage.unit() as unit:
            unit[Terminal].add(odd)
            unit[Terminal].add(foreign)
            await unit.commit()
        self.names = {"plain": plain.id, "disabled": disabled.id, "odd": odd.id}
        self.names |= {"exchange": mine.id, "ordinary": ordinary.id}
        self.body |= {"shop_id": theirs.id, "method_id": foreign.id}
        await self.set(acceptance="false", terminals="false", kyc="required")
        self.app.script.create.append(NO)

    async def spend_the_minute(self) -> None:
        for _ in range(60):
            await self.app.http.get("/api/v1/nothing", headers=self.headers)

    async def set(self, **texts: str) -> None:
        await accounts.set_settings(self.app.ports, self.app.account.account_id, texts)

    async def send(self) -> httpx.Response:
        return await self.app.http.request(
            self.method, self.path, content=msgspec.json.encode(self.body), headers=self.headers
        )


Heal = Callable[[Attempt], Awaitable[None] | None]


class Row(msgspec.Struct, frozen=True):
    """A rule, the answer to its breach, and the correction. `told` is part of the message or details."""

    rule: str
    status: int
    code: str
    heal: Heal
    told: str = ""


def put(**fields: Any) -> Heal:
    """Set fields of the body; a None takes one out."""

    def heal(attempt: Attempt) -> None:
        attempt.body |= fields
        attempt.body = {name: value for name, value in attempt.body.items() if value is not None}

    return heal


def head(**headers: str) -> Heal:
    return lambda attempt: attempt.headers.update({name.replace("_", "-"): value for name, value in headers.items()})


def name(**fields: str) -> Heal:
    """Set fields of the body to ids of the attempt's shops and terminals."""
    return lambda attempt: attempt.body.update({field: attempt.names[which] for field, which in fields.items()})


async def wait_a_minute(attempt: Attempt) -> None:
    await attempt.app.clock.advance(60)


def know_the_path(attempt: Attempt) -> None:
    attempt.path = "/api/v1/payments"


def know_the_method(attempt: Attempt) -> None:
    attempt.method = "POST"


def know_the_secret(attempt: Attempt) -> None:
    attempt.headers |= attempt.app.headers()


async def mark_up_the_shop(attempt: Attempt) -> None:
    await shops.set_shop(attempt.app.ports, attempt.names["plain"], {"markup": "0.03"})


async def go_outside_terminals(attempt: Attempt) -> None:
    await attempt.set(terminals="false")
    del attempt.body["method_id"]
    attempt.body["amount_rub"] = "1000000.01"


async def go_by_the_ordinary_terminal(attempt: Attempt) -> None:
    """An ordinary terminal has no maximum, so this amount is good there."""
    await attempt.set(terminals="true")
    attempt.body["method_id"] = attempt.names["ordinary"]


PAYER = {"full_name": "Ivan Ivanov", "document_number": "4500123456"}

ROWS = (
    Row("rate limit", 429, "RATE_LIMIT_EXCEEDED", wait_a_minute),
    Row("body size", 413, "PAYLOAD_TOO_LARGE", put(metadata=None)),
    Row("path", 404, "NOT_FOUND", know_the_path),
    Row("http method", 405, "METHOD_NOT_ALLOWED", know_the_method),
    Row("authorization", 401, "Unauthorized", know_the_secret),
    Row("key is given", 400, "MISSING_IDEMPOTENCY_KEY", head(Idempotency_Key="no-uuid")),
    Row("key is a uuid", 400, "VALIDATION_ERROR", head(Idempotency_Key=str(UUID(int=3))), "valid UUID"),
    Row("content type", 400, "VALIDATION_ERROR", head(Content_Type="application/json"), "is required"),
    Row("json", 400, "VALIDATION_ERROR", put(amount_rub="1e3"), "must be a string such as"),
    Row("shape", 400, "VALIDATION_ERROR", put(amount_rub="0"), "amount_rub"),
    Row("values", 422, "VALIDATION_ERROR", put(client_phone=None), "client_phone"),
    Row("acceptance", 422, "PAYMENT_UNAVAILABLE", lambda attempt: attempt.set(acceptance="true")),
    Row("shop is known", 400, "SHOP_NOT_FOUND", name(shop_id="disabled")),
    Row("shop is enabled", 403, "SHOP_DISABLED", name(shop_id="plain")),
    Row("shop has markup", 422, "SHOP_MARKUP_NOT_SET", mark_up_the_shop),
    Row("selection is on", 400, "METHOD_SELECTION_DISABLED", lambda attempt: attempt.set(terminals="true")),
    Row("method is available", 400, "METHOD_NOT_AVAILABLE", name(method_id="odd")),
    Row("methods agree", 400, "VALIDATION_ERROR", name(method_id="exchange"), "payment_method"),
    Row("exchange bounds", 400, "VALIDATION_ERROR", name(method_id="ordinary"), "from 10000.00 to 80000.00"),
    Row("above zero", 400, "INVALID_AMOUNT", put(amount_rub="29.99"), "above zero"),
    Row("minimum", 400, "AMOUNT_BELOW_MINIMUM", go_outside_terminals, "30.00"),
    Row("maximum", 400, "INVALID_AMOUNT", go_by_the_ordinary_terminal, "at most 1000000.00"),
    Row("required fields", 422, "PAYER_DATA_REQUIRED", put(payer=PAYER, description="Tea"), '["payer","description"]'),
    Row("verified client", 400, "KYC_REQUIRED", put(client_phone="+70000000001")),
    Row("route", 400, "PAYMENT_ROUTE_UNAVAILABLE", lambda attempt: None),
)


async def attempt_after(app: TestApp, healed: int) -> Attempt:
    attempt = Attempt(app)
    await attempt.prepare()
    if not healed:
        await attempt.spend_the_minute()
    for row in ROWS[:healed]:
        done = row.heal(attempt)
        if done is not None:
            await done
    return attempt


@pytest.mark.parametrize("at", range(len(ROWS)), ids=[row.rule for row in ROWS])
async def test_each_refusal_of_post_payments_beats_those_below_it(app: TestApp, at: int) -> None:
    row = ROWS[at]
    response = await (await attempt_after(app, at)).send()
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (row.status, row.code)
    assert row.told in msgspec.json.encode(error).decode().replace("\\", "")
    async with app.ports.storage.unit() as unit:
        assert await unit[Payment].find() == []


async def test_once_every_rule_is_kept_the_same_key_makes_the_payment(app: TestApp) -> None:
    """No refusal on the way locks the key (docs/concepts.md "Idempotency")."""
    attempt = await attempt_after(app, 0)
    for row in ROWS:
        assert (await attempt.send()).status_code == row.status
        done = row.heal(attempt)
        if done is not None:
            await done
    assert (await attempt.send()).status_code == 201


def test_every_rule_of_the_table_has_its_row_in_the_same_order() -> None:
    names = [rule.name for rule in RULES]
    assert [row.rule for row in ROWS if row.rule in names] == names

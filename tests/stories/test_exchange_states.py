"""One story for each row of the state table of exchanges, in both directions, by the public interface and the sandbox
alone: time passes by the account's clock (docs/exchanges.md "How it ends", "Rules"; docs/sandbox.md "The clock").

A row without a story fails.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import pytest

from cambist.core.domain.exchanges.exchanges import EXCHANGE_MOVES, FINAL, Direction, ExchangeStatus
from tests.exchange_app import PHONE, ExchangeApp, open_exchange_app

S, D = ExchangeStatus, Direction
OVER = 16 * 60
"""Seconds until an exchange that nobody paid is over."""


class Client:
    """A watcher of one exchange, with the statuses that the interface showed, in order."""

    def __init__(self, app: ExchangeApp) -> None:
        self.app = app
        self.id = ""
        self.seen: list[str] = []

    async def look(self) -> None:
        status = (await self.app.shown(self.id))["status"]
        if self.seen[-1:] != [status]:
            self.seen.append(status)

    async def sells(self) -> None:
        """POST /exchanges."""
        self.id = (await self.app.created())["id"]
        self.seen.append("pending")
        await self.look()

    async def begins(self, **amount: Any) -> None:
        """POST /sandbox/exchanges."""
        response = await self.app.action("/sandbox/exchanges", {"client_phone": PHONE, **amount})
        assert response.status_code == 201, response.text
        self.id = response.json()["id"]
        self.seen.append("pending")
        await self.look()

    async def play(self, outcome: str, **more: str) -> None:
        response = await self.app.simulate(self.id, outcome, **more)
        assert response.status_code == 200, response.text
        await self.look()

    async def cancel(self) -> None:
        assert (await self.app.cancel(self.id)).status_code == 200
        await self.look()

    async def wait(self, seconds: int) -> None:
        moved = await self.app.action("/sandbox/clock/advance", {"seconds": seconds})
        assert moved.json()["advancing"] is False, moved.text
        await self.look()


Step = tuple[Any, ...]


def told(*steps: Step) -> Callable[[Client], Awaitable[None]]:
    async def story(client: Client) -> None:
        for name, *arguments in steps:
            await getattr(client, name)(*arguments)

    return story


def received(outcome: str, **more: str) -> Callable[[Client], Awaitable[None]]:
    async def story(client: Client) -> None:
        await client.play(outcome, **more)

    return story


def begins(**amount: Any) -> Callable[[Client], Awaitable[None]]:
    async def story(client: Client) -> None:
        await client.begins(**amount)

    return story


def then(*stories: Callable[[Client], Awaitable[None]]) -> Callable[[Client], Awaitable[None]]:
    async def story(client: Client) -> None:
        for each in stories:
            await each(client)

    return story


SELLS, BUYS = told(("sells",)), begins(amount_rub="10000.00")
SELLS_LATER, BUYS_LATER = begins(amount_usdt="100", pending=True), begins(amount_rub="10000.00", pending=True)
"""The service is still without an address, or an invoice, for ten seconds."""
CANCELS = told(("cancel",))
SOME_USDT, SOME_RUB = received("usdt_received", amount_usdt="40"), received("rub_received", amount_rub="4000.00")
USDT, RUB = received("usdt_received"), received("rub_received")
FAILS, EXPIRES, NOW, HOLD = received("failed"), told(("wait", OVER)), told(("wait", 0)), told(("wait", 300))

STORIES: Mapping[tuple[Direction, ExchangeStatus, ExchangeStatus], Callable[[Client], Awaitable[None]]] = {
    (D.USDT_TO_RUB, S.PENDING, S.AWAITING_USDT): SELLS,
    (D.USDT_TO_RUB, S.PENDING, S.CANCELLED): then(SELLS_LATER, CANCELS),
    (D.USDT_TO_RUB, S.PENDING, S.FAILED): then(SELLS_LATER, FAILS),
    (D.USDT_TO_RUB, S.AWAITING_USDT, S.USDT_RECEIVED): then(SELLS, USDT),
    (D.USDT_TO_RUB, S.AWAITING_USDT, S.PARTIAL): then(SELLS, SOME_USDT),
    (D.USDT_TO_RUB, S.AWAITING_USDT, S.EXPIRED): then(SELLS, EXPIRES),
    (D.USDT_TO_RUB, S.AWAITING_USDT, S.CANCELLED): then(SELLS, CANCELS),
    (D.USDT_TO_RUB, S.AWAITING_USDT, S.FAILED): then(SELLS, FAILS),
    (D.USDT_TO_RUB, S.PARTIAL, S.USDT_RECEIVED): then(SELLS, SOME_USDT, USDT),
    (D.USDT_TO_RUB, S.PARTIAL, S.EXPIRED): then(SELLS, SOME_USDT, EXPIRES),
    (D.USDT_TO_RUB, S.PARTIAL, S.FAILED): then(SELLS, SOME_USDT, FAILS),
    (D.USDT_TO_RUB, S.USDT_RECEIVED, S.RUB_SENDING): then(SELLS, USDT, NOW),
    (D.USDT_TO_RUB, S.USDT_RECEIVED, S.FAILED): then(SELLS, USDT, FAILS),
    (D.USDT_TO_RUB, S.RUB_SENDING, S.COMPLETED): then(SELLS, USDT, NOW, received("completed")),
    (D.USDT_TO_RUB, S.RUB_SENDING, S.FAILED): then(SELLS, USDT, NOW, FAILS),
    (D.RUB_TO_USDT, S.PENDING, S.AWAITING_RUB): BUYS,
    (D.RUB_TO_USDT, S.PENDING, S.CANCELLED): then(BUYS_LATER, CANCELS),
    (D.RUB_TO_USDT, S.PENDING, S.FAILED): then(BUYS_LATER, FAILS),
    (D.RUB_TO_USDT, S.AWAITING_RUB, S.RUB_RECEIVED): then(BUYS, RUB),
    (D.RUB_TO_USDT, S.AWAITING_RUB, S.PARTIAL): then(BUYS, SOME_RUB),
    (D.RUB_TO_USDT, S.AWAITING_RUB, S.EXPIRED): then(BUYS, EXPIRES),
    (D.RUB_TO_USDT, S.AWAITING_RUB, S.CANCELLED): then(BUYS, received("cancelled")),
    (D.RUB_TO_USDT, S.AWAITING_RUB, S.FAILED): then(BUYS, FAILS),
    (D.RUB_TO_USDT, S.PARTIAL, S.RUB_RECEIVED): then(BUYS, SOME_RUB, RUB),
    (D.RUB_TO_USDT, S.PARTIAL, S.EXPIRED): then(BUYS, SOME_RUB, EXPIRES),
    (D.RUB_TO_USDT, S.PARTIAL, S.FAILED): then(BUYS, SOME_RUB, FAILS),
    (D.RUB_TO_USDT, S.RUB_RECEIVED, S.PARTIAL): then(BUYS, RUB, received("rub_taken_back")),
    (D.RUB_TO_USDT, S.RUB_RECEIVED, S.USDT_SENDING): then(BUYS, RUB, HOLD),
    (D.RUB_TO_USDT, S.RUB_RECEIVED, S.FAILED): then(BUYS, RUB, FAILS),
    (D.RUB_TO_USDT, S.USDT_SENDING, S.COMPLETED): then(BUYS, RUB, HOLD, received("completed")),
    (D.RUB_TO_USDT, S.USDT_SENDING, S.FAILED): then(BUYS, RUB, HOLD, FAILS),
}

ROWS = [(direction, row.before, row.after) for direction, moves in EXCHANGE_MOVES.items() for row in moves.rows]


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with open_exchange_app() as app:
        yield Client(app)


@pytest.mark.parametrize("row", ROWS, ids="-".join)
async def test_an_exchange(client: Client, row: tuple[Direction, ExchangeStatus, ExchangeStatus]) -> None:
    assert row in STORIES, "tell in STORIES how this move happens"
    direction, before, after = row
    await STORIES[row](client)
    assert client.seen[-2:] == [before, after]
    shown = await client.app.shown(client.id)
    assert shown["direction"] == direction
    is_over = after in FINAL
    assert (shown["completed_at"] is not None, shown["amount_usdt_received"] is not None) == (is_over, is_over)
    # At final statuses only (docs/exchanges.md "How it ends").
    events = await client.app.app.events(client.id)
    assert [(each["previous_status"], each["status"]) for each in events] == ([(before, after)] if is_over else [])
    for event in events:
        for name in ("amount_usdt", "amount_usdt_received", "amount_rub", "rate", "crypto_deposit_address", "network"):
            assert event[name] == shown[name], name


@pytest.mark.parametrize(
    ("amount", "status"), [({"amount_usdt": "100"}, "awaiting_usdt"), ({"amount_rub": "10000.00"}, "awaiting_rub")]
)
async def test_pending_exchange_goes_on_by_itself(client: Client, amount: dict[str, str], status: str) -> None:
    await client.begins(**amount, pending=True)
    await client.wait(9)
    assert client.seen == ["pending"]
    await client.wait(2)
    assert client.seen == ["pending", status]


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        ({}, (400, "VALIDATION_ERROR")),
        ({"amount_rub": "10000.00", "amount_usdt": "100"}, (400, "VALIDATION_ERROR")),
        ({"amount_rub": "1e3"}, (400, "VALIDATION_ERROR")),
        ({"amount_rub": "0.00"}, (400, "INVALID_AMOUNT")),
        ({"amount_rub": "999.99"}, (400, "AMOUNT_TOO_LOW")),
        ({"amount_rub": "10000.00", "address": "T"}, (400, "VALIDATION_ERROR")),
        ({"amount_usdt": "100", "client_bank_id": "x"}, (400, "VALIDATION_ERROR")),
        ({"amount_rub": "10000.00", "client_phone": "+79990000001"}, (422, "CLIENT_NOT_REGISTERED")),
        ({"amount_rub": "10000.00", "client_phone": "1"}, (422, "VALIDATION_ERROR")),
    ],
)
async def test_impossible_exchange_is_refused_as_usual(
    client: Client, body: dict[str, str], refusal: tuple[int, str]
) -> None:
    response = await client.app.action("/sandbox/exchanges", {"client_phone": PHONE, **body})
    assert (response.status_code, response.json()["error"]["code"]) == refusal
    assert (await client.app.app.get("/exchanges")).json()["data"] == []


def test_every_story_is_of_an_existing_row() -> None:
    assert set(STORIES) == set(ROWS)

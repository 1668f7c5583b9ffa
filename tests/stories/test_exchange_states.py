"""One story for each row of the state table of exchanges, in both directions: by the public interface and the sandbox;
by the operator's use cases where only an operator can; and three by a provider that is told to misbehave, because no
call of the sandbox holds an exchange before its address, or a wallet (SPEC "Exchange statuses"; DECISIONS 6, 8).

A row without a story fails.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import pytest

from cambist.adapters.bank.script import Ending as BankEnding
from cambist.adapters.bank.script import Twist as BankTwist
from cambist.adapters.deposits.script import Twist as DepositTwist
from cambist.adapters.payouts.script import Ending as SenderEnding
from cambist.adapters.payouts.script import Twist as SenderTwist
from cambist.core.domain.exchanges import EXCHANGE_MOVES, FINAL, Direction, ExchangeStatus
from cambist.core.usecases.exchanges import cancel_any_exchange
from tests.exchange_house import ExchangeHouse, open_exchange_house

S, D = ExchangeStatus, Direction
OVER = 16 * 60
"""Seconds until an exchange that nobody paid is over."""


class Client:
    """Who watches one exchange: the statuses that the interface showed, in their order."""

    def __init__(self, house: ExchangeHouse) -> None:
        self.house = house
        self.id = ""
        self.seen: list[str] = []

    async def look(self) -> None:
        status = (await self.house.shown(self.id))["status"]
        if self.seen[-1:] != [status]:
            self.seen.append(status)

    async def sells(self) -> None:
        """POST /exchanges."""
        self.id = (await self.house.created())["id"]
        self.seen.append("pending")
        await self.look()

    async def buys(self) -> None:
        """What an operator begins on a merchant's request."""
        self.id = (await self.house.bought()).id
        self.seen.append("pending")
        await self.look()

    async def play(self, outcome: str, **more: str) -> None:
        response = await self.house.simulate(self.id, outcome, **more)
        assert response.status_code == 200, response.text
        await self.look()

    async def cancel(self) -> None:
        assert (await self.house.cancel(self.id)).status_code == 200
        await self.look()

    async def called_off(self) -> None:
        await cancel_any_exchange(self.house.ports, self.id)
        await self.look()

    async def wait(self, seconds: float) -> None:
        await self.house.house.work(seconds)
        await self.look()

    async def waits_for_an_address(self, act: str) -> None:
        """It is cancelled, or fails, while the one who began it waits for the deposit address."""
        self.house.watcher.script.address.append(DepositTwist(silence=30))
        asking = asyncio.create_task(self.house.created())
        listed: list[Any] = []
        while not listed:
            await asyncio.sleep(0)
            listed = (await self.house.house.get("/exchanges?status=pending")).json()["data"]
        self.id = listed[0]["id"]
        await self.look()
        await (self.cancel() if act == "cancel" else self.play(act))
        await self.house.house.clock.advance(30)
        assert (await asking)["status"] == self.seen[-1]

    async def waits_for_an_invoice(self, ending: BankEnding) -> None:
        self.house.house.script.create.append(BankTwist(ending=ending))
        await self.buys()


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


async def wallet_refuses(client: Client) -> None:
    client.house.sender.script.sign.extend([SenderTwist(ending=SenderEnding.UNAVAILABLE)])
    client.house.sender.script.sign.extend([SenderTwist(ending=SenderEnding.REFUSED)])
    await client.wait(300)
    await client.wait(60)


def then(*stories: Callable[[Client], Awaitable[None]]) -> Callable[[Client], Awaitable[None]]:
    async def story(client: Client) -> None:
        for each in stories:
            await each(client)

    return story


SELLS, BUYS = told(("sells",)), told(("buys",))
SOME_USDT, SOME_RUB = received("usdt_received", amount_usdt="40"), received("rub_received", amount_rub="4000.00")
USDT, RUB = received("usdt_received"), received("rub_received")
FAILS, EXPIRES, NOW, HOLD = received("failed"), told(("wait", OVER)), told(("wait", 0)), told(("wait", 300))

STORIES: Mapping[tuple[Direction, ExchangeStatus, ExchangeStatus], Callable[[Client], Awaitable[None]]] = {
    (D.USDT_TO_RUB, S.PENDING, S.AWAITING_USDT): SELLS,
    (D.USDT_TO_RUB, S.PENDING, S.CANCELLED): told(("waits_for_an_address", "cancel")),
    (D.USDT_TO_RUB, S.PENDING, S.FAILED): told(("waits_for_an_address", "failed")),
    (D.USDT_TO_RUB, S.AWAITING_USDT, S.USDT_RECEIVED): then(SELLS, USDT),
    (D.USDT_TO_RUB, S.AWAITING_USDT, S.PARTIAL): then(SELLS, SOME_USDT),
    (D.USDT_TO_RUB, S.AWAITING_USDT, S.EXPIRED): then(SELLS, EXPIRES),
    (D.USDT_TO_RUB, S.AWAITING_USDT, S.CANCELLED): told(("sells",), ("cancel",)),
    (D.USDT_TO_RUB, S.AWAITING_USDT, S.FAILED): then(SELLS, FAILS),
    (D.USDT_TO_RUB, S.PARTIAL, S.USDT_RECEIVED): then(SELLS, SOME_USDT, USDT),
    (D.USDT_TO_RUB, S.PARTIAL, S.EXPIRED): then(SELLS, SOME_USDT, EXPIRES),
    (D.USDT_TO_RUB, S.PARTIAL, S.FAILED): then(SELLS, SOME_USDT, FAILS),
    (D.USDT_TO_RUB, S.USDT_RECEIVED, S.RUB_SENDING): then(SELLS, USDT, NOW),
    (D.USDT_TO_RUB, S.USDT_RECEIVED, S.FAILED): then(SELLS, USDT, FAILS),
    (D.USDT_TO_RUB, S.RUB_SENDING, S.COMPLETED): then(SELLS, USDT, NOW, received("completed")),
    (D.USDT_TO_RUB, S.RUB_SENDING, S.FAILED): then(SELLS, USDT, NOW, FAILS),
    (D.RUB_TO_USDT, S.PENDING, S.AWAITING_RUB): BUYS,
    (D.RUB_TO_USDT, S.PENDING, S.CANCELLED): told(("waits_for_an_invoice", BankEnding.UNAVAILABLE), ("called_off",)),
    (D.RUB_TO_USDT, S.PENDING, S.FAILED): told(("waits_for_an_invoice", BankEnding.REFUSED)),
    (D.RUB_TO_USDT, S.AWAITING_RUB, S.RUB_RECEIVED): then(BUYS, RUB),
    (D.RUB_TO_USDT, S.AWAITING_RUB, S.PARTIAL): then(BUYS, SOME_RUB),
    (D.RUB_TO_USDT, S.AWAITING_RUB, S.EXPIRED): then(BUYS, EXPIRES),
    (D.RUB_TO_USDT, S.AWAITING_RUB, S.CANCELLED): told(("buys",), ("called_off",)),
    (D.RUB_TO_USDT, S.AWAITING_RUB, S.FAILED): then(BUYS, FAILS),
    (D.RUB_TO_USDT, S.PARTIAL, S.RUB_RECEIVED): then(BUYS, SOME_RUB, RUB),
    (D.RUB_TO_USDT, S.PARTIAL, S.EXPIRED): then(BUYS, SOME_RUB, EXPIRES),
    (D.RUB_TO_USDT, S.PARTIAL, S.FAILED): then(BUYS, SOME_RUB, FAILS),
    (D.RUB_TO_USDT, S.RUB_RECEIVED, S.PARTIAL): then(BUYS, RUB, received("rub_taken_back")),
    (D.RUB_TO_USDT, S.RUB_RECEIVED, S.USDT_SENDING): then(BUYS, RUB, HOLD),
    (D.RUB_TO_USDT, S.RUB_RECEIVED, S.FAILED): then(BUYS, RUB, FAILS),
    (D.RUB_TO_USDT, S.USDT_SENDING, S.COMPLETED): then(BUYS, RUB, HOLD, received("completed")),
    (D.RUB_TO_USDT, S.USDT_SENDING, S.FAILED): then(BUYS, RUB, wallet_refuses),
}

ROWS = [(direction, row.before, row.after) for direction, moves in EXCHANGE_MOVES.items() for row in moves.rows]


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with open_exchange_house() as house:
        yield Client(house)


@pytest.mark.parametrize("row", ROWS, ids="-".join)
async def test_an_exchange(client: Client, row: tuple[Direction, ExchangeStatus, ExchangeStatus]) -> None:
    assert row in STORIES, "tell in STORIES how this move happens"
    direction, before, after = row
    await STORIES[row](client)
    assert client.seen[-2:] == [before, after]
    shown = await client.house.shown(client.id)
    assert shown["direction"] == direction
    is_over = after in FINAL
    assert (shown["completed_at"] is not None, shown["amount_usdt_received"] is not None) == (is_over, is_over)
    # SPEC "Events": at final statuses only.
    events = await client.house.house.events(client.id)
    assert [(each["previous_status"], each["status"]) for each in events] == ([(before, after)] if is_over else [])
    for event in events:
        for name in ("amount_usdt", "amount_usdt_received", "amount_rub", "rate", "crypto_deposit_address", "network"):
            assert event[name] == shown[name], name


def test_no_story_tells_of_a_row_that_is_gone() -> None:
    assert set(STORIES) == set(ROWS)

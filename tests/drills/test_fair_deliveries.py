"""Hanging receivers beside healthy ones, at a real `cambist serve`. Nearly all merchants have addresses of their own;
ten hanging ones share one host. `nox -s drills`: 990 of 1000 hang."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest

from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus
from cambist.core.usecases.accounts.accounts import NewAccount, create_account, set_settings
from tests.drills.receivers import Receivers
from tests.invariants import everything
from tests.patience import FULL, HANGS, drill_of
from tests.redis_servers import own_redis
from tests.servers import own_postgres
from tests.stories.merchant import Merchant
from tests.stories.processes import WEBHOOK_SECRET, WORKS, Installation, Process, eventually, installation

HANGING, WELL = (990, 10) if FULL else (50, 10)
SECONDS = 60 if FULL else 3
"""Seconds for which healthy merchants' payments are made beside hanging receivers."""
PAUSE = 1.25
"""Seconds between two payments of one merchant: below the limits of a key."""
AT_ONCE = 16
"""Requests to the service under way at once, to fill it up."""
GOAL = 1.0
"""Seconds within which 99 of 100 healthy webhooks arrive, where the machine has nothing else to do."""


@dataclass
class Market:
    """Merchants with created and paid payments, and the time of each confirmation."""

    harness: Installation
    receivers: Receivers
    base: str
    client: aiohttp.ClientSession
    accounts: list[NewAccount]
    paid: dict[int, dict[str, float]] = field(default_factory=dict)
    """By merchant: payments, and when the answer came that says `paid`."""
    workers: list[Process] = field(default_factory=list)

    async def employ(self) -> None:
        """Start one more worker."""
        worker = self.harness.start("worker")
        await asyncio.to_thread(worker.said, WORKS)
        self.workers.append(worker)

    async def pay(self, number: int) -> None:
        """Create and pay one payment of a merchant."""
        address = f"203.0.{number // 250}.{number % 250}"
        edge = Merchant(self.client, self.base, self.accounts[number].test, {"X-Forwarded-For": address})
        payment = await edge.paid()
        self.paid.setdefault(number, {})[payment["id"]] = time.monotonic()

    async def pay_all(self, numbers: list[int], times: int) -> None:
        """Create and pay so many payments of each merchant."""
        bound = asyncio.Semaphore(AT_ONCE)

        async def one(number: int) -> None:
            async with bound:
                await self.pay(number)

        for _ in range(times):
            await asyncio.gather(*(one(number) for number in numbers))

    async def pay_for(self, numbers: list[int], seconds: float, pause: float) -> None:
        """Payments of each, one after the other."""

        async def one(number: int) -> None:
            ends = time.monotonic() + seconds
            while time.monotonic() < ends:
                await self.pay(number)
                await asyncio.sleep(pause)

        await asyncio.gather(*(one(number) for number in numbers))

    def lags(self, numbers: list[int]) -> list[float]:
        """Return the seconds from the confirmation to the webhook's arrival, in rising order."""
        told = self.receivers.arrived
        return sorted(
            max(told[str(number)][payment] - at, 0.0)
            for number in numbers
            for payment, at in self.paid[number].items()
            if payment in told[str(number)]
        )

    async def all_told(self, numbers: list[int]) -> bool:
        """Whether the receivers of these got a webhook about each of their payments."""
        return len(self.lags(numbers)) == sum(len(self.paid[number]) for number in numbers)


@asynccontextmanager
async def market(
    folder: Path, count: int, address: Callable[[Receivers, int], str], *, workers: int = 0
) -> AsyncIterator[Market]:
    """`cambist serve` on SQLite; or, with workers of their own, `cambist api` and these on Postgres and Redis."""
    async with AsyncExitStack() as stack:
        settings = {"trusted_proxies": "127.0.0.0/8"}
        if workers:
            settings["database_url"] = stack.enter_context(own_postgres()).url
            settings["redis_url"] = stack.enter_context(own_redis()).url
            settings["vault_key"], settings["vault_pepper"] = secrets.token_hex(32), secrets.token_hex(32)
        harness = stack.enter_context(installation(folder, **settings))
        await harness.migrate()
        receivers = await stack.enter_async_context(Receivers())
        accounts = []
        async with harness.app() as ports:
            for number in range(count):
                account = await create_account(ports, f"Merchant {number}")
                wish = {"webhook_url": address(receivers, number), "webhook_secret": WEBHOOK_SECRET}
                await set_settings(ports, account.account_id, wish)
                accounts.append(account)
        service = harness.start_api() if workers else harness.start_service()
        base = await asyncio.to_thread(service.ready)
        timeout = aiohttp.ClientTimeout(total=HANGS)
        client = await stack.enter_async_context(
            aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0))
        )
        trade = Market(harness, receivers, base, client, accounts)
        for _ in range(workers):
            await trade.employ()
        yield trade
        for process in harness.started:
            assert "Traceback" not in process.err, process.err


def figures(lags: list[float]) -> str:
    """The quantiles of some durations."""
    if not lags:
        return "none"
    named = [(name, lags[min(int(len(lags) * share), len(lags) - 1)]) for name, share in QUANTILES]
    return ", ".join(f"{name} {value:.3f}" for name, value in named) + f", longest {lags[-1]:.3f} s"


QUANTILES = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))


async def beside_those_that_hang(
    trade: Market,
    hanging: list[int],
    well: list[int],
    *,
    events: int,
    what: str,
    meanwhile: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Fill the service with webhooks that hang; all of the others' webhooks arrive meanwhile, and so they do when
    something happens in the middle."""
    trade.receivers.hangs = {str(number) for number in hanging}
    began = time.monotonic()
    filling = asyncio.create_task(trade.pay_all(hanging, events))
    if meanwhile is not None:
        await trade.pay_for(well, SECONDS, PAUSE)
        await meanwhile()
    await trade.pay_for(well, SECONDS, PAUSE)
    await filling
    with suppress(TimeoutError):
        await eventually(lambda: trade.all_told(well))
    lags = trade.lags(well)
    due = sum(len(trade.paid[number]) for number in well)
    webhooks = sum(trade.receivers.webhooks[str(number)] for number in well)
    print(
        f"{what}: {len(hanging)} of {len(hanging) + len(well)} hang, {events} events each; "
        f"{len(lags)} of {due} healthy letters arrived, {webhooks - due} twice; {figures(lags)}; "
        f"{trade.receivers.most_open} connections at most; {time.monotonic() - began:.0f} s"
    )
    assert len(lags) == due
    assert webhooks == due or meanwhile is not None
    if FULL and meanwhile is None:
        assert lags[int(len(lags) * 0.99)] <= GOAL, figures(lags)


async def nothing_is_lost(trade: Market, hanging: list[int], well: list[int]) -> None:
    """Check that each unanswered webhook has a time for its next attempt. At full length, wait for these once all
    receivers are back."""
    trade.receivers.hangs = set()
    due = sum(len(trade.paid[number]) for number in hanging + well)
    async with trade.harness.app() as ports:
        deliveries = await everything(ports, Delivery)
        assert len(deliveries) == due
        assert {each.status for each in deliveries} <= {DeliveryStatus.DELIVERED, DeliveryStatus.PENDING}
        assert all(each.due is not None for each in deliveries if each.status is DeliveryStatus.PENDING)

        async def delivered() -> bool:
            return all(each.status is DeliveryStatus.DELIVERED for each in await everything(ports, Delivery))

        if FULL:
            began = time.monotonic()
            await eventually(delivered, within=600, every=2)
            print(f"the receivers are back: all {due} delivered after {time.monotonic() - began:.0f} s")


@pytest.mark.drill
@pytest.mark.timeout(1200)
async def test_nearly_all_receivers_hang_and_the_others_are_told_in_time(tmp_path: Path) -> None:
    hanging, well = list(range(HANGING)), list(range(HANGING, HANGING + WELL))
    async with market(tmp_path, HANGING + WELL, Receivers.own) as trade:
        await beside_those_that_hang(trade, hanging, well, events=2 if FULL else 8, what="addresses of their own")
        await nothing_is_lost(trade, hanging, well)


@pytest.mark.drill
@pytest.mark.timeout(1200)
async def test_merchants_on_a_host_that_others_let_hang_are_told_in_time(tmp_path: Path) -> None:
    """At most 64 connections are open to it."""
    others = 90 if FULL else 3
    hanging, well = list(range(10)), list(range(10, 10 + others))
    async with market(tmp_path, 10 + others, Receivers.shared) as trade:
        await beside_those_that_hang(trade, hanging, well, events=12, what="one host and port")
        await nothing_is_lost(trade, hanging, well)
        assert trade.receivers.most_open <= 64


@pytest.mark.drill
@drill_of("tests/usecases/webhooks/test_fair_deliveries.py")
@pytest.mark.timeout(1200)
async def test_a_worker_that_takes_a_killed_ones_place_knows_who_hangs(tmp_path: Path) -> None:
    """Two workers on Postgres, while most receivers hang; one is killed, and a new one comes."""
    share = 290 if FULL else 40
    hanging, well = list(range(share)), list(range(share, share + WELL))
    async with market(tmp_path, share + WELL, Receivers.own, workers=2) as trade:

        async def replaced() -> None:
            trade.workers[0].kill()
            await trade.employ()

        what = "two workers, one killed and replaced"
        await beside_those_that_hang(trade, hanging, well, events=4, what=what, meanwhile=replaced)
        await nothing_is_lost(trade, hanging, well)

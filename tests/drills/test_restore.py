"""An older state is restored while the world has gone on: nothing is sent twice, and after `cambist resume` all ends
well.

The bank and the wallet are real processes' adapters with a file of their own. Two backups: b1 of before a refund and a
payout, b2 of when the payout was recorded and not signed yet. A third one is of before the payouts of two merchants who
share a wallet, by a batch that an operator asked for: only an operator can say whose each was.
"""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from cambist.core.domain.refunds.refunds import Refund
from cambist.core.domain.settlement.withdrawals import Withdrawal
from tests.drills.outside import World, installed
from tests.patience import drill_of
from tests.payout_kit import WALLET
from tests.servers import client_programs, own_postgres
from tests.stories.merchant import Merchant, merchant
from tests.stories.processes import Installation, Service, eventually, installation

KINDS = ("sqlite", "postgres")
PAYMENTS = 4
KEY = str(uuid4())


class Story:
    """One merchant, its service and the simulated world."""

    def __init__(self, place: Installation, world: World) -> None:
        self.place = place
        self.world = world
        self.account: dict[str, Any] = json.loads(place.call("account", "create", "Tea", "--json").out)
        wish = (f"payout_wallet={WALLET}", "refunds=true", "refund_approval=auto")
        assert place.call("account", "set", self.account["account_id"], *wish).status == 0
        self.service: Service | None = None
        self.base = ""
        self.kills = 0

    def start(self) -> None:
        self.service, self.base = self.place.serve()

    def kill(self) -> None:
        assert self.service is not None
        self.service.kill()
        self.kills += 1

    async def with_shop(self, work: Callable[[Merchant], Awaitable[Any]]) -> Any:
        """Do the work as the merchant, with live keys."""
        pair = KeyPair(self.account)
        async with merchant(self.base, pair) as shop:  # type: ignore[arg-type]  # it has what is asked of it
            return await work(shop)

    async def health(self) -> list[str]:
        async with aiohttp.ClientSession() as client, client.get(f"{self.base}/health") as answer:
            said = await answer.json()
        named: list[str] = said.get("degraded", [])
        return named

    async def ends(self) -> None:
        """Check that every payout and every refund in the database has succeeded."""

        async def look() -> bool:
            async with self.place.app() as ports, ports.storage.unit() as unit:
                payouts, refunds = await unit[Withdrawal].find(), await unit[Refund].find()
            ended = {each.status.value for each in payouts} | {each.status.value for each in refunds}
            return bool(payouts) and ended == {"completed"}

        await eventually(look, every=0.3)

    def settle(self) -> None:
        done = self.place.call("settle", "--mode", "live", "--cutoff", "now")
        assert done.status == 0, done.err

    def restore(self, backup: Path) -> None:
        done = self.place.call("restore", str(backup), "--replace", "--yes")
        assert done.status == 0, done.err

    def resume(self, *more: str) -> dict[str, Any]:
        done = self.place.call("resume", "--yes", "--json", *more)
        assert done.status == 0, done.err
        document: dict[str, Any] = done.document
        return document

    def second_account(self) -> dict[str, Any]:
        """Create another merchant with the same wallet."""
        made: dict[str, Any] = json.loads(self.place.call("account", "create", "Coffee", "--json").out)
        assert self.place.call("account", "set", made["account_id"], f"payout_wallet={WALLET}").status == 0
        return made


class KeyPair:
    """The live keys that `cambist account create` printed."""

    def __init__(self, account: dict[str, Any]) -> None:
        self.api_key: str = account["live"]["api_key"]
        self.api_secret: str = account["live"]["api_secret"]


async def take_payments(shop: Merchant, count: int = PAYMENTS) -> list[str]:
    made = [await shop.created(amount_rub="1000.00") for _ in range(count)]

    async def paid() -> bool:
        found = [await shop.ask("GET", f"/payments/{payment['id']}") for payment in made]
        return all(each.json["status"] == "paid" for each in found)

    await eventually(paid, every=1.0)
    return [payment["id"] for payment in made]


@contextmanager
def database_of(kind: str) -> Iterator[dict[str, str]]:
    """The settings of a database, and the way to the programs that dump it."""
    if kind == "sqlite":
        yield {}
        return
    with own_postgres() as server:
        yield {"database_url": server.url, "path": f"{client_programs(server.url)}{os.pathsep}{os.environ['PATH']}"}


@asynccontextmanager
async def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> AsyncIterator[Story]:
    """A service that runs, with a bank and a wallet outside."""
    outside = tmp_path / "outside"
    outside.mkdir()
    environ = installed(outside)
    monkeypatch.syspath_prepend(str(outside))
    monkeypatch.setenv("OUTSIDE", environ["OUTSIDE"])
    with ExitStack() as stack:
        where = await asyncio.to_thread(stack.enter_context, database_of(kind))
        environ["PATH"] = where.pop("path", os.environ["PATH"])
        wired = {"banks": "outside", "payouts": "outside", "rate_sources": "simulator", **where}
        place = stack.enter_context(installation(tmp_path, **wired))
        place.environ |= environ
        await place.migrate()
        story = Story(place, World(Path(environ["OUTSIDE"])))
        story.start()
        yield story


@pytest.mark.drill
@drill_of("tests/usecases/installation/test_restored.py")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_restored_backup_sends_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    async with begun(tmp_path, monkeypatch, kind) as story:
        place, world = story.place, story.world
        payments = await story.with_shop(take_payments)
        assert place.call("backup", str(tmp_path / "b1")).status == 0

        async def give_back(shop: Merchant) -> int:
            body = {"payment_id": payments[0], "amount_rub": "100.00"}
            return (await shop.ask("POST", "/refunds", key=KEY, body=body)).status

        assert await story.with_shop(give_back) == 201
        await eventually(lambda: there_are(world.refunds, 1))
        world.ask("INSERT INTO away VALUES ('wallet')")
        story.settle()
        assert place.call("backup", str(tmp_path / "b2")).status == 0
        world.ask("DELETE FROM away")
        [pending] = place.call("payout", "list", "--json").document["data"]
        place.call("payout", "retry", pending["withdrawal_id"])
        await eventually(lambda: there_are(world.transfers, 1))
        story.kill()
        refunds, transfers = world.refunds(), world.transfers()

        # b2: the payout is recorded there, and its signature is not.
        story.restore(tmp_path / "b2")
        story.start()
        assert await story.health() == ["held"]
        await story.with_shop(lambda shop: shop.created())
        began = time.monotonic()
        # The wallet lists it, and it is adopted: no money is sent, so this needs no resume.
        await story.ends()
        recovered = [time.monotonic() - began]
        assert (world.refunds(), world.transfers()) == (refunds, transfers), "held"
        assert story.resume()["lacking"] == []
        assert await story.health() == []
        assert (world.refunds(), world.transfers()) == (refunds, transfers)
        story.kill()

        # b1: it knows neither of the refund nor of the payout.
        story.restore(tmp_path / "b1")
        story.start()
        assert await story.with_shop(give_back) == 201
        assert (world.refunds(), world.transfers()) == (refunds, transfers), "held"
        began = time.monotonic()
        told = story.resume()
        assert [(each["kind"], each["operation"]) for each in told["lacking"]] == [("transfer", transfers[0][1])]
        await story.ends()
        recovered.append(time.monotonic() - began)
        story.settle()
        await story.ends()
        assert (world.refunds(), world.transfers()) == (refunds, transfers), "nothing is owed any more"
        assert place.call("ledger", "verify").status == 0
        assert await story.health() == []
        story.kill()
    print(
        f"{kind}: {PAYMENTS} payments, 1 refund, 1 payout; {story.kills} kills, 2 restores; lost 0, doubled 0; "
        f"resumed and ended within {max(recovered):.1f} s"
    )


@pytest.mark.drill
@drill_of("tests/stories/test_restored_money.py")
@pytest.mark.parametrize("kind", KINDS)
async def test_two_merchants_with_one_wallet_are_paid_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    async with begun(tmp_path, monkeypatch, kind) as story:
        place, world = story.place, story.world
        first, second = story.account, story.second_account()
        await story.with_shop(lambda shop: take_payments(shop, 1))
        story.account = second
        await story.with_shop(lambda shop: take_payments(shop, 2))
        assert place.call("backup", str(tmp_path / "b1")).status == 0
        story.settle()
        await eventually(lambda: there_are(world.transfers, 2))
        story.kill()
        transfers = world.transfers()
        ours, theirs = (operation for _, operation, _ in sorted(transfers, key=lambda each: each[2]))

        story.restore(tmp_path / "b1")
        story.start()
        refused = place.call("settle", "--mode", "live", "--cutoff", "now")
        assert (refused.status, "cambist resume" in refused.err) == (1, True)
        refused = place.call("resume", "--yes", "--json")
        assert refused.status == 1
        assert sorted(refused.document["error"]["details"]["open"]) == sorted((ours, theirs))
        assert await story.health() == ["held"]
        half = place.call("resume", "--yes", "--assign", f"{ours}={first['account_id']}")
        assert half.status == 1, "the other one is open"
        story.resume("--assign", f"{ours}={first['account_id']}", "--assign", f"{theirs}={second['account_id']}")
        story.settle()
        await story.ends()
        assert world.transfers() == transfers, "nothing is owed any more"
        await story.with_shop(lambda shop: take_payments(shop, 1))
        story.settle()
        await eventually(lambda: there_are(world.transfers, 3))
        amounts = sorted(units for _, _, units in world.transfers())
        # 1000 RUB give 10.486486 USDT: remainders below a step of the network may add up to one.
        assert [round(units / amounts[0], 4) for units in amounts] == [1, 1, 2]
        assert place.call("ledger", "verify").status == 0
        story.kill()
    print(f"{kind}: 4 payments of 2 merchants with one wallet, 2 kills, 1 restore; lost 0, doubled 0")


async def there_are(what: Callable[[], list[Any]], count: int) -> bool:
    return len(what()) == count

"""An operator's work on a running installation: a second process, a backup and its restore, a rolling restart."""

import asyncio
import signal
import stat
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import msgspec

from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus
from cambist.core.usecases.accounts.accounts import KeyPair
from tests.patience import HANGS
from tests.receivers import Receiver
from tests.stories.merchant import Answer, Merchant, merchant
from tests.stories.processes import WORKS, Installation, Process, Service, eventually, installation
from tests.stories.test_many_processes import Fleet, fleet, redis_of_ours
from tests.stories.test_serve import held_until, refused

__all__ = ["fleet", "redis_of_ours"]


class TestTwoServices:
    """A set-up that would count limits wrongly is refused with the reason."""

    async def test_a_second_one_is_refused_and_after_a_kill_the_next_starts_at_once(self, place: Installation) -> None:
        await place.migrate()
        place.environ["CAMBIST_SHUTDOWN_SECONDS"] = "0"
        first, _ = place.serve()
        second = await asyncio.to_thread(place.call, "serve")
        refused(second, "another process serves from this database (")
        assert ("CAMBIST_REDIS_URL for all of them" in second.err) or ("on SQLite one does" in second.err)
        assert not first.ended
        first.kill()
        place.serve()

    async def test_start_waits_for_a_draining_process(self, sqlite_location: Installation) -> None:
        """A restart that starts the next before the last one ended."""
        release = asyncio.Event()
        async with Receiver() as receiver:
            receiver.answer_with(held_until(release))
            account = await sqlite_location.account(receiver.url)
            first, base = sqlite_location.serve()
            async with merchant(base, account.test) as shop:
                await shop.paid()
            await receiver.arrived()
            first.signal(signal.SIGTERM)
            second = sqlite_location.start_service()
            await eventually(lambda: says(second, "waiting for it to stop"))
            assert (first.ended, second.out) == (False, "")
            release.set()
            assert await asyncio.to_thread(first.wait) == 0
            await asyncio.to_thread(second.ready)


async def says(process: Process, words: str) -> bool:
    return words in process.err


class TestBackup:
    async def test_backup_made_under_load_restores_to_a_working_service(
        self, sqlite_location: Installation, tmp_path: Path
    ) -> None:
        async with Receiver() as receiver:
            account = await sqlite_location.account(receiver.url)
            service, base = sqlite_location.serve()
            uploads = sqlite_location.settings.data_dir / "uploads"
            uploads.mkdir(mode=0o700)
            (uploads / ("a" * 64)).write_bytes(b"%PDF-1.7")
            (uploads / f"{'b' * 64}.1.part").write_bytes(b"half")
            target = tmp_path / "backup"
            async with merchant(base, account.test) as shop:
                before = [await shop.paid() for _ in range(5)]
                stop = asyncio.Event()

                async def load() -> int:
                    count = 0
                    while not stop.is_set() and count < 13:  # a key has 60 a minute
                        await shop.paid()
                        count += 1
                        await asyncio.sleep(0.2)
                    return count

                loading = [asyncio.create_task(load()) for _ in range(4)]
                made = await asyncio.to_thread(sqlite_location.call, "backup", str(target), "--json")
                stop.set()
                assert sum(await asyncio.gather(*loading)) > 0, "the service went on meanwhile"
            service.kill()
        assert made.status == 0, made.err
        assert made.document["sound"] is True
        assert made.document["uploads"] == 1
        assert made.document["ledger_entries"] >= 5
        assert made.document["vault_keys"] == [1]
        assert "1 uploaded files copied" in made.err, "without a terminal, the last state of the progress line"
        assert not (target / "vault.key").exists()
        assert sorted(each.name for each in target.iterdir()) == ["backup.json", "cambist.db", "uploads"]
        assert stat.S_IMODE((target / "cambist.db").stat().st_mode) == 0o600

        (tmp_path / "elsewhere").mkdir()
        with installation(tmp_path / "elsewhere", data_dir=str(target)) as restored:
            without = restored.call("ledger", "verify")
            assert (without.status, "vault.key is missing" in without.err) == (1, True), "no fresh keys beside old data"
            (target / "vault.key").write_bytes((sqlite_location.settings.data_dir / "vault.key").read_bytes())
            (target / "vault.key").chmod(0o600)
            verified = restored.call("ledger", "verify", "--json")
            assert (verified.status, verified.document["holds"]) == (0, True)
            async with Receiver() as receiver:
                assert restored.call("account", "set", account.account_id, f"webhook_url={receiver.url}").status == 0
                _, base = restored.serve()
                async with merchant(base, account.test) as shop:
                    for payment in before:
                        assert (await shop.ask("GET", f"/payments/{payment['id']}")).json["status"] == "paid"
                    new = await shop.paid()

                    async def has_told() -> bool:
                        return new["id"] in {msgspec.json.decode(each.body)["payment_id"] for each in receiver.requests}

                    await eventually(has_told)
            held = restored.call("doctor", "--json")
            assert held.status == 1
            assert [each["name"] for each in held.document["checks"] if each["level"] == "failed"] == ["hold"]
            assert restored.call("resume", "--yes").status == 0
            well = restored.call("doctor", "--full", "--json")
            assert (well.status, well.document["status"]) == (0, "warning"), well.out
            levels = {each["name"]: each["level"] for each in well.document["checks"]}
            assert {levels[name] for name in ("ledger", "vault", "schema", "processes", "jobs")} == {"ok"}

    def test_backup_never_overwrites_existing_files(self, sqlite_location: Installation, tmp_path: Path) -> None:
        (tmp_path / "taken").mkdir()
        outcome = sqlite_location.call("backup", str(tmp_path / "taken"))
        refused(outcome, "is there already")
        assert list((tmp_path / "taken").iterdir()) == []


class Customer:
    """A merchant's program together with a balancer: a request that no process accepted goes to another one, and a
    request without an answer is repeated with its key."""

    def __init__(self, client: aiohttp.ClientSession, bases: list[str], pair: KeyPair) -> None:
        self._client = client
        self._bases = bases
        self._pair = pair
        self.paid: list[str] = []

    async def buy_until(self, stop: asyncio.Event) -> None:
        """A payment a second: a key's limits are 60 a minute."""
        while not stop.is_set():
            await self.pay()
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), 1.05)

    async def pay(self) -> None:
        key = str(uuid4())
        created = await self._ask(lambda edge: edge.create(key))
        done = await self._ask(lambda edge: edge.simulate(created["id"], outcome="paid"))
        assert done["status"] == "paid"
        self.paid.append(created["id"])

    async def _ask(self, request: Callable[[Merchant], Awaitable[Answer]]) -> dict[str, Any]:
        async with asyncio.timeout(HANGS):
            while True:
                edge = Merchant(self._client, self._bases[len(self.paid) % len(self._bases)], self._pair, None)
                try:
                    answer = await request(edge)
                except aiohttp.ClientError:
                    await asyncio.sleep(0.01)
                    continue
                assert answer.status in (200, 201), answer.text
                document: dict[str, Any] = answer.json
                return document


async def test_a_rolling_restart_loses_nothing_and_sends_nothing_twice(fleet: Fleet) -> None:
    """Every process is replaced, one after the other, while merchants continue (docs/operations.md "Upgrades")."""
    workers = [*fleet.workers, fleet.place.start("worker")]
    await asyncio.to_thread(workers[1].said, WORKS)
    bases = [edge.base for edge in fleet.edges]
    accounts = await fleet.place.accounts(3, fleet.receiver.url)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=HANGS)) as client:
        customers = [Customer(client, bases, account.test) for account in accounts]
        stop = asyncio.Event()
        buying = [asyncio.create_task(customer.buy_until(stop)) for customer in customers]
        for number, old in enumerate(fleet.apis):
            new: Service = fleet.place.start_api()
            bases[number] = await asyncio.to_thread(new.ready)
            assert await asyncio.to_thread(old.terminate) == 0, old.err
            assert "Traceback" not in old.err
        for worker in workers:
            next_one = fleet.place.start("worker")
            await asyncio.to_thread(next_one.said, WORKS)
            assert await asyncio.to_thread(worker.terminate) == 0, worker.err
            assert "Traceback" not in worker.err
        stop.set()
        await asyncio.gather(*buying)
    paid = {payment_id for customer in customers for payment_id in customer.paid}
    await fleet.told(paid)
    webhooks = Counter(webhook.headers["x-webhook-id"] for webhook in fleet.receiver.requests)
    assert set(webhooks.values()) == {1}, "what drains enters what it sent"
    async with fleet.place.app() as ports, ports.storage.unit() as unit:
        assert {payment.id for payment in await unit[Payment].find()} == paid, "none was made twice"
    assert len(paid) >= len(customers)


async def test_stopping_worker_finishes_the_delivery_in_hand(fleet: Fleet) -> None:
    """SIGTERM drains a worker as it drains `serve` (docs/cli.md "Serving")."""
    release = asyncio.Event()
    fleet.receiver.answer_with(held_until(release), 200)
    await fleet.pay(1)
    await fleet.receiver.arrived(1)
    [worker] = fleet.workers
    worker.signal(signal.SIGTERM)
    await asyncio.sleep(0.2)
    assert not worker.ended
    release.set()
    assert await asyncio.to_thread(worker.wait) == 0, worker.err
    async with fleet.place.app() as ports, ports.storage.unit() as unit:
        [delivery] = await unit[Delivery].find(account_id=fleet.account.account_id)
    assert (delivery.status, delivery.attempts) == (DeliveryStatus.DELIVERED, 1)

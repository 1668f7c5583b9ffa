"""The disk is full (SQLite on a small one of its own) under load, again and again, once with a kill -9 and a start on
the full disk: creations are refused, every probe says so, and when there is room again all is well within a second and
nothing is lost.

`nox -s drills` fills it six times. Mounting the disk takes root.
"""

import asyncio
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import aiohttp
import pytest

from cambist.core.domain.accounts.idempotency import IdempotencyKey
from cambist.core.domain.payments.payments import Payment
from cambist.core.usecases.accounts.accounts import KeyPair
from tests.invariants import check_books, everything
from tests.patience import FULL, promised
from tests.stories.merchant import Merchant
from tests.stories.processes import Installation, eventually, installation

FILLINGS = 6 if FULL else 2
FULL_FOR = 8.0 if FULL else 2.0
MEGABYTES = 24
LEFT = 32 * 1024
"""Bytes: room for a health check's own row, and for no creation."""
SHOPS = 12
BACK_WITHIN = 2.0
"""Seconds: a second is promised, and the time of a client on a machine that has other work."""


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A disk of its own, in memory. Skips the test where nobody may mount one."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m,mode=0700", "cambist-drill", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(disk: Path) -> None:
    """Write until LEFT bytes more fit."""
    with (disk / "filler").open("ab", buffering=0) as filler:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    filler.write(b"x" * size)
            except OSError:
                continue
        filler.truncate(filler.tell() - LEFT)


@dataclass
class Load:
    """Merchants who create payments, one request at a time each, and repeat refused requests until they succeed."""

    base: str
    taken: dict[str, str] = field(default_factory=dict)
    """The payment's id from every answer, by key."""
    answers: Counter[int | str] = field(default_factory=Counter)
    stopping: bool = False

    @asynccontextmanager
    async def at_work(self, place: Installation) -> AsyncIterator[None]:
        shops = await place.accounts(SHOPS)
        async with asyncio.TaskGroup() as group:
            for number, shop in enumerate(shops):
                headers = {"X-Forwarded-For": f"203.0.113.{number}"}
                group.create_task(self._trade(shop.test, headers))
            try:
                yield
            finally:
                self.stopping = True

    async def grows_by(self, count: int) -> None:
        """Wait until so many more are taken. Raises TimeoutError."""
        wanted = len(self.taken) + count

        async def has_grown() -> bool:
            return len(self.taken) >= wanted

        await eventually(has_grown)

    async def _trade(self, pair: KeyPair, headers: dict[str, str]) -> None:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as client:
            while not self.stopping:
                key = str(uuid4())
                while not await self._is_taken(Merchant(client, self.base, pair, headers), key):
                    await asyncio.sleep(0.8)
                await asyncio.sleep(0.6)

    async def _is_taken(self, edge: Merchant, key: str) -> bool:
        try:
            answer = await edge.create(key)
        except (aiohttp.ClientError, OSError, TimeoutError) as lost:
            self.answers[type(lost).__name__] += 1
            return False
        self.answers[answer.status] += 1
        if answer.status not in (200, 201):
            # A slow refusal may have counted towards the merchant's limits.
            assert answer.status in (503, 429), answer
            return False
        assert self.taken.setdefault(key, answer.json["id"]) == answer.json["id"]
        return True


async def statuses(client: aiohttp.ClientSession, base: str) -> dict[str, int]:
    found = {}
    for path in ("/livez", "/readyz", "/health"):
        async with client.get(base + path) as answer:
            found[path] = answer.status
    return found


SICK = {"/livez": 200, "/readyz": 503, "/health": 503}
WELL = {"/livez": 200, "/readyz": 200, "/health": 200}


@pytest.mark.drill
@pytest.mark.timeout(600)
async def test_a_full_disk_is_told_by_every_probe_and_nothing_is_lost(tmp_path: Path) -> None:
    back: list[float] = []
    with (
        small_disk(tmp_path / "disk") as disk,
        installation(tmp_path, data_dir=str(disk / "data"), trusted_proxies="127.0.0.0/8") as place,
    ):
        service, base = place.serve()
        port = base.rpartition(":")[2]
        load = Load(base)
        async with aiohttp.ClientSession() as client, load.at_work(place):
            for filling in range(FILLINGS):
                await eventually(lambda: is_well(client, base))
                await load.grows_by(20)
                await asyncio.to_thread(fill, disk)
                refused = load.answers[503]
                if filling == FILLINGS - 1:
                    service.kill()
                    service, _ = await asyncio.to_thread(place.serve, "--port", port)
                    await asyncio.to_thread(fill, disk)  # fill the space that the start freed
                ends = time.monotonic() + FULL_FOR
                while time.monotonic() < ends:
                    assert await statuses(client, base) == SICK, filling
                    await asyncio.sleep(0.1)
                assert load.answers[503] > refused
                (disk / "filler").unlink()
                began = time.monotonic()
                await eventually(lambda: is_well(client, base))
                back.append(time.monotonic() - began)
            await load.grows_by(20)
        assert service.terminate() == 0
        async with place.app() as ports:
            payments = await everything(ports, Payment)
            keys = await everything(ports, IdempotencyKey)
            await check_books(ports)
        with closing(sqlite3.connect(disk / "data" / "cambist.db")) as database:
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    made = {payment.id for payment in payments}
    assert made >= set(load.taken.values()), "an acknowledged payment is lost"
    assert len(payments) == len(made) == len(keys)
    assert sorted(key.resource_id for key in keys) == sorted(made)
    assert max(back) < promised(BACK_WITHIN)
    told = f"{len(payments)} payments, {dict(load.answers)}"
    print(f"{FILLINGS} fillings; {told}; well again after {max(back):.2f} s at most")


async def is_well(client: aiohttp.ClientSession, base: str) -> bool:
    return await statuses(client, base) == WELL

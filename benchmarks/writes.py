"""Counts what one payment writes to Postgres, step by step: `python -m benchmarks.writes [COUNT]`.

The figures are index entries, row versions and bytes of WAL without page images, read from the write-ahead log itself.
They depend neither on the machine nor on its load. The payments run in test mode, from their creation until they are
settled, listed as movements and delivered to the merchant. It starts its own Postgres server and needs the extension
`pg_walinspect`, which is part of Debian's postgresql.
"""

import asyncio
import re
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from typing import Any, cast
from uuid import uuid4

import asyncpg
import httpx
import msgspec

from cambist.adapters.storage.migrate import migrate
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.core.usecases.ledger.listing import list_fresh
from cambist.core.usecases.settlement.settlement import settle_now
from cambist.frontends.app.compose import open_app
from cambist.frontends.server.app import create_app
from cambist.frontends.settings.settings import Settings, VaultKeys
from cambist.frontends.worker.loop import Worker
from cambist.ports.bundle import Ports
from cambist.ports.jobs import Job
from cambist.ports.notifier import Answer, DeliveryResult, WebhookRequest
from cambist.ports.storage import AtMost
from tests.servers import own_postgres

_RELATION = re.compile(r"rel \d+/(\d+)/(\d+) fork main")
_ENTRIES = {"INSERT_LEAF", "INSERT_POST"}
"""Records of a B-tree that add an entry for a row."""
_VERSIONS = {"INSERT", "INSERT+INIT", "UPDATE", "UPDATE+INIT", "HOT_UPDATE", "HOT_UPDATE+INIT"}


Step = Callable[[], Awaitable[None]]


class Written(msgspec.Struct):
    """Writes of a step."""

    entries: Counter[str]
    """Index entries, by index."""
    versions: Counter[str]
    """Row versions, by table."""
    hot: int = 0
    """Row versions that needed no index entry."""
    wal: int = 0
    """Bytes, without page images."""
    bytes: Counter[str] = msgspec.field(default_factory=Counter)
    """The same, by table or index."""
    images: int = 0

    def add(self, other: "Written") -> None:
        """Add what another step wrote."""
        self.entries.update(other.entries)
        self.versions.update(other.versions)
        self.hot += other.hot
        self.wal += other.wal
        self.bytes.update(other.bytes)
        self.images += other.images


class Receiver:
    """Notifier whose receiver accepts everything."""

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        """Accept a webhook."""
        del webhook
        return DeliveryResult(answer=Answer.RESPONDED, status=200)

    async def close(self) -> None:
        """Close nothing."""


async def measure(url: str, count: int) -> dict[str, Written]:
    """Run `count` payments at a time through their life, after as many that fill the pages and the caches. Return what
    each step wrote for the second half."""
    settings = Settings(
        database_url=url,
        base_url="https://pay.example",
        vault=VaultKeys(keys={1: bytes(32)}, current=1, pepper=bytes(32)),
        workers=0,
    )
    await migrate(url)
    steps: dict[str, Written] = {}
    async with open_app(settings, notifier=Receiver()) as app:
        ports = app.ports
        made = await create_account(ports, "Shop")
        await set_settings(
            ports,
            made.account_id,
            {"webhook_url": "https://shop.example/hook", "webhook_secret": "a-secret-of-the-benchmark-0123456789"},
        )
        headers = {"X-Api-Key": made.test.api_key, "X-Api-Secret": made.test.api_secret}
        transport = httpx.ASGITransport(cast("Any", create_app(ports)))
        connection = await asyncpg.connect(url)
        async with httpx.AsyncClient(transport=transport, base_url="https://pay.example", headers=headers) as client:
            try:
                await connection.execute("CREATE EXTENSION pg_walinspect")
                for _ in range(2):
                    names = await _names(connection)
                    for step, work in _life(ports, client, made.account_id, count).items():
                        before = await connection.fetchval("SELECT pg_current_wal_flush_lsn()::text")
                        await work()
                        steps[step] = await _written(connection, before, names)
            finally:
                await connection.close()
    return steps


def _life(ports: Ports, client: httpx.AsyncClient, account_id: str, count: int) -> "Any":
    """Yield the steps of a payment's life, each with what runs it for all payments."""
    ids: list[str] = []

    async def create() -> None:
        for _ in range(count):
            answer = await client.post(
                "/api/v1/payments",
                json={"amount_rub": "490.00", "external_id": str(uuid4())},
                headers={"Idempotency-Key": str(uuid4())},
            )
            ids.append(answer.raise_for_status().json()["id"])

    async def pay() -> None:
        for payment_id in ids:
            answer = await client.post(f"/api/v1/sandbox/payments/{payment_id}/simulate", json={"outcome": "paid"})
            answer.raise_for_status()

    async def settle() -> None:
        await settle_now(ports, Mode.TEST, cutoff=ports.clock.now() + timedelta(milliseconds=1))

    async def show_movements() -> None:
        await list_fresh(ports, account_id, Mode.TEST)

    return {
        "create": create,
        "pay": pay,
        "webhook": lambda: _drain(ports),
        "settle": settle,
        "its webhook": lambda: _drain(ports),
        "movements": show_movements,
    }


async def _drain(ports: Ports) -> None:
    """Run the jobs that are due."""
    worker = Worker(ports)
    working = asyncio.create_task(worker.work())
    while await _due(ports):  # noqa: ASYNC110 - only the storage shows it
        await asyncio.sleep(0.02)
    worker.stop()
    await working


async def _due(ports: Ports) -> bool:
    async with ports.storage.unit() as unit:
        found = await unit[Job].find(due=AtMost(ports.clock.now()), order="due", limit=1)
    return bool(found)


async def _names(connection: Any) -> dict[int, str]:
    """Return the names of tables and indexes by the number of their file."""
    rows = await connection.fetch(
        "SELECT relname, relfilenode FROM pg_class WHERE relnamespace = 'public'::regnamespace"
    )
    return {row["relfilenode"]: row["relname"] for row in rows}


async def _written(connection: Any, before: str, names: dict[int, str]) -> Written:
    """Return what the log has since `before`."""
    if await connection.fetchval("SELECT pg_current_wal_flush_lsn() = $1::text::pg_lsn", before):
        return Written(Counter(), Counter())
    rows = await connection.fetch(
        """
        SELECT resource_manager, record_type, record_length, fpi_length, block_ref
        FROM pg_get_wal_records_info($1::text::pg_lsn, pg_current_wal_flush_lsn())
        """,
        before,
    )
    found = Written(Counter(), Counter())
    for row in rows:
        found.wal += row["record_length"] - row["fpi_length"]
        found.images += row["fpi_length"] > 0
        match = _RELATION.search(row["block_ref"] or "")
        name = names.get(int(match[2])) if match else None
        found.bytes[name or row["resource_manager"]] += row["record_length"] - row["fpi_length"]
        if name is None:
            continue
        if row["resource_manager"] == "Btree" and row["record_type"] in _ENTRIES:
            found.entries[name] += 1
        elif row["resource_manager"] == "Heap" and row["record_type"] in _VERSIONS:
            found.versions[name] += 1
            found.hot += row["record_type"].startswith("HOT")
        elif row["resource_manager"] == "Heap2" and row["record_type"].startswith("MULTI_INSERT"):
            found.versions[name] += 1
    return found


def table(steps: dict[str, Written], count: int) -> Iterable[str]:
    """Yield the lines of the table, per payment."""
    total = Written(Counter(), Counter())
    yield f"{'step':12} {'entries':>8} {'versions':>9} {'HOT':>6} {'WAL, KB':>8} {'images':>7}"
    for step, written in steps.items():
        total.add(written)
        yield _line(step, written, count)
    yield _line("all", total, count)
    yield ""
    for title, counts in (
        ("index entries", total.entries),
        ("row versions", total.versions),
        ("bytes of WAL", total.bytes),
    ):
        yield f"{title}: " + ", ".join(f"{name} {number / count:.1f}" for name, number in counts.most_common())


def _line(step: str, written: Written, count: int) -> str:
    return (
        f"{step:12} {written.entries.total() / count:8.1f} {written.versions.total() / count:9.1f}"
        f" {written.hot / count:6.1f} {written.wal / count / 1024:8.2f} {written.images / count:7.2f}"
    )


def main() -> None:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 25
    with own_postgres() as server:
        steps = asyncio.run(measure(server.url, count))
    print(*table(steps, count), sep="\n")


if __name__ == "__main__":
    main()

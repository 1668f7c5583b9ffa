"""Cost of single operations on a planted Postgres database: pages, log and CPU.

Pages and bytes of log do not depend on the load of the machine. Postgres adds the figures of a connection to its own
when the connection ends, so each operation runs in a service of its own: once, and once more with repetitions.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from time import process_time
from typing import Any, cast
from uuid import uuid4

import asyncpg
import httpx
import msgspec

from benchmarks.scale.plant import Merchant, Planted, Receiver, settings_for
from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.payments.payments import Payment
from cambist.core.usecases.operators.action_items import read_action_items
from cambist.core.usecases.operators.dashboard import Dashboard, read_dashboard
from cambist.core.usecases.overview.overview import Period, read_overview
from cambist.frontends.app.compose import open_app
from cambist.frontends.server.app import create_app
from cambist.ports.bundle import Ports

_TICKS = os.sysconf("SC_CLK_TCK")


class Cost(msgspec.Struct, frozen=True):
    """Cost of one call."""

    pages: float
    """Pages that Postgres read, from its memory or from disk."""
    wal: float
    """Bytes of its log."""
    cpu_ms: float
    """CPU of the service and of Postgres."""


class _Service(msgspec.Struct):
    ports: Ports
    client: httpx.AsyncClient
    caller: Caller
    headers: dict[str, str]
    samples: list[Payment]
    """Payments of the merchant over its whole history, the newest last."""

    async def get(self, path: str) -> None:
        (await self.client.get(path, headers=self.headers)).raise_for_status()

    async def create(self) -> None:
        order = {"amount_rub": "490.00", "external_id": str(uuid4())}
        headers = {**self.headers, "Idempotency-Key": str(uuid4())}
        (await self.client.post("/payments", json=order, headers=headers)).raise_for_status()

    async def repeat(self, key: str) -> None:
        order = {"amount_rub": "490.00"}
        (
            await self.client.post("/payments", json=order, headers={**self.headers, "Idempotency-Key": key})
        ).raise_for_status()

    def old(self, number: int) -> Payment:
        return self.samples[number * 7 % len(self.samples)]


class _Home:
    """The operators' home, which reads again what may have changed."""

    def __init__(self) -> None:
        self._before: Dashboard | None = None

    async def __call__(self, service: _Service, number: int) -> None:
        self._before = await read_dashboard(service.ports, self._before if number else None)


Call = Callable[[_Service, int], Awaitable[Any]]


def operations(planted: Planted) -> Mapping[str, Call]:
    """Return the measured operations; each gets its number among the repetitions."""
    far = max(planted.payments * 3 // 10 // 20 // 2, 1)
    key = str(uuid4())
    return {
        "create a payment": lambda service, _: service.create(),
        "repeat its key": lambda service, _: service.repeat(key),
        "read an old payment": lambda service, at: service.get(f"/payments/{service.old(at).id}"),
        "first page of payments": lambda service, _: service.get("/payments"),
        "a page half way": lambda service, at: service.get(f"/payments?page={min(far, 10_000) + at}"),
        "first page of failed ones": lambda service, _: service.get("/payments?status=failed"),
        "find an order": lambda service, at: service.get(f"/payments?external_id={service.old(at).external_id}"),
        "movements": lambda service, _: service.get("/balance/movements"),
        "balance": lambda service, _: service.get("/balance"),
        "events": lambda service, _: service.get("/events"),
        "turnover of a month": lambda service, _: service.get("/shops/turnover"),
        "dashboard, 30 days": lambda service, _: read_overview(service.ports, service.caller, Period.MONTH),
        "console, home": _Home(),
        "action items": lambda service, _: read_action_items(service.ports),
        "claim jobs": lambda service, _: service.ports.storage.claim(10, 60.0),
    }


async def measure(
    url: str, planted: Planted, names: Collection[str] | None = None, *, times: int = 20
) -> dict[str, Cost]:
    """Measure operations for the largest merchant, by default all."""
    costs: dict[str, Cost] = {}
    for name, call in operations(planted).items():
        if names is not None and name not in names:
            continue
        await _run(url, planted.merchants[0], call, 2)
        before = await _figures(url)
        cpu = await _run(url, planted.merchants[0], call, 1)
        once = await _figures(url)
        cpu = await _run(url, planted.merchants[0], call, 1 + times) - cpu
        after = await _figures(url)
        pages, wal, server = (
            (then - now - (now - first)) / times for first, now, then in zip(before, once, after, strict=True)
        )
        costs[name] = Cost(pages=pages, wal=wal, cpu_ms=(cpu / times + server) * 1000)
    return costs


async def _run(url: str, merchant: Merchant, call: Call, times: int) -> float:
    """Return the seconds of CPU of the calls."""
    async with open_app(settings_for(url), notifier=Receiver()) as app:
        transport = httpx.ASGITransport(cast("Any", create_app(app.ports)))
        async with (
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080/api/v1") as client,
            app.ports.storage.unit() as unit,
        ):
            account = await unit[Account].get(merchant.account_id)
            assert account is not None
            newest, oldest = [
                await unit[Payment].find(account_id=account.id, mode=Mode.LIVE, order=order, limit=300)
                for order in ("-created_at", "created_at")
            ]
            caller = Caller(account=account, mode=Mode.LIVE, key_id=merchant.key_id)
            service = _Service(app.ports, client, caller, merchant.headers, [*oldest, *newest])
            began = process_time()
            for number in range(times):
                await call(service, number)
            return process_time() - began


async def _figures(url: str) -> tuple[float, float, float]:
    """Return pages, bytes of log, and seconds of CPU of the ended connections."""
    connection = await asyncpg.connect(url)
    try:
        for _ in range(100):
            others = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
            if await connection.fetchval(others) == 1:
                break
            await asyncio.sleep(0.02)
        pages = await connection.fetchval("SELECT sum(blks_hit + blks_read) FROM pg_stat_database")
        wal = await connection.fetchval("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")
        server = _stat(await connection.fetchval("SELECT pg_backend_pid()"))[1]
    finally:
        await connection.close()
    ended = _stat(int(server))
    return float(pages), float(wal), (int(ended[13]) + int(ended[14])) / _TICKS


def _stat(process: int) -> list[str]:
    """Return the fields of a process from its state on: its parent is the second, the CPU of its ended children the
    14th and 15th."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


async def sizes(url: str, payments: int) -> dict[str, float]:
    """Return the bytes on disk for each payment, by table with its indexes."""
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch(
            "SELECT relname, pg_total_relation_size(oid) AS size FROM pg_class"
            " WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 2 DESC"
        )
    finally:
        await connection.close()
    return {row["relname"]: row["size"] / payments for row in rows}

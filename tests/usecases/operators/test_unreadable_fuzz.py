"""Whatever value a column of one row has, no other merchant's work is late and no loop ends: every table, every column,
on both databases (docs/operations.md "Rows that cannot be read").

In the suite every twentieth column holds one kind of garbage, others in each run, and a day passes over a fifth of the
tables, on SQLite. With CAMBIST_DRILLS=full every column holds each kind that it could hold."""

import secrets
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from itertools import count, groupby, islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import msgspec
import pytest

from cambist.adapters.counters.memory import MemoryCounters
from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.adapters.storage.table.codec import Column, Storing
from cambist.adapters.storage.table.table_map import TableMap, keep
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.jobs import run_due
from cambist.core.usecases.recurring_jobs import RECURRING_JOBS, start_recurring_jobs
from cambist.ports.counters import Counter
from cambist.ports.faults import Unreadable
from tests import openapi_tour
from tests.apps import WEBHOOK_SECRET, TestApp, open_test_app
from tests.patience import FULL
from tests.servers import service_url

SHARE = 1 if FULL else 20
THEIRS = "https://theirs.example/hook"
KEEPING = keep(CATALOGUE)
TABLES = sorted(kept.name for kept in KEEPING.values())
BEYOND = 900_000_000_000_000_000


def garbage(column: Column, *, sqlite: bool) -> list[Any]:
    """Return invalid values: of another type than the column's, or far out of bounds."""
    anything = ["zz", b"\xff\x00", 1.5e300, -1] if sqlite else []
    match column.storing:
        case Storing.INTEGER:
            return [*anything, BEYOND, -BEYOND]
        case Storing.TEXT:
            return [*anything, "", "no-such-word", "\u2603" * 300]
        case Storing.JSON:
            return [*anything, "{", "[]", "null", '{"a": {"a": 1}}']
        case Storing.BYTES:
            return ["text" if sqlite else b"", b"\x00", *anything]
        case Storing.BOOLEAN:
            return [*anything, 7 if sqlite else True]


class Database:
    """The app's database, past the app."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._server: Any = None
        self.is_sqlite = url.startswith("sqlite")

    async def rows(self, kept: TableMap[Any]) -> list[tuple[Any, ...]]:
        names = ", ".join(kept.codec.names)
        return [tuple(row) for row in await self._run(f"SELECT {names} FROM {kept.name} ORDER BY id")]

    async def set(self, kept: TableMap[Any], column: str, row_id: Any, value: Any) -> bool:
        """Set the value. Return False if the database itself refuses it."""
        a, b = ("?", "?") if self.is_sqlite else ("$1", "$2")
        try:
            await self._run(f"UPDATE {kept.name} SET {column} = {a} WHERE id = {b}", value, row_id)
        except (sqlite3.Error, asyncpg.PostgresError, asyncpg.DataError):
            return False
        return True

    async def put(self, kept: TableMap[Any], row: tuple[Any, ...]) -> None:
        """Restore the original value."""
        await self._run(f"DELETE FROM {kept.name} WHERE id = {'?' if self.is_sqlite else '$1'}", row[0])
        values = ", ".join("?" if self.is_sqlite else f"${place + 1}" for place in range(len(row)))
        await self._run(f"INSERT INTO {kept.name} ({', '.join(kept.codec.names)}) VALUES ({values})", *row)

    async def remove(self, kept: TableMap[Any], row_id: Any) -> None:
        await self._run(f"DELETE FROM {kept.name} WHERE id = {'?' if self.is_sqlite else '$1'}", row_id)

    async def _run(self, statement: str, *values: Any) -> list[Any]:
        if self.is_sqlite:
            with closing(sqlite3.connect(self._url.removeprefix("sqlite:///"), timeout=10)) as connection, connection:
                return connection.execute(statement, values).fetchall()
        if self._server is None:
            self._server = await asyncpg.connect(self._url)
        found: list[Any] = await self._server.fetch(statement, *values)
        return found

    async def close(self) -> None:
        if self._server is not None:
            await self._server.close()


class Town:
    """A merchant with an object of every kind, whose rows are spoilt, and another merchant, who must not notice."""

    def __init__(self, app: TestApp, database: Database, theirs: accounts.NewAccount) -> None:
        self.app = app
        self.database = database
        self._theirs = theirs
        self._numbers = count(1)

    async def they_are_paid_and_told(self) -> str:
        """Pay at the present time, deliver the webhooks, and return the payment's id."""
        pair = self._theirs.test
        headers = {"X-Api-Key": pair.api_key, "X-Api-Secret": pair.api_secret, "Idempotency-Key": str(uuid4())}
        post = self.app.http.post
        made = await post("/api/v1/payments", json={"amount_rub": "100.00"}, headers=headers)
        assert made.status_code == 201, made.text
        payment_id = made.json()["id"]
        path = f"/api/v1/sandbox/payments/{payment_id}/simulate"
        paid = await post(path, json={"outcome": "paid"}, headers=headers)
        assert paid.status_code == 200, paid.text
        before = len(self.app.postman.webhooks)
        await run_due(self.app.ports)
        webhooks = [webhook for webhook in self.app.postman.webhooks[before:] if webhook.url == THEIRS]
        assert payment_id in {msgspec.json.decode(webhook.body).get("payment_id") for webhook in webhooks}, "not told"
        return str(payment_id)

    async def a_day_passes(self) -> None:
        """Let time pass until after the settlement of today's payments, and run all due jobs every three hours."""
        for _ in range(12):
            with suppress(Unreadable):
                await start_recurring_jobs(self.app.ports)  # as a worker does now and then
            await self.app.clock.advance(3 * 3600)
            await run_due(self.app.ports)

    def plans(self, *, every: bool) -> Iterator[tuple[TableMap[Any], Column, Any]]:
        """Yield the columns and their invalid values: each column with one kind of value, in turn, or with every
        kind."""
        for name in TABLES:
            kept = next(each for each in KEEPING.values() if each.name == name)
            for column in kept.codec.columns:
                kinds = garbage(column, sqlite=self.database.is_sqlite)
                chosen = kinds if every else [kinds[next(self._numbers) % len(kinds)]]
                for value in chosen:
                    yield kept, column, value

    def one_of_each_table(self) -> Iterator[tuple[TableMap[Any], Column, Any]]:
        for _, plans in groupby(self.plans(every=False), key=lambda plan: plan[0].name):
            of_table = list(plans)
            yield of_table[next(self._numbers) % len(of_table)]

    async def spoilt(self, plan: tuple[TableMap[Any], Column, Any]) -> AsyncIterator[str]:
        """With it in one row that is not the other merchant's; yields what it is, or nothing where there is no such row
        or the database refuses it. Afterwards the row is as it was."""
        kept, column, value = plan
        theirs, database = self._theirs.account_id, self.database
        rows = [row for row in await database.rows(kept) if not any(isinstance(v, str) and theirs in v for v in row)]
        if column.storing is Storing.TEXT:  # whatever text a recurring job holds can be read, and is done
            rows = [row for row in rows if row[0] not in RECURRING_JOBS]
        if not rows:
            return
        row = rows[next(self._numbers) % len(rows)]
        if kept.name == "jobs":
            now = kept.codec.column("due").encode(self.app.clock.now())
            row = tuple(
                now if name == "due" else None if name == "leased_until" else plain
                for name, plain in zip(kept.codec.names, row, strict=True)
            )
            await database.put(kept, row)
        if await database.set(kept, column.name, row[0], value):
            yield f"{kept.name}.{column.name} = {value!r:.30}"
            if column.name == "id":
                await database.remove(kept, value)
            await database.put(kept, row)

    async def we_are_answered(self) -> None:
        """Whatever it is, in the interface's own words."""
        for path in ("/payments", "/events", "/balance", "/refunds", "/settlements"):
            answer = await self.app.get(path)
            assert answer.status_code in (200, 401, 403, 404, 500, 503), answer.text
            assert answer.status_code == 200 or answer.json()["error"]["code"]


@asynccontextmanager
async def open_town(url: str, folder: Path) -> AsyncIterator[Town]:
    async with open_test_app(database_url=url, data_dir=folder) as app:
        app.made_up = True  # spoilt rows contradict the books
        tour = openapi_tour.Tour(app)
        on: dict[str, str] = dict.fromkeys(("refunds", "exchange", "direct_links", "recurring"), "true")
        await accounts.set_settings(app.ports, app.account.account_id, on)
        for part in ("health", "payments", "refunds", "subscriptions", "exchanges", "money", "proofs", "kyc", "events"):
            await getattr(openapi_tour, f"_{part}")(tour)
        theirs = await accounts.create_account(app.ports, "Theirs")
        wish = {"webhook_url": THEIRS, "webhook_secret": WEBHOOK_SECRET}
        await accounts.set_settings(app.ports, theirs.account_id, wish)
        await run_due(app.ports)
        database = Database(url)
        yield Town(app, database, theirs)
        await database.close()


@pytest.fixture(params=["sqlite", "postgres"] if FULL else ["sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return service_url(request, request.param, tmp_path)


@pytest.fixture
async def town(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Town]:
    async def patient(_counters: MemoryCounters, _window: int, limits: Sequence[Counter]) -> list[int]:
        return [0] * len(limits)

    monkeypatch.setattr(MemoryCounters, "count", patient)
    async with open_town(url, tmp_path) as opened:
        yield opened


@pytest.mark.drill
@pytest.mark.timeout(1200)
async def test_no_column_of_one_row_keeps_another_merchant_waiting(town: Town) -> None:
    tried, harmed = 0, list[str]()
    first = secrets.randbelow(SHARE)
    print(f"every {SHARE} columns, from {first} on")
    for spoilt in islice(town.plans(every=FULL), first, None, SHARE):
        async for said in town.spoilt(spoilt):
            tried += 1
            try:
                await town.they_are_paid_and_told()
                await town.we_are_answered()
            except Exception as fault:  # noqa: BLE001 - all of them are told at the end
                harmed.append(f"{said}: {type(fault).__name__}: {fault}")
    assert not harmed, "\n".join(harmed)
    print(f"{tried} rows spoilt")
    assert tried > (300 if FULL else 10)


EVERYBODYS = ("known_rates", "ledger_accounts")
"""Tables that all settlements need, the rate and the service's own balances: money waits until they can be read
again."""


@pytest.mark.drill
@pytest.mark.timeout(1200)
async def test_no_row_keeps_another_merchant_from_being_settled(town: Town) -> None:
    """A day passes over one spoilt column of each fifth table; in the long form over each column."""
    app, harmed = town.app, list[str]()
    plans = town.plans(every=True) if FULL else islice(town.one_of_each_table(), secrets.randbelow(5), None, 5)
    for spoilt in plans:
        if spoilt[0].name in EVERYBODYS:
            continue
        async for said in town.spoilt(spoilt):
            try:
                payment_id = await town.they_are_paid_and_told()
                await town.a_day_passes()
                found = await app.ports.storage.get(Payment, payment_id)
                assert found is not None
                assert found.status is PaymentStatus.SETTLED
            except Exception as fault:  # noqa: BLE001 - as above
                harmed.append(f"{said}: {type(fault).__name__}: {fault}")
    assert not harmed, "\n".join(harmed)

"""GET /balance/movements: a page with its total, among few and among many movements, and the cost of listing them, on
SQLite and on Postgres.

"Few" is 1000 movements, "many" is CAMBIST_BENCH_MOVEMENTS (default 50 000; 1 000 000 for the figure in the docs). Half
of them are receipts, the other half settlements, and every thousandth belongs to a payout. `listed`: microseconds per
entry of a journal that was never listed before.
"""

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import msgspec
import pytest
from msgspec.structs import replace
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.rows import rows_into
from cambist.adapters.storage.migrate import migrate
from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.adapters.storage.table.table_map import keep
from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.days import iso
from cambist.core.domain.ledger import (
    BalanceType,
    EntryKind,
    JournalEntry,
    LedgerAccount,
    balances_moved,
    journal_entry,
)
from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.ledger.listing import list_fresh
from cambist.core.usecases.ledger.movements import MovementFilter, list_movements
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.bundle import Ports
from tests.servers import database, postgres_server

FEW = 1000
MANY = int(os.environ.get("CAMBIST_BENCH_MOVEMENTS", "50000"))
START = datetime(2026, 1, 1, tzinfo=UTC)
BATCH = 20_000

pytestmark = pytest.mark.benchmark(group="movements page")


class Bench(msgspec.Struct, frozen=True):
    """An open app with a merchant and `count` movements."""

    ports: Ports
    caller: Caller
    count: int
    listed: float
    """Microseconds per entry."""


def entry(account_id: str, number: int) -> JournalEntry:
    kind, prefix, postings = EntryKind.RECEIPT, "pay_", {BalanceType.BANK: -100_00, BalanceType.PENDING: 100_00}
    if number % 1000 == 999:
        kind, prefix, postings = (
            EntryKind.PAYOUT_RESERVED,
            "wd_",
            {BalanceType.AVAILABLE: -100, BalanceType.RESERVED: 100},
        )
    elif number % 2:
        kind = EntryKind.SETTLEMENT
        postings = {
            BalanceType.PENDING: -100_00,
            BalanceType.CONVERTED_RUB: 100_00,
            BalanceType.CONVERTED_USDT: -9,
            BalanceType.AVAILABLE: 9,
        }
    return journal_entry(
        kind,
        f"{prefix}{UUID(int=number)}",
        account_id=account_id,
        mode=Mode.TEST,
        at=START + timedelta(seconds=number),
        postings=postings,
    )


async def fill(url: str, account_id: str, count: int) -> None:
    """Write the journal and matching balances. If they did not match, every page would search for missing entries."""
    journal, balances = keep(CATALOGUE)[JournalEntry], keep(CATALOGUE)[LedgerAccount]
    moved: dict[str, LedgerAccount] = {}
    rows = await rows_into(url)
    for first in range(0, count, BATCH):
        some = range(first, min(first + BATCH, count))
        entries = [entry(account_id, number) for number in some]
        await rows.write(journal, [journal.codec.encode(each) for each in entries])
        for each in (row for one in entries for row in balances_moved(one)):
            before = moved.get(each.id)
            moved[each.id] = each if before is None else replace(each, balance=before.balance + each.balance)
    await rows.write(balances, [balances.codec.encode(each) for each in moved.values()])
    await rows.close()


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    running = asyncio.new_event_loop()
    yield running
    running.close()


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def urls(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Yield two empty databases of one kind: for few and for many."""
    if request.param == "sqlite":
        folder = tmp_path_factory.mktemp("movements")
        yield f"sqlite:///{folder / 'few.db'}", f"sqlite:///{folder / 'many.db'}"
        return
    with postgres_server() as server, database(server) as few, database(server) as many:
        yield few, many


@pytest.fixture(scope="module")
def places(
    urls: tuple[str, str], loop: asyncio.AbstractEventLoop, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Bench]]:
    stack = AsyncExitStack()
    folder: Path = tmp_path_factory.mktemp("app")

    async def open_bench(url: str, count: int) -> Bench:
        await migrate(url)
        app = await stack.enter_async_context(open_app(Settings(database_url=url, data_dir=folder)))
        made = await create_account(app.ports, "Merchant")
        account = await app.ports.storage.get(Account, made.account_id)
        assert account is not None
        await fill(url, made.account_id, count)
        begun = time.perf_counter()
        assert await list_fresh(app.ports, made.account_id, Mode.TEST)
        taken = (time.perf_counter() - begun) / count * 1e6
        caller = Caller(account=account, mode=Mode.TEST, key_id="svc_test_bench")
        return Bench(app.ports, caller, count, taken)

    async def open_both() -> dict[str, Bench]:
        return {"few": await open_bench(urls[0], FEW), "many": await open_bench(urls[1], MANY)}

    yield loop.run_until_complete(open_both())
    loop.run_until_complete(stack.aclose())


async def page(bench: Bench, number: int, size: int, asked: MovementFilter, total: int) -> None:
    found = await list_movements(bench.ports, bench.caller, asked, number, size)
    assert (len(found.records), found.total) == (size, total)


@pytest.mark.parametrize("amount", ["few", "many"])
@pytest.mark.parametrize("where", ["first", "middle"])
def test_page(
    benchmark: BenchmarkFixture, loop: asyncio.AbstractEventLoop, places: dict[str, Bench], where: str, amount: str
) -> None:
    bench = places[amount]
    number = 1 if where == "first" else bench.count // 40
    benchmark.extra_info["listed"] = bench.listed
    benchmark(lambda: loop.run_until_complete(page(bench, number, 20, MovementFilter(), bench.count)))


@pytest.mark.parametrize("amount", ["few", "many"])
def test_page_of_what_is_rare(
    benchmark: BenchmarkFixture, loop: asyncio.AbstractEventLoop, places: dict[str, Bench], amount: str
) -> None:
    bench = places[amount]
    found = bench.count // 1000
    asked = MovementFilter(object_type="withdrawal")
    benchmark(lambda: loop.run_until_complete(page(bench, 1, min(20, found), asked, found)))


@pytest.mark.parametrize("amount", ["few", "many"])
def test_page_of_a_filter_in_a_period(
    benchmark: BenchmarkFixture, loop: asyncio.AbstractEventLoop, places: dict[str, Bench], amount: str
) -> None:
    bench = places[amount]
    low, high = (iso(START + timedelta(seconds=bench.count * part // 4)) for part in (1, 3))
    asked = MovementFilter(balance="pending", created_from=low, created_to=high)
    total = sum(number % 1000 != 999 for number in range(bench.count // 4, bench.count * 3 // 4))
    benchmark(lambda: loop.run_until_complete(page(bench, 3, 20, asked, total)))

"""GET /payments: a page with its total, among few and among many payments, on SQLite and on Postgres; and the
dashboard's list of payments with its searches.

"Few" is 1000 payments, "many" is CAMBIST_BENCH_PAYMENTS (default 50 000; 1 000 000 for the figure in the docs). Both
are spread over 30 days. Among many, page 1 may cost at most 3 times page 1 among few, and the farthest pages at most 20
times. With 1 000 000, `middle` and `last` are page 250 000, of 2 and of 4 payments: the longest walk from either end,
and the largest possible offset. `counted` is the first page with a COUNT, `skipped` the middle page with an OFFSET.

A page of the dashboard is read by cursor. `amount` is a search of which no index knows: it reads SCANNED rows.
"""

import asyncio
import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.rows import rows_into
from cambist.adapters.storage.migrate import migrate
from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.adapters.storage.table.table_map import keep
from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.domain.payments.tallies import Tally, tallies_of
from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.accounts.shops import create_shop
from cambist.core.usecases.common.keyset import SCANNED
from cambist.core.usecases.payments.list import PaymentFilter, list_payments
from cambist.core.usecases.payments.search import search_payments
from cambist.core.usecases.payments.tallies import check_tallies
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.bundle import Ports
from tests.servers import database, postgres_server

FEW = 1000
MANY = int(os.environ.get("CAMBIST_BENCH_PAYMENTS", "50000"))
START = datetime(2026, 1, 1, tzinfo=UTC)
SPREAD = timedelta(days=30)
STATUSES = (PaymentStatus.PENDING, PaymentStatus.FAILED, PaymentStatus.EXPIRED)
WEIGHTS = (1, 10, 30)
BATCH = 20_000

pytestmark = pytest.mark.benchmark(group="list page")


class Bench(msgspec.Struct, frozen=True):
    """An open app with a merchant and `count` payments."""

    ports: Ports
    caller: Caller
    count: int
    shops: tuple[str, ...]


def payments(account: Account, shops: Sequence[str], count: int) -> Iterator[Payment]:
    """Yield payments in order of time, with three shops and three statuses; one in twenty is recurring."""
    chance = random.Random(1)
    for number in range(count):
        moment = START + SPREAD * (number / count)
        milliseconds = int(moment.timestamp() * 1000)
        yield Payment(
            id=f"pay_{UUID(int=milliseconds << 80 | 0x7 << 76 | 0b10 << 62 | chance.getrandbits(62))}",
            account_id=account.id,
            mode=Mode.TEST,
            shop_id=chance.choices(shops, weights=(8, 3, 1))[0],
            status=chance.choices(STATUSES, weights=WEIGHTS)[0],
            amount=Rub(100_00),
            payment_method="sbp" if chance.random() < 0.95 else "recurring",
            created_at=moment,
            expires_at=moment + timedelta(minutes=15),
            external_id=f"order-{number}",
            payer_contact=f"***{chance.randrange(10_000):04}",
        )


async def fill(url: str, bench: Bench) -> None:
    """Write the rows in bulk, together with the tallies that the storage's units would have written."""
    table_maps = keep(CATALOGUE)
    counts: Counter[Tally] = Counter()
    made = payments(bench.caller.account, bench.shops, bench.count)
    of_payments, of_tallies = table_maps[Payment], table_maps[Tally]
    rows = await rows_into(url)
    while batch := list(islice(made, BATCH)):
        for payment in batch:
            counts.update(tallies_of(payment, 1))
        await rows.write(of_payments, [of_payments.codec.encode(payment) for payment in batch])
    tallies = [msgspec.structs.replace(tally, count=count) for tally, count in counts.items()]
    await rows.write(of_tallies, [of_tallies.codec.encode(tally) for tally in tallies])
    await rows.close()


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    running = asyncio.new_event_loop()
    yield running
    running.close()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as url:
        yield url


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def urls(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Yield two empty databases of one kind: for few and for many."""
    if request.param == "sqlite":
        folder = tmp_path_factory.mktemp("lists")
        yield f"sqlite:///{folder / 'few.db'}", f"sqlite:///{folder / 'many.db'}"
        return
    server: str = request.getfixturevalue("server")
    with database(server) as few, database(server) as many:
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
        shops = [await create_shop(app.ports, made.account_id, name) for name in ("Second", "Third")]
        async with app.ports.storage.unit() as unit:
            account = await unit[Account].get(made.account_id)
        assert account is not None
        caller = Caller(account=account, mode=Mode.TEST, key_id="svc_test_bench")
        bench = Bench(app.ports, caller, count, (account.default_shop_id, *(shop.id for shop in shops)))
        await fill(url, bench)
        if count == FEW:
            assert await check_tallies(app.ports) == []
        return bench

    async def open_both() -> dict[str, Bench]:
        return {"few": await open_bench(urls[0], FEW), "many": await open_bench(urls[1], MANY)}

    yield loop.run_until_complete(open_both())
    loop.run_until_complete(stack.aclose())


async def page(bench: Bench, number: int, size: int, asked: PaymentFilter = PaymentFilter()) -> None:  # noqa: B008 - frozen
    found = await list_payments(bench.ports, bench.caller, asked, number, size)
    assert len(found.records) == size
    if asked == PaymentFilter():
        assert found.total == bench.count


def far(bench: Bench, where: str) -> tuple[int, int]:
    """Return number and size of the page in the middle of the list, or of its last page."""
    size = 2 if where == "middle" else 4
    return (bench.count // 2 if where == "middle" else bench.count) // size, size


@pytest.mark.parametrize("amount", ["few", "many"])
def test_first_page(
    benchmark: BenchmarkFixture, loop: asyncio.AbstractEventLoop, places: dict[str, Bench], amount: str
) -> None:
    benchmark(lambda: loop.run_until_complete(page(places[amount], 1, 20)))


@pytest.mark.parametrize("amount", ["few", "many"])
@pytest.mark.parametrize("where", ["middle", "last"])
def test_far_page(
    benchmark: BenchmarkFixture, loop: asyncio.AbstractEventLoop, places: dict[str, Bench], where: str, amount: str
) -> None:
    number, size = far(places[amount], where)
    benchmark(lambda: loop.run_until_complete(page(places[amount], number, size)))


@pytest.mark.parametrize("amount", ["few", "many"])
def test_first_page_of_two_filters(
    benchmark: BenchmarkFixture, loop: asyncio.AbstractEventLoop, places: dict[str, Bench], amount: str
) -> None:
    asked = PaymentFilter(shop_id=places[amount].shops[2], payment_method="recurring")
    benchmark(lambda: loop.run_until_complete(page(places[amount], 1, 1, asked)))


@pytest.mark.parametrize("amount", ["few", "many"])
@pytest.mark.parametrize("wanted", ["all", "status", "order", "phone", "amount"])
def test_dashboard_page(
    benchmark: BenchmarkFixture, loop: asyncio.AbstractEventLoop, places: dict[str, Bench], wanted: str, amount: str
) -> None:
    bench = places[amount]
    asked = PaymentFilter(status="failed") if wanted == "status" else PaymentFilter()
    text = {"order": "order-77", "phone": "1234", "amount": "77777.77"}.get(wanted, "")

    async def read() -> None:
        named = None if wanted == "all" else wanted
        found = await search_payments(bench.ports, bench.caller, asked, text, named, None, 50)
        assert (found.page.searched_to is None) == (wanted != "amount" or bench.count <= SCANNED)

    benchmark(lambda: loop.run_until_complete(read()))


@pytest.mark.parametrize("way", ["counted", "skipped"])
@pytest.mark.parametrize("amount", ["few", "many"])
def test_without_tallies(
    benchmark: BenchmarkFixture, loop: asyncio.AbstractEventLoop, places: dict[str, Bench], amount: str, way: str
) -> None:
    bench = places[amount]
    number, size = (1, 20) if way == "counted" else far(bench, "middle")
    criteria: dict[str, Any] = {"account_id": bench.caller.account_id, "mode": bench.caller.mode}

    async def plainly() -> None:
        async with bench.ports.storage.unit() as unit:
            if way == "counted":
                assert await unit[Payment].total(**criteria) == bench.count
            assert len(await unit[Payment].page(number, size, order="-created_at", **criteria)) == size

    benchmark.pedantic(lambda: loop.run_until_complete(plainly()), rounds=5)  # type: ignore[no-untyped-call]  # pytest-benchmark annotates only some of it

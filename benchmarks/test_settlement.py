"""The daily settlement: time for each payment, and memory, among few and among many.

The counts are CAMBIST_BENCH_SETTLED (default `2000,10000`; `10000,100000,1000000` for the figure in the docs). What is
to hold: the time for a payment is the same within 20 %, whatever their number, and so is the memory. Everything is
switched on: the ledger's entry, the line of the statement, the event with its delivery, tallies, full durability.
"""

import asyncio
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import msgspec
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.rows import rows_into
from cambist.adapters.clock import VirtualClock
from cambist.adapters.storage.catalogue import CATALOGUE
from cambist.adapters.storage.kept import keep
from cambist.adapters.storage.migrate import migrate
from cambist.core.domain.accounts import Account, Mode
from cambist.core.domain.ledger import LedgerAccount, Purse, ledger_account_id
from cambist.core.domain.money import Rub
from cambist.core.domain.payments import Payment, PaymentStatus
from cambist.core.domain.tallies import Tally, tallies_of
from cambist.core.usecases.accounts import create_account
from cambist.core.usecases.settlement import settle_now
from cambist.frontends.compose import open_house
from cambist.frontends.settings import Settings, VaultKeys
from cambist.ports.bundle import Ports
from tests.servers import database, postgres_server

COUNTS = [int(count) for count in os.environ.get("CAMBIST_BENCH_SETTLED", "2000,10000").split(",")]
START = datetime(2026, 1, 1, tzinfo=UTC)
CUTOFF = START + timedelta(days=1)
BATCH = 20_000

pytestmark = pytest.mark.benchmark(group="settlement")


class Watch:
    """The most memory that the process held, asked at every step."""

    def __init__(self) -> None:
        self._pages = os.sysconf("SC_PAGE_SIZE")
        self.start = self.most = self._held()

    def _held(self) -> int:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * self._pages

    def look(self, _: object = None) -> None:
        self.most = max(self.most, self._held())

    @property
    def grown_mb(self) -> float:
        return round((self.most - self.start) / 1e6, 1)


def paid(account: Account, count: int) -> Iterator[Payment]:
    """Paid over one day, of one merchant."""
    for number in range(count):
        moment = START + timedelta(days=1) * (number / count)
        milliseconds = int(moment.timestamp() * 1000)
        yield Payment(
            id=f"pay_{UUID(int=milliseconds << 80 | 0x7 << 76 | 0b10 << 62 | number)}",
            account_id=account.id,
            mode=Mode.TEST,
            shop_id=account.default_shop_id,
            status=PaymentStatus.PAID,
            amount=Rub(100_00 + number % 1000),
            actual_amount=Rub(100_00 + number % 1000),
            payment_method="sbp",
            created_at=moment,
            paid_at=moment,
            expires_at=moment + timedelta(minutes=15),
            sequence=1,
        )


async def fill(url: str, ports: Ports, count: int) -> None:
    """A merchant with so many paid payments, their tallies, and the balance that they make."""
    made = await create_account(ports, "Merchant")
    async with ports.storage.unit() as unit:
        account = await unit[Account].get(made.account_id)
    assert account is not None
    keeping = keep(CATALOGUE)
    rows = await rows_into(url)
    batch: list[list[object]] = []
    pending = 0
    tallies: dict[str, Tally] = {}
    for payment in paid(account, count):
        batch.append(keeping[Payment].codec.encode(payment))
        pending += payment.amount.kopecks
        for tally in tallies_of(payment, 1):
            known = tallies.get(tally.id)
            tallies[tally.id] = tally if known is None else msgspec.structs.replace(tally, count=known.count + 1)
        if len(batch) == BATCH:
            await rows.write(keeping[Payment], batch)
            batch = []
    await rows.write(keeping[Payment], batch)
    await rows.write(keeping[Tally], [keeping[Tally].codec.encode(tally) for tally in tallies.values()])
    balance = LedgerAccount(
        id=ledger_account_id(account.id, Mode.TEST, Purse.PENDING),
        owner=account.id,
        mode=Mode.TEST,
        purse=Purse.PENDING,
        balance=pending,
    )
    await rows.write(keeping[LedgerAccount], [keeping[LedgerAccount].codec.encode(balance)])
    await rows.close()


class Settled(msgspec.Struct, frozen=True):
    """What a settlement cost."""

    microseconds: float
    """For each payment."""
    grown_mb: float


async def settle(url: str, count: int) -> Settled:
    """Settle so many payments in a database of their own."""
    await migrate(url)
    clock = VirtualClock(CUTOFF + timedelta(hours=9))
    settings = Settings(database_url=url, vault=VaultKeys(keys={1: bytes(32)}, current=1, pepper=bytes(32)), workers=1)
    async with open_house(settings, clock=clock) as house:
        await fill(url, house.ports, count)
        watch = Watch()
        begun = time.perf_counter()
        batch = await settle_now(house.ports, Mode.TEST, cutoff=CUTOFF, progress=watch.look)
        took = time.perf_counter() - begun
        assert batch.payments == count
        return Settled(took / count * 1e6, watch.grown_mb)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'settled.db'}"
        return
    with database(request.getfixturevalue("server")) as server:
        yield server


@pytest.mark.parametrize("count", COUNTS)
def test_settling(benchmark: BenchmarkFixture, url: str, count: int) -> None:
    found: list[Settled] = []
    benchmark.pedantic(lambda: found.append(asyncio.run(settle(url, count))), rounds=1)  # type: ignore[no-untyped-call]  # pytest-benchmark annotates only some of it
    benchmark.extra_info["us_per_payment"] = round(found[0].microseconds)
    benchmark.extra_info["grown_mb"] = found[0].grown_mb
    print(f"\n{count} payments: {found[0].microseconds:.0f} us each, {found[0].grown_mb} MB more than before")

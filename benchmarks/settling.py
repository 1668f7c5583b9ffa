"""A settlement in separate processes, so that the measured memory contains nothing else: `python -m benchmarks.settling
fill URL COUNT`, then `settle URL`, which prints the cost."""

import asyncio
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec

from benchmarks.processes import peak_mib
from benchmarks.rows import rows_into
from cambist.adapters.clock import VirtualClock
from cambist.adapters.storage.migrate import migrate
from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.adapters.storage.table.table_map import keep
from cambist.core.domain.accounts.accounts import Account, Mode
from cambist.core.domain.ledger import (
    BalanceType,
    EntryKind,
    JournalEntry,
    LedgerAccount,
    journal_entry,
    ledger_account_id,
)
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.domain.payments.tallies import Tally, tallies_of
from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.ledger.listing import list_all
from cambist.core.usecases.settlement.settlement import settle_now
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings, VaultKeys
from cambist.ports.bundle import Ports

START = datetime(2026, 1, 1, tzinfo=UTC)
CUTOFF = START + timedelta(days=1)
BATCH = 20_000


class Settled(msgspec.Struct, frozen=True):
    """Cost of a settlement."""

    payments: int
    seconds: float
    peak_mib: float
    """Peak memory of its process."""


def paid(account: Account, count: int) -> Iterator[Payment]:
    """Yield payments of one merchant, paid over one day."""
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
    """Create a merchant with this many paid payments, their chained receipts, their tallies, and the balance."""
    made = await create_account(ports, "Merchant")
    account = await ports.storage.get(Account, made.account_id)
    assert account is not None
    table_maps = keep(CATALOGUE)
    rows = await rows_into(url)
    batch: list[list[object]] = []
    receipts: list[list[object]] = []
    pending = 0
    tallies: dict[str, Tally] = {}
    for payment in paid(account, count):
        batch.append(table_maps[Payment].codec.encode(payment))
        receipts.append(table_maps[JournalEntry].codec.encode(_receipt(payment)))
        pending += payment.amount.kopecks
        for tally in tallies_of(payment, 1):
            known = tallies.get(tally.id)
            tallies[tally.id] = tally if known is None else msgspec.structs.replace(tally, count=known.count + 1)
        if len(batch) == BATCH:
            await rows.write(table_maps[Payment], batch)
            await rows.write(table_maps[JournalEntry], receipts)
            batch, receipts = [], []
    await rows.write(table_maps[Payment], batch)
    await rows.write(table_maps[JournalEntry], receipts)
    await rows.write(table_maps[Tally], [table_maps[Tally].codec.encode(tally) for tally in tallies.values()])
    balance = LedgerAccount(
        id=ledger_account_id(account.id, Mode.TEST, BalanceType.PENDING),
        owner=account.id,
        mode=Mode.TEST,
        balance_type=BalanceType.PENDING,
        balance=pending,
    )
    await rows.write(table_maps[LedgerAccount], [table_maps[LedgerAccount].codec.encode(balance)])
    await rows.close()
    await list_all(ports)


def _receipt(payment: Payment) -> JournalEntry:
    kopecks = payment.amount.kopecks
    return journal_entry(
        EntryKind.RECEIPT,
        payment.id,
        account_id=payment.account_id,
        mode=payment.mode,
        at=payment.created_at,
        postings={BalanceType.BANK: -kopecks, BalanceType.PENDING: kopecks},
    )


async def _fill(url: str, count: int) -> None:
    await migrate(url)
    async with open_app(_settings(url), clock=_clock()) as app:
        await fill(url, app.ports, count)


async def _settle(url: str) -> Settled:
    async with open_app(_settings(url), clock=_clock()) as app:
        begun = time.perf_counter()
        batch = await settle_now(app.ports, Mode.TEST, cutoff=CUTOFF)
        seconds = time.perf_counter() - begun
    return Settled(payments=batch.payments, seconds=seconds, peak_mib=peak_mib())


def _settings(url: str) -> Settings:
    return Settings(database_url=url, vault=VaultKeys(keys={1: bytes(32)}, current=1, pepper=bytes(32)), workers=1)


def _clock() -> VirtualClock:
    return VirtualClock(CUTOFF + timedelta(hours=9))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["fill", url, count]:
            asyncio.run(_fill(url, int(count)))
        case ["settle", url]:
            sys.stdout.buffer.write(msgspec.json.encode(asyncio.run(_settle(url))))

"""A register of many payments on SQLite: CPU seconds and growth of resident memory while it is written, and while it is
read in each format: `python -m benchmarks.registers 1000000`. The goals are 60 s and 64 MiB for a million payments."""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from benchmarks.processes import peak_mib, resident_mib
from benchmarks.rows import rows_into
from cambist.adapters.storage.migrate import migrate
from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.adapters.storage.table.table_map import keep
from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.ledger import BalanceType, EntryKind, journal_entry
from cambist.core.domain.money import Rub
from cambist.core.domain.movements import Movement, movement_of
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.domain.reports.reports import ZERO, Report, ReportFormat, ReportKind
from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.reports.reports import open_report
from cambist.core.usecases.reports.writing import WRITE_REPORT, write_report
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.jobs import Job

START = datetime(2026, 1, 1, tzinfo=UTC)
BATCH = 20_000


def rows(account: Account, count: int) -> Iterator[tuple[Payment, Movement]]:
    last: Movement | None = None
    for number in range(count):
        payment_id, at = f"pay_{UUID(int=number)}", START + timedelta(milliseconds=80 * number)
        payment = Payment(
            id=payment_id, account_id=account.id, mode=Mode.TEST, shop_id=account.default_shop_id,
            status=PaymentStatus.PAID, amount=Rub(1500_00), payment_method="sbp", created_at=at, expires_at=at,
            external_id=f"order-{number}", actual_amount=Rub(1500_00), paid_at=at, sbp_operation_id=f"A{number:031}",
            description="An order of a shop", bank="simulator-test", bank_reference=f"ref-{number}",
        )  # fmt: skip
        postings = {BalanceType.BANK: -1500_00, BalanceType.PENDING: 1500_00}
        entry = journal_entry(
            EntryKind.RECEIPT, payment_id, account_id=account.id, mode=Mode.TEST, at=at, postings=postings
        )
        last = movement_of(entry, last)
        assert last is not None
        yield payment, last


async def fill(url: str, account: Account, count: int) -> None:
    kept = {kind: keep(CATALOGUE)[kind] for kind in (Payment, Movement)}
    into = await rows_into(url)
    batch: dict[type[Any], list[Any]] = {Payment: [], Movement: []}
    for payment, movement in rows(account, count):
        batch[Payment].append(kept[Payment].codec.encode(payment))
        batch[Movement].append(kept[Movement].codec.encode(movement))
        if len(batch[Payment]) == BATCH:
            for kind, some in batch.items():
                await into.write(kept[kind], some)
                some.clear()
    for kind, some in batch.items():
        await into.write(kept[kind], some)
    await into.close()


async def main(url: str, folder: Path, count: int, *, fills: bool) -> None:
    await migrate(url)
    async with open_app(Settings(database_url=url, data_dir=folder)) as app:
        if fills:
            made = await create_account(app.ports, "Merchant")
            account = await app.ports.storage.get(Account, made.account_id)
            assert account is not None
            await fill(url, account, count)
            return
        async with app.ports.storage.unit() as unit:
            [account] = await unit[Account].find(limit=2)
        report = Report(
            id=f"rep_{UUID(int=1)}", account_id=account.id, mode=Mode.TEST, kind=ReportKind.DAY,
            first_day="2026-01-01", last_day="2026-01-01", low=1, high=count + 1, position=1, created_at=START,
            opening=ZERO, closing=ZERO,
        )  # fmt: skip
        async with app.ports.storage.unit() as unit:
            unit[Report].add(report)
            unit[Job].add(WRITE_REPORT.first(report.id, START, START))
            await unit.commit()
        before, begun = resident_mib(os.getpid()), time.process_time()
        while (job := await app.ports.storage.get(Job, WRITE_REPORT.id_of(report.id))) is not None:
            await write_report(app.ports, job)
        written = await app.ports.storage.get(Report, report.id)
        assert written is not None
        print(f"{count} payments: {time.process_time() - begun:.1f} s CPU, +{peak_mib() - before:.1f} MiB", end="; ")
        print(f"{written.size / 1e6:.0f} MB of CSV, totals {written.sums}", flush=True)
        caller = Caller(account=account, mode=Mode.TEST, key_id="")
        for form in ReportFormat:
            begun, size = time.process_time(), 0
            async for part in await open_report(app.ports, caller, written, form, None, None):
                size += len(part)
            took = time.process_time() - begun
            print(f"{form}: {took:.1f} s CPU, {size / 1e6:.0f} MB, +{peak_mib() - before:.1f} MiB", flush=True)


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    if len(sys.argv) > 2:
        where = Path(sys.argv[2])
        asyncio.run(main(f"sqlite:///{where / 'app.db'}", where, wanted, fills=len(sys.argv) > 3))
    else:
        with tempfile.TemporaryDirectory() as made:
            for more in (["fill"], []):
                subprocess.run([sys.executable, "-m", "benchmarks.registers", str(wanted), made, *more], check=True)

"""The jobs that close days and write registers.

A register is written in batches, each in the unit that counts its rows, so a crash repeats and loses nothing. Its
digest is computed from the stored text, so memory does not grow with the rows.
"""

from datetime import date, timedelta
from hashlib import sha256

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Stale
from ....ports.jobs import Job
from ....ports.storage import Between, Unit
from ...domain.accounts.accounts import Account, Mode
from ...domain.days import moscow_start
from ...domain.exports.exports import ExportChunk, file_chunk_id
from ...domain.movements import Movement, movement_ids
from ...domain.reports.proofs import NOTHING, chained
from ...domain.reports.reports import ZERO, Report, ReportKind, Sums, moscow_today, report_id
from ..common.schedule import FollowUp, is_ours, reschedule_at, set_due
from ..common.units import retrying
from ..exports.exports import decrypt_chunk, encrypt_chunk
from ..exports.files import csv_text
from ..ledger.listing import AT_ONCE, last_movement, list_fresh
from ..ledger.movements import Span
from ..recurring_jobs import next_daily_reports
from .rows import COLUMNS, RegisterRows

WRITE_REPORT = FollowUp("report.write")
CLOSE_DAYS = FollowUp("report.close")
"""Makes the registers of the days of one account and mode that are over."""

_BATCHES = 20
"""Batches of rows that one run stores before other jobs get their turn."""
_PAUSE = timedelta(minutes=1)
_DAYS = 31
"""Days that one run closes."""
RACES = ("reports_id", "jobs_id")
"""Rules that the same report breaks when another unit made it first; the storage may report either."""


async def open_daily_reports(ports: Ports, job: Job) -> None:
    """Plan the jobs that close the days of all accounts that ever had a movement."""
    now = ports.clock.now()
    async for accounts in ports.storage.scan(Account, readable=True):
        async with ports.storage.unit() as unit:
            for account in accounts:
                for mode in Mode:
                    if await last_movement(unit, account.id, mode) is not None:
                        await CLOSE_DAYS.keep(unit, f"{account.id}:{mode}", now, now)
            await unit.commit()
    await reschedule_at(ports, job, next_daily_reports(max(now, job.due)), anew=True)


async def close_days(ports: Ports, job: Job) -> None:
    """Make the registers of the next days of the account and mode, and those of months that end with them."""
    account_id, _, text = job.argument.partition(":")
    mode = Mode(text)
    await list_fresh(ports, account_id, mode)
    for _ in range(_DAYS):
        if not await _close_day(ports, account_id, mode):
            await reschedule_at(ports, job, None)
            return
    await reschedule_at(ports, job, ports.clock.now(), anew=True)


async def _close_day(ports: Ports, account_id: str, mode: Mode) -> bool:
    """Make the register of the next day that is over. Return whether there was one."""
    now = ports.clock.real()

    async def work(unit: Unit) -> bool:
        days = await unit[Report].find(
            account_id=account_id, mode=mode, kind=ReportKind.DAY, order="-first_day", limit=1
        )
        last = await last_movement(unit, account_id, mode)
        if last is None:
            return False
        whole = Span(unit=unit, account_id=account_id, mode=mode, low=1, high=last.number + 1)
        if days:
            low, day = days[0].high, date.fromisoformat(days[0].first_day) + timedelta(days=1)
        else:
            [first] = await whole.of(1, 1)
            low, day = 1, moscow_today(first.at)
        if day >= moscow_today(now):
            return False
        end = moscow_start(day + timedelta(days=1))
        found = await whole.first_where({end}, lambda movement, moment: movement.at >= moment)
        spans = [(ReportKind.DAY, day, low)]
        if (day + timedelta(days=1)).day == 1:
            month = day.replace(day=1)
            begun = await unit[Report].get(report_id(account_id, mode, ReportKind.DAY, month.isoformat()))
            spans.append((ReportKind.MONTH, month, 1 if begun is None else begun.low))
        for kind, first_day, start in spans:
            span = msgspec.structs.replace(whole, low=start, high=max(start, found[end]))
            new_id = report_id(account_id, mode, kind, first_day.isoformat())
            await add_report(ports, span, kind, (first_day, day), new_id)
        return True

    return await retrying(ports.storage, work, again_on=RACES)


async def add_report(
    ports: Ports, span: Span, kind: ReportKind, days: tuple[date, date], new_id: str, kept: timedelta | None = None
) -> Report:
    """Add a report of a span of movements, with the job that writes it, to the unit of the span. `kept`: its
    lifetime."""
    before, after = await span.edges()
    now = ports.clock.real()
    span.unit[Job].add(WRITE_REPORT.first(new_id, ports.clock.now(), ports.clock.now()))
    return span.unit[Report].add(
        Report(
            id=new_id,
            account_id=span.account_id,
            mode=span.mode,
            kind=kind,
            first_day=days[0].isoformat(),
            last_day=days[1].isoformat(),
            low=span.low,
            high=span.high,
            position=span.low,
            created_at=now,
            opening=_after(before),
            closing=_after(after),
            expires_at=None if kept is None else now + kept,
        )
    )


def _after(movement: Movement | None) -> Sums:
    if movement is None:
        return ZERO
    return Sums(
        pending=movement.pending_after.kopecks,
        available=movement.available_after.units,
        reserved=movement.reserved_after.units,
    )


async def write_report(ports: Ports, job: Job) -> None:
    """Continue the report of the job."""
    report = await ports.storage.get(Report, job.argument)
    if report is None or report.ready_at is not None:
        await reschedule_at(ports, job, None)
        return
    if report.kind is ReportKind.DAY and not report.link:
        earlier = await ports.storage.get(Report, _beside(report, -1))
        if earlier is not None and earlier.ready_at is None:
            await reschedule_at(ports, job, ports.clock.now() + _PAUSE, anew=True)  # its end hurries this job
            return
        link = NOTHING.hex() if earlier is None else earlier.link
        report = msgspec.structs.replace(report, before=link, link=link)
    rows = RegisterRows(ports)
    for _ in range(_BATCHES):
        if report.position >= report.high and report.chunks:
            await _finish(ports, job, report)
            return
        report = await _store(ports, report, rows)
    await reschedule_at(ports, job, ports.clock.now(), anew=True)


def _beside(report: Report, days: int) -> str:
    """Return the id of the register of another day of the account and mode."""
    day = date.fromisoformat(report.first_day) + timedelta(days=days)
    return report_id(report.account_id, report.mode, ReportKind.DAY, day.isoformat())


async def _store(ports: Ports, report: Report, rows: RegisterRows) -> Report:
    """Store the next batch of rows; the first one begins with the heading. Raises: Stale when another worker has it."""
    high = min(report.position + AT_ONCE, report.high)
    span = Between(*movement_ids(report.account_id, report.mode, report.position, high))
    async with ports.storage.unit() as unit:
        found = await unit[Movement].find(id=span, limit=AT_ONCE) if report.position < high else []
    made, sums = await rows.of(found)
    text = csv_text(msgspec.structs.astuple(row) for row in made)
    plain = (text if report.chunks else csv_text([COLUMNS]) + text).encode()
    totals = report.totals | {kind: report.totals.get(kind, ZERO) + each for kind, each in sums.items()}
    async with ports.storage.unit() as unit:
        unit[ExportChunk].add(encrypt_chunk(ports.vault, file_chunk_id(report.id, report.chunks), plain))
        changes: dict[str, int | str] = {
            "position": high,
            "chunks": report.chunks + 1,
            "size": report.size + len(plain),
        }
        if report.link:
            link = chained(bytes.fromhex(report.link), text.encode()).hex()
            changes |= {"before": report.before, "link": link}
        saved = unit[Report].change(report, **changes, totals=totals)
        await unit.commit()
    return saved


async def _finish(ports: Ports, job: Job, report: Report) -> None:
    whole = sha256()
    for number in range(report.chunks):
        chunk = await ports.storage.get(ExportChunk, file_chunk_id(report.id, number))
        if chunk is None:
            raise Stale(f"the rows of {report.id} were deleted meanwhile")
        whole.update(decrypt_chunk(ports.vault, chunk))
    async with ports.storage.unit() as unit:
        present = await unit[Job].get(job.id)
        if present is None or not is_ours(present, job):
            raise Stale(f"another worker has the job {job.id}")
        unit[Report].change(report, digest=whole.hexdigest(), ready_at=ports.clock.real())
        if report.kind is ReportKind.DAY:
            await WRITE_REPORT.hurry(unit, _beside(report, 1), ports.clock.now())
        set_due(unit, present, None)
        await unit.commit()

"""The job that writes an export: page by page, each in the unit that counts its rows, and resumed after a crash.

CSV text is stored as it will be downloaded. Of a workbook the rows are stored first, because a file of its format
cannot be continued; then the whole workbook is built of them, from the beginning after a crash.
"""

from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import datetime
from typing import Any, cast

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Stale, Unavailable
from ....ports.jobs import Job
from ...domain.accounts.accounts import Account, Caller, Mode
from ...domain.errors import Refusal
from ...domain.exports.exports import (
    BY_API,
    ROWS_MOST,
    Export,
    ExportChunk,
    ExportFailure,
    ExportFormat,
    ExportStatus,
    ExportTrigger,
    chunk_range,
    file_chunk_id,
    moved_to,
    row_chunk_id,
)
from ...domain.people.people import Membership, User, membership_id
from ...domain.people.roles import grant
from ..common.paging import Position
from ..common.schedule import is_ours, reschedule_at, set_due
from ..payments.list import PaymentFilter
from ..people.sessions import caller_of
from ..refunds.list import RefundFilter
from ..retention import delete_chunks, delete_expired
from .exports import covers, decrypt_chunk, encrypt_chunk, filter_of, rights_of
from .files import BYTE_ORDER_MARK, cells_of, columns_of, csv_text, encode_rows, fields_of
from .rows import Rows, guarded_rows, movement_rows, payment_rows, refund_rows

_BATCHES = 20
"""Batches of rows that one run stores before other jobs get their turn."""
_ATTEMPTS_MOST = 8
"""Failed runs in a row after which an export is given up."""


async def write_export(ports: Ports, job: Job) -> None:
    """Continue the export of the job."""
    export = await ports.storage.get(Export, job.argument)
    if export is None:
        await reschedule_at(ports, job, None)
    elif export.expires_at <= ports.clock.real():
        await delete_expired(ports, export)
        await reschedule_at(ports, job, None)
    elif not export.is_open:
        await _tidy(ports, export)
        await reschedule_at(ports, job, None)
    elif job.attempts > _ATTEMPTS_MOST:
        await _fail(ports, job, export, ExportFailure.ERROR)
    else:
        caller = await _caller(ports, export)
        if caller is None:
            await _fail(ports, job, export, ExportFailure.RIGHTS)
        elif export.status is ExportStatus.COLLECTING:
            await _collect(ports, job, export, caller)
        else:
            await _pack(ports, job, export)


async def _caller(ports: Ports, export: Export) -> Caller | None:
    """Return the owner as a caller. None: the person may not have this file any more."""
    if export.is_by_api:
        account = await ports.storage.get(Account, export.account_id)
        return None if account is None else Caller(account=account, mode=export.mode, key_id=BY_API)
    async with ports.storage.unit() as unit:
        user = await unit[User].get(export.owner_id)
        membership = await unit[Membership].get(membership_id(export.account_id, export.owner_id))
        account = await unit[Account].get(export.account_id)
    if user is None or membership is None or account is None or user.disabled_at is not None:
        return None
    is_let_in = membership.live or export.mode is Mode.TEST
    has_right = all(grant(membership.role, each, export.mode) is not None for each in rights_of(export.kind))
    if not is_let_in or not has_right or not covers(membership.shops, export.shops):
        return None
    return caller_of(account, membership, export.mode)


async def _collect(ports: Ports, job: Job, export: Export, caller: Caller) -> None:
    try:
        batches = await _batches(ports, caller, export)
    except Refusal as refusal:
        if refusal.retry_after is not None:
            raise Unavailable(refusal.message) from None
        await _fail(ports, job, export, ExportFailure.FILTER)
        return
    stored = 0
    async with aclosing(cast("Any", batches)):
        async for rows, position in batches:
            if export.rows + len(rows) > ROWS_MOST[export.format]:
                await _fail(ports, job, export, ExportFailure.TOO_MANY)
                return
            export = await _store(ports, export, rows, position)
            stored += 1
            if stored == _BATCHES:
                await reschedule_at(ports, job, ports.clock.now(), anew=True)
                return
    await _collected(ports, job, export)


async def _batches(ports: Ports, caller: Caller, export: Export) -> AsyncIterator[tuple[Rows, Position]]:
    after = None
    if export.position_at is not None and export.position_id is not None:
        after = Position(export.position_at, export.position_id)
    asked = filter_of(export)
    if isinstance(asked, PaymentFilter):
        return await payment_rows(ports, caller, asked, after)
    if isinstance(asked, RefundFilter):
        return await refund_rows(ports, caller, asked, after)
    return await movement_rows(ports, caller, asked, after)


async def _store(ports: Ports, export: Export, rows: Rows, position: Position) -> Export:
    """Store a batch. Raises: Stale when another worker has the export, or its person stopped it."""
    changes: dict[str, Any] = {
        "rows": export.rows + len(rows),
        "position_at": position.at,
        "position_id": position.id,
    }
    chunk = None
    if rows and export.format is ExportFormat.CSV:
        chunk, counted = _text_chunk(ports, export, rows)
        changes |= counted
    elif rows:
        chunk = encrypt_chunk(ports.vault, row_chunk_id(export.id, export.row_chunks), encode_rows(rows))
        changes["row_chunks"] = export.row_chunks + 1
    return await _saved(ports, export, chunk, **changes)


def _text_chunk(ports: Ports, export: Export, rows: Rows) -> tuple[ExportChunk, dict[str, Any]]:
    """Return the next chunk of a CSV file, and the counts with it. The first chunk begins with the heading."""
    text = csv_text(msgspec.structs.astuple(row) for row in guarded_rows(rows))
    if not export.file_chunks:
        text = csv_text([fields_of(export)]) + text
        text = text if export.is_by_api else BYTE_ORDER_MARK + text
    plain = text.encode()
    chunk = encrypt_chunk(ports.vault, file_chunk_id(export.id, export.file_chunks), plain)
    return chunk, {"file_chunks": export.file_chunks + 1, "size": export.size + len(plain)}


async def _saved(ports: Ports, export: Export, chunk: ExportChunk | None, **changes: Any) -> Export:
    async with ports.storage.unit() as unit:
        if chunk is not None:
            unit[ExportChunk].add(chunk)
        saved = unit[Export].change(export, **changes)
        await unit.commit()
    return saved


async def _collected(ports: Ports, job: Job, export: Export) -> None:
    now = ports.clock.real()
    if export.format is ExportFormat.XLSX:
        packing = moved_to(export, ExportTrigger.COLLECTED, now)
        await _end(ports, job, packing, ports.clock.now())
        return
    chunk, counted = (None, {}) if export.file_chunks else _text_chunk(ports, export, [])
    await _end(ports, job, moved_to(export, ExportTrigger.WRITTEN, now, **counted), None, chunk)


async def _pack(ports: Ports, job: Job, export: Export) -> None:
    # The new version of the export keeps a worker that lost its lease from adding to this worker's file.
    export = await _saved(ports, export, None, file_chunks=0, size=0)
    await delete_chunks(ports, file_chunk_id(export.id, 0), file_chunk_id(export.id, 999_999))
    columns = columns_of(export)
    book = ports.spreadsheets.open(export.kind.value, columns)
    for number in range(export.row_chunks):
        chunk = await ports.storage.get(ExportChunk, row_chunk_id(export.id, number))
        if chunk is None:
            raise Stale(f"the rows of {export.id} were deleted meanwhile")
        await book.write(cells_of(columns, decrypt_chunk(ports.vault, chunk)))
    async for part in book.parts():
        sealed = encrypt_chunk(ports.vault, file_chunk_id(export.id, export.file_chunks), part, packed=True)
        counted = {"file_chunks": export.file_chunks + 1, "size": export.size + len(part)}
        export = await _saved(ports, export, sealed, **counted)
    await _end(ports, job, moved_to(export, ExportTrigger.WRITTEN, ports.clock.real()), ports.clock.now())


async def _fail(ports: Ports, job: Job, export: Export, failure: ExportFailure) -> None:
    failed = moved_to(export, ExportTrigger.FAILED, ports.clock.real(), failure=failure)
    await _end(ports, job, failed, ports.clock.now())


async def _end(ports: Ports, job: Job, export: Export, due: datetime | None, chunk: ExportChunk | None = None) -> None:
    """Save a move of the export together with the job's next run; None: the job is done."""
    async with ports.storage.unit() as unit:
        present = await unit[Job].get(job.id)
        if present is None or not is_ours(present, job):
            raise Stale(f"another worker has the job {job.id}")
        if chunk is not None:
            unit[ExportChunk].add(chunk)
        unit[Export].save(export)
        set_due(unit, present, due, anew=True)
        await unit.commit()


async def _tidy(ports: Ports, export: Export) -> None:
    """Delete what an ended export does not need: the rows of a workbook, or all chunks of a failed export."""
    if export.status is ExportStatus.FAILED:
        await delete_chunks(ports, *chunk_range(export.id))
    else:
        await delete_chunks(ports, row_chunk_id(export.id, 0), row_chunk_id(export.id, 999_999))

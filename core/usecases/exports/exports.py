"""Exports of a person: order, list, download and delete (docs/dashboard.md "Exports")."""

import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import OneOf, Repository, Unit
from ....ports.vault import Vault
from ...domain.accounts.accounts import Caller
from ...domain.days import iso, parse_moment
from ...domain.errors import Refusal, shape_error
from ...domain.exports.exports import (
    EXPORT,
    KEPT_MOST,
    OPEN_MOST,
    ROWS_MOST,
    UNFINISHED_KEPT,
    Export,
    ExportChunk,
    ExportFailure,
    ExportFormat,
    ExportKind,
    ExportStatus,
    ExportTrigger,
    file_chunk_id,
    moved_to,
    slots_of,
)
from ...domain.ids import canonical_uuid, derived, is_prefixed
from ...domain.people.roles import PersonRight
from ..common.encrypted import export_chunk_aad
from ..common.schedule import FollowUp
from ..common.units import retrying, unit_of_work
from ..payments.list import PaymentFilter, PaymentSearch, checked, list_payments
from ..people.sessions import Actor, require
from ..refunds.list import RefundFilter, list_refunds

WRITE = FollowUp("export.write")

Filter = PaymentFilter | RefundFilter
_RACES = ("exports_slot", "exports_id")


async def create_export(ports: Ports, actor: Actor, key: str, asked: Filter, file_format: ExportFormat) -> Export:
    """Order a file of the filtered list, as of now, for this person. A repeated key returns the same export.

    Raises: Refusal PERSON_RIGHT_MISSING, STEP_UP_NEEDED, VALIDATION_ERROR, SHOP_NOT_FOUND, EXPORT_TOO_LARGE,
    EXPORTS_BUSY.
    """
    require(actor, PersonRight.EXPORT)
    uuid = canonical_uuid(key)
    if uuid is None:
        raise shape_error("key", "must be a UUID")
    caller = actor.caller
    now, here = ports.clock.real(), ports.clock.now()
    wanted = _until(here, asked)
    total = await _count(ports, caller, wanted)
    if total is not None and total > ROWS_MOST[file_format]:
        most = ROWS_MOST[file_format]
        raise Refusal("EXPORT_TOO_LARGE", f"A file has at most {most} rows, and the filter finds {total}: narrow it")
    export = Export(
        id=derived(EXPORT, caller.account_id, caller.mode, actor.user.id, uuid),
        account_id=caller.account_id,
        mode=caller.mode,
        user_id=actor.user.id,
        kind=ExportKind.PAYMENTS if isinstance(wanted, PaymentFilter) else ExportKind.REFUNDS,
        format=file_format,
        status=ExportStatus.COLLECTING,
        filter={name: value for name, value in msgspec.structs.asdict(wanted).items() if value is not None},
        shops=caller.shops if wanted.shop_id is None else (wanted.shop_id,),
        total=total,
        created_at=now,
        expires_at=now + UNFINISHED_KEPT,
    )

    async def work(unit: Unit) -> Export:
        known = await unit[Export].get(export.id)
        if known is not None:
            return known
        if len(await _listed(ports, unit, actor)) >= KEPT_MOST:
            raise Refusal("EXPORTS_BUSY", f"You have {KEPT_MOST} exports: delete those that you do not need")
        slots = slots_of(caller.account_id)
        taken = {each.slot for each in await unit[Export].find(slot=OneOf(slots), limit=OPEN_MOST)}
        free = next((slot for slot in slots if slot not in taken), None)
        if free is None:
            message = f"{OPEN_MOST} exports of the account are being written: wait for one of them"
            raise Refusal("EXPORTS_BUSY", message)
        unit[Job].add(WRITE.first(export.id, here, here))
        return unit[Export].add(msgspec.structs.replace(export, slot=free))

    return await retrying(ports.storage, work, again_on=_RACES)


def filter_of(export: Export) -> Filter:
    """Return the filter of the list that the export contains."""
    return read_filter(export.kind, export.filter)


def read_filter(kind: ExportKind, values: Mapping[str, str | None]) -> Filter:
    """Return the filter of a list with these values. It is checked where the list is read."""
    return PaymentSearch(**values) if kind is ExportKind.PAYMENTS else RefundFilter(**values)


def filter_names(kind: ExportKind) -> tuple[str, ...]:
    """Return the names of the filter's values."""
    return (PaymentSearch if kind is ExportKind.PAYMENTS else RefundFilter).__struct_fields__


def _until(now: datetime, asked: Filter) -> Filter:
    """Return the filter without what is created after now, so that the file ends. The bound is exclusive and written in
    milliseconds."""
    now += timedelta(milliseconds=1)
    given = None if asked.created_to is None else parse_moment(asked.created_to)
    if asked.created_to is not None and (given is None or given < now):
        return asked  # a text that is no moment is refused where the filter is read
    return msgspec.structs.replace(asked, created_to=iso(now))


async def _count(ports: Ports, caller: Caller, asked: Filter) -> int | None:
    if isinstance(asked, PaymentSearch) and asked.amount_rub is not None:
        await checked(ports, caller, asked)
        return None
    if isinstance(asked, PaymentFilter):
        return (await list_payments(ports, caller, asked, 1, 1)).total
    return (await list_refunds(ports, caller, asked, lambda: (1, 1))).total


async def list_exports(ports: Ports, actor: Actor) -> Sequence[Export]:
    """Return the person's exports in this account and mode, newest first."""
    async with ports.storage.unit() as unit:
        return await _listed(ports, unit, actor)


async def _listed(ports: Ports, unit: Unit, actor: Actor) -> Sequence[Export]:
    owner: dict[str, Any] = {"user_id": actor.user.id, "account_id": actor.account.id, "mode": actor.mode}
    found = await unit[Export].find(order="-created_at", limit=10 * KEPT_MOST, readable=True, **owner)
    now = ports.clock.real()
    return [each for each in found if now < each.expires_at]


async def open_file(ports: Ports, actor: Actor, export_id: str) -> tuple[Export, AsyncIterator[bytes]]:
    """Return a file that is ready, with its content in parts. The person's rights are checked as they are now.

    Raises: Refusal PERSON_RIGHT_MISSING, STEP_UP_NEEDED, EXPORT_NOT_FOUND.
    """
    require(actor, PersonRight.EXPORT)
    async with ports.storage.unit() as unit:
        export = await _own(ports, actor, unit[Export], export_id)
    if export.status is not ExportStatus.READY or not covers(actor.caller.shops, export.shops):
        raise _missing()
    return export, _parts(ports, export)


async def _parts(ports: Ports, export: Export) -> AsyncIterator[bytes]:
    for number in range(export.file_chunks):
        chunk = await ports.storage.get(ExportChunk, file_chunk_id(export.id, number))
        if chunk is None:
            raise _missing()  # deleted meanwhile: the download breaks off
        yield decrypt_chunk(ports.vault, chunk)


@unit_of_work()
async def delete_export(ports: Ports, unit: Unit, actor: Actor, export_id: str) -> None:
    """Delete an export of the person; one that is being written is stopped. Its job deletes the content.

    Raises: Refusal EXPORT_NOT_FOUND.
    """
    export = await _own(ports, actor, unit[Export], export_id)
    now = ports.clock.real()
    if export.is_open:
        export = moved_to(export, ExportTrigger.FAILED, now, failure=ExportFailure.CANCELLED)
    unit[Export].save(msgspec.structs.replace(export, expires_at=now))
    await WRITE.plan(unit, export.id, ports.clock.now(), ports.clock.now(), anew=True)


async def _own(ports: Ports, actor: Actor, exports: Repository[Export], export_id: str) -> Export:
    found = await exports.get(export_id) if is_prefixed(EXPORT, export_id) else None
    owner = (actor.user.id, actor.account.id, actor.mode)
    if found is None or (found.user_id, found.account_id, found.mode) != owner:
        raise _missing()
    if found.expires_at <= ports.clock.real():
        raise _missing()
    return found


def _missing() -> Refusal:
    return Refusal("EXPORT_NOT_FOUND", "You have no file of this id, or it has expired: order it again")


def covers(present: tuple[str, ...] | None, needed: tuple[str, ...] | None) -> bool:
    """Return whether a person with these shops may see what the other shops hold; None: all shops."""
    return present is None or (needed is not None and set(needed) <= set(present))


def encrypt_chunk(vault: Vault, chunk_id: str, plain: bytes, *, packed: bool = False) -> ExportChunk:
    """Return a chunk, compressed and encrypted for this id alone. `packed`: it is compressed already, and is not
    compressed again."""
    body = zlib.compress(plain, 0 if packed else 6)
    return ExportChunk(id=chunk_id, body=vault.encrypt(body, export_chunk_aad(chunk_id)))


def decrypt_chunk(vault: Vault, chunk: ExportChunk) -> bytes:
    """Return the content of a chunk. Raises: VaultError."""
    return zlib.decompress(vault.decrypt(chunk.body, export_chunk_aad(chunk.id)))

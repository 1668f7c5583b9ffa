"""Exports of a person: order, list, download and delete (docs/dashboard.md "Exports"); and of programs
(docs/concepts.md "Exports")."""

import zlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import OneOf, Repository, Unit
from ....ports.vault import Vault, VaultError
from ...domain.accounts.accounts import Caller, Mode
from ...domain.accounts.idempotency import IdempotencyKey
from ...domain.days import iso, parse_moment
from ...domain.errors import Refusal, shape_error
from ...domain.exports.exports import (
    BY_API,
    EXPORT,
    KEPT_MOST,
    LINK_LIVES,
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
from ...domain.exports.orders import ExportOrder
from ...domain.ids import canonical_uuid, derived, is_prefixed
from ...domain.people.roles import PersonRight
from ..common.encrypted import export_chunk_aad
from ..common.idempotency import Lock, Made, once, read_key, yield_to_maker
from ..common.paging import Page
from ..common.schedule import FollowUp
from ..common.units import retrying, unit_of_work
from ..ledger.movements import MovementFilter, list_movements
from ..payments.list import PaymentFilter, PaymentSearch, checked, list_payments
from ..people.sessions import Actor, require
from ..refunds.list import RefundFilter, list_refunds
from ..refunds.refunds import require_refunds

WRITE = FollowUp("export.write")

Filter = PaymentFilter | RefundFilter | MovementFilter

_FILTERS: Mapping[ExportKind, type[PaymentSearch] | type[RefundFilter] | type[MovementFilter]] = {
    ExportKind.PAYMENTS: PaymentSearch,
    ExportKind.REFUNDS: RefundFilter,
    ExportKind.STATEMENT: MovementFilter,
}
_LINK = "exports.link"

Owner = tuple[str, str, Mode]
"""Owner's id, account and mode."""
_RACES = ("exports_slot", "exports_id")


async def create_export(ports: Ports, actor: Actor, key: str, asked: Filter, file_format: ExportFormat) -> Export:
    """Order a file of what the filter finds at this moment. The same `key` again returns the first export.

    Raises: Refusal PERSON_RIGHT_MISSING, STEP_UP_NEEDED; VALIDATION_ERROR, SHOP_NOT_FOUND; EXPORT_TOO_LARGE;
    EXPORTS_BUSY.
    """
    for right in rights_of(kind_of(asked)):
        require(actor, right)
    if isinstance(asked, MovementFilter) and actor.caller.shops is not None:
        details = {"right": PersonRight.MONEY.value}
        raise Refusal("PERSON_RIGHT_MISSING", "You are limited to shops, and this is about all", details=details)
    uuid = canonical_uuid(key)
    if uuid is None:
        raise shape_error("key", "must be a UUID")
    export = await _new(ports, actor.caller, actor.user.id, uuid, asked, file_format)
    return await _added(ports, export)


async def order_export(ports: Ports, caller: Caller, key: str | None, read: Callable[[], ExportOrder]) -> Made[Export]:
    """Order a file for a program. All keys of the account and mode share its exports.

    Raises: Refusal as `once`; VALIDATION_ERROR, SHOP_NOT_FOUND; NOT_FOUND for refunds while they are off;
    EXPORT_TOO_LARGE; EXPORTS_BUSY; PROVIDER_UNAVAILABLE while movements are being listed.
    """

    async def make(lock: Lock) -> Export:
        order = read()
        asked = filter_of_order(order)
        if isinstance(asked, RefundFilter):
            require_refunds(caller)
        export = await _new(ports, caller, BY_API, read_key(key), asked, order.format)
        return await _added(ports, export, lock)

    async def recall(export_id: str) -> Export:
        async with ports.storage.unit() as unit:
            return await _own(ports, _program(caller), unit[Export], export_id)

    return await once(ports, caller, key, "export", make=make, recall=recall, id_rule="exports_id")


async def get_export(ports: Ports, caller: Caller, export_id: str) -> Export:
    """Return an export that a program ordered. Raises: Refusal EXPORT_NOT_FOUND."""
    async with ports.storage.unit() as unit:
        return await _own(ports, _program(caller), unit[Export], export_id)


async def list_ordered(ports: Ports, caller: Caller, number: int, size: int) -> Page[Export]:
    """Return a page of the exports that programs ordered, newest first."""
    async with ports.storage.unit() as unit:
        found = await _listed(ports, unit, _program(caller))
    return Page(list(found[(number - 1) * size : number * size]), number, size, len(found))


async def open_ordered(ports: Ports, caller: Caller, export_id: str) -> tuple[Export, AsyncIterator[bytes]]:
    """Return a file that a program ordered, with its content in parts. Raises: Refusal EXPORT_NOT_FOUND, also while it
    is not ready."""
    return _opened(ports, await get_export(ports, caller, export_id))


def download_link(ports: Ports, export: Export) -> str:
    """Return an address at which the file can be downloaded without a key, for LINK_LIVES."""
    until = int((ports.clock.real() + LINK_LIVES).timestamp())
    said = f"{export.id}.{until}"
    return f"{ports.urls.base_url}/api/v1/export-files/{said}.{ports.vault.tag(said.encode(), _LINK).hex()}"


async def open_link(ports: Ports, token: str) -> tuple[Export, AsyncIterator[bytes]]:
    """Return the file of a download link. Raises: Refusal EXPORT_NOT_FOUND, also for an expired or altered link."""
    said, _, tag = token.rpartition(".")
    export_id, _, until = said.partition(".")
    try:
        is_ours = ports.vault.fits(bytes.fromhex(tag), said.encode(), _LINK)
    except (ValueError, VaultError):
        is_ours = False
    if not is_ours or int(until) < ports.clock.real().timestamp():
        raise _missing()
    found = await ports.storage.get(Export, export_id)
    if found is None or found.expires_at <= ports.clock.real():
        raise _missing()
    return _opened(ports, found)


async def _new(
    ports: Ports, caller: Caller, owner_id: str, uuid: str, asked: Filter, file_format: ExportFormat
) -> Export:
    """Return a new export, not stored yet. Raises: Refusal EXPORT_TOO_LARGE, and as the list of the filter."""
    now = ports.clock.real()
    wanted = _until(ports.clock.now(), asked)
    total = await _count(ports, caller, wanted)
    if total is not None and total > ROWS_MOST[file_format]:
        most = ROWS_MOST[file_format]
        raise Refusal("EXPORT_TOO_LARGE", f"A file has at most {most} rows, and the filter finds {total}: narrow it")
    shop_id = None if isinstance(wanted, MovementFilter) else wanted.shop_id
    return Export(
        id=derived(EXPORT, caller.account_id, caller.mode, owner_id, uuid),
        account_id=caller.account_id,
        mode=caller.mode,
        owner_id=owner_id,
        kind=kind_of(wanted),
        format=file_format,
        status=ExportStatus.COLLECTING,
        filter={name: value for name, value in msgspec.structs.asdict(wanted).items() if value is not None},
        shops=caller.shops if shop_id is None else (shop_id,),
        total=total,
        created_at=now,
        expires_at=now + UNFINISHED_KEPT,
    )


async def _added(ports: Ports, export: Export, lock: Lock | None = None) -> Export:
    """Store an export with its job, or return the one of this id. Raises: Refusal EXPORTS_BUSY."""
    here = ports.clock.now()

    async def work(unit: Unit) -> Export:
        known = await unit[Export].get(export.id)
        if known is not None:
            return known
        if lock is not None:
            await yield_to_maker(unit, lock)
        if len(await _listed(ports, unit, (export.owner_id, export.account_id, export.mode))) >= KEPT_MOST:
            raise Refusal("EXPORTS_BUSY", f"You have {KEPT_MOST} exports: delete those that you do not need")
        slots = slots_of(export.account_id)
        taken = {each.slot for each in await unit[Export].find(slot=OneOf(slots), limit=OPEN_MOST)}
        free = next((slot for slot in slots if slot not in taken), None)
        if free is None:
            message = f"{OPEN_MOST} exports of the account are being written: wait for one of them"
            raise Refusal("EXPORTS_BUSY", message)
        if lock is not None:
            unit[IdempotencyKey].add(lock(export.id))
        unit[Job].add(WRITE.first(export.id, here, here))
        return unit[Export].add(msgspec.structs.replace(export, slot=free))

    return await retrying(ports.storage, work, again_on=_RACES)


def filter_of_order(order: ExportOrder) -> Filter:
    """Return the filter of a program's order. Raises: Refusal VALIDATION_ERROR for a name that the list has not."""
    kind = {ExportKind.PAYMENTS: PaymentFilter}.get(order.kind, _FILTERS[order.kind])
    for name in order.filter:
        if name not in kind.__struct_fields__:
            known = ", ".join(sorted(kind.__struct_fields__))
            raise shape_error(f"filter.{name[:40]}", f"is not a filter of this list; known: {known}")
    return kind(**order.filter)


def filter_of(export: Export) -> Filter:
    """Return the filter of the list that the export contains."""
    return read_filter(export.kind, export.filter)


def read_filter(kind: ExportKind, values: Mapping[str, str | None]) -> Filter:
    """Return the filter of a list with these values. It is checked where the list is read."""
    return _FILTERS[kind](**values)


def filter_names(kind: ExportKind) -> tuple[str, ...]:
    """Return the names of the filter's values."""
    return _FILTERS[kind].__struct_fields__


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
    if isinstance(asked, RefundFilter):
        return (await list_refunds(ports, caller, asked, lambda: (1, 1))).total
    return (await list_movements(ports, caller, asked, 1, 1)).total


def kind_of(asked: Filter) -> ExportKind:
    """Return the list that a filter belongs to."""
    if isinstance(asked, PaymentFilter):
        return ExportKind.PAYMENTS
    return ExportKind.REFUNDS if isinstance(asked, RefundFilter) else ExportKind.STATEMENT


def rights_of(kind: ExportKind) -> tuple[PersonRight, ...]:
    """Return the rights that a person needs for a file of this list."""
    return (PersonRight.EXPORT, PersonRight.MONEY) if kind is ExportKind.STATEMENT else (PersonRight.EXPORT,)


async def list_exports(ports: Ports, actor: Actor) -> Sequence[Export]:
    """Return the person's exports in this account and mode, newest first."""
    async with ports.storage.unit() as unit:
        return await _listed(ports, unit, _person(actor))


async def _listed(ports: Ports, unit: Unit, owner: Owner) -> Sequence[Export]:
    owned: dict[str, Any] = dict(zip(("owner_id", "account_id", "mode"), owner, strict=True))
    found = await unit[Export].find(order="-created_at", limit=10 * KEPT_MOST, readable=True, **owned)
    now = ports.clock.real()
    return [each for each in found if now < each.expires_at]


async def open_file(ports: Ports, actor: Actor, export_id: str) -> tuple[Export, AsyncIterator[bytes]]:
    """Return a file that is ready, with its content in parts. The person's rights are checked as they are now.

    Raises: Refusal PERSON_RIGHT_MISSING, STEP_UP_NEEDED, EXPORT_NOT_FOUND.
    """
    require(actor, PersonRight.EXPORT)
    async with ports.storage.unit() as unit:
        export = await _own(ports, _person(actor), unit[Export], export_id)
    if not covers(actor.caller.shops, export.shops):
        raise _missing()
    for right in rights_of(export.kind):
        require(actor, right)
    return _opened(ports, export)


def _opened(ports: Ports, export: Export) -> tuple[Export, AsyncIterator[bytes]]:
    if export.status is not ExportStatus.READY:
        raise _missing()
    return export, _parts(ports, export)


async def _parts(ports: Ports, export: Export) -> AsyncIterator[bytes]:
    for number in range(export.file_chunks):
        chunk = await ports.storage.get(ExportChunk, file_chunk_id(export.id, number))
        if chunk is None:
            raise _missing()  # deleted meanwhile: the download breaks off
        yield decrypt_chunk(ports.vault, chunk)


async def delete_export(ports: Ports, actor: Actor, export_id: str) -> None:
    """Delete an export of the person, as `_delete`. Raises: Refusal EXPORT_NOT_FOUND."""
    await _delete(ports, _person(actor), export_id)


async def delete_ordered(ports: Ports, caller: Caller, export_id: str) -> None:
    """Delete an export that a program ordered, as `_delete`. Raises: Refusal EXPORT_NOT_FOUND."""
    await _delete(ports, _program(caller), export_id)


@unit_of_work()
async def _delete(ports: Ports, unit: Unit, owner: Owner, export_id: str) -> None:
    """Delete an export; one that is being written is stopped. Its job deletes the content."""
    export = await _own(ports, owner, unit[Export], export_id)
    now = ports.clock.real()
    if export.is_open:
        export = moved_to(export, ExportTrigger.FAILED, now, failure=ExportFailure.CANCELLED)
    unit[Export].save(msgspec.structs.replace(export, expires_at=now))
    await WRITE.plan(unit, export.id, ports.clock.now(), ports.clock.now(), anew=True)


async def _own(ports: Ports, owner: Owner, exports: Repository[Export], export_id: str) -> Export:
    found = await exports.get(export_id) if is_prefixed(EXPORT, export_id) else None
    if found is None or (found.owner_id, found.account_id, found.mode) != owner:
        raise _missing()
    if found.expires_at <= ports.clock.real():
        raise _missing()
    return found


def _person(actor: Actor) -> Owner:
    return actor.user.id, actor.account.id, actor.mode


def _program(caller: Caller) -> Owner:
    return BY_API, caller.account_id, caller.mode


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

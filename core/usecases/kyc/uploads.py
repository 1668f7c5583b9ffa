"""Documents for checks: an upload is granted, filled once from outside, used by one check, and deleted (docs/kyc.md "In
live mode").
"""

from datetime import datetime

import msgspec

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.kyc import Document, Purpose
from ....ports.storage import Between, Unit
from ...domain.accounts.accounts import Account, Caller, Mode
from ...domain.errors import Refusal, shape_error
from ...domain.kyc.clients import IN_PROGRESS, Client, is_check_of, operation_of, read_operation
from ...domain.kyc.kyc import (
    UPLOAD_EMPTY,
    UPLOAD_KEPT,
    UPLOAD_MAX,
    UPLOAD_TIME,
    ReadUpload,
    RegisterOrder,
    Upload,
    UploadOrder,
    check_content_type,
    check_upload_size,
    is_open,
    may_use,
    require_kyc,
)
from ...domain.masked import Masked
from ..common.schedule import is_ours, set_due
from ..common.units import retrying
from .results import FOLLOWED
from .verifiers import require_verifier

TIDY_UPLOAD = "kyc.upload"

HELD_AT_ONCE = 12
"""Uploads that one client may have through the hosted page: three documents, with some retries."""

UNUSED_AT_ONCE = 500
"""Uploads of one account and mode that no check has used yet. Each may hold UPLOAD_MAX bytes, so this limits the bytes,
too.
"""

OPEN_AT_ONCE = 100
"""The same limit for anonymous clients, without a merchant's link; it keeps them from using up the merchant's limit."""

_PURPOSES = {
    "selfie_key": Purpose.SELFIE,
    "document_key": Purpose.DOCUMENT,
    "address_key": Purpose.ADDRESS,
}
_KEY_BYTES = 32


class Grant(Masked, frozen=True, kw_only=True):
    """An upload for a document. The address is the permission to fill it, so its repr hides it."""

    _shown = ("expires_at",)

    upload_url: str
    file_key: str
    expires_at: datetime


async def grant_upload(ports: Ports, caller: Caller, read_order: ReadUpload) -> Grant:
    """Grant an address to which one document of any client of the account may be PUT.

    Raises: Refusal PROVIDER_DISABLED, SANDBOX_NOT_SUPPORTED, KYC_NOT_REQUIRED, VALIDATION_ERROR, KYC_UNAVAILABLE,
    UPLOAD_LIMIT, in this order.
    """
    require_kyc(caller)
    order = read_order()
    return await _grant(ports, caller.account_id, caller.mode, order, None)


async def grant_to_client(ports: Ports, account_id: str, mode: Mode, order: UploadOrder, holder: bytes) -> Grant:
    """Grant an address for a document of the client with this phone digest (or its `open_holder`), at most
    `HELD_AT_ONCE` per client.

    Raises: Refusal VALIDATION_ERROR, KYC_UNAVAILABLE, UPLOAD_LIMIT.
    """
    return await _grant(ports, account_id, mode, order, holder)


async def _grant(ports: Ports, account_id: str, mode: Mode, order: UploadOrder, holder: bytes | None) -> Grant:
    content_type, size = check_content_type(order.content_type), check_upload_size(order.size)
    require_verifier(ports)
    now = ports.clock.now()
    upload = Upload(
        id=ports.ids.secret(_KEY_BYTES),
        account_id=account_id,
        mode=mode,
        content_type=content_type,
        created_at=now,
        expires_at=now + UPLOAD_TIME,
        holder=holder,
    )
    tidying = Job(
        id=_unused(upload),
        kind=TIDY_UPLOAD,
        argument=upload.id,
        due=upload.expires_at + UPLOAD_EMPTY,
        created_at=now,
    )
    url = ports.files.grant(upload.id, content_type, size or UPLOAD_MAX, upload.expires_at, size=size)

    async def work(unit: Unit) -> None:
        account = await unit[Account].get(account_id)
        if account is None:
            raise Refusal("ACCOUNT_NOT_FOUND", "There is no account of this id")
        await _require_room(unit, upload)
        unit[Account].save(account)  # Raises its version, so that of two concurrent grants one counts again.
        unit[Upload].add(upload)
        unit[Job].add(tidying)

    await retrying(ports.storage, work)
    return Grant(upload_url=url, file_key=upload.id, expires_at=upload.expires_at)


async def _require_room(unit: Unit, upload: Upload) -> None:
    """Check the limits of uploads. Raises: Refusal UPLOAD_LIMIT."""
    if upload.holder is not None and await unit[Upload].total(holder=upload.holder) >= HELD_AT_ONCE:
        raise Refusal("UPLOAD_LIMIT", "Too many documents; try again tomorrow")
    prefix = _prefix(upload.account_id, upload.mode)
    for of, most in ((prefix, UNUSED_AT_ONCE), (f"{prefix}:open", OPEN_AT_ONCE if is_open(upload) else None)):
        if most is not None and await unit[Job].total(id=Between(f"{of}:", f"{of};")) >= most:  # ; follows : in ASCII
            raise Refusal(
                "UPLOAD_LIMIT",
                f"Too many documents that no check has used: {most} at most",
                retry_after=int(UPLOAD_EMPTY.total_seconds()),
            )


def _prefix(account_id: str, mode: Mode) -> str:
    """Return the common prefix of the jobs that clean up an account's unused uploads; counting the jobs counts the
    uploads.
    """
    return f"{TIDY_UPLOAD}:{account_id}:{mode}"


def _unused(upload: Upload) -> str:
    """Return the id of the job that cleans up an upload which no check uses."""
    return f"{_prefix(upload.account_id, upload.mode)}:{'open:' if is_open(upload) else ''}{upload.id}"


def _used(upload: Upload) -> str:
    """Return the id of the same job once a check uses the upload."""
    return f"{TIDY_UPLOAD}:{upload.id}"


async def missing_files(ports: Ports, order: RegisterOrder) -> set[str]:
    """Return the fields whose file was not uploaded, is empty, or exceeds UPLOAD_MAX. Raises: Unavailable."""
    missing = set()
    for name, key in order.keys().items():
        stored = await ports.files.stat(key)
        if stored is None or not 0 < stored.size <= UPLOAD_MAX:
            missing.add(name)
    return missing


async def use_uploads(unit: Unit, client: Client, order: RegisterOrder, missing: set[str]) -> tuple[Document, ...]:
    """Assign the documents of a registration to the client's check for good, in the unit that begins it.

    Raises: Refusal VALIDATION_ERROR for a key that belongs to another account, is used, or has no file. The message is
    the same for all, so that it does not reveal the keys of others.
    """
    documents = []
    for name, key in order.keys().items():
        upload = await unit[Upload].get(key)
        usable = may_use(upload, client.account_id, client.mode, client.phone_digest)
        if upload is None or not usable or name in missing:
            raise shape_error(name, "must be the key of a file that was uploaded and not used yet")
        unit[Upload].save(msgspec.structs.replace(upload, used_by=operation_of(client)))
        waiting = await unit[Job].get(_unused(upload))
        if waiting is not None:  # This frees room for another unused upload.
            unit[Job].remove(waiting)
            due = upload.created_at + UPLOAD_KEPT
            unit[Job].add(msgspec.structs.replace(waiting, id=_used(upload), due=due, version=0))
        documents.append(Document(purpose=_PURPOSES[name], key=key, content_type=upload.content_type))
    return tuple(documents)


async def forget_upload(ports: Ports, upload: Upload) -> None:
    """Delete a document now, with its record and its job. Raises: Unavailable."""
    await ports.files.remove(upload.id)

    async def work(unit: Unit) -> None:
        present = await unit[Upload].get(upload.id)
        if present is not None:
            unit[Upload].remove(present)
        for job_id in (_unused(upload), _used(upload)):
            tidying = await unit[Job].get(job_id)
            if tidying is not None:
                unit[Job].remove(tidying)

    await retrying(ports.storage, work)


async def tidy_upload(ports: Ports, job: Job) -> None:
    """Delete a document that no check needs (a job): a day after its grant, or once its check is decided if that is
    later. An upload that was never filled is deleted after its grant has expired.
    """
    now = ports.clock.now()
    async with ports.storage.unit() as unit:
        upload = await unit[Upload].get(job.argument)
        needed = upload is not None and await _is_needed(unit, upload, now)
    until = now + UPLOAD_KEPT
    if upload is not None and not needed:
        if now < upload.created_at + UPLOAD_KEPT and await ports.files.stat(upload.id) is not None:
            needed, until = True, upload.created_at + UPLOAD_KEPT
        else:
            await ports.files.remove(upload.id)

    async def work(unit: Unit) -> None:
        present = await unit[Upload].get(job.argument)
        waiting = await unit[Job].get(job.id)
        if needed:
            if waiting is not None and is_ours(waiting, job):
                set_due(unit, waiting, until)
            return
        if present is not None:
            unit[Upload].remove(present)
        if waiting is not None:
            unit[Job].remove(waiting)

    await retrying(ports.storage, work)


async def _is_needed(unit: Unit, upload: Upload, now: datetime) -> bool:
    if upload.used_by is None:
        return False
    named = read_operation(upload.used_by)
    client = None if named is None else await unit[Client].get(named[0])
    if client is None or not is_check_of(client, upload.used_by) or client.kyc not in IN_PROGRESS:
        return False
    return now < client.updated_at + FOLLOWED

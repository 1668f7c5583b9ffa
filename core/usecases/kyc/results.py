"""What becomes of a check once it was begun: the verifier's answers and notices, and the job that asks where neither
comes (docs/kyc.md "In live mode"; docs/payloads.md "KYC")."""

import logging
from datetime import timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import NO_ANSWER, Refused, Unavailable
from ....ports.jobs import Job
from ....ports.kyc import Check, CheckNotice, CheckRequest, CheckStatus
from ....ports.storage import Unit
from ...domain.days import iso
from ...domain.kyc.clients import IN_PROGRESS, Client, DocumentState, KycStatus, operation_of, read_operation
from ...domain.kyc.kyc import Finding, Upload, found, is_announced, taken_back
from ...domain.payloads import KycPayload
from ...domain.webhooks.events import EventType
from ..schedule import FollowUp, reschedule_at
from ..sealed import kyc_request_place, open_client_phone
from ..units import retrying
from ..webhooks.outbox import announce_of

FOLLOW = FollowUp("kyc.follow")
"""The one job that follows a client's check, whichever it is."""

_STATUSES = {
    CheckStatus.FORM: KycStatus.REQUIRED,
    CheckStatus.PROCESSING: KycStatus.PROCESSING,
    CheckStatus.VERIFIED: KycStatus.VERIFIED,
    CheckStatus.FAILED: KycStatus.FAILED,
}

_LADDER = tuple(timedelta(seconds=seconds) for seconds in (10, 30, 60, 300, 900, 3600, 21600))
"""Pauses between two looks at a check; the last one goes on."""
FOLLOWED = timedelta(days=30)
"""How long a check is asked for by ourselves after it last moved; from then on only notices count."""

log = logging.getLogger("cambist.kyc")


async def plan_follow(ports: Ports, unit: Unit, client_id: str) -> None:
    """Have a check followed from its intent on, in the unit that writes the intent."""
    now = ports.clock.now()
    await FOLLOW.plan(unit, client_id, now + _LADDER[0], now, anew=True)


def finding(check: Check) -> Finding:
    """A verifier's answer in the domain's words."""
    return Finding(
        status=_STATUSES[check.status],
        reference=check.reference,
        form_url=check.form_url,
        account_number=check.account_number,
        level=check.level,
        passport=None if check.passport is None else DocumentState(check.passport),
        address=None if check.address is None else DocumentState(check.address),
    )


async def apply(ports: Ports, client: Client, check: Check) -> Client:
    """Let what the verifier says take effect, with its event, in one unit. An answer about an older check than the
    client's present one changes nothing. Raises: Unavailable."""

    async def work(unit: Unit) -> Client:
        present = await unit[Client].get(client.id)
        if present is None or present.checks != client.checks:
            return present or client
        after = found(present, finding(check), ports.clock.now())
        if after == present:
            return present
        if after.blocked and not present.blocked:
            log.warning("client %s was verified and is now refused: blocked", client.id)
        await announce_client(ports, unit, present, after)
        return unit[Client].save(after)

    return await retrying(ports.storage, work)


async def announce_client(ports: Ports, unit: Unit, before: Client, after: Client) -> None:
    """Write `kyc.status_changed` for a decision that the same unit saves; nothing for any other move."""
    if not is_announced(before, after):
        return
    now = ports.clock.now()
    payload = KycPayload(
        event="kyc.status_changed",
        client_id=after.id,
        phone=open_client_phone(ports.vault, after),
        status="verified" if after.kyc is KycStatus.VERIFIED else "failed",
        previous_status="failed" if before.was_refused else "pending",
        verified_at=iso(after.verified_at or now),
        timestamp=iso(now),
    )
    await announce_of(ports, unit, after, EventType.KYC_STATUS_CHANGED, payload)


async def look(ports: Ports, client: Client) -> Client:
    """Ask the verifier where the client's check stands, and let the answer take effect.

    Raises: what the verifier port raises of reads; Unavailable.
    """
    check = await _ask(ports, client)
    return client if check is None else await apply(ports, client, check)


async def _ask(ports: Ports, client: Client) -> Check | None:
    if client.check_reference is not None:
        return await ports.kyc.check_state(client.check_reference)
    if client.kyc is KycStatus.REGISTERING:
        return await ports.kyc.find_check(operation_of(client))
    return None


async def on_notice(ports: Ports, notice: CheckNotice) -> Client | None:
    """The verifier says that a check moved. Only a hint: what counts is what the verifier answers when asked.

    None when it is about no client's present check. Raises: what `look` raises.
    """
    named = read_operation(notice.operation)
    if named is None:
        return None
    client_id, number = named
    client = await ports.storage.get(Client, client_id)
    if client is None or client.checks != number:
        return None
    return await look(ports, client)


async def send(ports: Ports, client: Client) -> tuple[Client, float | None]:
    """Ask the verifier to begin the check that the client's record intends; it may be asked again and again.

    Also returns after how many seconds it is worth asking, if known. Where the verifier refuses to begin, the intent
    is taken back. Raises: what the verifier port's `register` raises; Unsaved when it began and the record could not
    be written.
    """
    request = _open_request(ports, client)
    if request is None:
        return client, None
    try:
        check = await ports.kyc.register(request)
    except Refused:
        await take_back(ports, client, request)
        raise
    try:
        return await apply(ports, client, check), check.check_after
    except Unavailable as lost:
        raise Unsaved("the verifier's answer could not be saved") from lost


class Unsaved(Exception):
    """The verifier began, and our record does not say so yet; the job that follows the check will see to it."""


def seal_request(ports: Ports, client: Client, request: CheckRequest) -> bytes:
    """What the verifier is asked, as it is kept while the answer is not known."""
    return ports.vault.seal(msgspec.json.encode(request), kyc_request_place(client.id))


def _open_request(ports: Ports, client: Client) -> CheckRequest | None:
    if client.request is None:
        return None
    return msgspec.json.decode(ports.vault.unseal(client.request, kyc_request_place(client.id)), type=CheckRequest)


async def take_back(ports: Ports, client: Client, request: CheckRequest) -> None:
    """End an intent that the verifier refused for certain, and let go of the documents. Raises: Unavailable."""

    async def work(unit: Unit) -> None:
        present = await unit[Client].get(client.id)
        if present is None or present.checks != client.checks or present.kyc is not KycStatus.REGISTERING:
            return
        unit[Client].save(taken_back(present, ports.clock.now()))
        for document in request.documents:
            upload = await unit[Upload].get(document.key)
            if upload is not None and upload.used_by == request.operation:
                unit[Upload].save(msgspec.structs.replace(upload, used_by=None))

    await retrying(ports.storage, work)


async def follow(ports: Ports, job: Job) -> None:
    """The job that follows a client's check: finishes a registration whose outcome is not known, and looks for
    decisions whose notice was lost."""
    client = await ports.storage.get(Client, job.argument)
    check_after: float | None = None
    if client is not None and client.kyc in IN_PROGRESS:
        client, check_after = await _go_on(ports, client)
    await _reschedule(ports, job, client, check_after)


async def _go_on(ports: Ports, client: Client) -> tuple[Client, float | None]:
    try:
        check = await _ask(ports, client)
    except NO_ANSWER as fault:
        log.info("client %s: the verifier does not say: %s", client.id, fault)
        return client, None
    if check is not None:
        return await apply(ports, client, check), check.check_after
    if client.kyc is not KycStatus.REGISTERING:
        return client, None
    try:
        # It never saw the operation, or the request is still on its way: one operation is one check either way.
        return await send(ports, client)
    except Refused:
        return await ports.storage.get(Client, client.id) or client, None
    except NO_ANSWER as fault:
        log.info("client %s: the verifier did not begin: %s", client.id, fault)
        return client, None


async def _reschedule(ports: Ports, job: Job, client: Client | None, check_after: float | None) -> None:
    now = ports.clock.now()
    pause = _LADDER[min(max(job.attempts, 1), len(_LADDER)) - 1]
    if check_after is not None:
        pause = min(pause, timedelta(seconds=max(check_after, 1.0)))
    under_way = client is not None and (
        client.kyc in (KycStatus.REGISTERING, KycStatus.PROCESSING) or client.form_url is not None
    )
    ended = not under_way or (
        client is not None and client.kyc is not KycStatus.REGISTERING and client.updated_at + FOLLOWED <= now
    )

    await reschedule_at(ports, job, None if ended else now + pause)

"""Progress of a check: the verifier's answers and notifications, and the job that polls if neither arrives (docs/kyc.md
"In live mode"; docs/payloads.md "KYC").
"""

import logging
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import datetime, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import NotConfigured, NotSupported, Refused
from ....ports.kyc import Check, CheckNotification, CheckRequest, CheckStatus, KycVerifier
from ....ports.searching import find_check
from ....ports.storage import Unit
from ...domain.days import iso
from ...domain.kyc.clients import (
    IN_PROGRESS,
    Client,
    DocumentState,
    KycStatus,
    is_check_of,
    operation_of,
    read_operation,
)
from ...domain.kyc.kyc import Finding, Upload, found, is_announced, taken_back
from ...domain.payloads import KycPayload
from ...domain.webhooks.events import EventType
from ..common.encrypted import kyc_request_aad, open_client_phone
from ..common.schedule import FollowUp
from ..operations.engine import receive
from ..operations.operation import Followed, Looked, Want
from ..webhooks.outbox import announce_of
from .verifiers import verifier_of

FOLLOW = FollowUp("kyc.follow")
"""The job that follows a client's current check."""

_STATUSES = {
    CheckStatus.FORM: KycStatus.REQUIRED,
    CheckStatus.PROCESSING: KycStatus.PROCESSING,
    CheckStatus.VERIFIED: KycStatus.VERIFIED,
    CheckStatus.FAILED: KycStatus.FAILED,
}

_BACKOFF = tuple(timedelta(seconds=seconds) for seconds in (10, 30, 60, 300, 900, 3600, 21600))
"""Backoff schedule of polls; the last pause repeats."""
FOLLOWED = timedelta(days=30)
"""Period after its last change in which a check is polled; later only notifications matter."""

_AGAIN = tuple(timedelta(days=days) for days in (1, 7, 30))
"""Times after acceptance at which a check is polled again: it may be revoked, and the notification be lost."""

log = logging.getLogger("cambist.kyc")


async def plan_follow(ports: Ports, unit: Unit, client_id: str) -> None:
    """Plan the job that follows a check, in the unit that writes the intent."""
    now = ports.clock.now()
    await FOLLOW.plan(unit, client_id, now + _BACKOFF[0], now, anew=True)


def finding(check: Check) -> Finding:
    """Convert a verifier's answer to a domain finding."""
    return Finding(
        status=_STATUSES[check.status],
        reference=check.reference,
        form_url=check.form_url,
        account_number=check.account_number,
        level=check.level,
        passport=None if check.passport is None else DocumentState(check.passport),
        address=None if check.address is None else DocumentState(check.address),
    )


async def announce_client(ports: Ports, unit: Unit, before: Client, after: Client) -> None:
    """Write `kyc.status_changed` for a decision that the same unit saves; do nothing for other changes."""
    if not is_announced(before, after):
        return

    def payload(now: datetime) -> KycPayload:
        return KycPayload(
            event="kyc.status_changed",
            client_id=after.id,
            phone=open_client_phone(ports.vault, after),
            status="verified" if after.kyc is KycStatus.VERIFIED else "failed",
            previous_status="failed" if before.was_refused else "pending",
            verified_at=iso(after.verified_at or now),
            timestamp=iso(now),
        )

    await announce_of(ports, unit, after, EventType.KYC_STATUS_CHANGED, payload)


class Checks(Followed[Client, Check | Refused, KycVerifier | None]):
    """Checks of clients, from their intent on. A check that the verifier refuses to begin is taken back. If the
    verifier of a check is no longer configured, nothing is polled.
    """

    follow_up = FOLLOW
    record = Client

    def owns(self, operation: str, /) -> bool:
        return read_operation(operation) is not None

    async def owner(self, unit: Unit, operation: str, /) -> None:
        """Return None: checks exist only in live mode."""

    async def load(self, _ports: Ports, unit: Unit, object_id: str, /) -> Client | None:
        return await unit[Client].get(object_id)

    async def of_operation(self, ports: Ports, unit: Unit, operation: str, /) -> Client | None:
        """Return the client of a check; None if the client has a newer check."""
        named = read_operation(operation)
        client = None if named is None else await self.load(ports, unit, named[0])
        return client if client is not None and is_check_of(client, operation) else None

    def operation(self, subject: Client, /) -> str:
        return operation_of(subject)

    def wants(self, subject: Client, /) -> Want:
        if subject.kyc is KycStatus.VERIFIED and not subject.blocked and subject.check_reference is not None:
            return Want.POLL
        if subject.kyc not in IN_PROGRESS:
            return Want.NOTHING
        if subject.check_reference is not None:
            return Want.POLL
        return Want.SEND if subject.kyc is KycStatus.REGISTERING else Want.NOTHING

    def at_provider(self, ports: Ports, subject: Client, /) -> AbstractAsyncContextManager[KycVerifier | None]:
        return nullcontext(verifier_of(ports, subject))

    async def find(self, ports: Ports, provider: KycVerifier | None, subject: Client, /) -> Check | Refused | None:
        if provider is None:
            if self.given_up(ports, subject) is None:
                raise _not_set(subject)
            return Refused("its verifier is not set any more", reason="given_up")
        if subject.check_reference is not None:
            return await provider.check_state(subject.check_reference)
        if subject.kyc is not KycStatus.REGISTERING:
            return None
        request = None if subject.request is None else _open_request(ports, subject)
        named = operation_of(subject) if request is None else request.operation
        # The start time of this check is not stored; it cannot precede the client's record.
        return await find_check(provider, named, request, subject.created_at)

    def may_send(self, _ports: Ports, subject: Client, /) -> bool:
        return subject.request is not None

    async def send(self, ports: Ports, provider: KycVerifier | None, subject: Client, /) -> Check:
        if provider is None:
            raise _not_set(subject)
        return await provider.register(_open_request(ports, subject))

    def refused(self, _subject: Client, fault: Refused | NotSupported, /) -> Refused | None:
        return fault if isinstance(fault, Refused) else None

    def given_up(self, ports: Ports, subject: Client, /) -> Refused | None:
        over = _is_given_up(subject, ports.clock.now())
        return Refused("nobody began the check in all that time", reason="given_up") if over else None

    async def apply(self, ports: Ports, unit: Unit, subject: Client, word: Check | Refused, /) -> Client:
        if isinstance(word, Refused):
            return await _take_back(ports, unit, subject)
        after = found(subject, finding(word), ports.clock.now())
        if after == subject:
            return subject
        if after.blocked and not subject.blocked:
            log.warning("client %s was verified and is now refused: blocked", subject.id)
        await announce_client(ports, unit, subject, after)
        return unit[Client].save(after)

    def next_status_poll(
        self, ports: Ports, subject: Client, looked: Looked[Client, Check | Refused], /
    ) -> datetime | None:
        if self.wants(subject) is Want.POLL and subject.verified_at is not None:
            return _next_again(subject.verified_at, ports.clock.now())
        now, is_open = ports.clock.now(), subject.kyc in (KycStatus.REGISTERING, KycStatus.PROCESSING)
        under_way = is_open or subject.form_url is not None
        if not under_way or _is_given_up(subject, now):
            return None
        pause = _BACKOFF[min(max(looked.asked, 1), len(_BACKOFF)) - 1]
        if isinstance(looked.word, Check) and looked.word.check_after is not None:
            pause = min(pause, timedelta(seconds=max(looked.word.check_after, 1.0)))
        return now + pause


CHECKS = Checks()


def _next_again(verified_at: datetime, now: datetime) -> datetime | None:
    return next((verified_at + after for after in _AGAIN if verified_at + after > now), None)


def _not_set(client: Client) -> NotConfigured:
    return NotConfigured(f"the verifier {client.verifier}, which has a check, is not set any more")


def _is_given_up(client: Client, now: datetime) -> bool:
    """Return whether polling has ended, for checks begun or not, at a configured verifier or not."""
    return client.updated_at + FOLLOWED <= now


async def look(ports: Ports, client: Client) -> Client:
    """Poll the verifier for the client's check, and apply the answer.

    Raises: faults of the verifier port's reads; Unavailable.
    """
    return (await receive(CHECKS, ports, operation_of(client))).subject or client


async def on_notification(ports: Ports, notification: CheckNotification) -> Client | None:
    """Handle a verifier's notification that a check changed. Return None if it concerns no client's current check.
    Raises: faults of the verifier port."""
    return (await receive(CHECKS, ports, notification.operation)).subject


def encrypt_request(ports: Ports, client: Client, request: CheckRequest) -> bytes:
    """Encrypt the verifier's request, which is stored while the answer is unknown."""
    return ports.vault.encrypt(msgspec.json.encode(request), kyc_request_aad(client.id))


def _open_request(ports: Ports, client: Client) -> CheckRequest:
    return msgspec.json.decode(
        ports.vault.decrypt(client.request or b"", kyc_request_aad(client.id)), type=CheckRequest
    )


async def _take_back(ports: Ports, unit: Unit, client: Client) -> Client:
    """End an intent that the verifier finally refused, and release its documents."""
    if client.kyc is not KycStatus.REGISTERING:
        return client
    request = None if client.request is None else _open_request(ports, client)
    for document in () if request is None else request.documents:
        upload = await unit[Upload].get(document.key)
        if upload is not None and request is not None and upload.used_by == request.operation:
            unit[Upload].save(msgspec.structs.replace(upload, used_by=None))
    return unit[Client].save(taken_back(client, ports.clock.now()))

"""End clients of merchants and the state of their verification (docs/kyc.md "KYC: verifying your clients";
docs/exchanges.md "Finding exchanges and clients").

The client's record also announces its check: it is written with the number of the check before the verifier is called,
so that every check at the verifier is known to us.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from .. import ids
from ..accounts.accounts import Mode
from ..errors import Refusal
from ..machine import Move, Moves


class KycStatus(StrEnum):
    """State of a client's verification."""

    REQUIRED = "required"
    """No check is in progress, or the client has to fill in a form of the verifier."""
    REGISTERING = "registering"
    """The verifier is being called to begin a check; it may have begun."""
    PROCESSING = "processing"
    VERIFIED = "verified"
    FAILED = "failed"


class KycTrigger(StrEnum):
    """Cause of a move of a client's verification."""

    REGISTERED = "merchant registers"
    REGISTERED_ANEW = "merchant registers, and the verifier is not set any more"
    FORM = "verifier gives a form"
    NOT_BEGUN = "verifier refuses to begin"
    NOT_BEGUN_ANEW = "verifier refuses to begin another check"
    BEGUN = "verifier begins"
    ACCEPTED = "verifier accepts the client"
    REFUSED = "verifier refuses the client"


_S = KycStatus
_T = KycTrigger

KYC_MOVES: Moves[KycStatus, KycTrigger] = Moves(
    (
        Move(_S.REQUIRED, _S.REGISTERING, _T.REGISTERED),
        Move(_S.REGISTERING, _S.REGISTERING, _T.REGISTERED_ANEW),
        Move(_S.PROCESSING, _S.REGISTERING, _T.REGISTERED_ANEW),
        Move(_S.REGISTERING, _S.REQUIRED, _T.FORM),
        Move(_S.REGISTERING, _S.REQUIRED, _T.NOT_BEGUN),
        Move(_S.REGISTERING, _S.PROCESSING, _T.BEGUN),
        Move(_S.REGISTERING, _S.VERIFIED, _T.ACCEPTED),
        Move(_S.REGISTERING, _S.FAILED, _T.REFUSED),
        Move(_S.REGISTERING, _S.FAILED, _T.NOT_BEGUN_ANEW),
        Move(_S.REQUIRED, _S.PROCESSING, _T.BEGUN),
        Move(_S.REQUIRED, _S.VERIFIED, _T.ACCEPTED),
        Move(_S.REQUIRED, _S.FAILED, _T.REFUSED),
        Move(_S.PROCESSING, _S.REQUIRED, _T.FORM),
        Move(_S.PROCESSING, _S.VERIFIED, _T.ACCEPTED),
        Move(_S.PROCESSING, _S.FAILED, _T.REFUSED),
        Move(_S.FAILED, _S.REGISTERING, _T.REGISTERED),
        Move(_S.FAILED, _S.VERIFIED, _T.ACCEPTED),
    )
)

DECIDED_BY = frozenset((_T.ACCEPTED, _T.REFUSED))
"""The triggers that merchants learn by an event."""

IN_PROGRESS = (_S.REQUIRED, _S.REGISTERING, _S.PROCESSING)
"""Statuses shown as `pending` in merchants' lists."""


class DocumentState(StrEnum):
    """The verifier's result for one document (docs/exchanges.md "Finding exchanges and clients")."""

    PASSED = "passed"
    FAILED = "failed"


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """An end client, identified by phone. The phone is encrypted; the record is found by its digest."""

    id: str
    account_id: str
    mode: Mode
    phone: bytes
    phone_digest: bytes
    kyc: KycStatus
    created_at: datetime
    verifier: str | None = None
    check_reference: str | None = None
    """The verifier's id of the present check."""
    verified_at: datetime | None = None
    blocked: bool = False
    updated_at: datetime
    checks: int = 0
    """Number of checks begun; together with the id it makes the operation id of the present one."""
    request: bytes | None = None
    """While registering: the request to the verifier, encrypted, so that it can be repeated."""
    form_url: str | None = None
    """Set while the verifier waits for its form."""
    account_number: str | None = None
    level: int = 0
    passport_state: DocumentState | None = None
    address_state: DocumentState | None = None
    was_refused: bool = False
    """Whether the last decided check was refused."""
    sequence: int = 0
    """Number of events."""
    version: int = 0


def moved_to(client: Client, trigger: KycTrigger, now: datetime, **changes: Any) -> Client:
    """Return the client after the trigger, with the other changes of the move. Only a sandbox writes `kyc` otherwise
    (`staged`); the sequence rises if the merchant gets an event. Raises: IllegalMove."""
    kyc, sequence = KYC_MOVES.move(client.kyc, trigger), client.sequence + (trigger in DECIDED_BY)
    return msgspec.structs.replace(client, kyc=kyc, sequence=sequence, updated_at=now, **changes)


class ClientStatus(StrEnum):
    """`kyc_status` of lists (docs/exchanges.md "Finding exchanges and clients")."""

    PENDING = "pending"
    VERIFIED = "verified"
    REJECTED = "rejected"
    BLOCKED = "blocked"


def client_status(client: Client) -> ClientStatus:
    """Return the status shown to merchants (docs/exchanges.md "Finding exchanges and clients")."""
    if client.blocked:
        return ClientStatus.BLOCKED
    if client.verified_at is not None:
        return ClientStatus.VERIFIED
    return ClientStatus.REJECTED if client.kyc is KycStatus.FAILED else ClientStatus.PENDING


_STAGED: Mapping[ClientStatus, KycStatus] = {
    ClientStatus.PENDING: KycStatus.REQUIRED,
    ClientStatus.VERIFIED: KycStatus.VERIFIED,
    ClientStatus.REJECTED: KycStatus.FAILED,
}


def staged(client: Client, status: ClientStatus, now: datetime) -> Client:
    """Return a test client in the given state, from any state. Losing a verification has no event."""
    if client_status(client) is status:
        return client
    if status is ClientStatus.BLOCKED:
        return msgspec.structs.replace(client, blocked=True, updated_at=now)
    kyc = _STAGED[status]
    states = {KycStatus.VERIFIED: DocumentState.PASSED, KycStatus.FAILED: DocumentState.FAILED}
    told = kyc is not client.kyc and kyc in states and client.kyc is not KycStatus.VERIFIED
    return msgspec.structs.replace(
        client,
        kyc=kyc,
        blocked=False,
        verified_at=(client.verified_at or now) if kyc is KycStatus.VERIFIED else None,
        level=1 if kyc is KycStatus.VERIFIED else 0,
        passport_state=states.get(kyc),
        address_state=None,
        was_refused=kyc is KycStatus.FAILED,
        sequence=client.sequence + told,
        updated_at=now,
    )


_OPERATION = "kyc_"


def operation_of(client: Client) -> str:
    """Return the operation id of the client's present check (docs/adapters.md "Operation ids")."""
    return ids.operation(_OPERATION, client.id, client.checks)


def operations_of(client: Client) -> tuple[str, ...]:
    """Return the ids of all the client's checks at the verifier, the present one's last."""
    return tuple(ids.operation(_OPERATION, client.id, number) for number in range(1, client.checks + 1))


def read_operation(operation: str) -> tuple[str, int] | None:
    """Return the client's id and the number of the check; None for any other operation."""
    found = ids.read_operation(_OPERATION, operation)
    # A stored integer has no more digits than 18.
    if found is None or ids.canonical_uuid(found[0]) != found[0] or len(found[1]) > 18:
        return None
    count = ids.read_number(found[1])
    return None if count is None else (found[0], count)


def is_check_of(client: Client, operation: str) -> bool:
    """Return whether an operation is the client's present check."""
    return operation == operation_of(client)


_TEST_VERIFIED = "+7000000000"


def is_verified_for_tests(mode: Mode, phone: str) -> bool:
    """Return whether the phone belongs to a verified client of test mode: `+7000000000N`, because KYC itself is refused
    there (docs/exchanges.md "Finding exchanges and clients")."""
    return (
        mode is Mode.TEST
        and len(phone) == len(_TEST_VERIFIED) + 1
        and phone.startswith(_TEST_VERIFIED)
        and phone[-1] in "0123456789"
    )


def require_verified(client: Client | None) -> None:
    """Check that a new payment is allowed (docs/kyc.md "In payments").

    Raises: Refusal KYC_REQUIRED, KYC_PROCESSING, KYC_FAILED (also for a blocked client).
    """
    if client is not None and (client.blocked or client.kyc is KycStatus.FAILED):
        raise Refusal("KYC_FAILED", "The client's verification was refused")
    if client is None or client.kyc is KycStatus.REQUIRED:
        raise Refusal("KYC_REQUIRED", "The client must be verified first; pass the verified client's client_phone")
    if client.kyc is not KycStatus.VERIFIED:
        raise Refusal("KYC_PROCESSING", "The client's verification is in progress; try again later")


def require_registered(client: Client | None) -> None:
    """Check that a new exchange is allowed (docs/exchanges.md "Making one").

    Raises: Refusal CLIENT_BLOCKED, CLIENT_NOT_REGISTERED.
    """
    if client is not None and client.blocked:
        raise Refusal("CLIENT_BLOCKED", "The client is blocked")
    if client is None or client.kyc is not KycStatus.VERIFIED:
        raise Refusal("CLIENT_NOT_REGISTERED", "The client has not passed KYC; see POST /kyc/register")


class Allowed(msgspec.Struct, frozen=True, kw_only=True):
    """What a client may do now, each with the code of the refusal that a request would get."""

    payments: str | None
    """None: allowed, as far as verification is concerned."""
    exchanges: str | None


def allowed(client: Client, *, gated: bool) -> Allowed:
    """Return what the client may do. `gated`: the account takes payments of verified clients only."""
    return Allowed(
        payments=_refused_by(require_verified, client) if gated else None,
        exchanges=_refused_by(require_registered, client),
    )


def _refused_by(rule: Callable[[Client], None], client: Client) -> str | None:
    try:
        rule(client)
    except Refusal as refusal:
        return refusal.code
    return None


def refusal_text(client: Client) -> str:
    """Return why a client is refused, in our own words: a verifier's text might contain personal data."""
    if client.blocked:
        return "The client is blocked"
    if client.passport_state is DocumentState.FAILED:
        return "The identity document was refused"
    if client.address_state is DocumentState.FAILED:
        return "The proof of address was refused"
    return "The verification was refused"

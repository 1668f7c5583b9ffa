"""End clients of merchants and how far their verification got (docs/kyc.md "KYC: verifying your clients";
docs/exchanges.md "Finding exchanges and clients").

The client's record is the intent of its check, too: it is written with the number of the check before the verifier is
called, so that no check is begun that nobody knows of.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from .. import ids
from ..accounts.accounts import Mode
from ..errors import Refusal
from ..machine import Move, Moves


class KycStatus(StrEnum):
    """How far a client's verification got."""

    REQUIRED = "required"
    """Nothing is under way, or the client has a form of the verifier to fill in."""
    REGISTERING = "registering"
    """The verifier is being asked to begin a check; it may have begun."""
    PROCESSING = "processing"
    VERIFIED = "verified"
    FAILED = "failed"


class KycTrigger(StrEnum):
    """What moves a client's verification."""

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
"""The triggers that merchants are told of."""

IN_PROGRESS = (_S.REQUIRED, _S.REGISTERING, _S.PROCESSING)
"""What is `pending` to merchants' lists."""


class DocumentState(StrEnum):
    """What the verifier found of one document (docs/exchanges.md "Finding exchanges and clients")."""

    PASSED = "passed"
    FAILED = "failed"


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """An end client, known by the phone. The phone itself is sealed; its digest is what it is found by."""

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
    """How many checks were begun; with the id it makes the operation id of the present one."""
    request: bytes | None = None
    """While registering: what the verifier is asked, sealed, so that the same can be asked again."""
    form_url: str | None = None
    """While the verifier waits for its form to be filled in."""
    account_number: str | None = None
    level: int = 0
    passport_state: DocumentState | None = None
    address_state: DocumentState | None = None
    was_refused: bool = False
    """The last check that was decided was refused."""
    sequence: int = 0
    """How many events there were."""
    version: int = 0


def moved_to(client: Client, trigger: KycTrigger, now: datetime, **changes: Any) -> Client:
    """The client after the trigger, with what else the move changes. Only a sandbox writes `kyc` otherwise (`staged`);
    the sequence rises where a decision is told. Raises: IllegalMove."""
    kyc, sequence = KYC_MOVES.move(client.kyc, trigger), client.sequence + (trigger in DECIDED_BY)
    return msgspec.structs.replace(client, kyc=kyc, sequence=sequence, updated_at=now, **changes)


class ClientStatus(StrEnum):
    """`kyc_status` of lists (docs/exchanges.md "Finding exchanges and clients")."""

    PENDING = "pending"
    VERIFIED = "verified"
    REJECTED = "rejected"
    BLOCKED = "blocked"


def client_status(client: Client) -> ClientStatus:
    """It follows from the rest (docs/exchanges.md "Finding exchanges and clients")."""
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
    """A test client put into a state, wherever it stood. What was verified before and is no more has no event."""
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
    """The id under which the verifier is asked for the client's present check (docs/adapters.md "Operation ids")."""
    return ids.operation(_OPERATION, client.id, client.checks)


def former_operation_of(client: Client) -> str:
    """How earlier versions called the present check."""
    return f"{_OPERATION}{client.id}_{client.checks}"


def operations_of(client: Client) -> tuple[str, ...]:
    """The ids that the client's checks may have at the verifier, the present one's last: each as this version and as
    earlier ones called it."""
    each = (msgspec.structs.replace(client, checks=number) for number in range(1, client.checks + 1))
    return tuple(name for check in each for name in (former_operation_of(check), operation_of(check)))


def read_operation(operation: str) -> tuple[str, int] | None:
    """The client's id and the number of the check, also by the id that earlier versions gave it; None for what is no
    such operation."""
    found = ids.read_operation(_OPERATION, operation)
    head, _, number = operation.rpartition("_") if found is None else (f"{_OPERATION}{found[0]}", "_", found[1])
    client_id = head.removeprefix(_OPERATION)
    # No more digits than a stored integer has.
    if not head.startswith(_OPERATION) or ids.canonical_uuid(client_id) != client_id or len(number) > 18:
        return None
    count = ids.read_number(number)
    return None if count is None else (client_id, count)


def is_check_of(client: Client, operation: str) -> bool:
    """Whether an operation is the client's present check, as this version or an earlier one called it."""
    return operation in (operation_of(client), former_operation_of(client))


_TEST_VERIFIED = "+7000000000"


def is_verified_for_tests(mode: Mode, phone: str) -> bool:
    """In test mode the phones `+7000000000N` belong to verified clients, because KYC itself is refused there
    (docs/exchanges.md "Finding exchanges and clients")."""
    return (
        mode is Mode.TEST
        and len(phone) == len(_TEST_VERIFIED) + 1
        and phone.startswith(_TEST_VERIFIED)
        and phone[-1] in "0123456789"
    )


def require_verified(client: Client | None) -> None:
    """The gate of a new payment (docs/kyc.md "In payments").

    Raises: Refusal KYC_REQUIRED, KYC_PROCESSING, KYC_FAILED (also for a blocked client).
    """
    if client is not None and (client.blocked or client.kyc is KycStatus.FAILED):
        raise Refusal("KYC_FAILED", "The client's verification was refused")
    if client is None or client.kyc is KycStatus.REQUIRED:
        raise Refusal("KYC_REQUIRED", "The client must be verified first; pass the verified client's client_phone")
    if client.kyc is not KycStatus.VERIFIED:
        raise Refusal("KYC_PROCESSING", "The client's verification is in progress; try again later")


def require_registered(client: Client | None) -> None:
    """The gate of a new exchange (docs/exchanges.md "Making one").

    Raises: Refusal CLIENT_BLOCKED, CLIENT_NOT_REGISTERED.
    """
    if client is not None and client.blocked:
        raise Refusal("CLIENT_BLOCKED", "The client is blocked")
    if client is None or client.kyc is not KycStatus.VERIFIED:
        raise Refusal("CLIENT_NOT_REGISTERED", "The client has not passed KYC; see POST /kyc/register")


def refusal_text(client: Client) -> str:
    """Why a client is refused, in our own words: a verifier's might name the person or the document."""
    if client.blocked:
        return "The client is blocked"
    if client.passport_state is DocumentState.FAILED:
        return "The identity document was refused"
    if client.address_state is DocumentState.FAILED:
        return "The proof of address was refused"
    return "The verification was refused"

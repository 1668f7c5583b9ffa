"""Verification of end clients: requests of merchants, results of verifiers, and their effect on a client
(docs/kyc.md "KYC: verifying your clients")."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from .. import shared_fields as shared
from ..accounts.accounts import Caller, KycDemand, Mode
from ..errors import Refusal, shape_error
from ..masked import Masked
from .clients import DECIDED_BY, KYC_MOVES, Client, DocumentState, KycStatus, KycTrigger, moved_to

UPLOAD_MAX = 10 * 1024 * 1024
"""Largest size of one document, in bytes."""
UPLOAD_TIME = timedelta(minutes=10)
"""How long an upload URL is valid."""
UPLOAD_KEPT = timedelta(hours=24)
"""Retention of a document that no check used, or whose check was decided."""
UPLOAD_EMPTY = timedelta(minutes=15)
"""Retention of an upload without a file, after its URL expired."""

CONTENT_TYPES = ("image/jpeg", "image/png", "application/pdf")
"""Content types of uploads (docs/kyc.md "In live mode")."""

_OPEN = b"open:"
_PHONE = re.compile(r"\+7[0-9]{10}\Z")
_KEY = re.compile(r"[0-9a-f]{64}\Z")
_EMAIL = re.compile(r"[!-?A-~]{1,64}@[A-Za-z0-9.-]{1,189}\Z")


class UserType(StrEnum):
    INDIVIDUAL = "individual"
    LEGAL_ENTITY = "legal_entity"


class CheckOrder(Masked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /kyc/check. Its repr hides the person."""

    phone: Annotated[shared.RussianPhone, shared.PHONE]


class UploadOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /kyc/upload-url."""

    content_type: Annotated[str, Meta(description="Content type of the file to upload"), shared.among(CONTENT_TYPES)]
    size: Annotated[
        Annotated[int, shared.limits(minimum=1, maximum=UPLOAD_MAX)] | None,
        Meta(description="Size in bytes of the file to upload; a larger file is refused"),
    ] = None


class RegisterOrder(Masked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /kyc/register. The verifier decides which fields it needs. Its repr hides the person."""

    phone: Annotated[shared.RussianPhone, shared.PHONE]
    selfie_key: Annotated[str | None, Meta(description="`file_key` of the selfie")] = None
    document_key: Annotated[str | None, Meta(description="`file_key` of the identity document")] = None
    address_key: Annotated[str | None, Meta(description="`file_key` of the proof of address")] = None
    email: Annotated[str | None, Meta(description="Passed to the verifier's own form")] = None
    user_type: Annotated[
        str | None, Meta(description="Passed to the verifier's own form"), shared.among((*UserType, None))
    ] = None

    def keys(self) -> dict[str, str]:
        """Return the given file keys by field name."""
        named = ("selfie_key", "document_key", "address_key")
        return {name: key for name in named if (key := getattr(self, name)) is not None}


ReadCheck = Callable[[], CheckOrder]
ReadUpload = Callable[[], UploadOrder]
ReadRegister = Callable[[], RegisterOrder]


class Upload(msgspec.Struct, frozen=True, kw_only=True):
    """An upload of one document, granted to an account. The id is the file's key: 256 random bits."""

    id: str
    account_id: str
    mode: Mode
    content_type: str
    created_at: datetime
    expires_at: datetime
    holder: bytes | None = None
    """Only for the client with this phone digest; None: for any client of the account."""
    used_by: str | None = None
    """Operation id of the check that uses it; a document is used once."""
    version: int = 0


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A verifier's result of a check."""

    status: KycStatus
    reference: str
    form_url: str | None = None
    account_number: str | None = None
    level: int = 0
    passport: DocumentState | None = None
    address: DocumentState | None = None


def require_kyc(caller: Caller, *, answers_off: bool = False) -> None:
    """Check that KYC is available to this caller, before everything else (docs/kyc.md "Answers and errors").

    `answers_off`: accept an account that does not require KYC. Raises: Refusal PROVIDER_DISABLED,
    SANDBOX_NOT_SUPPORTED, KYC_NOT_REQUIRED, in this order.
    """
    demand = caller.account.settings.kyc
    if demand is KycDemand.DISABLED:
        raise Refusal("PROVIDER_DISABLED", "KYC is disabled for the account")
    if caller.mode is Mode.TEST:
        raise Refusal(
            "SANDBOX_NOT_SUPPORTED", "KYC works in live mode; in test mode see POST /sandbox/exchange-clients"
        )
    if demand is KycDemand.OFF and not answers_off:
        raise Refusal("KYC_NOT_REQUIRED", "The account requires no KYC")


def check_phone(phone: str) -> str:
    """Return the phone if its form is valid for KYC. Raises: Refusal VALIDATION_ERROR."""
    if not _PHONE.match(phone):
        raise shape_error("phone", "must be +7 and 10 digits")
    return phone


def check_content_type(content_type: str) -> str:
    """Return the content type if uploads may have it. Raises: Refusal VALIDATION_ERROR."""
    if content_type not in CONTENT_TYPES:
        raise shape_error("content_type", f"must be one of: {', '.join(CONTENT_TYPES)}")
    return content_type


def check_upload_size(size: int | None) -> int | None:
    """Return the size if an upload may have it. Raises: Refusal VALIDATION_ERROR."""
    if size is not None and not 1 <= size <= UPLOAD_MAX:
        raise shape_error("size", f"must be from 1 to {UPLOAD_MAX} bytes")
    return size


def check_register(order: RegisterOrder) -> RegisterOrder:
    """Check a registration field by field; combinations are not checked (docs/kyc.md "In live mode"). Raises: Refusal
    VALIDATION_ERROR."""
    check_phone(order.phone)
    keys = order.keys()
    for name, key in keys.items():
        if not _KEY.match(key):
            raise shape_error(name, "must be a file_key of POST /kyc/upload-url")
    if len(set(keys.values())) < len(keys):
        raise shape_error(next(iter(keys)), "must be another file than the other keys")
    if order.email is not None and not _EMAIL.match(order.email):
        raise shape_error("email", "must be an e-mail address of at most 254 characters")
    if order.user_type is not None and order.user_type not in tuple(UserType):
        raise shape_error("user_type", f"must be one of: {', '.join(UserType)}")
    return order


def open_holder(holder: bytes) -> bytes:
    """Return the owner id for anonymous uploads for a client. They have a limit of their own, so a stranger cannot
    exhaust the client's."""
    return _OPEN + holder


def is_open(upload: Upload) -> bool:
    """Return whether the upload is anonymous: no merchant vouched for the uploader."""
    return upload.holder is not None and upload.holder.startswith(_OPEN)


def may_use(upload: Upload | None, client_account: str, mode: Mode, holder: bytes) -> bool:
    """Return whether a check of this account's client may use the document."""
    return (
        upload is not None
        and upload.account_id == client_account
        and upload.mode is mode
        and upload.used_by is None
        and upload.holder in (None, holder, open_holder(holder))
    )


def needs_check(client: Client) -> bool:
    """Return whether registering begins a new check; otherwise the stored result is the answer
    (docs/kyc.md "Answers and errors")."""
    if client.blocked:
        return False
    return client.kyc is KycStatus.FAILED or (client.kyc is KycStatus.REQUIRED and client.form_url is None)


def registering(client: Client, verifier: str, now: datetime) -> Client:
    """Return the client with a planned new check. Earlier results remain until the verifier has begun."""
    is_under_way = client.kyc in (KycStatus.REGISTERING, KycStatus.PROCESSING)
    return moved_to(
        client,
        KycTrigger.REGISTERED_ANEW if is_under_way else KycTrigger.REGISTERED,
        now,
        verifier=verifier,
        check_reference=None,
        form_url=None,
        checks=client.checks + 1,
    )


def taken_back(client: Client, now: datetime) -> Client:
    """Return the client as before a planned check that the verifier certainly refused; unchanged if none is planned."""
    if client.kyc is not KycStatus.REGISTERING:
        return client
    trigger = KycTrigger.NOT_BEGUN_ANEW if client.was_refused else KycTrigger.NOT_BEGUN
    return moved_to(client, trigger, now, request=None)


_FOUND: Mapping[KycStatus, KycTrigger] = {
    KycStatus.REQUIRED: KycTrigger.FORM,
    KycStatus.PROCESSING: KycTrigger.BEGUN,
    KycStatus.VERIFIED: KycTrigger.ACCEPTED,
    KycStatus.FAILED: KycTrigger.REFUSED,
}


def found(client: Client, finding: Finding, now: datetime) -> Client:
    """Return the client after a result of its present check; unchanged if the result is not new or comes too late.

    A verified client who is then refused is blocked: the decision to verify remains, and an operator has to look at it.
    """
    said = {"level": finding.level, "passport_state": finding.passport, "address_state": finding.address}
    heard = all(getattr(client, name) == value for name, value in said.items())
    if client.kyc is KycStatus.VERIFIED:
        if finding.status is not KycStatus.FAILED or heard:
            return client
        return msgspec.structs.replace(client, blocked=True, updated_at=now, **said)
    trigger = _FOUND[finding.status]
    if KYC_MOVES.allows(client.kyc, trigger):
        client = moved_to(client, trigger, now)
    elif client.kyc is not finding.status or client.form_url == finding.form_url:
        return client
    else:
        # A form may move to another address; the check does not, and is not followed for longer because of it.
        return msgspec.structs.replace(client, form_url=finding.form_url)
    is_verified, decided = finding.status is KycStatus.VERIFIED, trigger in DECIDED_BY
    return msgspec.structs.replace(
        client,
        check_reference=finding.reference,
        request=None,
        form_url=finding.form_url if finding.status is KycStatus.REQUIRED else None,
        account_number=(finding.account_number or client.id) if is_verified else client.account_number,
        verified_at=now if is_verified else None,
        was_refused=finding.status is KycStatus.FAILED if decided else client.was_refused,
        updated_at=now,
        **said,
    )


def is_announced(before: Client, after: Client) -> bool:
    """Return whether a change is reported to the merchant: only decisions are (docs/payloads.md "KYC")."""
    return after.sequence > before.sequence

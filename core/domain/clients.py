"""End clients of merchants and how far their verification got (SPEC "KYC")."""

from datetime import datetime
from enum import StrEnum

import msgspec

from .accounts import Mode
from .errors import Refusal


class KycStatus(StrEnum):
    """How far a client's verification got."""

    PROCESSING = "processing"
    VERIFIED = "verified"
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
    verified_at: datetime | None = None
    blocked: bool = False
    version: int = 0


_TEST_VERIFIED = "+7000000000"


def is_verified_for_tests(mode: Mode, phone: str) -> bool:
    """In test mode the phones `+7000000000N` belong to verified clients, because KYC itself is refused there
    (DECISIONS 6)."""
    return mode is Mode.TEST and len(phone) == len(_TEST_VERIFIED) + 1 and phone.startswith(_TEST_VERIFIED)


def require_verified(client: Client | None) -> None:
    """The gate of a new payment (SPEC "Payment creation rules", 8).

    Raises: Refusal KYC_REQUIRED, KYC_PROCESSING, KYC_FAILED (also for a blocked client).
    """
    if client is None:
        raise Refusal("KYC_REQUIRED", "The client must be verified first; pass the verified client's client_phone")
    if client.blocked or client.kyc is KycStatus.FAILED:
        raise Refusal("KYC_FAILED", "The client's verification was refused")
    if client.kyc is KycStatus.PROCESSING:
        raise Refusal("KYC_PROCESSING", "The client's verification is in progress; try again later")

"""Verification of end clients (docs/kyc.md "KYC: verifying your clients"). Live mode only. None of these takes a key:
the phone is one."""

from typing import Literal

import msgspec

from .model import OpenEnum, Record
from .operations import Face, Group, operation
from .requests import Request, post

ContentType = Literal["image/jpeg", "image/png", "application/pdf"]


class KycStatus(OpenEnum):
    NOT_REQUIRED = "not_required"
    REQUIRED = "required"
    PROCESSING = "processing"
    VERIFIED = "verified"
    FAILED = "failed"


class UserType(OpenEnum):
    INDIVIDUAL = "individual"
    LEGAL_ENTITY = "legal_entity"


class KycCheck(Record, frozen=True, kw_only=True):
    """Where a client stands. `kyc_url` with `required`: send the client there."""

    status: KycStatus
    account_number: str | None = msgspec.field(name="accountNumber", default=None)
    kyc_url: str | None = None
    error: str | None = None


class Registration(Record, frozen=True, kw_only=True):
    """What became of a registration. `kyc_url` with `required`: send the client there."""

    status: KycStatus
    account_number: str | None = msgspec.field(name="accountNumber", default=None)
    kyc_url: str | None = msgspec.field(name="kycUrl", default=None)
    error: str | None = None


class UploadGrant(Record, frozen=True, kw_only=True):
    """A place for one document, for ten minutes. The address is a key itself."""

    upload_url: str
    file_key: str


class Uploaded(Record, frozen=True, kw_only=True):
    """A document that arrived."""

    status: str


def _uploaded(body: bytes) -> Uploaded:
    """A bucket answers with nothing where the service itself says so."""
    return msgspec.json.decode(body, type=Uploaded) if body else Uploaded(status="uploaded")


class Kyc(Group[Face]):
    """`client.kyc`: check, upload_url and upload once per document, register, then check until verified."""

    @operation
    def check(self, phone: str) -> Request[KycCheck]:
        """Where a client's verification stands. `phone`: +7 and ten digits."""
        return post("/kyc/check", KycCheck, {"phone": phone}, repeatable=True)

    @operation
    def upload_url(self, content_type: ContentType, size: int | None = None) -> Request[UploadGrant]:
        """Get an address to which one document may be PUT. `size`: its bytes, by which the address takes no more."""
        body = {"content_type": content_type, **({} if size is None else {"size": size})}
        return post("/kyc/upload-url", UploadGrant, body, repeatable=True)

    @operation
    def upload(self, grant: UploadGrant, document: bytes, content_type: ContentType) -> Request[Uploaded]:
        """Put a document there. Goes without the API keys, and once: after `NO_ANSWER` ask for another place."""
        return Request(
            method="PUT",
            path=grant.upload_url,
            read=_uploaded,
            body=document,
            content_type=content_type,
            # So that a bucket does not let it overwrite another; some take no upload without.
            more_headers={"If-None-Match": "*"},
        )

    @operation
    def register(
        self,
        phone: str,
        *,
        selfie_key: str | None = None,
        document_key: str | None = None,
        address_key: str | None = None,
        email: str | None = None,
        user_type: UserType | str | None = None,
    ) -> Request[Registration]:
        """Have a client verified. A repeat for the same phone answers with the stored result."""
        body = {
            "phone": phone,
            "selfie_key": selfie_key,
            "document_key": document_key,
            "address_key": address_key,
            "email": email,
            "user_type": user_type,
        }
        return post("/kyc/register", Registration, body, repeatable=True)

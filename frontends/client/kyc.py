"""Verification of end clients (docs/kyc.md "KYC: verifying your clients"). Live mode only. These calls need no
Idempotency-Key: the phone number identifies the client."""

from typing import Literal

import msgspec

from .model import OpenEnum, Record
from .operations import Face, Group, operation
from .requests import Request, post

ContentType = Literal["image/jpeg", "image/png", "application/pdf"]


class KycStatus(OpenEnum):
    """Status of an identity check."""

    NOT_REQUIRED = "not_required"
    REQUIRED = "required"
    PROCESSING = "processing"
    VERIFIED = "verified"
    FAILED = "failed"


class UserType(OpenEnum):
    """Kind of person in an identity check."""

    INDIVIDUAL = "individual"
    LEGAL_ENTITY = "legal_entity"


class KycCheck(Record, frozen=True, kw_only=True):
    """Verification status of a client. With `required`, send the client to `kyc_url`."""

    status: KycStatus
    account_number: str | None = msgspec.field(name="accountNumber", default=None)
    kyc_url: str | None = None
    error: str | None = None


class Registration(Record, frozen=True, kw_only=True):
    """Result of a registration. With `required`, send the client to `kyc_url`."""

    status: KycStatus
    account_number: str | None = msgspec.field(name="accountNumber", default=None)
    kyc_url: str | None = msgspec.field(name="kycUrl", default=None)
    error: str | None = None


class UploadGrant(Record, frozen=True, kw_only=True):
    """Permission to upload one document, valid for ten minutes. The URL itself is the credential."""

    upload_url: str
    file_key: str


class Uploaded(Record, frozen=True, kw_only=True):
    """Result of an upload."""

    status: str


def _uploaded(body: bytes) -> Uploaded:
    """Decode the answer. A bucket answers with an empty body, the service itself with JSON."""
    return msgspec.json.decode(body, type=Uploaded) if body else Uploaded(status="uploaded")


class Kyc(Group[Face]):
    """`client.kyc`: check, upload_url and upload once per document, register, then check until verified."""

    @operation
    def check(self, phone: str) -> Request[KycCheck]:
        """Return a client's verification status. `phone`: +7 and ten digits."""
        return post("/kyc/check", KycCheck, {"phone": phone}, repeatable=True)

    @operation
    def upload_url(self, content_type: ContentType, size: int | None = None) -> Request[UploadGrant]:
        """Return a URL to which one document may be PUT. `size`: size in bytes; the URL then accepts no more."""
        body = {"content_type": content_type, **({} if size is None else {"size": size})}
        return post("/kyc/upload-url", UploadGrant, body, repeatable=True)

    @operation
    def upload(self, grant: UploadGrant, document: bytes, content_type: ContentType) -> Request[Uploaded]:
        """Upload a document. The request has no API keys and is sent once; after `NO_ANSWER` request another URL."""
        return Request(
            method="PUT",
            path=grant.upload_url,
            read=_uploaded,
            body=document,
            content_type=content_type,
            # Prevents a bucket from overwriting another upload. Some buckets require this header.
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
        """Start the verification of a client. A repeat for the same phone number returns the stored result."""
        body = {
            "phone": phone,
            "selfie_key": selfie_key,
            "document_key": document_key,
            "address_key": address_key,
            "email": email,
            "user_type": user_type,
        }
        return post("/kyc/register", Registration, body, repeatable=True)

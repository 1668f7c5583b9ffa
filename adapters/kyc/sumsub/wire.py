"""Sumsub's messages, reduced to the fields of a check. No other personal data is read (docs/providers/sumsub.md "Its
statuses here")."""

import hashlib
import re
from collections.abc import Mapping

import msgspec

from ....ports.kyc import CheckStatus, Document, DocumentState, Purpose

FORM, DOCUMENTS = "form", "documents"

_NEEDS_THE_PERSON = ("init", "awaitingUser")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}\Z")


class Result(msgspec.Struct, frozen=True, rename="camel"):
    """`reviewResult` of a review or of one step."""

    review_answer: str | None = None
    review_reject_type: str | None = None


class Review(msgspec.Struct, frozen=True, rename="camel"):
    """State of an applicant's review."""

    review_status: str
    review_result: Result | None = None
    level_name: str | None = None

    @property
    def has_begun(self) -> bool:
        """Report whether the review ever went beyond collecting documents."""
        return self.review_status != "init"


class Applicant(msgspec.Struct, frozen=True, rename="camel"):
    """One check of one person at Sumsub."""

    id: str
    review: Review
    external_user_id: str | None = None
    """Our operation."""
    deleted: bool = False


class Step(msgspec.Struct, frozen=True, rename="camel"):
    """Documents of one step, and their result."""

    review_result: Result | None = None
    image_ids: list[int | str] = []

    @property
    def state(self) -> DocumentState | None:
        answer = None if self.review_result is None else self.review_result.review_answer
        return {"GREEN": DocumentState.PASSED, "RED": DocumentState.FAILED}.get(answer or "")


class Steps(msgspec.Struct, frozen=True, rename="upper"):
    """The known steps of a level; null for a step without documents."""

    identity: Step | None = None
    selfie: Step | None = None
    proof_of_residence: Step | None = None

    def of(self, purpose: Purpose) -> Step | None:
        """Return the step of a document with this purpose."""
        return {
            Purpose.DOCUMENT: self.identity,
            Purpose.SELFIE: self.selfie,
            Purpose.ADDRESS: self.proof_of_residence,
        }[purpose]


class Link(msgspec.Struct, frozen=True):
    """Address of the form."""

    url: str


class Level(msgspec.Struct, frozen=True):
    name: str


class _Levels(msgspec.Struct, frozen=True):
    items: list[Level]


class Levels(msgspec.Struct, frozen=True):
    """Levels of the account."""

    list: _Levels


class Complaint(msgspec.Struct, frozen=True, rename="camel"):
    """Body of an error. Its description is not read, because it may quote our request."""

    error_code: int | None = None
    error_name: str | None = None
    correlation_id: str | None = None

    def __str__(self) -> str:
        """Return the code for operators and Sumsub's support, without text that may be personal data."""
        said = [str(self.error_code)] if self.error_code is not None else []
        said += [name for name in (self.error_name, self.correlation_id) if name is not None and _NAME.match(name)]
        return " ".join(said) or "no code"


class NotificationBody(msgspec.Struct, frozen=True, rename="camel"):
    """Fields of a notification."""

    type: str
    external_user_id: str | None = None


def status_of(review: Review, flow: str, was_approved: bool) -> CheckStatus:
    """Derive the port's status of a check.

    After a refusal that can be corrected, the status is FORM again if the person has a form. For a check that was
    approved before, every refusal is final, because the verifier no longer vouches for the person.
    """
    if review.review_status in _NEEDS_THE_PERSON:
        return CheckStatus.FORM
    result = review.review_result
    if review.review_status != "completed" or result is None:
        return CheckStatus.PROCESSING
    if result.review_answer == "GREEN":
        return CheckStatus.VERIFIED
    if result.review_answer != "RED":
        return CheckStatus.PROCESSING
    may_mend = result.review_reject_type == "RETRY" and flow == FORM and not was_approved
    return CheckStatus.FORM if may_mend else CheckStatus.FAILED


_PARTS: Mapping[str, str] = {"image/jpeg": "jpg", "image/png": "png", "application/pdf": "pdf"}


def multipart(document: Document, kind: str, country: str, content: bytes) -> tuple[bytes, str]:
    """Encode one document as a form, and return the body and its content type. It is built here because the signature
    covers these exact bytes."""
    metadata = msgspec.json.encode({"idDocType": kind, "country": country})
    boundary = f"cambist{hashlib.sha256(content).hexdigest()[:40]}"
    name = f"{document.purpose}.{_PARTS.get(document.content_type, 'bin')}"
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="metadata"\r\nContent-Type: application/json\r\n\r\n'
    file = (
        f'\r\n--{boundary}\r\nContent-Disposition: form-data; name="content"; filename="{name}"\r\n'
        f"Content-Type: {document.content_type}\r\n\r\n"
    )
    body = b"".join((head.encode(), metadata, file.encode(), content, f"\r\n--{boundary}--\r\n".encode()))
    return body, f"multipart/form-data; boundary={boundary}"

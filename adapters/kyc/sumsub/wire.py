"""What Sumsub says and is told, as far as it concerns a check: of all that it knows of a person nothing else is read
(docs/providers/sumsub.md "What its words become")."""

import hashlib
import re
from collections.abc import Mapping

import msgspec

from ....ports.kyc import CheckStatus, Document, DocumentState, Purpose

FORM, DOCUMENTS = "form", "documents"

_NEEDS_THE_PERSON = ("init", "awaitingUser")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}\Z")


class Result(msgspec.Struct, frozen=True, rename="camel"):
    """`reviewResult`, of a review or of one step."""

    review_answer: str | None = None
    review_reject_type: str | None = None


class Review(msgspec.Struct, frozen=True, rename="camel"):
    """How the review of an applicant stands."""

    review_status: str
    review_result: Result | None = None
    level_name: str | None = None

    @property
    def has_begun(self) -> bool:
        """Whether it ever went beyond collecting documents."""
        return self.review_status != "init"


class Applicant(msgspec.Struct, frozen=True, rename="camel"):
    """One check of one person at Sumsub."""

    id: str
    review: Review
    external_user_id: str | None = None
    """Our operation."""
    deleted: bool = False


class Step(msgspec.Struct, frozen=True, rename="camel"):
    """What was handed in for one step, and what is found of it."""

    review_result: Result | None = None
    image_ids: list[int | str] = []

    @property
    def state(self) -> DocumentState | None:
        answer = None if self.review_result is None else self.review_result.review_answer
        return {"GREEN": DocumentState.PASSED, "RED": DocumentState.FAILED}.get(answer or "")


class Steps(msgspec.Struct, frozen=True, rename="upper"):
    """The steps of a level that are known to us; null where nothing was handed in."""

    identity: Step | None = None
    selfie: Step | None = None
    proof_of_residence: Step | None = None

    def of(self, purpose: Purpose) -> Step | None:
        """The step that a document of this purpose belongs to."""
        return {
            Purpose.DOCUMENT: self.identity,
            Purpose.SELFIE: self.selfie,
            Purpose.ADDRESS: self.proof_of_residence,
        }[purpose]


class Link(msgspec.Struct, frozen=True):
    """Where the form is."""

    url: str


class Level(msgspec.Struct, frozen=True):
    name: str


class _Levels(msgspec.Struct, frozen=True):
    items: list[Level]


class Levels(msgspec.Struct, frozen=True):
    """The levels of the account."""

    list: _Levels


class Complaint(msgspec.Struct, frozen=True, rename="camel"):
    """The body of an error. Its description may quote what we sent, so it is not read."""

    error_code: int | None = None
    error_name: str | None = None
    correlation_id: str | None = None

    def __str__(self) -> str:
        """What operators and Sumsub's support are told, without a word that may be a person's."""
        said = [str(self.error_code)] if self.error_code is not None else []
        said += [name for name in (self.error_name, self.correlation_id) if name is not None and _NAME.match(name)]
        return " ".join(said) or "no code"


class NoticeBody(msgspec.Struct, frozen=True, rename="camel"):
    """What is read of a notice."""

    type: str
    external_user_id: str | None = None


def status_of(review: Review, flow: str, was_approved: bool) -> CheckStatus:
    """Where a check stands, in the words of the port.

    A refusal that may be mended leads back to the form, where the person has one. Of a check that was approved before,
    every refusal is one: the verifier does not vouch for that person any more.
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
    """One document as a form, and the form's type. Put together here, because the signature is over these bytes."""
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

"""The port to the verifier of end clients: a check of one person, and its state.

The caller gives every check an operation id, and stores it before the first call. One operation is one check, however
often it is sent: so after a lost answer the caller simply registers again.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol, runtime_checkable

import msgspec

from .faults import Unavailable


class NoAnswer(Unavailable):
    """The verifier was reached and did not answer a read. Separate from Unavailable, because merchants get a different
    error (docs/kyc.md "Answers and errors")."""


class CheckStatus(StrEnum):
    """State of a check."""

    FORM = "form"
    """The person has to fill in the verifier's form (the redirect flow). A check never returns here from VERIFIED."""
    PROCESSING = "processing"
    VERIFIED = "verified"
    FAILED = "failed"
    """Possible after VERIFIED, too, if the verifier withdraws it: the core then blocks the client."""


class DocumentState(StrEnum):
    """The verifier's result for one document."""

    PASSED = "passed"
    FAILED = "failed"


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A check at the verifier. `reference` is the verifier's id of it."""

    reference: str
    status: CheckStatus
    form_url: str | None = None
    """Set with FORM: URL of the form."""
    account_number: str | None = None
    """Set with VERIFIED: the client's number at the verifier, if it has one."""
    level: int = 0
    """Extent of the verification: 0 nothing, 1 the person, 2 the address as well."""
    passport: DocumentState | None = None
    address: DocumentState | None = None
    check_after: float | None = None
    """Seconds until the next poll is worthwhile, if the verifier knows."""


class Purpose(StrEnum):
    """Purpose of a document."""

    SELFIE = "selfie"
    DOCUMENT = "document"
    ADDRESS = "address"


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """An uploaded file; the adapter reads its content from the file port by its key."""

    purpose: Purpose
    key: str
    content_type: str


class CheckRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to verify one person: by documents, or (`redirect`) by the verifier's own form. Its repr hides the
    person."""

    operation: str
    phone: str
    redirect: bool
    documents: tuple[Document, ...] = ()
    email: str | None = None
    user_type: str | None = None

    def __repr__(self) -> str:
        return f"CheckRequest(operation={self.operation!r}, ***)"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("operation", self.operation)]


class CheckNotification(msgspec.Struct, frozen=True, kw_only=True):
    """A notification that a check changed. Only a hint: the core reads the state. It may come late, twice, in any
    order."""

    operation: str


class KycVerifier(Protocol):
    """A provider that verifies people."""

    @property
    def name(self) -> str:
        """Name stored with every client it checks; it must never change."""
        ...

    async def register(self, request: CheckRequest) -> Check:
        """Begin the check of the operation, or return the state of the check that it already began.

        Raises: Refused for certain (`incomplete`: documents or fields are missing); Unavailable, NotConfigured (it
        certainly did not begin); OutcomeUnknown (it may have begun).
        """
        ...

    async def find_check(self, operation: str) -> Check | None:
        """Return the check of this operation, or None when the verifier never saw it. A read.

        Raises: NoAnswer, Unavailable, NotConfigured.
        """
        ...

    async def check_state(self, reference: str) -> Check:
        """Return the present state of the check. A read.

        Raises: NoAnswer, Unavailable, NotConfigured; Refused for an unknown reference.
        """
        ...


@runtime_checkable
class SandboxVerifier(Protocol):
    """A verifier whose credentials may belong to a sandbox. A sandbox verifies nobody in earnest, so live mode uses it
    only if it may have simulators (docs/operations.md "Going live")."""

    @property
    def is_sandbox(self) -> bool: ...


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a simulated check."""

    status: CheckStatus
    passport: DocumentState | None = None
    address: DocumentState | None = None
    decides_at: datetime | None = None
    """The state changes at this time; None: immediately."""
    silent: bool = False
    """Send no notification."""
    doubled: bool = False
    """Send the notification twice."""


@runtime_checkable
class VerifierSimulator(Protocol):
    """Additional methods of a simulated verifier."""

    async def simulate(self, operation: str, verdict: Verdict) -> Sequence[CheckNotification]:
        """Put the check of this operation into this state, even after a decision, and return the notifications that a
        real verifier would now send. Begins the check if nobody has."""
        ...

"""The verifier of end clients, in its own words: a check of one person, and where it stands.

The caller gives every check an operation id, and stores it before the first call. One operation is one check, however
often it is sent: so a registration whose answer was lost is simply sent again.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol, runtime_checkable

import msgspec

from .faults import Unavailable


class NoAnswer(Unavailable):
    """The verifier was reached and did not answer a read. Apart from Unavailable, because merchants are told so
    (docs/kyc.md "Answers and errors")."""


class CheckStatus(StrEnum):
    """Where a check stands."""

    FORM = "form"
    """The person has to fill in the verifier's form (the redirect flow). Never of a check that was VERIFIED once."""
    PROCESSING = "processing"
    VERIFIED = "verified"
    FAILED = "failed"
    """After VERIFIED, too, where the verifier takes it back: then the core blocks the client."""


class DocumentState(StrEnum):
    """What the verifier found of one document."""

    PASSED = "passed"
    FAILED = "failed"


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A check at the verifier. `reference` is the verifier's id of it."""

    reference: str
    status: CheckStatus
    form_url: str | None = None
    """With FORM: where the person fills it in."""
    account_number: str | None = None
    """With VERIFIED: the client's number at the verifier, where it has one."""
    level: int = 0
    """How much was verified: 0 nothing, 1 the person, 2 the address as well."""
    passport: DocumentState | None = None
    address: DocumentState | None = None
    check_after: float | None = None
    """Seconds after which it is worth asking again, where the verifier knows."""


class Purpose(StrEnum):
    """What a document is to prove."""

    SELFIE = "selfie"
    DOCUMENT = "document"
    ADDRESS = "address"


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was uploaded; its content is read from the file port by its key."""

    purpose: Purpose
    key: str
    content_type: str


class CheckRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One person to verify: by documents, or (`redirect`) by the verifier's own form. Its repr hides who it is."""

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


class CheckNotice(msgspec.Struct, frozen=True, kw_only=True):
    """The verifier says that a check moved. Only a hint: the state is read. It may come late, twice, in any order."""

    operation: str


class KycVerifier(Protocol):
    """A provider that verifies people."""

    @property
    def name(self) -> str:
        """Stored with every client it checks; stable for ever."""
        ...

    async def register(self, request: CheckRequest) -> Check:
        """Begin the check of the operation, or answer how the one it began before stands.

        Raises: Refused for certain (`incomplete`: documents or fields are missing); Unavailable, NotConfigured (it
        certainly did not begin); OutcomeUnknown (it may have begun).
        """
        ...

    async def find_check(self, operation: str) -> Check | None:
        """The check of this operation, or None when the verifier never saw it. A read.

        Raises: NoAnswer, Unavailable, NotConfigured.
        """
        ...

    async def check_state(self, reference: str) -> Check:
        """Where the check stands now. A read.

        Raises: NoAnswer, Unavailable, NotConfigured; Refused for an unknown reference.
        """
        ...


@runtime_checkable
class SandboxVerifier(Protocol):
    """A verifier whose credentials may be of a sandbox. There nobody is verified in earnest, so live mode has it only
    where it may have simulators (docs/operations.md "Going live")."""

    @property
    def is_sandbox(self) -> bool: ...


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a simulated verifier is to find."""

    status: CheckStatus
    passport: DocumentState | None = None
    address: DocumentState | None = None
    decides_at: datetime | None = None
    """Until then it stays as it was; None: at once."""
    silent: bool = False
    """No notice goes out."""
    doubled: bool = False
    """The notice goes out twice."""


@runtime_checkable
class VerifierSimulator(Protocol):
    """What a simulated verifier can do beyond a real one."""

    async def pretend(self, operation: str, verdict: Verdict) -> Sequence[CheckNotice]:
        """Let the check of this operation stand so, also after a decision, and return the notices that a real
        verifier would now send. One that nobody began is begun."""
        ...

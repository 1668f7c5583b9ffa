"""Interface between the engine (engine.py) and a kind of operation at a provider (docs/contributing/operation.md)."""

from abc import ABC, abstractmethod
from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from ....ports.bundle import Ports
from ....ports.faults import Fault, NotSupported, Refused
from ....ports.storage import Unit
from ...domain.accounts.accounts import Owned
from ..common.schedule import FollowUp

S = TypeVar("S")
"""The subject, with all data that its provider needs."""
A = TypeVar("A")
"""An answer: the provider's state of the operation, or an outcome that we set ourselves."""
P = TypeVar("P")
"""The provider."""


class Want(StrEnum):
    """The next step of an operation."""

    NOTHING = "nothing"
    PREPARE = "prepare"
    """The provider has not been called. First record that it may have the operation."""
    SEND = "send"
    """The provider may have the operation: look it up, and send it if the provider never saw it."""
    POLL = "look"
    """Look it up, and never send it."""


class Standing(NamedTuple, Generic[S, A]):
    """The state of an operation after a step."""

    subject: S | None
    """None when no operation has this id, or no longer."""
    word: A | None = None
    """None when the provider was not called, or the outcome is unknown."""
    fault: Fault | None = None
    """The fault that left no answer, or from which the answer was derived."""
    is_new: bool = False
    """Whether it was prepared just now, and therefore never sent."""
    is_unseen: bool = False
    """Whether the provider was asked before the operation was prepared, and does not know it."""


class Looked(NamedTuple, Generic[S, A]):
    """A run of the job that follows an operation."""

    began: S | None
    """The subject before its provider was called."""
    word: A | None
    asked: int
    """Number of runs, including this one."""


class Operation(ABC, Generic[S, A, P]):
    """A kind of operation at a provider. Its methods neither catch a provider's faults nor open or commit a unit; the
    engine does.
    """

    races: ClassVar[Collection[str]] = ()
    """Unique rules whose Conflict means that another unit moved the subject first (units.py)."""

    def owns(self, operation: str, /) -> bool:
        """Return whether the id has the form of this kind's operation ids; the storage decides whether it exists.
        Return False for kinds whose notifications belong to another object: a charge's to the payment, a part's to the
        exchange.
        """
        return False

    async def owner(self, unit: Unit, operation: str, /) -> Owned | None:
        """Return the record whose account and mode an operation that this kind owns belongs to; a test account's clock
        gives the time of its notifications. A kind overrides this together with `owns`. None when there is no such
        record, or when the kind exists only in live mode.
        """
        return None

    @abstractmethod
    async def load(self, ports: Ports, unit: Unit, object_id: str, /) -> S | None:
        """Return the subject by the object's id. Raises: Stale when one of its records is gone."""

    async def of_operation(self, ports: Ports, unit: Unit, operation: str, /) -> S | None:
        """Return the subject by the operation's id, with the attempt in question; None when an answer about that
        attempt cannot matter any more.
        """
        return await self.load(ports, unit, operation)

    @abstractmethod
    def operation(self, subject: S, /) -> str:
        """Return the id by which the provider knows the operation."""

    @abstractmethod
    def wants(self, subject: S, /) -> Want: ...

    async def prepare(self, ports: Ports, unit: Unit, subject: S, /) -> S:
        """Record that the provider may have the operation, and take its money. Return the subject unchanged if it has
        to wait.
        """
        return subject

    async def asks_first(self, ports: Ports, subject: S, /) -> bool:
        """Return whether to ask the provider before preparing the operation: preparation may be refused, while the
        provider may have executed the operation in a period that the database has forgotten.
        """
        return False

    async def adopt(self, ports: Ports, unit: Unit, subject: S, /) -> S:
        """Prepare an operation that the provider knows already. It has happened, so it is recorded in any case."""
        return await self.prepare(ports, unit, subject)

    def since(self, subject: S, /) -> datetime | None:
        """Return when the operation began. A provider may know an operation that began before this process, even if it
        was prepared just now (forgotten.py). None means that the provider cannot know a new operation.
        """
        return None

    @abstractmethod
    def at_provider(self, ports: Ports, subject: S, /) -> AbstractAsyncContextManager[P]:
        """Open the provider for calls. Raises: NotConfigured, NotSupported."""

    @abstractmethod
    async def find(self, ports: Ports, provider: P, subject: S, /) -> A | None:
        """Look up the operation (a read); None when the provider never saw it. Raises: faults of the port."""

    @abstractmethod
    async def send(self, ports: Ports, provider: P, subject: S, /) -> A:
        """Send the operation. Raises: faults of the port."""

    @abstractmethod
    def refused(self, subject: S, fault: Refused | NotSupported, /) -> A | None:
        """Return the answer for a final refusal of `send`; None if the refusal is no outcome."""

    def unknown(self, subject: S, /) -> A | None:
        """Return the answer for a `send` whose outcome is unknown, also applied before a repeat; None if the record
        does not store that.
        """
        return None

    def may_send(self, ports: Ports, subject: S, /) -> bool:
        """Return whether an operation that the provider never saw may be sent now."""
        return True

    def repeats_until(self, ports: Ports, subject: S, /) -> datetime | None:
        """Return the moment until which the provider recognises a repeat; after it the operation is not sent again
        (repeating.py). None means without limit.
        """
        return None

    def given_up(self, ports: Ports, subject: S, /) -> A | None:
        """Return the outcome of an operation that the provider never saw and that will not be sent; None while it
        continues.
        """
        return None

    @abstractmethod
    async def apply(self, ports: Ports, unit: Unit, subject: S, word: A, /) -> S | None:
        """Apply the answer to the subject as this unit reads it. It may come late, twice, or from a notification and a
        poll at the same moment. Return None when the subject was taken back.
        """


class Followed(Operation[S, A, P]):
    """A kind of operation with a job of its own."""

    follow_up: ClassVar[FollowUp]
    record: ClassVar[type[Any]]
    """Type of the record that the job follows; the job is deleted with it."""

    @abstractmethod
    def next_status_poll(self, ports: Ports, subject: S, looked: Looked[S, A], /) -> datetime | None:
        """Return when the job runs next for the current subject; None once it is over."""

"""What a subject tells the engine (engine.py) of its operations at a provider
(ARCHITECTURE.md "Adding an operation at a provider")."""

from abc import ABC, abstractmethod
from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from ....ports.bundle import Ports
from ....ports.faults import Fault, NotSupported, Refused
from ....ports.storage import Unit
from ..schedule import FollowUp

S = TypeVar("S")
"""The subject, with all that its provider must be told."""
A = TypeVar("A")
"""A word: what its provider says of it, or an end that we give it ourselves."""
P = TypeVar("P")
"""The provider."""


class Want(StrEnum):
    """What is to be done about an operation now."""

    NOTHING = "nothing"
    PREPARE = "prepare"
    """Nobody was asked: first it is written down that the provider may have it."""
    SEND = "send"
    """The provider may have it: it is asked for, and sent where the provider never saw it."""
    LOOK = "look"
    """It is asked for and never sent."""


class Standing(NamedTuple, Generic[S, A]):
    """How an operation stands after something was done about it."""

    subject: S | None
    """None: there is none of this id, or none any more."""
    word: A | None = None
    """None: nobody was asked, or nobody knows."""
    fault: Fault | None = None
    """Why there is no word, or what the word was made of."""
    is_new: bool = False
    """It was prepared just now, so it was never sent."""
    is_unseen: bool = False
    """The provider was asked before it was prepared, and does not know it."""


class Looked(NamedTuple, Generic[S, A]):
    """A run of the job that follows an operation."""

    began: S | None
    """The subject before its provider was asked."""
    word: A | None
    asked: int
    """How many runs there were, this one among them."""


class Operation(ABC, Generic[S, A, P]):
    """One kind of operation at a provider. None of these methods catches a provider's fault, opens a unit or commits
    one: the engine does."""

    races: ClassVar[Collection[str]] = ()
    """Unique rules whose Conflict means that another unit moved the subject first (units.py)."""

    def owns(self, operation: str, /) -> bool:
        """Whether the id looks like one of these. Only the form counts: the storage decides. False where another
        object's notices lead here: the payment's of a charge, the exchange's of a part."""
        return False

    @abstractmethod
    async def load(self, ports: Ports, unit: Unit, object_id: str, /) -> S | None:
        """The subject by the object's id. Raises: Stale when half of it is gone."""

    async def of_operation(self, ports: Ports, unit: Unit, operation: str, /) -> S | None:
        """The subject by the operation's id, with the attempt that is spoken of; None where no word of that attempt can
        matter any more."""
        return await self.load(ports, unit, operation)

    @abstractmethod
    def operation(self, subject: S, /) -> str:
        """The id that the provider knows it by."""

    @abstractmethod
    def wants(self, subject: S, /) -> Want: ...

    async def prepare(self, ports: Ports, unit: Unit, subject: S, /) -> S:
        """Write down that the provider may have it, and take what it takes. One that stays as it was has to wait."""
        return subject

    async def asks_first(self, ports: Ports, subject: S, /) -> bool:
        """Whether to ask the provider before the operation is prepared, because preparing it may be refused, and the
        provider may have executed it in a time that the database has forgotten."""
        return False

    async def adopt(self, ports: Ports, unit: Unit, subject: S, /) -> S:
        """Prepare an operation that the provider knows already: it happened, so it is recorded whatever else says."""
        return await self.prepare(ports, unit, subject)

    def since(self, subject: S, /) -> datetime | None:
        """Since when there is this operation: of one older than the process the provider may know, though it was just
        prepared (forgotten.py). None: of a new one it never knows."""
        return None

    @abstractmethod
    def at_provider(self, ports: Ports, subject: S, /) -> AbstractAsyncContextManager[P]:
        """The provider, asked inside. Raises: NotConfigured, NotSupported."""

    @abstractmethod
    async def find(self, ports: Ports, provider: P, subject: S, /) -> A | None:
        """How it stands; None: the provider never saw it. A read. Raises: what the port raises."""

    @abstractmethod
    async def send(self, ports: Ports, provider: P, subject: S, /) -> A:
        """Have it done. Raises: what the port raises."""

    @abstractmethod
    def refused(self, subject: S, fault: Refused | NotSupported, /) -> A | None:
        """The word for a definite no to `send`. None: that is no end."""

    def unknown(self, subject: S, /) -> A | None:
        """The word for a `send` of which nobody knows, and before another one. None: the record needs not say so."""
        return None

    def may_send(self, ports: Ports, subject: S, /) -> bool:
        """Whether one that the provider never saw may be sent now."""
        return True

    def repeats_until(self, ports: Ports, subject: S, /) -> datetime | None:
        """Until when its provider knows a repeat as one: later it is not sent again (repeating.py). None: for ever."""
        return None

    def given_up(self, ports: Ports, subject: S, /) -> A | None:
        """The word for one that the provider never saw and nobody will send. None: it goes on."""
        return None

    @abstractmethod
    async def apply(self, ports: Ports, unit: Unit, subject: S, word: A, /) -> S | None:
        """Let the word take effect on the subject as it is in this unit. It may come late, twice, or by a notice and
        our own question at once. None: the subject was taken back."""


class Followed(Operation[S, A, P]):
    """One with a job of its own."""

    follow_up: ClassVar[FollowUp]
    record: ClassVar[type[Any]]
    """The record that the job follows, and is forgotten with."""

    @abstractmethod
    def next_look(self, ports: Ports, subject: S, looked: Looked[S, A], /) -> datetime | None:
        """When the job comes back, for the subject as it is now; None: it is over."""

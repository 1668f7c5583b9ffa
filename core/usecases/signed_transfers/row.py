"""What the engine asks of a kind of subject that sends USDT (engine.py)."""

from collections.abc import Collection
from datetime import datetime
from typing import Protocol, TypeVar

import msgspec

from ....ports.bundle import Ports
from ....ports.payouts import SignedTransfer
from ....ports.storage import Record, Unit
from ....ports.vault import Vault

S = TypeVar("S", bound=Record)
"""The subject: the record that the USDT are sent for."""


class Signable(Protocol):
    """A record with a signed transfer, or with none yet."""

    @property
    def tx_hash(self) -> str | None: ...
    @property
    def blob(self) -> bytes | None: ...
    @property
    def signed_until(self) -> datetime | None: ...  # None, too, of one that never expires


class Sending(msgspec.Struct, frozen=True, kw_only=True):
    """What a subject has sent, while it is on its way."""

    operation: str
    """What the wallet knows it by; another one for another attempt, but the same where it is signed again."""
    sender: str
    """The name of the wallet."""
    network: str
    address: str
    units: int
    signed: SignedTransfer | None
    """As it was stored; None: nobody signed it yet."""
    awaits_taken: bool = False
    """Whether the row wants to be told that the network took it."""


class SignedTransfers(Protocol[S]):
    """A kind of subject that sends USDT: a row of the engine. What is awaited writes in the unit that it is given, of a
    subject that was read there and stands as the engine saw it."""

    record: type[S]
    races: Collection[str]
    """Unique rules whose Conflict means that another unit was first: read again."""

    def sending(self, subject: S, /) -> Sending | None:
        """What is on its way; None: nothing, or nothing any more."""
        ...

    def is_as_decided(self, vault: Vault, subject: S, /) -> bool:
        """Whether amount and address are what the vault tagged. Else nothing is signed."""
        ...

    async def store(self, ports: Ports, unit: Unit, subject: S, signed: SignedTransfer, /) -> S:
        """Save it with its signed transfer."""
        ...

    def replaced(self, subject: S, by: SignedTransfer, /) -> S:
        """The subject with the transfer that the wallet put in the place of its own; written where it is told what
        became of it."""
        ...

    async def taken(self, ports: Ports, unit: Unit, subject: S, /) -> S:
        """The network took it; told where it was awaited."""
        return subject

    async def final(self, ports: Ports, unit: Unit, subject: S, /) -> S:
        """The USDT moved."""
        ...

    async def never(self, ports: Ports, unit: Unit, subject: S, /) -> S:
        """They did not and will not: it is over, or unsigned once more."""
        ...

    async def refused(self, ports: Ports, unit: Unit, subject: S, failure: str, /) -> S:
        """Nobody will ever sign it."""
        ...


def stored(operation: str, of: Signable) -> SignedTransfer | None:
    """The transfer as it was stored. Raises: LookupError for one that is not whole."""
    if of.tx_hash is None:
        return None
    if of.blob is None:
        raise LookupError(f"{operation} has no signed transfer")
    return SignedTransfer(operation=operation, tx_hash=of.tx_hash, blob=of.blob, expires_at=of.signed_until)

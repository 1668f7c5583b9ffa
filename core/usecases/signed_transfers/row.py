"""Interface between the engine and a kind of subject that sends USDT (engine.py)."""

from collections.abc import Collection
from datetime import datetime
from typing import Protocol, TypeVar

import msgspec

from ....ports.bundle import Ports
from ....ports.payouts import SignedTransfer
from ....ports.storage import Record, Unit
from ....ports.vault import Vault

S = TypeVar("S", bound=Record)
"""The subject: the record for which the USDT are sent."""


class Signable(Protocol):
    """A record that may have a signed transfer."""

    @property
    def tx_hash(self) -> str | None: ...
    @property
    def blob(self) -> bytes | None: ...
    @property
    def signed_until(self) -> datetime | None: ...  # None also for a transfer that never expires


class Sending(msgspec.Struct, frozen=True, kw_only=True):
    """The transfer of a subject, while it is on its way."""

    operation: str
    """Operation id that the wallet knows. A new attempt has a new id; signing again keeps it."""
    sender: str
    """Name of the wallet."""
    network: str
    address: str
    units: int
    signed: SignedTransfer | None
    """The stored transfer. None while it is not signed."""
    awaits_taken: bool = False
    """Whether the engine calls `taken` when the network accepts the transfer."""


class SignedTransfers(Protocol[S]):
    """A kind of subject that sends USDT: a row of the engine. Its async methods write in the given unit. Their subject
    was read in that unit and is in the state that the engine saw."""

    record: type[S]
    races: Collection[str]
    """Unique rules whose Conflict means that another unit was first, so the work reads again."""

    def sending(self, subject: S, /) -> Sending | None:
        """Return the transfer on its way, or None."""
        ...

    def is_as_decided(self, vault: Vault, subject: S, /) -> bool:
        """Return whether amount and address are as the vault tagged them. Otherwise nothing is signed."""
        ...

    async def store(self, ports: Ports, unit: Unit, subject: S, signed: SignedTransfer, /) -> S:
        """Save the subject with its signed transfer."""
        ...

    def replaced(self, subject: S, by: SignedTransfer, /) -> S:
        """Return the subject with the transfer by which the wallet replaced its own. The outcome is saved with it."""
        ...

    async def taken(self, ports: Ports, unit: Unit, subject: S, /) -> S:
        """Record that the network accepted the transfer. Called only if the subject awaits it."""
        return subject

    async def final(self, ports: Ports, unit: Unit, subject: S, /) -> S:
        """Record that the USDT moved."""
        ...

    async def never(self, ports: Ports, unit: Unit, subject: S, /) -> S:
        """Record that the USDT did not and will not move. The subject is then over, or unsigned again."""
        ...

    async def refused(self, ports: Ports, unit: Unit, subject: S, failure: str, /) -> S:
        """Record that the transfer will never be signed."""
        ...


def stored(operation: str, of: Signable) -> SignedTransfer | None:
    """Return the stored transfer. Raises: LookupError for an incomplete one."""
    if of.tx_hash is None:
        return None
    if of.blob is None:
        raise LookupError(f"{operation} has no signed transfer")
    return SignedTransfer(operation=operation, tx_hash=of.tx_hash, blob=of.blob, expires_at=of.signed_until)

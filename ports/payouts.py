"""The port for sending USDT on chain: an operation, an address, units of USDT, a signed transfer.

Sending takes two calls, because a transfer has its hash before the network sees it. `sign` creates the transfer and
sends nothing; the caller stores the result; `broadcast` sends exactly that transfer, as often as needed. So a crash or
a lost answer never leads to a second transfer: there is one hash to rebroadcast or to query
(docs/settlement.md "Payouts").

A unit is 0.00000001 USDT on every network. Faults: Refused, OutcomeUnknown, Unavailable, NotConfigured.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol, runtime_checkable

import msgspec

from .chain import Network
from .faults import NotConfigured

_DECIMALS = 8
"""Decimals of the units at this port."""


class SenderCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """Capabilities of an adapter; the core reads them instead of assuming."""

    network: Network
    decimals: int
    """Decimals of USDT on that network: 6 on TRON."""
    simulated: bool = False
    """No real money moves: the adapter is also a SenderSimulator."""

    @property
    def step(self) -> int:
        """Smallest amount that the network can move, in units: 100 on TRON. Every sent amount is a multiple of it."""
        step: int = 10 ** max(0, _DECIMALS - self.decimals)
        return step


class SignedTransfer(msgspec.Struct, frozen=True, kw_only=True):
    """A transfer ready to be sent. The caller stores it before the first broadcast, and always sends the stored one."""

    operation: str
    tx_hash: str
    """64 hex digits in lower case without `0x`."""
    blob: bytes
    """The bytes to broadcast. Anybody who has them can send the transfer: never log them."""
    expires_at: datetime | None
    """No block made at or after this time includes the transfer. None: it never expires; only another final transaction
    of the wallet with the same nonce proves that it will never execute."""

    def __repr__(self) -> str:
        return f"<transfer {self.tx_hash} of {self.operation}>"


class TransferState(StrEnum):
    """State of a signed transfer on the network."""

    UNSEEN = "unseen"
    """The network does not know the transaction. It may still appear: nothing is proven."""
    IN_BLOCK = "in_block"
    """It is in a block that may still be reverted."""
    FINAL = "final"
    """It is final and the USDT moved."""
    FAILED = "failed"
    """The USDT did not move and never will: the transaction is final and reverted, or a final block is past
    `expires_at` and no block contains the transaction, or another transaction took its nonce and is final. Only this
    state allows the caller to sign the operation again or to return its money."""


class UsdtSender(Protocol):
    """A wallet of the service on one network."""

    @property
    def name(self) -> str:
        """Name stored with every payout sent by this wallet; it must never change."""
        ...

    @property
    def capabilities(self) -> SenderCapabilities: ...

    async def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
        """Create and sign a transfer of `units` to `address`. Sends nothing, so a failed call leaves nothing open.

        A second call for the same operation may give another transaction: the caller stores the first one, and signs
        again only after FAILED. A caller whose storage was restored from a backup may request an operation that was
        already sent; only a FindingSender can detect that.

        Raises: Refused with reason `amount` (not above zero, or not a multiple of `capabilities.step`) or `address`
        (not valid on this network); Unavailable, also when the service's wallet lacks USDT or the network's fee; the
        message says so, because that is the service's problem and not the payout's.
        """
        ...

    async def broadcast(self, signed: SignedTransfer) -> None:
        """Send the transfer to the network. A repeat sends the same transfer; one that the network already knows counts
        as success.

        Raises: Refused when the network rejects it (reason `expired` from `expires_at` on, or when another transaction
        took its nonce; `invalid` when this wallet did not sign it): this call sent nothing, but an earlier call for the
        same transfer may have; after an unknown outcome only `state` can tell. OutcomeUnknown; Unavailable when it was
        certainly not sent.
        """
        ...

    async def state(self, signed: SignedTransfer) -> TransferState:
        """Return the present state of the transfer. A read. Raises: Unavailable, which says nothing about the
        transfer."""
        ...


class SentTransfer(msgspec.Struct, frozen=True, kw_only=True):
    """A wallet's record of an operation: the transfer, its recipient and its amount."""

    signed: SignedTransfer
    """Its `blob` may be empty if the wallet does not keep it: the transfer can then be tracked, but not sent again."""
    address: str
    units: int

    def __repr__(self) -> str:
        return f"<sent {self.signed.tx_hash} of {self.signed.operation}>"


@runtime_checkable
class FindingSender(UsdtSender, Protocol):
    """A wallet that can find the transfer it sent for an operation. The record is the wallet's own or the network's,
    never in our storage. The core queries it before it signs anything, because a database restored from a backup has
    lost every transfer signed since then."""

    async def find(self, operation: str) -> SentTransfer | None:
        """Return the transfer sent to the network for this operation, however old and whether final or not; None if
        there was none or all of them are FAILED. A read.

        Raises: Unavailable, which says nothing about the operation: the caller must not sign for it.
        """
        ...


@runtime_checkable
class ListingSender(FindingSender, Protocol):
    """A wallet that can list the transfers it sent. Used to compare a database restored from a backup with the network:
    for operations begun since the backup, the database does not even have an id."""

    async def sent_since(self, moment: datetime) -> Sequence[SentTransfer]:
        """Return every transfer sent to the network since that moment, as `find` returns it. A read. Raises:
        Unavailable rather than an incomplete answer: an empty one would claim that nothing was sent."""
        ...


@runtime_checkable
class ReplacingSender(UsdtSender, Protocol):
    """A wallet that may rebroadcast a transfer with a higher fee and the same nonce: of all transactions signed with
    one nonce at most one ever moves the USDT. `state` and `broadcast` cover all of them."""

    async def in_place(self, signed: SignedTransfer) -> SignedTransfer:
        """Return the transaction on the network for this transfer, with the same operation, address and amount: the
        transfer itself, unless a replacement is in a block. Called once `state` has seen it, for the hash shown to
        people. A read. Raises: Unavailable, which says nothing about the transfer."""
        ...


@runtime_checkable
class SenderSimulator(UsdtSender, Protocol):
    """A simulated wallet without money, on a chain that tests control."""

    async def simulate(self, tx_hash: str, state: TransferState) -> None:
        """Put the transfer into this state, from any state: a chain does that too when it drops a block. The state
        lasts until the next call, except that UNSEEN ends as usual, by a broadcast or by `expires_at`."""
        ...


class Senders(msgspec.Struct, frozen=True, kw_only=True):
    """The configured wallets, and the wallet that each mode pays out from."""

    senders: Mapping[str, UsdtSender]
    modes: Mapping[str, str]
    """Maps a mode (`live`, `test`) to a name in `senders`."""

    def named(self, name: str) -> UsdtSender:
        """Return the wallet of a stored payout. Raises NotConfigured when it is no longer wired."""
        try:
            return self.senders[name]
        except KeyError:
            raise NotConfigured(f"no wallet named {name} is wired") from None

    def of_mode(self, mode: str) -> UsdtSender:
        """Return the wallet for new payouts of a mode. There is only one: a payout that may have been sent must never
        go through another wallet. Raises NotConfigured when the mode has none."""
        try:
            return self.senders[self.modes[mode]]
        except KeyError:
            raise NotConfigured(f"no wallet of {mode} mode is wired") from None

    def on(self, mode: str, network: str) -> UsdtSender:
        """Return the mode's wallet for payouts to an address of this network. Raises NotConfigured when the mode has no
        wallet or it is on another network; a simulated wallet serves every network."""
        sender = self.of_mode(mode)
        if sender.capabilities.network != network and not sender.capabilities.simulated:
            raise NotConfigured(f"the wallet of {mode} mode is on {sender.capabilities.network}, not on {network}")
        return sender

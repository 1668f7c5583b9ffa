"""What the service sends on chain, in its own words: an operation, an address, units of USDT, a signed transfer.

Sending is two calls, because a transfer has its hash before the network sees it. `sign` makes it and sends nothing; the
caller stores what it returned; `broadcast` sends just that, as often as needed. So a crash or a lost answer never leads
to a second transfer: there is one hash to send again, or to ask for (docs/settlement.md "Payouts").

Units are of 0.00000001 USDT on every network. Faults: Refused, OutcomeUnknown, Unavailable, NotConfigured.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol, runtime_checkable

import msgspec

from .chain import Network
from .faults import NotConfigured

_DECIMALS = 8
"""Of the units at this port."""


class SenderCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What an adapter can do; the core asks instead of assuming."""

    network: Network
    decimals: int
    """Of USDT on that network: 6 on TRON."""
    simulated: bool = False
    """No real money: the adapter is also a SenderSimulator."""

    @property
    def step(self) -> int:
        """The smallest amount that the network can move, in units: 100 on TRON. What is sent is a multiple of it."""
        step: int = 10 ** max(0, _DECIMALS - self.decimals)
        return step


class SignedTransfer(msgspec.Struct, frozen=True, kw_only=True):
    """A transfer ready to be sent. It is stored before the first broadcast, and sent as stored ever after."""

    operation: str
    tx_hash: str
    """64 hex digits in lower case without `0x`."""
    blob: bytes
    """What is broadcast. Whoever holds it can send it: it belongs in no log."""
    expires_at: datetime | None
    """No block made from then on takes it. None: it never expires, and only another transaction of the wallet that is
    final in its place proves that it will not come."""

    def __repr__(self) -> str:
        return f"<transfer {self.tx_hash} of {self.operation}>"


class TransferState(StrEnum):
    """How the network sees a signed transfer."""

    UNSEEN = "unseen"
    """It knows no such transaction. It may still come: nothing is proven."""
    IN_BLOCK = "in_block"
    """It stands in a block that may still be taken back."""
    FINAL = "final"
    """It is final and the USDT moved."""
    FAILED = "failed"
    """The USDT did not move and never will: it is final and reverted, or a final block is past `expires_at` and the
    transaction is in none, or another one is final in its place. The only proof after which the operation may be signed
    again, or its money given back."""


class UsdtSender(Protocol):
    """A wallet of the service on one network."""

    @property
    def name(self) -> str:
        """Stored with every payout that goes this way; stable for ever."""
        ...

    @property
    def capabilities(self) -> SenderCapabilities: ...

    async def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
        """Make and sign a transfer of `units` to `address`. Sends nothing, so a failed call leaves nothing open.

        A second call for the same operation may give another transaction: the caller stores the first, and signs
        again only after FAILED. A caller whose storage was restored from a backup may ask for one that was sent: who
        can tell is a FindingSender.

        Raises: Refused with reason `amount` (not above zero, or no multiple of `capabilities.step`) or `address` (none
        of this network); Unavailable, also when the service's wallet lacks USDT or what the network charges, with
        that in the message: it is the service's matter, not the payout's.
        """
        ...

    async def broadcast(self, signed: SignedTransfer) -> None:
        """Hand the transfer to the network. A repeat is the same transfer, and one that is already known is success.

        Raises: Refused when the network does not take it (reason `expired` from `expires_at` on, or when another
        transaction is in its place; `invalid` for what it did not sign): this call sent nothing, but it says nothing of
        an earlier call for the same transfer. After an unknown outcome only `state` tells. OutcomeUnknown; Unavailable
        when it was certainly not sent.
        """
        ...

    async def state(self, signed: SignedTransfer) -> TransferState:
        """How the transfer stands now. A read. Raises: Unavailable, which says nothing about the transfer."""
        ...


class SentTransfer(msgspec.Struct, frozen=True, kw_only=True):
    """What a wallet remembers of an operation: the transfer, to whom it went, and how much."""

    signed: SignedTransfer
    """Its `blob` may be empty, where the wallet does not keep it: then it can be followed, but not sent again."""
    address: str
    units: int

    def __repr__(self) -> str:
        return f"<sent {self.signed.tx_hash} of {self.signed.operation}>"


@runtime_checkable
class FindingSender(UsdtSender, Protocol):
    """A wallet that can be asked what it sent for an operation. Its memory is its own or the network's, and none of
    it lies in our storage: it is asked before anything is signed, because a database that was restored from a backup
    has forgotten what was signed since."""

    async def find(self, operation: str) -> SentTransfer | None:
        """The transfer that was handed to the network for this operation, however long ago and whether final or not;
        None when there was none, or only such as are FAILED. A read.

        Raises: Unavailable, which says nothing about the operation: nothing may be signed for it.
        """
        ...


@runtime_checkable
class ListingSender(FindingSender, Protocol):
    """A wallet that can list what it sent. It is asked when a database that was restored from a backup is compared with
    the world: of what was begun since the backup, nothing there knows even the operation."""

    async def sent_since(self, moment: datetime) -> Sequence[SentTransfer]:
        """Every transfer that was handed to the network from that moment on, as `find` tells it. A read.

        Raises: Unavailable, which says nothing: an empty answer would say that nothing was sent."""
        ...


@runtime_checkable
class ReplacingSender(UsdtSender, Protocol):
    """A wallet that may hand a transfer to the network once more with a higher fee, in the same place: of all that it
    signed for one place at most one ever moves the USDT. `state` and `broadcast` speak of all of them."""

    async def in_place(self, signed: SignedTransfer) -> SignedTransfer:
        """What stands on the network for this transfer, of the same operation, address and amount: itself, unless
        another one is in a block. Asked once `state` said that it is there, for the hash that people look up. A read.

        Raises: Unavailable, which says nothing about the transfer."""
        ...


@runtime_checkable
class SenderSimulator(UsdtSender, Protocol):
    """A wallet without money, on a chain that can be told what to do."""

    async def pretend(self, tx_hash: str, state: TransferState) -> None:
        """Make it so, from any state: also what a chain does when it drops a block. It stays so until told otherwise,
        but UNSEEN ends as it always does: by a broadcast, or by `expires_at`."""
        ...


class Senders(msgspec.Struct, frozen=True, kw_only=True):
    """The wallets at hand, and which one a mode pays out from."""

    senders: Mapping[str, UsdtSender]
    modes: Mapping[str, str]
    """By mode (`live`, `test`): a name in `senders`."""

    def named(self, name: str) -> UsdtSender:
        """The wallet that a stored payout goes by. Raises NotConfigured when it is no longer wired."""
        try:
            return self.senders[name]
        except KeyError:
            raise NotConfigured(f"no wallet named {name} is wired") from None

    def of_mode(self, mode: str) -> UsdtSender:
        """The wallet for new payouts of a mode: one, never a choice, because a payout that may have been sent must
        not go another way. Raises NotConfigured when the mode has none."""
        try:
            return self.senders[self.modes[mode]]
        except KeyError:
            raise NotConfigured(f"no wallet of {mode} mode is wired") from None

    def on(self, mode: str, network: str) -> UsdtSender:
        """The same, for what goes to an address of this network. Raises NotConfigured, also where the mode's wallet is
        on another one; a simulated wallet is on TRON besides."""
        sender = self.of_mode(mode)
        if sender.capabilities.network != network and not sender.capabilities.simulated:
            raise NotConfigured(f"the wallet of {mode} mode is on {sender.capabilities.network}, not on {network}")
        return sender

"""The port to the chains on which USDT moves: a network, a transaction, its final transfers.

Only reads: sending is another port. Faults of every call: Unavailable (a failed read, which says nothing about the
transaction), NotConfigured and NotSupported (this network is not wired).
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol, runtime_checkable

import msgspec


class Network(StrEnum):
    """A chain, by its own name. USDT is called TRC20 on TRON, ERC20 on Ethereum, BEP20 on BNB Smart Chain."""

    TRON = "tron"
    ETHEREUM = "ethereum"
    BSC = "bsc"


class UsdtTransfer(msgspec.Struct, frozen=True, kw_only=True):
    """One movement of genuine USDT. The adapter knows the contract of each network, and ignores other tokens that call
    themselves USDT. Addresses are in the network's usual spelling."""

    index: int
    """Position among the events of the transaction: together with the hash it identifies the movement."""
    sender: str
    recipient: str
    units: int
    """Units of 0.00000001 USDT, above zero. The networks count with 6 or 18 decimals; decimals beyond 8 are cut off."""


class NotFound(msgspec.Struct, frozen=True):
    """The network knows no such transaction: not sent, not yet in a block, or dropped."""


class InBlock(msgspec.Struct, frozen=True):
    """The transaction is in a block that may still be reverted."""


class Reverted(msgspec.Struct, frozen=True):
    """The transaction is final and had no effect: the contract refused it."""


class Final(msgspec.Struct, frozen=True):
    """The transaction is final and took effect. `transfers` is empty when it moved no USDT."""

    transfers: tuple[UsdtTransfer, ...] = ()


Sighting = NotFound | InBlock | Reverted | Final


class ChainWatcher(Protocol):
    """Reads the state of transactions on the chains."""

    async def lookup(self, network: Network, tx_hash: str) -> Sighting:
        """Return the present state of a transaction. `tx_hash` is 64 hex digits in lower case without `0x`, on every
        network.

        Raises: ValueError for any other text, because the hash becomes part of a request to a node.
        """
        ...


@runtime_checkable
class OwnsAddresses(Protocol):
    """An adapter of any port that owns addresses on a network: a wallet, or addresses handed out to clients."""

    async def owns(self, address: str) -> bool:
        """Return whether the adapter owns the address, in any spelling; False for an invalid address. A read of our own
        storage. Raises: Unavailable."""
        ...


class TokenMove(msgspec.Struct, frozen=True):
    """A movement of a simulated transaction. If not `genuine`: a token of another contract that is named USDT."""

    units: int
    genuine: bool = True


class TransactionState(StrEnum):
    """State of a simulated transaction."""

    MISSING = "missing"
    IN_BLOCK = "in_block"
    REVERTED = "reverted"
    FINAL = "final"


@runtime_checkable
class ChainSimulator(ChainWatcher, Protocol):
    """A simulated chain without money, whose content tests control."""

    async def simulate(
        self, network: Network, tx_hash: str, state: TransactionState, moves: Sequence[TokenMove] = ()
    ) -> None:
        """Put the transaction into this state, from any state: a chain does that too when it drops a block."""
        ...

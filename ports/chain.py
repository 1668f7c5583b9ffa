"""The chains that USDT moves on, in their own words: a network, a transaction, the transfers that are final in it.

Only reading so far: what the service sends itself is another port. Faults of every call: Unavailable (a failed read,
which says nothing about the transaction), NotConfigured and NotSupported (this network is not wired).
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol, runtime_checkable

import msgspec


class Network(StrEnum):
    """A chain, by its own name. The token's name there: TRC20 on TRON, ERC20 on Ethereum, BEP20 on BNB Smart Chain."""

    TRON = "tron"
    ETHEREUM = "ethereum"
    BSC = "bsc"


class UsdtTransfer(msgspec.Struct, frozen=True, kw_only=True):
    """One movement of genuine USDT: the adapter knows the contract of each network, and any other token that calls
    itself USDT is none. Addresses are in the network's usual spelling."""

    index: int
    """Its place among the events of the transaction: with the hash it names the movement for ever."""
    sender: str
    recipient: str
    units: int
    """Of 0.00000001 USDT, above zero. The networks count with 6 or 18 decimals; what is beyond 8 is cut off."""


class NotFound(msgspec.Struct, frozen=True):
    """The network knows no such transaction: not sent, not yet in a block, or dropped again."""


class InBlock(msgspec.Struct, frozen=True):
    """It stands in a block that may still be taken back."""


class Reverted(msgspec.Struct, frozen=True):
    """It is final and did nothing: the contract refused it."""


class Final(msgspec.Struct, frozen=True):
    """It is final and took effect. `transfers` is empty when it moved no USDT."""

    transfers: tuple[UsdtTransfer, ...] = ()


Sighting = NotFound | InBlock | Reverted | Final


class ChainWatcher(Protocol):
    """Sees what happens on the chains."""

    async def lookup(self, network: Network, tx_hash: str) -> Sighting:
        """How a transaction stands now. `tx_hash` is 64 hex digits in lower case without `0x`, for every network.

        Raises: ValueError for what is no such hash: it becomes part of a request to a node.
        """
        ...


@runtime_checkable
class OwnsAddresses(Protocol):
    """An adapter of any port that has addresses of its own on a network: a wallet, or what it gives to clients."""

    async def owns(self, address: str) -> bool:
        """Whether the address is one of them, in whatever spelling; False for what is no address. A read of our own
        storage. Raises: Unavailable."""
        ...


class TokenMove(msgspec.Struct, frozen=True):
    """A movement that a simulated transaction makes. Not `genuine`: a token of another contract that is named USDT."""

    units: int
    genuine: bool = True


class TransactionState(StrEnum):
    """How a simulated transaction stands."""

    MISSING = "missing"
    IN_BLOCK = "in_block"
    REVERTED = "reverted"
    FINAL = "final"


@runtime_checkable
class ChainSimulator(ChainWatcher, Protocol):
    """A chain without money that can be told what is on it."""

    async def pretend(
        self, network: Network, tx_hash: str, state: TransactionState, moves: Sequence[TokenMove] = ()
    ) -> None:
        """Make it so, from any state: also what a chain does when it drops a block."""
        ...

"""Chains without money: transactions exist because a simulation call made them.

The storage holds them, so that they survive a restart and every process of the service sees the same chains. Any
other transaction is not found, as on a real chain.
"""

import re
from collections.abc import Sequence
from hashlib import sha256

import msgspec

from ...ports.chain import (
    Final,
    InBlock,
    Network,
    NotFound,
    Reverted,
    Sighting,
    TokenMove,
    TransactionState,
    UsdtTransfer,
)
from ...ports.clock import Clock
from ...ports.operation_log import OperationLog
from ...ports.storage import Storage
from ..script import ChainScript, begin_read

_NAME = "simulator-chain"
_HASH = re.compile(r"[0-9a-f]{64}\Z")


class _Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One transaction: the body of a note."""

    state: TransactionState
    moves: tuple[TokenMove, ...] = ()


class SimulatedChain:
    """Implementation of the ports ChainWatcher and ChainSimulator, for all networks."""

    def __init__(self, storage: Storage, clock: Clock, *, script: ChainScript | None = None) -> None:
        self._ledger = OperationLog(_NAME, _Entry, storage, clock)
        self._clock = clock
        self._script = script or ChainScript()

    async def lookup(self, network: Network, tx_hash: str) -> Sighting:
        """Return the state of a transaction.

        Raises: the scripted faults; ValueError for a hash that is not in canonical form.
        """
        key = _key(network, tx_hash)
        await begin_read(self._clock, self._script.lookup)
        entry = await self._ledger.read(key)
        return NotFound() if entry is None else _sighting(entry, key)

    async def simulate(
        self, network: Network, tx_hash: str, state: TransactionState, moves: Sequence[TokenMove] = ()
    ) -> None:
        """Add or change a transaction, or remove it with MISSING.

        Raises: ValueError for a hash that is not in canonical form, or a negative amount.
        """
        key = _key(network, tx_hash)
        if any(move.units < 0 for move in moves):
            raise ValueError("a transfer moves nothing or more")
        await self._ledger.put(key, _Entry(state=state, moves=tuple(moves)))


def _key(network: Network, tx_hash: str) -> str:
    if not _HASH.match(tx_hash):
        raise ValueError("a transaction hash is 64 hex digits in lower case")
    return f"{network.value}:{tx_hash}"


def _sighting(entry: _Entry, key: str) -> Sighting:
    if entry.state is TransactionState.MISSING:
        return NotFound()
    if entry.state is TransactionState.IN_BLOCK:
        return InBlock()
    if entry.state is TransactionState.REVERTED:
        return Reverted()
    # A real chain lists the events of every contract. Other tokens, and movements of nothing, are left out here as
    # there.
    return Final(
        tuple(
            UsdtTransfer(
                index=index,
                sender=_address(f"{key}/{index}/sender"),
                recipient=_address(f"{key}/{index}/recipient"),
                units=move.units,
            )
            for index, move in enumerate(entry.moves)
            if move.genuine and move.units > 0
        )
    )


def _address(seed: str) -> str:
    """Return an address without a private key, derived from the seed, in a form that no network uses."""
    return f"simulated-{sha256(seed.encode()).hexdigest()[:32]}"

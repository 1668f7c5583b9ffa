"""Chains without money: transactions that are there because somebody said so.

What is on them lies in the storage, so that it survives a restart, and every process of the service sees the same
chains. A transaction that nobody spoke of is not found, as on a real chain.
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
from ...ports.faults import Conflict, Stale, Unavailable
from ...ports.notes import ProviderNote
from ...ports.storage import Storage
from .script import ChainScript, Ending, fault

_NAME = "simulator-chain"
_HASH = re.compile(r"[0-9a-f]{64}\Z")
_TRIES = 20
"""Attempts to write against others who write the same page."""


class _Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One transaction: the body of a note."""

    state: TransactionState
    moves: tuple[TokenMove, ...] = ()


class SimulatedChain:
    """Fills the ports ChainWatcher and ChainSimulator, for all networks."""

    def __init__(self, storage: Storage, clock: Clock, *, script: ChainScript | None = None) -> None:
        self._storage = storage
        self._clock = clock
        self._script = script or ChainScript()

    async def lookup(self, network: Network, tx_hash: str) -> Sighting:
        """How it stands. Raises: what the script says; ValueError for what is no hash in canonical form."""
        note_id = _note_id(network, tx_hash)
        twist = self._script.next()
        if twist.silence > 0:
            await self._clock.sleep(twist.silence)
        if twist.ending is not Ending.NORMAL:
            raise fault(twist)
        async with self._storage.unit() as unit:
            note = await unit[ProviderNote].get(note_id)
        return NotFound() if note is None else _sighting(_entry(note), note_id)

    async def pretend(
        self, network: Network, tx_hash: str, state: TransactionState, moves: Sequence[TokenMove] = ()
    ) -> None:
        """Put the transaction on the chain, or change it, or take it away with MISSING.

        Raises: ValueError for what is no hash in canonical form, or moves less than nothing.
        """
        note_id = _note_id(network, tx_hash)
        if any(move.units < 0 for move in moves):
            raise ValueError("a transfer moves nothing or more")
        body = msgspec.json.encode(_Entry(state=state, moves=tuple(moves)))
        for _ in range(_TRIES):
            if await self._try_to_write(note_id, body):
                return
        raise Unavailable("the transaction is being changed by too many at once")

    async def _try_to_write(self, note_id: str, body: bytes) -> bool:
        """False when somebody else was quicker."""
        async with self._storage.unit() as unit:
            note = await unit[ProviderNote].get(note_id)
            if note is None:
                unit[ProviderNote].add(
                    ProviderNote(id=note_id, provider=_NAME, body=body, created_at=self._clock.now())
                )
            else:
                unit[ProviderNote].save(msgspec.structs.replace(note, body=body))
            try:
                await unit.commit()
            except (Stale, Conflict):
                return False
            return True


def _note_id(network: Network, tx_hash: str) -> str:
    if not _HASH.match(tx_hash):
        raise ValueError("a transaction hash is 64 hex digits in lower case")
    return f"{_NAME}:{network.value}:{tx_hash}"


def _entry(note: ProviderNote) -> _Entry:
    return msgspec.json.decode(note.body, type=_Entry)


def _sighting(entry: _Entry, note_id: str) -> Sighting:
    if entry.state is TransactionState.MISSING:
        return NotFound()
    if entry.state is TransactionState.IN_BLOCK:
        return InBlock()
    if entry.state is TransactionState.REVERTED:
        return Reverted()
    # A real chain lists the events of every contract; what is no USDT, or moves nothing, is left out as there.
    return Final(
        tuple(
            UsdtTransfer(
                index=index,
                sender=_address(f"{note_id}/{index}/sender"),
                recipient=_address(f"{note_id}/{index}/recipient"),
                units=move.units,
            )
            for index, move in enumerate(entry.moves)
            if move.genuine and move.units > 0
        )
    )


def _address(seed: str) -> str:
    """An address that nobody holds, the same for the same seed, of a shape that no network has."""
    return f"simulated-{sha256(seed.encode()).hexdigest()[:32]}"

"""TRON without money, on which clients' deposits exist because a simulation call made them.

An address is derived from the operation and the watcher's name, so it needs no storage. One page in the storage
holds an address's deposits: it survives a restart, and every process of the service sees the same chain. There are
no timers: whether a deposit is final follows from the page and the clock.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from hashlib import sha256

import msgspec

from ...ports.chain import Network
from ...ports.clock import Clock, Ids
from ...ports.deposits import Deposit
from ...ports.operation_log import OperationLog
from ...ports.storage import Storage
from ..script import DepositScript, begin_read

FINALITY = timedelta(seconds=60)
"""Time from a block until it is final, about as on TRON."""

Spell = Callable[[bytes], str]
"""Function that writes the 20 bytes of an address in the network's form."""


class _Event(msgspec.Struct, frozen=True, kw_only=True):
    """One movement of some token to the address."""

    tx_hash: str
    index: int
    units: int
    at: datetime
    final_at: datetime
    genuine: bool = True
    dropped: bool = False


class _Page(msgspec.Struct, frozen=True, kw_only=True):
    """All movements to one address: the body of a note."""

    events: tuple[_Event, ...] = ()


class SimulatedDeposits:
    """Implementation of the ports DepositWatcher and DepositSimulator, with addresses that have no private key."""

    def __init__(
        self, name: str, storage: Storage, clock: Clock, ids: Ids, *, spell: Spell, script: DepositScript | None = None
    ) -> None:
        """Set up the watcher. `spell` writes addresses that pass every check of a real one."""
        self._chain = OperationLog(name, _Page, storage, clock)
        self._clock = clock
        self._ids = ids
        self._spell = spell
        self.script = script or DepositScript()
        """Faults for the next calls."""

    @property
    def name(self) -> str:
        """Name of the watcher, which is part of every note's id."""
        return self._chain.provider

    @property
    def network(self) -> Network:
        return Network.TRON

    async def address(self, operation: str) -> str:
        """Return the operation's address, which survives restarts. Raises: the scripted faults."""
        await begin_read(self._clock, self.script.address)
        return self._spell(sha256(f"{self.name}/{operation}".encode()).digest()[:20])

    async def deposits(self, address: str) -> Sequence[Deposit]:
        """Return the deposits in the order of sending. Raises: Unavailable; the scripted faults."""
        twist = await begin_read(self._clock, self.script.deposits)
        page, now = await self._chain.read(address) or _Page(), self._clock.now()
        found = [
            Deposit(
                tx_hash=event.tx_hash, index=event.index, units=event.units, at=event.at, is_final=now >= event.final_at
            )
            for event in page.events
            if event.genuine and not event.dropped
        ]
        return [*reversed(found), *reversed(found)] if twist.doubled else found

    async def simulate_deposit(
        self,
        address: str,
        units: int,
        *,
        genuine: bool = True,
        final: bool = True,
        at: datetime | None = None,
        tx_hash: str | None = None,
    ) -> str:
        """Simulate a deposit, as the port defines it. Raises: ValueError; Unavailable."""
        if units <= 0:
            raise ValueError("a deposit is of more than nothing")
        block = self._clock.now() if at is None else at
        event = _Event(
            tx_hash=tx_hash or sha256(self._ids.uuid().encode()).hexdigest(),
            index=0,
            units=units,
            at=block,
            final_at=block if final else block + FINALITY,
            genuine=genuine,
        )
        await self._chain.start(address, _Page())
        await self._chain.change(address, lambda page: _sent(page, event, is_known=tx_hash is not None))
        return event.tx_hash

    async def simulate_drop(self, address: str, tx_hash: str) -> None:
        """Drop a deposit's block, as the port defines it. Raises: ValueError; Unavailable."""
        if await self._chain.change(address, lambda page: _dropped(page, tx_hash)) is None:
            raise _unknown(tx_hash)


def _sent(page: _Page, event: _Event, *, is_known: bool) -> _Page:
    """Return the page with one more movement, or with a dropped transaction back in a block."""
    same = [other for other in page.events if other.tx_hash == event.tx_hash]
    if is_known and not same:
        raise _unknown(event.tx_hash)
    if any(other.dropped for other in same):
        events = tuple(
            msgspec.structs.replace(other, dropped=False, at=event.at, final_at=event.final_at)
            if other.tx_hash == event.tx_hash
            else other
            for other in page.events
        )
        return _Page(events=events)
    return _Page(events=(*page.events, msgspec.structs.replace(event, index=len(same))))


def _dropped(page: _Page, tx_hash: str) -> _Page:
    if all(event.tx_hash != tx_hash for event in page.events):
        raise _unknown(tx_hash)
    return _Page(
        events=tuple(
            msgspec.structs.replace(event, dropped=True) if event.tx_hash == tx_hash else event for event in page.events
        )
    )


def _unknown(tx_hash: str) -> ValueError:
    return ValueError(f"no transaction {tx_hash} sent anything to this address")

"""The port for USDT from clients: an address that belongs to one operation, and the deposits on it.

Deposits are matched by the receiving address, never by the sender (docs/exchanges.md "Rules"), so no two operations
share an address. Faults of every call: Unavailable (nothing was read, nothing was begun), NotConfigured.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol, runtime_checkable

import msgspec

from .chain import Network
from .faults import NotConfigured


class Deposit(msgspec.Struct, frozen=True, kw_only=True):
    """One transfer of genuine USDT to an address. `(tx_hash, index)` identifies it forever."""

    tx_hash: str
    """64 hex digits in lower case without `0x`."""
    index: int
    """Position among the events of the transaction."""
    units: int
    """Units of 0.00000001 USDT, above zero."""
    at: datetime
    """Time of the block that contains it; it changes if that block is reverted and another one includes the
    transfer."""
    is_final: bool
    """Its block can no longer be reverted. A deposit that is not final may be gone at the next poll."""


class DepositWatcher(Protocol):
    """Hands out addresses of the service, and reads the deposits on them."""

    @property
    def name(self) -> str:
        """Name stored with every operation that has an address from here; it must never change."""
        ...

    @property
    def network(self) -> Network: ...

    async def address(self, operation: str) -> str:
        """Return the address of this operation, in the network's usual spelling: unique, and the same at every call."""
        ...

    async def deposits(self, address: str) -> Sequence[Deposit]:
        """Return the deposits on this address so far, final or not. A read.

        Includes only genuine USDT (the adapter knows the contract, and ignores other tokens that call themselves USDT),
        and only events that moved USDT to this address. An answer may contain a deposit twice, in any order, and a
        deposit that was not final may disappear: the caller must handle that.
        """
        ...


@runtime_checkable
class LateDeposits(DepositWatcher, Protocol):
    """A watcher of a real network, which sees a deposit some seconds after its block."""

    @property
    def lag(self) -> timedelta:
        """Usual delay between a block and the moment when its deposits are visible. An empty answer only proves that
        nothing came before that."""
        ...


class WalletAddress(msgspec.Struct, frozen=True, kw_only=True):
    """An address of a wallet that derives addresses by consecutive numbers."""

    number: int
    address: str
    is_given: bool = False
    """The address was given to an operation, or skipped."""
    units: int = 0
    """Final deposits on it, as far as they were read."""


@runtime_checkable
class CountedWallet(DepositWatcher, Protocol):
    """A watcher that derives its addresses from a wallet, one after the other, without any key to spend from them."""

    async def addresses(self, first: int, most: int) -> Sequence[WalletAddress]:
        """Return at most `most` addresses from number `first` on, given out or not. A read of our storage. Raises:
        Unavailable."""
        ...

    async def skip(self, number: int) -> int:
        """Mark the free addresses below `number` as used, and return the next number. For a database restored from a
        backup, which has lost the addresses given out since. Raises: Unavailable."""
        ...


@runtime_checkable
class DepositSimulator(DepositWatcher, Protocol):
    """A simulated chain without money."""

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
        """Simulate a transfer of `units` to the address, and return the transaction's hash.

        Not `genuine`: a token of another contract that is named USDT. Not `final`: its block may still be reverted, for
        as long as that is possible on the network. `at`: time of the block; default now. `tx_hash`: an existing
        transaction to this address: if it was dropped, it is in a block again with all its movements; otherwise it gets
        one movement more.

        Raises: ValueError for an amount not above zero, and for a hash that this address does not know.
        """
        ...

    async def simulate_drop(self, address: str, tx_hash: str) -> None:
        """Revert the block that contains this transaction, final or not. Raises: ValueError when the address knows no
        such transaction."""
        ...


class DepositWatchers(msgspec.Struct, frozen=True, kw_only=True):
    """The configured watchers, and the watcher that each mode uses for new addresses."""

    watchers: Mapping[str, DepositWatcher]
    modes: Mapping[str, str]
    """Maps a mode (`live`, `test`) to a name in `watchers`."""

    def named(self, name: str) -> DepositWatcher:
        """Return the watcher of a stored address. Raises NotConfigured when it is no longer wired."""
        try:
            return self.watchers[name]
        except KeyError:
            raise NotConfigured(f"no watcher of deposits named {name} is wired") from None

    def of_mode(self, mode: str) -> DepositWatcher:
        """Return the watcher for new addresses of a mode. Raises NotConfigured when the mode has none."""
        try:
            return self.watchers[self.modes[mode]]
        except KeyError:
            raise NotConfigured(f"no watcher of deposits of {mode} mode is wired") from None

"""Where clients send USDT, in its own words: an address that is one operation's alone, and what came to it.

Money is matched by the address it came to, never by its sender (docs/exchanges.md "Rules"), so no two operations share
one. Faults of every call: Unavailable (nothing was read, nothing was begun), NotConfigured.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol, runtime_checkable

import msgspec

from .chain import Network
from .faults import NotConfigured


class Deposit(msgspec.Struct, frozen=True, kw_only=True):
    """One transfer of genuine USDT to an address. `(tx_hash, index)` names it for ever."""

    tx_hash: str
    """64 hex digits in lower case without `0x`."""
    index: int
    """Its place among the events of the transaction."""
    units: int
    """Of 0.00000001 USDT, above zero."""
    at: datetime
    """When the block was made that it stands in; another one, should that be taken back."""
    is_final: bool
    """No longer can its block be taken back. What is not final may be gone at the next look."""


class DepositWatcher(Protocol):
    """Hands out addresses of the service, and sees what came to them."""

    @property
    def name(self) -> str:
        """Stored with every operation that has an address from here; stable for ever."""
        ...

    @property
    def network(self) -> Network: ...

    async def address(self, operation: str) -> str:
        """The address of this operation, in the network's usual spelling: its own, and the same at every call."""
        ...

    async def deposits(self, address: str) -> Sequence[Deposit]:
        """What came to this address so far, whether it is final or not. A read.

        Only genuine USDT (the adapter knows the contract: any other token that calls itself USDT is none), and only
        what moved something to this address. An answer may name a deposit twice, in any order, and one that was not
        final may be gone: all that is the caller's to live with.
        """
        ...


@runtime_checkable
class LateDeposits(DepositWatcher, Protocol):
    """A watcher of a real network: what is in a block is seen some seconds later."""

    @property
    def lag(self) -> timedelta:
        """So long after its block was made a deposit is seen, where nothing is wrong. An answer of nothing says that
        nothing came until so long ago."""
        ...


class WalletAddress(msgspec.Struct, frozen=True, kw_only=True):
    """An address of a wallet that is counted up."""

    number: int
    address: str
    is_given: bool = False
    """It was given to an operation, or passed over."""
    units: int = 0
    """What came to it and is final, as far as it was asked about."""


@runtime_checkable
class CountedWallet(DepositWatcher, Protocol):
    """A watcher whose addresses are a wallet's, one after the other, and that knows no key to spend from them."""

    async def addresses(self, first: int, most: int) -> Sequence[WalletAddress]:
        """Those from number `first` on, given out or not. A read of our storage. Raises: Unavailable."""
        ...

    async def skip(self, number: int) -> int:
        """Give those below `number` to nobody, as far as they are free yet; the number that comes next. For a database
        that was restored from a backup and has forgotten what it gave out since. Raises: Unavailable."""
        ...


@runtime_checkable
class DepositSimulator(DepositWatcher, Protocol):
    """A chain without money, on which clients are simulated."""

    async def pretend_deposit(
        self,
        address: str,
        units: int,
        *,
        genuine: bool = True,
        final: bool = True,
        at: datetime | None = None,
        tx_hash: str | None = None,
    ) -> str:
        """Let somebody send `units` there, and return the transaction's hash.

        Not `genuine`: a token of another contract that is named USDT. Not `final`: its block may still be taken back,
        for as long as that takes on the network. `at`: when the block was made; now without it. `tx_hash`: of a
        transaction that sent something to this address before: one that was dropped is in a block again with what
        it moved, any other makes one movement more.
        Raises: ValueError for nothing or less, and for a hash that this address does not know.
        """
        ...

    async def pretend_drop(self, address: str, tx_hash: str) -> None:
        """Take the block back that this transaction stands in, final or not. Raises: ValueError when the address
        knows no such transaction."""
        ...


class DepositWatchers(msgspec.Struct, frozen=True, kw_only=True):
    """The watchers at hand, and which one a mode takes USDT in with."""

    watchers: Mapping[str, DepositWatcher]
    modes: Mapping[str, str]
    """By mode (`live`, `test`): a name in `watchers`."""

    def named(self, name: str) -> DepositWatcher:
        """The watcher that a stored address is from. Raises NotConfigured when it is no longer wired."""
        try:
            return self.watchers[name]
        except KeyError:
            raise NotConfigured(f"no watcher of deposits named {name} is wired") from None

    def of_mode(self, mode: str) -> DepositWatcher:
        """The watcher for new addresses of a mode. Raises NotConfigured when the mode has none."""
        try:
            return self.watchers[self.modes[mode]]
        except KeyError:
            raise NotConfigured(f"no watcher of deposits of {mode} mode is wired") from None

"""Adapters made by an embedding program (docs/embedding.md)."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import force_setattr

from ...core.domain.accounts.accounts import Mode
from ...ports.alarms import Alarms
from ...ports.bank import Bank
from ...ports.chain import ChainWatcher
from ...ports.deposits import DepositWatcher
from ...ports.files import FileStore
from ...ports.kyc import KycVerifier
from ...ports.notifier import Notifier
from ...ports.payouts import UsdtSender
from ...ports.rates import RateSource
from ...ports.receipts import ReceiptRegister
from ...ports.storage import Storage
from ...ports.tools import WakeUp
from ..settings.plugins import PluginError, checked

OpenStorage = Callable[[WakeUp], Awaitable[Storage]]
"""Opens a storage that calls `wake_up` with the jobs of every commit that wrote some. The app closes it."""


class Adapters(msgspec.Struct, frozen=True, kw_only=True):
    """Your own adapters. Each replaces the adapter named in the settings; None keeps that one.

    You close them, except for the storage, which the service opens and closes.

    Raises: PluginError for a value that is not an adapter of its port, or not a list where a list is expected.
    """

    banks: Sequence[Bank] | Mapping[Any, Sequence[Bank]] | None = None
    """Banks of live mode in the order of trial, or a mapping by mode (`live`, `test`). A mode that is not named keeps
    the banks of the settings."""
    rates: Sequence[RateSource] | None = None
    """Rate sources of live mode in the order of use."""
    kyc: KycVerifier | None = None
    chain: ChainWatcher | None = None
    deposits: DepositWatcher | None = None
    """The watcher of live mode."""
    payouts: UsdtSender | None = None
    """The wallet of live mode."""
    notifier: Notifier | None = None
    files: FileStore | None = None
    """Store of uploads from merchants' front ends."""
    receipts: ReceiptRegister | None = None
    """The cash register for receipts of live payments whose bank writes none."""
    alarms: Sequence[Alarms] | None = None
    """Channels on which operators are alerted."""
    storage: OpenStorage | None = None

    def __post_init__(self) -> None:
        """Check each field: a msgspec struct does not check types, and a wrong one would be ignored silently."""
        given = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}
        for name, value in given.items():
            if name == "banks":
                force_setattr(self, name, _by_mode(value))
            elif name in _LISTED:
                force_setattr(self, name, _all(name, value, name, _LISTED[name]))
            elif name != "storage":
                checked(name, value, f"the {name} that was given")
            elif not callable(value):
                raise PluginError("`storage` of Adapters must be an async function that opens a Storage")

    def banks_of(self, mode: Mode) -> Sequence[Bank] | None:
        """Return the banks given for a mode; None: use those of the settings."""
        return None if self.banks is None else _by_mode(self.banks).get(mode)


_BANK = "the bank that was given"
_LISTED = {"rates": "the source of rates that was given", "alarms": "the alarm channel that was given"}


def _by_mode(given: Any) -> dict[Mode, Sequence[Bank]]:
    named = given if isinstance(given, Mapping) else {Mode.LIVE: given}
    wrong = [str(mode) for mode in named if mode not in tuple(Mode)]
    if wrong:
        raise PluginError(f"`banks` of Adapters names no mode {wrong[0]!r}: the modes are 'live' and 'test'")
    return {
        Mode(mode): _all("bank", banks, "banks" if named is not given else f"banks[{str(mode)!r}]", _BANK)
        for mode, banks in named.items()
    }


def _all(kind: str, given: Any, name: str, whose: str) -> tuple[Any, ...]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence):
        raise PluginError(f"`{name}` of Adapters must be a list, not {type(given).__name__}: write {name}=[…]")
    return tuple(checked(kind, each, whose) for each in given)

"""Adapters that whoever embeds the house makes himself (docs/embedding.md)."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from ..core.domain.accounts.accounts import Mode
from ..ports.alarms import Alarms
from ..ports.bank import Bank
from ..ports.chain import ChainWatcher
from ..ports.deposits import DepositWatcher
from ..ports.files import FileStore
from ..ports.kyc import KycVerifier
from ..ports.notifier import Notifier
from ..ports.payouts import UsdtSender
from ..ports.rates import RateSource
from ..ports.storage import Storage
from ..ports.tools import Kick

OpenStorage = Callable[[Kick], Awaitable[Storage]]
"""Opens a storage that calls `kick` with the jobs of every commit that wrote some. The house closes it."""


class Adapters(msgspec.Struct, frozen=True, kw_only=True):
    """Adapters of one's own, each in place of what the settings name; None: what the settings name.

    They stay their giver's to close; the storage alone is opened by the house, and closed by it.
    """

    banks: Mapping[Mode, Sequence[Bank]] | None = None
    """The banks of a mode, the first tried first. A mode that is not named keeps its own."""
    rates: Sequence[RateSource] | None = None
    """Of live mode, the first asked first."""
    kyc: KycVerifier | None = None
    chain: ChainWatcher | None = None
    deposits: DepositWatcher | None = None
    """Of live mode, as is the next."""
    payouts: UsdtSender | None = None
    notifier: Notifier | None = None
    files: FileStore | None = None
    """What merchants' front ends upload."""
    alarms: Sequence[Alarms] | None = None
    """By which operators are told of trouble."""
    storage: OpenStorage | None = None

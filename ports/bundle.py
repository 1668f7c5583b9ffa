"""All ports in one frozen record: the first argument of every use case."""

from collections.abc import Mapping
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network

import msgspec

from .alarms import AlarmChannels
from .bank_routes import BankRoutes
from .chain import ChainWatcher
from .clock import Ids, TestTimeClock
from .counters import RateCounters
from .deposits import DepositWatchers
from .files import FileStore
from .kyc import KycVerifier
from .notifier import Notifier
from .payouts import Senders
from .queue import Queue
from .rates import RateSources
from .storage import Storage
from .vault import Vault


class Urls(msgspec.Struct, frozen=True, kw_only=True):
    """Where the house is reached from outside; no slash at the end."""

    base_url: str
    pay_url: str
    app_url: str

    def payment_page(self, payment_id: str) -> str:
        """Where a payment's payer sees it."""
        return f"{self.pay_url}/p/{payment_id}"

    def subscription_page(self, subscription_id: str) -> str:
        """Where a subscription's payer sees it, whatever is paid for it."""
        return f"{self.pay_url}/s/{subscription_id}"


class FourEyes(msgspec.Struct, frozen=True, kw_only=True):
    """Which acts of operators wait for a second one."""

    acts: frozenset[str] = frozenset()
    """Names of core/domain/operators/guarded.py: `Guarded`; empty: none."""
    refund_above: int = 0
    """Kopecks: a refund of more waits."""
    days: int = 3
    """How long an act waits."""


class Ports(msgspec.Struct, frozen=True, kw_only=True):
    """What the core speaks to. Only the composition root fills it."""

    storage: Storage
    clock: TestTimeClock
    ids: Ids
    banks: BankRoutes
    chain: ChainWatcher
    senders: Senders
    deposits: DepositWatchers
    kyc: KycVerifier
    files: FileStore
    rates: RateSources
    notifier: Notifier
    counters: RateCounters
    queue: Queue
    vault: Vault
    urls: Urls
    former_kyc: Mapping[str, KycVerifier] = msgspec.field(default_factory=dict)
    """By name, verifiers that begin no check any more: they are asked about those that they have."""
    has_verifier: bool = True
    """Whether `kyc` may verify people: false where it is a simulator that live mode may not use."""
    alarms: AlarmChannels = AlarmChannels()
    four_eyes: FourEyes = FourEyes()
    test_data_days: int = 90
    """Test data that is older is forgotten; 0: never."""
    notice_networks: Mapping[str, tuple[IPv4Network | IPv6Network, ...]] = msgspec.field(default_factory=dict)
    """By name, the adapters that are Notices: where their notices may come from; empty: from anywhere."""
    started: datetime
    """When this process began, by the machine's clock."""

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
from .documents import Documents
from .files import FileStore
from .kyc import KycVerifier
from .mailer import Mailer
from .messenger import Messenger
from .notifier import Notifier
from .passkeys import PasskeyVerifier
from .passwords import PasswordHasher
from .payouts import Senders
from .proofs import HeadSigner
from .queue import Queue
from .rates import RateSources
from .receipts import ReceiptRegister
from .spreadsheets import Spreadsheets
from .storage import Storage
from .vault import Vault


class Urls(msgspec.Struct, frozen=True, kw_only=True):
    """Public addresses of the app; without a slash at the end."""

    base_url: str
    pay_url: str
    app_url: str

    def payment_page(self, payment_id: str) -> str:
        """Return the payer's page of a payment."""
        return f"{self.pay_url}/p/{payment_id}"

    def confirmation_page(self, payment_id: str, key: str) -> str:
        """Return the page that confirms a payment."""
        return f"{self.pay_url}/p/{payment_id}/confirmation/{key}"

    def link_page(self, link_id: str) -> str:
        """Return the payer's page of a payment link."""
        return f"{self.pay_url}/l/{link_id}"

    def subscription_page(self, subscription_id: str) -> str:
        """Return the payer's page of a subscription, for all its payments."""
        return f"{self.pay_url}/s/{subscription_id}"


class FourEyes(msgspec.Struct, frozen=True, kw_only=True):
    """Operator actions that need a second operator."""

    actions: frozenset[str] = frozenset()
    """Names from core/domain/operators/guarded.py: `Guarded`; empty: none."""
    refund_above: int = 0
    """In kopecks: larger refunds need a second operator."""
    days: int = 3
    """How long an action waits for the second operator, in days."""


class Ports(msgspec.Struct, frozen=True, kw_only=True):
    """All ports of the core. Only the composition root fills it."""

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
    passwords: PasswordHasher
    passkeys: PasskeyVerifier
    spreadsheets: Spreadsheets
    documents: Documents
    head_signer: HeadSigner
    mailer: Mailer | None = None
    """Sends letters to merchants' people; None: e-mail is not connected, and links are shown to operators instead."""
    messenger: Messenger | None = None
    """Sends messages to people's Telegram chats; None: no bot is connected."""
    former_kyc: Mapping[str, KycVerifier] = msgspec.field(default_factory=dict)
    """Verifiers by name that begin no new checks: they only answer for their existing ones."""
    register: ReceiptRegister | None = None
    """Writes receipts of live payments whose bank writes none; None: no register is connected."""
    cell: str | None = None
    """Name of this cell; None: the installation is the only one (docs/cells.md)."""
    has_verifier: bool = True
    """Whether `kyc` may verify people: false if it is a simulator that live mode may not use."""
    alarms: AlarmChannels = AlarmChannels()
    four_eyes: FourEyes = FourEyes()
    test_data_days: int = 90
    """Older test data is deleted; 0: never."""
    notification_networks: Mapping[str, tuple[IPv4Network | IPv6Network, ...]] = msgspec.field(default_factory=dict)
    """Allowed source networks of each adapter that is a Notifications, by name; empty: any source."""
    started: datetime
    """When this process started, by the machine's clock."""

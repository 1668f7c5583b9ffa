"""The public names of `cambist` (docs/embedding.md). Add a name here and nowhere else.

`cambist` loads this module when one of the names is first used. Modules may move; these names stay
(docs/versioning.md).
"""

from types import FunctionType as _FunctionType

from ..adapters.storage.memory.memory import MemoryStorage as MemoryStorage
from ..adapters.storage.table.catalogue import CATALOGUE as CATALOGUE
from ..adapters.storage.table.catalogue import Table as Table
from ..core.domain.accounts.accounts import Mode as Mode
from ..core.domain.errors import Refusal as Refusal
from ..core.domain.webhooks.signing import NotVerified as NotVerified
from ..core.domain.webhooks.signing import verify_signature as verify_signature
from ..core.usecases.accounts.accounts import KeyPair as KeyPair
from ..core.usecases.accounts.accounts import NewAccount as NewAccount
from ..ports.faults import Fault as Fault
from ..ports.faults import Unavailable as Unavailable
from ..ports.tools import FileTools as FileTools
from ..ports.tools import Tools as Tools
from ..ports.vault import VaultError as VaultError
from .app.compose import migrate as migrate
from .app.own_adapters import Adapters as Adapters
from .client.events import EventType as EventType
from .client.money import Balance as Balance
from .client.movements import Movement as Movement
from .client.payments import FailureReason as FailureReason
from .client.payments import Payer as Payer
from .client.payments import Payment as Payment
from .client.payments import PaymentStatus as PaymentStatus
from .client.refunds import Refund as Refund
from .client.refunds import RefundStatus as RefundStatus
from .client.settlements import Settlement as Settlement
from .client.webhooks import ChargeExhausted as ChargeExhausted
from .client.webhooks import DeliveryProofReminder as DeliveryProofReminder
from .client.webhooks import ExchangeStatusChanged as ExchangeStatusChanged
from .client.webhooks import GatewayStatusChanged as GatewayStatusChanged
from .client.webhooks import KycStatusChanged as KycStatusChanged
from .client.webhooks import PaymentStatusChanged as PaymentStatusChanged
from .client.webhooks import RefundChanged as RefundChanged
from .client.webhooks import SubscriptionStatusChanged as SubscriptionStatusChanged
from .client.webhooks import UnknownEvent as UnknownEvent
from .client.webhooks import WebhookEvent as WebhookEvent
from .client.webhooks import WithdrawalStatusChanged as WithdrawalStatusChanged
from .embedding.blocking import SyncMerchant as SyncMerchant
from .embedding.blocking import SyncService as SyncService
from .embedding.blocking import open_sync as open_sync
from .embedding.event_handler import Event as Event
from .embedding.merchant import Merchant as Merchant
from .embedding.mount import Mount as Mount
from .embedding.opening import open as open  # noqa: A004 - `cambist.open`
from .embedding.service import AccountSummary as AccountSummary
from .embedding.service import Service as Service
from .settings.plugins import NotInstalled as NotInstalled
from .settings.plugins import PluginError as PluginError
from .settings.settings import Settings as Settings
from .settings.settings import SettingsError as SettingsError

# Tracebacks, reprs and pickles name the public module, which stays when a class moves. Names of the ports and of the
# client keep theirs.
_ELSEWHERE = ("builtins", "cambist.client", "cambist.ports", "types")
for _found in list(vars().values()):
    if isinstance(_found, type | _FunctionType) and _found.__module__ not in _ELSEWHERE:
        _found.__module__ = "cambist"

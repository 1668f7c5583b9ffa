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
from ..core.domain.money import Rub as Rub
from ..core.domain.money import Usdt as Usdt
from ..core.domain.movements import Movement as Movement
from ..core.domain.payloads import ChargeExhaustedPayload as ChargeExhaustedPayload
from ..core.domain.payloads import ExchangePayload as ExchangePayload
from ..core.domain.payloads import GatewayPayload as GatewayPayload
from ..core.domain.payloads import KycPayload as KycPayload
from ..core.domain.payloads import Payload as Payload
from ..core.domain.payloads import PaymentPayload as PaymentPayload
from ..core.domain.payloads import ProofReminderPayload as ProofReminderPayload
from ..core.domain.payloads import RefundPayload as RefundPayload
from ..core.domain.payloads import SubscriptionPayload as SubscriptionPayload
from ..core.domain.payloads import WithdrawalPayload as WithdrawalPayload
from ..core.domain.payments.orders import Payer as Payer
from ..core.domain.payments.payments import FailureReason as FailureReason
from ..core.domain.payments.payments import Payment as Payment
from ..core.domain.payments.payments import PaymentStatus as PaymentStatus
from ..core.domain.refunds.refunds import Refund as Refund
from ..core.domain.refunds.refunds import RefundStatus as RefundStatus
from ..core.domain.settlement.settlement import Settlement as Settlement
from ..core.domain.webhooks.events import EventType as EventType
from ..core.domain.webhooks.signing import NotVerified as NotVerified
from ..core.domain.webhooks.signing import verify_signature as verify_signature
from ..core.usecases.accounts.accounts import KeyPair as KeyPair
from ..core.usecases.accounts.accounts import NewAccount as NewAccount
from ..core.usecases.ledger.balance import Balance as Balance
from ..ports.faults import Fault as Fault
from ..ports.faults import Unavailable as Unavailable
from ..ports.tools import FileTools as FileTools
from ..ports.tools import Tools as Tools
from ..ports.vault import VaultError as VaultError
from .app.compose import migrate as migrate
from .app.own_adapters import Adapters as Adapters
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

# Tracebacks, reprs and pickles name the public module, which stays when a class moves. Ports keep `cambist.ports`.
for _found in list(vars().values()):
    if isinstance(_found, type | _FunctionType) and _found.__module__ not in {"builtins", "cambist.ports", "types"}:
        _found.__module__ = "cambist"

"""cambist: a merchant's payment, subscription and exchange service, and a library to embed it.

    async with cambist.open("sqlite:///shop.db", on_event=heard) as service:
        account = await service.create_account("My shop")
        merchant = await service.merchant(account.account_id)
        payment = await merchant.create_payment("490.00", external_id="order-1")

docs/embedding.md tells the rest. Everything here is loaded when it is first asked for; `import cambist` loads nothing.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .core.domain.accounts import Mode as Mode
    from .core.domain.errors import Refusal as Refusal
    from .core.domain.events import EventType as EventType
    from .core.domain.money import Rub as Rub
    from .core.domain.money import Usdt as Usdt
    from .core.domain.orders import Payer as Payer
    from .core.domain.payloads import ChargeExhaustedPayload as ChargeExhaustedPayload
    from .core.domain.payloads import ExchangePayload as ExchangePayload
    from .core.domain.payloads import GatewayPayload as GatewayPayload
    from .core.domain.payloads import KycPayload as KycPayload
    from .core.domain.payloads import Payload as Payload
    from .core.domain.payloads import PaymentPayload as PaymentPayload
    from .core.domain.payloads import ProofReminderPayload as ProofReminderPayload
    from .core.domain.payloads import RefundPayload as RefundPayload
    from .core.domain.payloads import SubscriptionPayload as SubscriptionPayload
    from .core.domain.payloads import WithdrawalPayload as WithdrawalPayload
    from .core.domain.payments import FailureReason as FailureReason
    from .core.domain.payments import Payment as Payment
    from .core.domain.payments import PaymentStatus as PaymentStatus
    from .core.domain.refunds import Refund as Refund
    from .core.domain.refunds import RefundStatus as RefundStatus
    from .core.usecases.accounts.accounts import KeyPair as KeyPair
    from .core.usecases.accounts.accounts import NewAccount as NewAccount
    from .core.usecases.ledger.balance import Balance as Balance
    from .frontends.compose import migrate as migrate
    from .frontends.embedding.hearing import Event as Event
    from .frontends.embedding.merchant import Merchant as Merchant
    from .frontends.embedding.service import Service as Service
    from .frontends.embedding.service import open as open  # noqa: A004 - `cambist.open`
    from .frontends.plugins import NotInstalled as NotInstalled
    from .frontends.plugins import PluginError as PluginError
    from .frontends.providers import Adapters as Adapters
    from .frontends.settings import Settings as Settings
    from .ports.faults import Fault as Fault
    from .ports.faults import Unavailable as Unavailable
    from .ports.tools import Tools as Tools
    from .ports.vault import VaultError as VaultError

_ROOMS = {
    "Adapters": "frontends.providers",
    "Balance": "core.usecases.ledger.balance",
    "ChargeExhaustedPayload": "core.domain.payloads",
    "Event": "frontends.embedding.hearing",
    "EventType": "core.domain.events",
    "ExchangePayload": "core.domain.payloads",
    "FailureReason": "core.domain.payments",
    "Fault": "ports.faults",
    "GatewayPayload": "core.domain.payloads",
    "KeyPair": "core.usecases.accounts.accounts",
    "KycPayload": "core.domain.payloads",
    "Merchant": "frontends.embedding.merchant",
    "Mode": "core.domain.accounts",
    "NewAccount": "core.usecases.accounts.accounts",
    "NotInstalled": "frontends.plugins",
    "Payer": "core.domain.orders",
    "Payload": "core.domain.payloads",
    "Payment": "core.domain.payments",
    "PaymentPayload": "core.domain.payloads",
    "PaymentStatus": "core.domain.payments",
    "PluginError": "frontends.plugins",
    "ProofReminderPayload": "core.domain.payloads",
    "Refund": "core.domain.refunds",
    "RefundPayload": "core.domain.payloads",
    "RefundStatus": "core.domain.refunds",
    "Refusal": "core.domain.errors",
    "Rub": "core.domain.money",
    "Service": "frontends.embedding.service",
    "Settings": "frontends.settings",
    "SubscriptionPayload": "core.domain.payloads",
    "Tools": "ports.tools",
    "Unavailable": "ports.faults",
    "Usdt": "core.domain.money",
    "VaultError": "ports.vault",
    "WithdrawalPayload": "core.domain.payloads",
    "migrate": "frontends.compose",
    "open": "frontends.embedding.service",
}
"""Every public name and the room where it lives."""


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_ROOMS[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted((*globals(), *_ROOMS))

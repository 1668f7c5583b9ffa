"""Client library for merchants: a typed client, sync and async, and webhook verification.

It does not depend on the server. From the service it imports only the error catalogue and the signature check, both
pure code. The clients need `pip install cambist[client]`; the records and webhooks, which embedding programs use too,
need only msgspec, so the clients are imported at their first use.
"""

from types import FunctionType
from typing import TYPE_CHECKING, Any

from .account import Account
from .errors import NO_ANSWER, UNEXPECTED_ANSWER, Advice, CambistError, NoAnswer, RateLimit
from .events import DeliveryStatus, EventRecord, EventType, WebhookEndpoint, WholeEvent
from .exchanges import ClientStatus, Direction, Exchange, ExchangeClient, ExchangeStatus, NewExchange
from .exports import Export, ExportFailure, ExportFormat, ExportKind, ExportStatus
from .kyc import KycCheck, KycStatus, Registration, UploadGrant, UserType
from .model import Page, Pagination
from .money import Balance, Gateway, GatewayStatus, Rate, Turnover
from .movements import BalancePart, Movement, MovementKind, MovementObject
from .payment_links import LinkAnswer, LinkField, LinkPayment, PaymentLink, PaymentLinkStatus
from .payments import (
    DeliveryProof,
    FailureReason,
    Payer,
    Payment,
    PaymentMethod,
    Payments,
    PaymentStatus,
    ProofNetwork,
    ProofRejection,
    ProofStatus,
    Transfer,
    TransferStatus,
)
from .receipts import Fiscal, Receipt, ReceiptKind, ReceiptStatus
from .refunds import PendingReason, Refund, RefundStatus
from .reports import (
    BalanceParts,
    PastBalance,
    Report,
    ReportDocument,
    ReportFormat,
    ReportHead,
    ReportKind,
    ReportProof,
    ReportStatus,
    ReportTotal,
)
from .request_log import LoggedRequest
from .requests import Amount, Request
from .retries import Retries
from .sandbox import Letter, Letters
from .settlements import ItemKind, Settlement, SettlementItem
from .subscriptions import BindingCharge, ChargeWindow, Interval, Subscription, SubscriptionStatus
from .webhook_endpoints import FurtherEndpoint, NewEndpoint
from .webhooks import (
    ChargeExhausted,
    DeliveryProofReminder,
    ExchangeStatusChanged,
    GatewayStatusChanged,
    KycStatusChanged,
    NotVerified,
    PaymentStatusChanged,
    RefundChanged,
    SubscriptionStatusChanged,
    UnknownEvent,
    Webhook,
    WebhookEvent,
    WithdrawalStatusChanged,
    read_event,
    verify_webhook,
)
from .withdrawals import Withdrawal, WithdrawalItem, WithdrawalItemKind, WithdrawalStatus

if TYPE_CHECKING:
    from .clients import AsyncClient, Client, Health

__all__ = [
    "NO_ANSWER",
    "UNEXPECTED_ANSWER",
    "Account",
    "Advice",
    "Amount",
    "AsyncClient",
    "Balance",
    "BalancePart",
    "BalanceParts",
    "BindingCharge",
    "CambistError",
    "ChargeExhausted",
    "ChargeWindow",
    "Client",
    "ClientStatus",
    "DeliveryProof",
    "DeliveryProofReminder",
    "DeliveryStatus",
    "Direction",
    "EventRecord",
    "EventType",
    "Exchange",
    "ExchangeClient",
    "ExchangeStatus",
    "ExchangeStatusChanged",
    "Export",
    "ExportFailure",
    "ExportFormat",
    "ExportKind",
    "ExportStatus",
    "FailureReason",
    "Fiscal",
    "FurtherEndpoint",
    "Gateway",
    "GatewayStatus",
    "GatewayStatusChanged",
    "Health",
    "Interval",
    "ItemKind",
    "KycCheck",
    "KycStatus",
    "KycStatusChanged",
    "Letter",
    "Letters",
    "LinkAnswer",
    "LinkField",
    "LinkPayment",
    "LoggedRequest",
    "Movement",
    "MovementKind",
    "MovementObject",
    "NewEndpoint",
    "NewExchange",
    "NoAnswer",
    "NotVerified",
    "Page",
    "Pagination",
    "PastBalance",
    "Payer",
    "Payment",
    "PaymentLink",
    "PaymentLinkStatus",
    "PaymentMethod",
    "PaymentStatus",
    "PaymentStatusChanged",
    "Payments",
    "PendingReason",
    "ProofNetwork",
    "ProofRejection",
    "ProofStatus",
    "Rate",
    "RateLimit",
    "Receipt",
    "ReceiptKind",
    "ReceiptStatus",
    "Refund",
    "RefundChanged",
    "RefundStatus",
    "Registration",
    "Report",
    "ReportDocument",
    "ReportFormat",
    "ReportHead",
    "ReportKind",
    "ReportProof",
    "ReportStatus",
    "ReportTotal",
    "Request",
    "Retries",
    "Settlement",
    "SettlementItem",
    "Subscription",
    "SubscriptionStatus",
    "SubscriptionStatusChanged",
    "Transfer",
    "TransferStatus",
    "Turnover",
    "UnknownEvent",
    "UploadGrant",
    "UserType",
    "Webhook",
    "WebhookEndpoint",
    "WebhookEvent",
    "WholeEvent",
    "Withdrawal",
    "WithdrawalItem",
    "WithdrawalItemKind",
    "WithdrawalStatus",
    "WithdrawalStatusChanged",
    "read_event",
    "verify_webhook",
]

# Tracebacks, reprs and pickles name the public module, which stays when a class moves.
_CLIENTS = ("AsyncClient", "Client", "Health")
for _found in (globals()[name] for name in __all__ if name not in _CLIENTS):
    if isinstance(_found, type | FunctionType):
        _found.__module__ = "cambist.client" if _found.__module__.startswith(__name__) else "cambist"


def __getattr__(name: str) -> Any:
    if name not in _CLIENTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import clients

    for each in _CLIENTS:
        getattr(clients, each).__module__ = "cambist.client"
    return getattr(clients, name)


def __dir__() -> list[str]:
    return __all__

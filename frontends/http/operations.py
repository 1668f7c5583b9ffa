"""Every operation of the API, one row each, in the order of the OpenAPI document. Each row stands beside its handler in
the module of its subject. The routes (api.py), the OpenAPI document (openapi/), docs/errors.md, and tests of the client
and the answers are derived from the rows."""

from typing import Any

from .account import ACCOUNT
from .charges import CHARGES
from .clients import CLIENTS
from .edge.operation import Operation
from .endpoint import ENDPOINT
from .events import EVENTS
from .exchanges import EXCHANGES
from .exports import EXPORTS
from .feed import LETTERS
from .gateways import GATEWAYS
from .health import HEALTH
from .kyc import KYC
from .money import MONEY
from .movements import MOVEMENTS
from .payment_links import PAYMENT_LINKS
from .payments import PAYMENTS
from .proofs import PROOFS
from .receipts import RECEIPTS
from .refunds import REFUNDS
from .reports import REPORTS
from .requests import REQUESTS
from .sandbox import SANDBOX
from .sandbox_clock import SANDBOX_CLOCK
from .settlement import SETTLEMENTS
from .subscriptions import SUBSCRIPTIONS
from .terminals import TERMINALS
from .turnover import TURNOVER
from .webhook_endpoints import WEBHOOK_ENDPOINTS
from .withdrawals import WITHDRAWALS

OPERATIONS: tuple[Operation[Any], ...] = (
    *PAYMENTS,
    *PAYMENT_LINKS,
    *PROOFS,
    *TERMINALS,
    *REFUNDS,
    *RECEIPTS,
    *MONEY,
    *MOVEMENTS,
    *TURNOVER,
    *WITHDRAWALS,
    *SETTLEMENTS,
    *GATEWAYS,
    *SANDBOX_CLOCK,
    *KYC,
    *CLIENTS,
    *EXCHANGES,
    *SUBSCRIPTIONS,
    *CHARGES,
    *EVENTS,
    *ENDPOINT,
    *WEBHOOK_ENDPOINTS,
    *EXPORTS,
    *REPORTS,
    *REQUESTS,
    *ACCOUNT,
    *SANDBOX,
    *LETTERS,
    *HEALTH,
)

"""The shipped adapters of real providers. Each brings its settings and its factory (docs/adapters.md "Settings"); the
factory imports the adapter and its library only when a setting names it."""

from collections.abc import Mapping
from typing import Any

from ...adapters.alarms import factory as alarms
from ...adapters.bank.raiffeisen.factory import RAIFFEISEN
from ...adapters.bank.tbank.factory import TBANK
from ...adapters.bank.yookassa.factory import YOOKASSA
from ...adapters.chain import factory as chain
from ...adapters.deposits import factory as deposits
from ...adapters.files import factory as files
from ...adapters.kyc.sumsub.factory import SUMSUB
from ...adapters.payouts import factory as payouts
from ...adapters.rates import factory as rates
from ...adapters.receipts.atol.factory import ATOL
from ...ports.settings import AdapterFactory

SHIPPED: Mapping[str, Mapping[str, AdapterFactory[Any, Any]]] = {
    "bank": {"yookassa": YOOKASSA, "tbank": TBANK, "raiffeisen": RAIFFEISEN},
    "rates": {"rapira": rates.RAPIRA, "coingecko": rates.COINGECKO},
    "kyc": {"sumsub": SUMSUB},
    "chain": {"nodes": chain.NODES},
    "deposits": {"tron": deposits.TRON},
    "payouts": {"tron": payouts.TRON, "evm": payouts.EVM, "bsc": payouts.BSC},
    "notifier": {},
    "files": {"s3": files.S3},
    "receipts": {"atol": ATOL},
    "storage": {},
    "alarms": {
        "email": alarms.EMAIL,
        "telegram": alarms.TELEGRAM,
        "slack": alarms.SLACK,
        "alertmanager": alarms.ALERTMANAGER,
    },
}
"""By kind (plugins.py: `KINDS`) and name."""

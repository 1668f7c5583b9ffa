"""The shipped adapters of real providers, one row each: the factory, and the extra that installs its library. A library
is imported only when a setting names the adapter. Options are in provider_options.py."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ...ports.bank import Bank
from ...ports.chain import ChainWatcher, Network
from ...ports.deposits import DepositWatcher
from ...ports.files import FileStore
from ...ports.kyc import KycVerifier
from ...ports.payouts import UsdtSender
from ...ports.rates import RateSource
from ...ports.receipts import ReceiptNeed
from ...ports.tools import FileTools, Tools
from .alarm_makers import ALARM_MAKERS

if TYPE_CHECKING:
    from .provider_options import ProviderSettings


class Shipped(msgspec.Struct, frozen=True, kw_only=True):
    """One shipped adapter."""

    make: "Callable[[ProviderSettings, Any], Any]"
    """Called with the adapter's settings and `Tools` (`FileTools` for a file store). Raises: NotConfigured, whose
    message is shown to operators."""
    extra: str = "http"
    """Extra of this distribution to install when its library is missing."""


def _s3(own: "ProviderSettings", tools: FileTools) -> FileStore:
    from ...adapters.files.s3 import S3Files
    from ...adapters.files.sigv4 import Credentials

    addressing = own.get("addressing")
    return S3Files(
        bucket=own.need("bucket"),
        credentials=Credentials(
            access_key=own.need("access_key"),
            secret_key=own.need("secret_key"),
            region=own.get("region", "us-east-1"),
        ),
        clock=tools.clock,
        endpoint=own.get("endpoint"),
        by_path=None if addressing is None else addressing == "path",
        prefix=own.get("prefix", ""),
        single_use=own.get("single_use", False),
    )


def _coingecko(own: "ProviderSettings", _: FileTools) -> RateSource:
    from ...adapters.rates.coingecko import CoinGeckoRates

    return CoinGeckoRates(key=own.get("key"))


def _rapira(_: "ProviderSettings", tools: FileTools) -> RateSource:
    from ...adapters.rates.rapira import RapiraRates

    return RapiraRates(tools.clock)


def _tbank(own: "ProviderSettings", tools: Tools) -> Bank:
    from ...adapters.bank.tbank.adapter import PRODUCTION, TBank
    from ...adapters.bank.tbank.terminals import Terminal, read_terminals

    file = own.get("merchants_file")
    has_own = file is None or own.get("terminal_key") is not None or own.get("password") is not None
    return TBank(
        tools,
        terminal=Terminal(key=own.need("terminal_key"), password=own.need("password")) if has_own else None,
        by_owner=None if file is None else read_terminals(file),
        base_url=own.get("url", PRODUCTION),
        mandates=own.get("mandates", False),
        receipts=ReceiptNeed(own.get("receipts", ReceiptNeed.NONE)),
    )


def _nodes_chain(own: "ProviderSettings", tools: FileTools) -> ChainWatcher:
    from .nodes import chain_of

    return chain_of(own, tools)


def _nodes_deposits(own: "ProviderSettings", tools: Tools) -> DepositWatcher:
    from .nodes import deposits_of

    return deposits_of(own, tools)


def _yookassa(own: "ProviderSettings", tools: Tools) -> Bank:
    from ...adapters.bank.yookassa.adapter import BASE, MOST, YooKassaBank
    from ...adapters.bank.yookassa.shops import Shop, Shops, read_shops

    file, payout, most = own.get("merchants_file"), own.get("payout_id"), own.get("max_rub")
    has_own = file is None or own.get("shop_id") is not None or own.get("secret_key") is not None
    return YooKassaBank(
        tools,
        Shops(
            Shop(id=own.need("shop_id"), key=own.need("secret_key")) if has_own else None,
            {} if file is None else read_shops(file),
        ),
        gateway=None if payout is None else Shop(id=payout, key=own.need("payout_key")),
        base_url=own.get("url", BASE),
        by_page=own.get("confirmation") == "redirect",
        mandates=own.get("mandates", False),
        receipts=ReceiptNeed(own.get("receipts", ReceiptNeed.NONE)),
        max_kopecks=MOST if most is None else most.kopecks,
    )


def _sumsub(own: "ProviderSettings", tools: Tools) -> KycVerifier:
    from ...adapters.kyc.sumsub.verifier import sumsub

    rules = {name: own.values[name] for name in ("company_level", "country", "document", "address") if own.get(name)}
    return sumsub(
        tools,
        token=own.need("token"),
        secret=own.need("secret"),
        notification_secret=own.need("notification_secret"),
        url=own.get("url"),
        level=own.need("level"),
        **rules,
    )


def _raiffeisen(own: "ProviderSettings", tools: Tools) -> Bank:
    from ...adapters.bank.raiffeisen.adapter import RaiffeisenBank
    from ...adapters.bank.raiffeisen.api import PRODUCTION
    from ...adapters.bank.raiffeisen.merchants import Merchants, Pair, PayoutPair, read_pairs
    from ...adapters.bank.raiffeisen.payouts import read_aliases
    from ...adapters.bank.raiffeisen.register import Register

    file, aliases, account = own.get("merchants_file"), own.get("banks_file"), own.get("payout_account")
    need = ReceiptNeed(own.get("receipts", ReceiptNeed.NONE))
    has_own = file is None or own.get("merchant_id") is not None or own.get("secret_key") is not None
    return RaiffeisenBank(
        tools,
        merchants=Merchants(
            Pair(own.need("merchant_id"), own.need("secret_key")) if has_own else None,
            {} if file is None else read_pairs(file),
        ),
        base_url=own.get("url", PRODUCTION),
        payouts=None if account is None else PayoutPair.of_account(account, own.need("payout_secret_key")),
        aliases=None if aliases is None else read_aliases(aliases),
        subscriptions=own.get("subscriptions", False),
        register=Register(
            need=need,
            email="" if need is ReceiptNeed.NONE else own.need("receipt_email"),
            is_former=own.get("receipt_words") == "2021",
        ),
    )


def _tron_payouts(own: "ProviderSettings", tools: Tools) -> UsdtSender:
    from .nodes import payouts_of

    return payouts_of(own, tools)


def _ethereum_payouts(own: "ProviderSettings", tools: Tools) -> UsdtSender:
    from .nodes import evm_payouts_of

    return evm_payouts_of(Network.ETHEREUM, own, tools)


def _bsc_payouts(own: "ProviderSettings", tools: Tools) -> UsdtSender:
    from .nodes import evm_payouts_of

    return evm_payouts_of(Network.BSC, own, tools)


SHIPPED: Mapping[str, Mapping[str, Shipped]] = {
    "bank": {
        "yookassa": Shipped(make=_yookassa),
        "tbank": Shipped(make=_tbank),
        "raiffeisen": Shipped(make=_raiffeisen),
    },
    "rates": {"rapira": Shipped(make=_rapira), "coingecko": Shipped(make=_coingecko)},
    "kyc": {"sumsub": Shipped(make=_sumsub)},
    "chain": {"nodes": Shipped(make=_nodes_chain, extra="chains")},
    "deposits": {"tron": Shipped(make=_nodes_deposits, extra="chains")},
    "payouts": {
        "tron": Shipped(make=_tron_payouts, extra="chains"),
        "evm": Shipped(make=_ethereum_payouts, extra="chains"),
        "bsc": Shipped(make=_bsc_payouts, extra="chains"),
    },
    "notifier": {},
    "files": {"s3": Shipped(make=_s3)},
    "storage": {},
    "alarms": {name: Shipped(make=make, extra=extra) for name, (make, extra) in ALARM_MAKERS.items()},
}
"""By kind (plugins.py: `KINDS`) and name."""

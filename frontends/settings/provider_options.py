"""Options of the shipped adapters, one row each, grouped by adapter: CAMBIST_YOOKASSA_SHOP_ID is `shop_id` of
`yookassa`. The adapter's factory in shipped.py uses them; docs/providers/ documents them."""

from collections.abc import Mapping
from typing import Any

from ...core.domain.masked import Masked
from ...ports.faults import NotConfigured
from ...ports.receipts import ReceiptNeed
from .alarm_options import ALARM_ROWS
from .options import OPTIONS, Option
from .readers import (
    read_address,
    read_boolean,
    read_choice,
    read_country,
    read_credential,
    read_extended_key,
    read_integer,
    read_label,
    read_nodes,
    read_path,
    read_private_key,
    read_provider_key,
    read_rub,
)
from .s3_readers import read_bucket, read_prefix, read_region


def _nodes(network: str) -> Option:
    return Option(
        name="nodes",
        read=read_nodes,
        secret=True,
        shown=None,
        meaning=f"addresses of {network} nodes, in order of use; a key stands before an @, or in the path",
    )


def _of_evm(name: str, network: str, limit: str) -> tuple[Option, ...]:
    return (
        _nodes(network),
        Option(
            name="key",
            read=read_private_key,
            secret=True,
            shown=None,
            meaning=f"private key of the payout wallet on {network}, 64 hex digits; better set in {name}_key_file",
        ),
        Option(
            name="gas_price_limit",
            read=read_integer(1, 10_000),
            meaning=f"highest gas price of a payout on {network}, in gwei; default {limit}",
        ),
    )


_ROWS: Mapping[str, tuple[Option, ...]] = {
    **ALARM_ROWS,
    "s3": (
        Option(name="bucket", read=read_bucket, meaning="bucket of clients' documents"),
        Option(name="region", read=read_region, meaning="its region; default us-east-1"),
        Option(name="endpoint", read=read_address, meaning="address of the service; default Amazon's"),
        Option(
            name="access_key", read=read_credential, secret=True, shown=None, meaning="access key that signs requests"
        ),
        Option(
            name="secret_key", read=read_credential, secret=True, shown=None, meaning="secret key of the access key"
        ),
        Option(name="prefix", read=read_prefix, meaning="prefix of keys in the bucket"),
        Option(
            name="addressing",
            read=read_choice("host", "path"),
            meaning="position of the bucket's name in the address; default host at Amazon, path elsewhere",
        ),
        Option(
            name="single_use",
            read=read_boolean,
            meaning="whether an address accepts one upload only, sent with If-None-Match: *; default false",
        ),
    ),
    "coingecko": (
        Option(
            name="key",
            read=read_provider_key,
            secret=True,
            shown=None,
            meaning="demo key of CoinGecko; none: requests without a key",
        ),
    ),
    "tbank": (
        Option(
            name="terminal_key", read=read_provider_key, meaning="the terminal's key, as the bank's dashboard shows it"
        ),
        Option(name="password", read=read_credential, secret=True, shown=None, meaning="the terminal's password"),
        Option(
            name="merchants_file",
            read=read_path,
            shown=str,
            meaning="TOML file with the terminals of merchants who have their own, one table for each owner",
        ),
        Option(name="mandates", read=read_boolean, meaning="whether the terminals may bind accounts and charge them"),
        Option(
            name="receipts",
            read=read_choice(*ReceiptNeed),
            meaning="whether a cash register is connected that issues receipts under 54-FZ",
        ),
        Option(name="url", read=read_address, meaning="address of the API; default https://securepay.tinkoff.ru"),
    ),
    "tron": (
        _nodes("TRON, each with its path /jsonrpc"),
        Option(
            name="api",
            read=read_nodes,
            secret=True,
            shown=None,
            meaning="HTTP addresses of TRON nodes, for payouts; default: those of tron_nodes, without /jsonrpc",
        ),
        Option(
            name="key",
            read=read_private_key,
            secret=True,
            shown=None,
            meaning="private key of the payout wallet on TRON, 64 hex digits; better set in tron_key_file",
        ),
        Option(
            name="fee_limit",
            read=read_integer(1, 15_000),
            meaning="highest energy cost of one payout, in TRX; default 60",
        ),
    ),
    "evm": _of_evm("evm", "Ethereum", "50"),
    "bsc": _of_evm("bsc", "BNB Smart Chain", "5"),
    "deposit": (
        Option(
            name="xpub_tron",
            read=read_extended_key,
            secret=True,
            shown=None,
            meaning="xpub of the wallet's account on TRON (m/44'/195'/0') to whose addresses clients send USDT",
        ),
    ),
    "yookassa": (
        Option(name="shop_id", read=read_provider_key, meaning="the shop's id, as YooKassa's dashboard shows it"),
        Option(name="secret_key", read=read_provider_key, secret=True, shown=None, meaning="the shop's secret key"),
        Option(
            name="merchants_file",
            read=read_path,
            shown=str,
            meaning="TOML file with the shops of merchants who have their own",
        ),
        Option(name="payout_id", read=read_provider_key, meaning="id of the payout gateway; none: no payouts"),
        Option(
            name="payout_key",
            read=read_provider_key,
            secret=True,
            shown=None,
            meaning="secret key of the payout gateway",
        ),
        Option(
            name="confirmation",
            read=read_choice("qr", "redirect"),
            meaning="how payers confirm: with our QR code, or on YooKassa's page",
        ),
        Option(name="mandates", read=read_boolean, meaning="whether the shop may save payment methods and charge them"),
        Option(
            name="receipts",
            read=read_choice(*ReceiptNeed),
            meaning="whether its cash register issues receipts under 54-FZ, and whether payments need one",
        ),
        Option(name="max_rub", read=read_rub, shown=str, meaning="largest amount of one payment, in RUB"),
        Option(name="url", read=read_address, meaning="address of the API; default https://api.yookassa.ru/v3"),
    ),
    "sumsub": (
        Option(name="token", read=read_credential, secret=True, shown=None, meaning="app token: prd:… or sbx:…"),
        Option(name="secret", read=read_credential, secret=True, shown=None, meaning="secret key of the app token"),
        Option(
            name="notification_secret",
            read=read_credential,
            secret=True,
            shown=None,
            meaning="secret key of the webhook, which signs its notifications",
        ),
        Option(name="level", read=read_label, meaning="verification level for people"),
        Option(
            name="company_level",
            read=read_label,
            meaning="verification level for legal entities; none: they are refused",
        ),
        Option(name="country", read=read_country, meaning="country of uploaded documents; default RUS"),
        Option(name="document", read=read_provider_key, meaning="type of an identity document; default PASSPORT"),
        Option(name="address", read=read_provider_key, meaning="type of a proof of address; default UTILITY_BILL"),
        Option(name="url", read=read_address, meaning="address of the API; default https://api.sumsub.com"),
    ),
    "raiffeisen": (
        Option(
            name="merchant_id",
            read=read_provider_key,
            meaning="the merchant's id in SBP, as the bank's dashboard shows it",
        ),
        Option(name="secret_key", read=read_credential, secret=True, shown=None, meaning="the merchant's secret key"),
        Option(
            name="merchants_file",
            read=read_path,
            shown=str,
            meaning="TOML file with the ids of merchants who have their own",
        ),
        Option(name="subscriptions", read=read_boolean, meaning="whether the bank has enabled subscriptions"),
        Option(
            name="payout_account", read=read_provider_key, meaning="account for payouts, 20 digits; none: no payouts"
        ),
        Option(
            name="payout_secret_key", read=read_credential, secret=True, shown=None, meaning="secret key for payouts"
        ),
        Option(
            name="banks_file", read=read_path, shown=str, meaning="TOML file with the bank's aliases of receiving banks"
        ),
        Option(
            name="receipts",
            read=read_choice(*ReceiptNeed),
            meaning="whether the bank has connected a cash register that issues receipts under 54-FZ",
        ),
        Option(name="receipt_email", read=read_label, meaning="e-mail for receipts of payers who gave none"),
        Option(
            name="receipt_words",
            read=read_choice("2025", "2021"),
            meaning="terms that the cash register accepts: of its SDK of 2025, or of its documentation of 2021",
        ),
        Option(name="url", read=read_address, meaning="address of the API; default https://pay.raif.ru/api"),
    ),
}

PROVIDER_OPTIONS: Mapping[str, Option] = {
    f"{adapter}_{row.name}": row.named(f"{adapter}_{row.name}") for adapter, rows in _ROWS.items() for row in rows
}
"""By name of the setting."""

ALL_OPTIONS: Mapping[str, Option] = {**OPTIONS, **PROVIDER_OPTIONS}
"""Every setting with its own name."""


class ProviderSettings(Masked, frozen=True, kw_only=True):
    """Settings of one shipped adapter. Its repr hides the values."""

    _shown = ("adapter",)

    adapter: str
    values: Mapping[str, Any]
    """Values by the names of the adapter's rows, without unset ones."""
    everything: Mapping[str, Any] = {}
    """Values of all adapters, by name of the setting."""

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value, or the default if it is not set."""
        return self.values.get(name, default)

    def need(self, name: str) -> Any:
        """Return the value. Raises: NotConfigured, which names the variable."""
        try:
            return self.values[name]
        except KeyError:
            raise NotConfigured(f"set CAMBIST_{self.adapter.upper()}_{name.upper()}") from None

    def beside(self, adapter: str) -> "ProviderSettings":
        """Return the settings of another adapter, when several adapters share a setting."""
        return settings_of(adapter, self.everything)


def settings_of(adapter: str, providers: Mapping[str, Any]) -> ProviderSettings:
    """Return the settings of one adapter from `Settings.providers`."""
    rows = [row.name for row in _ROWS.get(adapter, ())]
    values = {name: providers[full] for name in rows if (full := f"{adapter}_{name}") in providers}
    return ProviderSettings(adapter=adapter, values=values, everything=providers)

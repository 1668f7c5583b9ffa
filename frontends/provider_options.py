"""The options of the shipped adapters, one row each, below the adapter that they are of: CAMBIST_YOOKASSA_SHOP_ID is
`shop_id` of `yookassa`. What an adapter makes of them, its row in shipped.py says; the page of each in docs/providers/
tells operators."""

from collections.abc import Mapping
from typing import Any

from ..core.domain.masked import Masked
from ..ports.faults import NotConfigured
from ..ports.receipts import ReceiptNeed
from .alarm_options import ALARM_ROWS
from .option_readers import (
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
from .options import OPTIONS, Option
from .s3_readers import read_bucket, read_prefix, read_region


def _nodes(network: str) -> Option:
    return Option(
        name="nodes",
        read=read_nodes,
        secret=True,
        shown=None,
        meaning=f"addresses of nodes of {network}, the first asked first; a key stands before an @, or in the path",
    )


def _of_evm(name: str, network: str, limit: str) -> tuple[Option, ...]:
    return (
        _nodes(network),
        Option(
            name="key",
            read=read_private_key,
            secret=True,
            shown=None,
            meaning=f"the private key of the wallet on {network} that pays out, 64 hex digits; best {name}_key_file",
        ),
        Option(
            name="gas_price_limit",
            read=read_integer(1, 10_000),
            meaning=f"what one gas of a payout on {network} may cost, in gwei; none: {limit}",
        ),
    )


_ROWS: Mapping[str, tuple[Option, ...]] = {
    **ALARM_ROWS,
    "s3": (
        Option(name="bucket", read=read_bucket, meaning="the bucket of clients' documents"),
        Option(name="region", read=read_region, meaning="its region; else us-east-1"),
        Option(name="endpoint", read=read_address, meaning="where it is, if not at Amazon's"),
        Option(name="access_key", read=read_credential, secret=True, shown=None, meaning="who signs"),
        Option(name="secret_key", read=read_credential, secret=True, shown=None, meaning="by which it signs"),
        Option(name="prefix", read=read_prefix, meaning="what keys begin with in the bucket"),
        Option(
            name="addressing",
            read=read_choice("host", "path"),
            meaning="where the bucket's name stands; else host at Amazon's, path elsewhere",
        ),
        Option(
            name="single_use",
            read=read_boolean,
            meaning="an address takes one upload, sent with If-None-Match: *; else false",
        ),
    ),
    "coingecko": (
        Option(
            name="key",
            read=read_provider_key,
            secret=True,
            shown=None,
            meaning="a demo key of CoinGecko; none: asked without one",
        ),
    ),
    "tbank": (
        Option(name="terminal_key", read=read_provider_key, meaning="the terminal's key, as its cabinet shows it"),
        Option(name="password", read=read_credential, secret=True, shown=None, meaning="the terminal's password"),
        Option(
            name="merchants_file",
            read=read_path,
            shown=str,
            meaning="terminals of merchants who have their own: TOML, of which each table is an owner's",
        ),
        Option(name="mandates", read=read_boolean, meaning="whether the terminals may bind accounts and charge them"),
        Option(
            name="receipts",
            read=read_choice(*ReceiptNeed),
            meaning="whether a cash register is connected, which writes receipts of 54-FZ",
        ),
        Option(name="url", read=read_address, meaning="in place of https://securepay.tinkoff.ru"),
    ),
    "tron": (
        _nodes("TRON, each with its path /jsonrpc"),
        Option(
            name="api",
            read=read_nodes,
            secret=True,
            shown=None,
            meaning="the HTTP interfaces of TRON's nodes, for payouts; none: those of tron_nodes, without /jsonrpc",
        ),
        Option(
            name="key",
            read=read_private_key,
            secret=True,
            shown=None,
            meaning="the private key of the wallet on TRON that pays out, 64 hex digits; best from tron_key_file",
        ),
        Option(
            name="fee_limit",
            read=read_integer(1, 15_000),
            meaning="what the energy of one payout may cost, in TRX; none: 60",
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
            meaning="the xpub of the wallet's account on TRON (m/44'/195'/0'), to whose addresses clients send USDT",
        ),
    ),
    "yookassa": (
        Option(name="shop_id", read=read_provider_key, meaning="the shop's id, as its cabinet shows it"),
        Option(name="secret_key", read=read_provider_key, secret=True, shown=None, meaning="the shop's secret key"),
        Option(name="merchants_file", read=read_path, shown=str, meaning="shops of merchants who have their own: TOML"),
        Option(name="payout_id", read=read_provider_key, meaning="the gateway of payouts; none: pays nobody out"),
        Option(name="payout_key", read=read_provider_key, secret=True, shown=None, meaning="the gateway's secret key"),
        Option(
            name="confirmation",
            read=read_choice("qr", "redirect"),
            meaning="how payers go on: a QR of ours, or a page of YooKassa's",
        ),
        Option(name="mandates", read=read_boolean, meaning="whether the shop may save methods and charge them"),
        Option(
            name="receipts",
            read=read_choice(*ReceiptNeed),
            meaning="whether its cash register writes receipts of 54-FZ, and takes money without",
        ),
        Option(name="max_rub", read=read_rub, shown=str, meaning="the most that one payment may be there"),
        Option(name="url", read=read_address, meaning="in place of https://api.yookassa.ru/v3"),
    ),
    "sumsub": (
        Option(name="token", read=read_credential, secret=True, shown=None, meaning="the app token: prd:… or sbx:…"),
        Option(name="secret", read=read_credential, secret=True, shown=None, meaning="the app token's secret key"),
        Option(
            name="notice_secret",
            read=read_credential,
            secret=True,
            shown=None,
            meaning="the secret key of the webhook, by which its notices are signed",
        ),
        Option(name="level", read=read_label, meaning="the level that people are verified by"),
        Option(name="company_level", read=read_label, meaning="the level for legal entities; none: they are refused"),
        Option(name="country", read=read_country, meaning="of documents that are uploaded here (RUS)"),
        Option(name="document", read=read_provider_key, meaning="type of an identity document (PASSPORT)"),
        Option(name="address", read=read_provider_key, meaning="type of a proof of address (UTILITY_BILL)"),
        Option(name="url", read=read_address, meaning="where Sumsub is reached (https://api.sumsub.com)"),
    ),
    "raiffeisen": (
        Option(name="merchant_id", read=read_provider_key, meaning="the merchant's id in SBP, as its cabinet says"),
        Option(name="secret_key", read=read_credential, secret=True, shown=None, meaning="the merchant's secret key"),
        Option(name="merchants_file", read=read_path, shown=str, meaning="ids of merchants who have their own: TOML"),
        Option(name="subscriptions", read=read_boolean, meaning="whether the bank has switched subscriptions on"),
        Option(name="payout_account", read=read_provider_key, meaning="20 digits; none: pays nobody out"),
        Option(name="payout_secret_key", read=read_credential, secret=True, shown=None, meaning="the key of payouts"),
        Option(name="banks_file", read=read_path, shown=str, meaning="its aliases of receivers' banks: TOML"),
        Option(
            name="receipts",
            read=read_choice(*ReceiptNeed),
            meaning="whether the bank has connected a cash register, which writes receipts of 54-FZ",
        ),
        Option(name="receipt_email", read=read_label, meaning="where receipts go whose payer named no e-mail"),
        Option(
            name="receipt_words",
            read=read_choice("2025", "2021"),
            meaning="whose words the cash register takes: those of its SDK of 2025, or of its documents of 2021",
        ),
        Option(name="url", read=read_address, meaning="in place of https://pay.raif.ru/api"),
    ),
}

PROVIDER_OPTIONS: Mapping[str, Option] = {
    f"{adapter}_{row.name}": row.named(f"{adapter}_{row.name}") for adapter, rows in _ROWS.items() for row in rows
}
"""By the setting's name."""

ALL_OPTIONS: Mapping[str, Option] = {**OPTIONS, **PROVIDER_OPTIONS}
"""Every setting that has a name of its own."""


class ProviderSettings(Masked, frozen=True, kw_only=True):
    """What an operator set for one shipped adapter. Its repr hides the values."""

    _shown = ("adapter",)

    adapter: str
    values: Mapping[str, Any]
    """By the names of the adapter's rows; what nobody set is not among them."""
    everything: Mapping[str, Any] = {}
    """Of all adapters, by the settings' names."""

    def get(self, name: str, default: Any = None) -> Any:
        """What was set, else the default."""
        return self.values.get(name, default)

    def need(self, name: str) -> Any:
        """What was set. Raises: NotConfigured, which names the variable."""
        try:
            return self.values[name]
        except KeyError:
            raise NotConfigured(f"set CAMBIST_{self.adapter.upper()}_{name.upper()}") from None

    def beside(self, adapter: str) -> "ProviderSettings":
        """What was set under another name, for an adapter that several share a setting with."""
        return settings_of(adapter, self.everything)


def settings_of(adapter: str, providers: Mapping[str, Any]) -> ProviderSettings:
    """What `Settings.providers` says of one adapter."""
    rows = [row.name for row in _ROWS.get(adapter, ())]
    values = {name: providers[full] for name in rows if (full := f"{adapter}_{name}") in providers}
    return ProviderSettings(adapter=adapter, values=values, everything=providers)

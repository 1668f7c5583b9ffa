"""Settings of the wallets that send USDT (docs/providers/chains.md)."""

import re
from typing import Annotated, Any

from ...ports.settings import AdapterSettings, read_integer, read_text, setting
from ..nodes.settings import BSC_NODES, EVM_NODES, TRON_NODES, read_nodes

_PRIVATE_KEY = re.compile(r"(?:0x)?[0-9a-fA-F]{64}\Z")
_KEY = "private key of the payout wallet on {}, 64 hex digits; better set in {}_key_file"
_GAS_PRICE = "highest gas price of a payout on {}, in gwei"


def read_private_key(raw: Any) -> str:
    """Read a wallet's private key."""
    if not _PRIVATE_KEY.match(read_text(raw).strip()):
        raise ValueError("must be 64 hex digits")
    return str(raw).strip()


class TronSettings(AdapterSettings, frozen=True, kw_only=True):
    """Settings of payouts on TRON."""

    nodes: Annotated[tuple[str, ...], TRON_NODES]
    api: Annotated[
        tuple[str, ...],
        setting(
            "HTTP addresses of TRON nodes, for payouts; default: those of tron_nodes, without /jsonrpc",
            read_nodes,
            secret=True,
        ),
    ] = ()
    key: Annotated[str, setting(_KEY.format("TRON", "tron"), read_private_key, secret=True)]
    fee_limit: Annotated[int, setting("highest energy cost of one payout, in TRX", read_integer(1, 15_000))] = 60


class EvmSettings(AdapterSettings, frozen=True, kw_only=True):
    """Settings of payouts on Ethereum. Above the limit of the gas price the network is as good as closed."""

    nodes: Annotated[tuple[str, ...], EVM_NODES]
    key: Annotated[str, setting(_KEY.format("Ethereum", "evm"), read_private_key, secret=True)]
    gas_price_limit: Annotated[int, setting(_GAS_PRICE.format("Ethereum"), read_integer(1, 10_000))] = 50


class BscSettings(AdapterSettings, frozen=True, kw_only=True):
    """Settings of payouts on BNB Smart Chain."""

    nodes: Annotated[tuple[str, ...], BSC_NODES]
    key: Annotated[str, setting(_KEY.format("BNB Smart Chain", "bsc"), read_private_key, secret=True)]
    gas_price_limit: Annotated[int, setting(_GAS_PRICE.format("BNB Smart Chain"), read_integer(1, 10_000))] = 5

"""Settings of the wallet to which clients send USDT (docs/providers/chains.md "Addresses")."""

import re
from typing import Annotated, Any

from ...ports.settings import AdapterSettings, read_text, setting
from ..nodes.settings import TRON_NODES

_EXTENDED_KEY = re.compile(r"[a-z]p(?:ub|rv)[1-9A-HJ-NP-Za-km-z]{90,120}\Z")


def read_extended_key(raw: Any) -> str:
    """Read an extended public key. The adapter checks whether it is the right one."""
    if not _EXTENDED_KEY.match(read_text(raw)):
        raise ValueError("must be an extended public key: xpub and some hundred letters and digits")
    return str(raw)


class DepositSettings(AdapterSettings, frozen=True, kw_only=True):
    """Settings of deposits on TRON."""

    deposit_xpub_tron: Annotated[
        str,
        setting(
            "xpub of the wallet's account on TRON (m/44'/195'/0') to whose addresses clients send USDT",
            read_extended_key,
            secret=True,
        ),
    ]
    tron_nodes: Annotated[tuple[str, ...], TRON_NODES]

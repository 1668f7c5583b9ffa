"""Names of networks and pages of public block explorers, for people who check a payout themselves (docs/dashboard.md
"Balance and payouts")."""

import re
from collections.abc import Mapping

_PAGES: Mapping[str, str] = {
    "tron": "https://tronscan.org/#/transaction/{}",
    "ethereum": "https://etherscan.io/tx/0x{}",
    "bsc": "https://bscscan.com/tx/0x{}",
}
"""Address of a transaction's page, by the network's name."""
_NAMES: Mapping[str, str] = {"tron": "TRC20", "ethereum": "ERC20", "bsc": "BEP20"}
_HASH = re.compile(r"[0-9a-f]{64}\Z")


def network_title(network: str) -> str:
    """Return the name that people know a network by, that of its token standard; without one, the network's own."""
    return _NAMES.get(network, network)


def transaction_page(network: str, tx_hash: str | None) -> str | None:
    """Return the page of a transaction. None without a transaction, and for a network that we know no explorer of."""
    page = _PAGES.get(network)
    return page.format(tx_hash) if page is not None and tx_hash is not None and _HASH.match(tx_hash) else None

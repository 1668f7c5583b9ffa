"""Pages of public block explorers, for people who check a payout themselves (docs/dashboard.md "Balance and
payouts")."""

import re
from collections.abc import Mapping

_PAGES: Mapping[str, str] = {
    "tron": "https://tronscan.org/#/transaction/{}",
    "ethereum": "https://etherscan.io/tx/0x{}",
    "bsc": "https://bscscan.com/tx/0x{}",
}
"""Address of a transaction's page, by the network's name."""
_HASH = re.compile(r"[0-9a-f]{64}\Z")


def transaction_page(network: str, tx_hash: str | None) -> str | None:
    """Return the page of a transaction. None without a transaction, and for a network that we know no explorer of."""
    page = _PAGES.get(network)
    return page.format(tx_hash) if page is not None and tx_hash is not None and _HASH.match(tx_hash) else None

"""Pages of block explorers (docs/dashboard.md "Balance and payouts")."""

from cambist.core.domain.settlement.explorers import transaction_page
from cambist.ports.chain import Network
from tests.tables import table

HASH = "0123456789abcdef" * 4


@table(
    ("network", "page"),
    [
        (Network.TRON, f"https://tronscan.org/#/transaction/{HASH}"),
        (Network.ETHEREUM, f"https://etherscan.io/tx/0x{HASH}"),
        (Network.BSC, f"https://bscscan.com/tx/0x{HASH}"),
    ],
)
def test_each_network_has_a_page(network: Network, page: str) -> None:
    assert transaction_page(network, HASH) == page


@table(
    ("network", "tx_hash"),
    [("tron", None), ("tron", ""), ("tron", HASH[1:]), ("tron", f"{HASH}\n"), ("tron", "../x"), ("new", HASH)],
)
def test_anything_else_has_none(network: str, tx_hash: str | None) -> None:
    assert transaction_page(network, tx_hash) is None

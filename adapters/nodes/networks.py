"""Facts about each network: its chain, its USDT, its pace.

Only the contract identifies USDT: any other token may use the same name and decimals.
"""

from collections.abc import Mapping

import msgspec

from ...ports.chain import Network
from .spelling import EVM, TRON, Spelling

PORT_DECIMALS = 8


class Chain(msgspec.Struct, frozen=True, kw_only=True):
    """One network."""

    network: Network
    chain_id: int
    usdt: str
    """The contract, as JSON-RPC writes it: 20 bytes in lower-case hex."""
    decimals: int
    spelling: Spelling
    confirmations: int
    """Blocks after one until it counts as final, for nodes that do not know the tag `finalized`."""
    reread: int
    """Newest blocks that every read covers again although they are final.

    One address may have several nodes behind it, and a node that lacks a block answers as if the block were empty.
    """
    quiet: float
    """Seconds without a block after which a node is behind, or the network stands still."""

    def units(self, amount: int) -> int:
        """Convert an amount in the contract's smallest units to the port's units, rounded down."""
        if self.decimals > PORT_DECIMALS:
            return int(amount // 10 ** (self.decimals - PORT_DECIMALS))
        return int(amount * 10 ** (PORT_DECIMALS - self.decimals))

    def amount(self, units: int) -> int:
        """Convert the port's units to the contract's smallest units, rounded down."""
        if self.decimals > PORT_DECIMALS:
            return int(units * 10 ** (self.decimals - PORT_DECIMALS))
        return int(units // 10 ** (PORT_DECIMALS - self.decimals))


CHAINS: Mapping[Network, Chain] = {
    each.network: each
    for each in (
        Chain(
            network=Network.TRON,
            chain_id=728126428,
            usdt="0xa614f803b6fd780986a42c78ec9c7f77e6ded13c",  # TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t
            decimals=6,
            spelling=TRON,
            confirmations=20,  # more than two thirds of the 27 block producers
            reread=40,
            quiet=60.0,
        ),
        Chain(
            network=Network.ETHEREUM,
            chain_id=1,
            usdt="0xdac17f958d2ee523a2206206994597c13d831ec7",
            decimals=6,
            spelling=EVM,
            confirmations=96,  # three epochs: one more than finality needs
            reread=8,
            quiet=180.0,
        ),
        Chain(
            network=Network.BSC,
            chain_id=56,
            usdt="0x55d398326f99059ff775485246999027b3197955",
            decimals=18,
            spelling=EVM,
            confirmations=40,
            reread=100,
            quiet=60.0,
        ),
    )
}

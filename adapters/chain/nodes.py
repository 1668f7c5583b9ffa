"""Transactions on TRON, Ethereum and BNB Smart Chain, seen by nodes (docs/providers/chains.md "Nodes")."""

import asyncio
import re
from collections.abc import Mapping, Sequence

from ...ports.chain import Final, InBlock, Network, NotFound, Reverted, Sighting
from ...ports.checking import Shortage
from ...ports.faults import NotConfigured
from ..nodes.nodes import Nodes

_HASH = re.compile(r"[0-9a-f]{64}\Z")


class NodesChain:
    """Implementation of the port ChainWatcher, for the networks that have nodes in the settings."""

    def __init__(self, nodes: Mapping[Network, Nodes]) -> None:
        """Set up the networks. Raises: NotConfigured if no network is set."""
        if not nodes:
            raise NotConfigured("no node of any network is set")
        self._nodes = dict(nodes)

    async def lookup(self, network: Network, tx_hash: str) -> Sighting:
        """Look up a transaction, as the port defines it. If two nodes are set, both confirm a final one."""
        if not _HASH.match(tx_hash):
            raise ValueError("a transaction hash is 64 hex digits in lower case")
        if network not in self._nodes:
            raise NotConfigured(f"no node of {network} is set")
        nodes = self._nodes[network]
        view = await nodes.view()
        receipt = await nodes.receipt(view, tx_hash)
        if receipt is None:
            return NotFound()
        if receipt.height > view.final:
            return InBlock()
        return Reverted() if receipt.is_reverted else Final(receipt.transfers)

    async def check(self) -> None:
        """Check that all nodes belong to their networks. Raises: NotConfigured, Unavailable."""
        await asyncio.gather(*(nodes.check() for nodes in self._nodes.values()))

    async def shortages(self) -> Sequence[Shortage]:
        """Return shortages of nodes, as the port defines it."""
        found = await asyncio.gather(*(nodes.shortage() for nodes in self._nodes.values()))
        return [each for each in found if each is not None]

    async def close(self) -> None:
        """Close all connections."""
        for nodes in self._nodes.values():
            await nodes.close()

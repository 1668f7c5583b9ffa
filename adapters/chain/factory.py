"""Makes the chain watcher of its settings. Its library is imported only then."""

from ...ports.chain import ChainWatcher, Network
from ...ports.faults import NotConfigured
from ...ports.settings import AdapterFactory
from ...ports.tools import Tools
from .settings import ChainSettings


def _nodes(tools: Tools, own: ChainSettings) -> ChainWatcher:
    from ..nodes.networks import CHAINS
    from ..nodes.nodes import Nodes
    from .nodes import NodesChain

    urls = {Network.TRON: own.tron_nodes, Network.ETHEREUM: own.evm_nodes, Network.BSC: own.bsc_nodes}
    if not any(urls.values()):
        raise NotConfigured("set CAMBIST_TRON_NODES, CAMBIST_EVM_NODES, CAMBIST_BSC_NODES, or some")
    return NodesChain(
        {network: Nodes(CHAINS[network], own_urls, tools.clock) for network, own_urls in urls.items() if own_urls}
    )


NODES = AdapterFactory(settings=ChainSettings, make=_nodes, prefix="", extra="chains")

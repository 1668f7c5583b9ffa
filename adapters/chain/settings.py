"""Settings of the chain watcher (docs/providers/chains.md "Nodes")."""

from typing import Annotated

from ...ports.settings import AdapterSettings
from ..nodes.settings import BSC_NODES, EVM_NODES, TRON_NODES


class ChainSettings(AdapterSettings, frozen=True, kw_only=True):
    """Nodes of the watched networks, at least of one."""

    tron_nodes: Annotated[tuple[str, ...], TRON_NODES] = ()
    evm_nodes: Annotated[tuple[str, ...], EVM_NODES] = ()
    bsc_nodes: Annotated[tuple[str, ...], BSC_NODES] = ()

"""Makes the deposit watcher of its settings. Its library is imported only then."""

from ...ports.chain import Network
from ...ports.deposits import DepositWatcher
from ...ports.settings import AdapterFactory
from ...ports.tools import Tools
from .settings import DepositSettings

_NAME = "tron"
"""Stored with exchanges: never change it."""


def _tron(tools: Tools, own: DepositSettings) -> DepositWatcher:
    from ..nodes.networks import CHAINS
    from ..nodes.nodes import Nodes
    from .derived import AccountKey
    from .nodes import NodesDeposits
    from .watched import AddressPage

    key = AccountKey(own.deposit_xpub_tron)
    return NodesDeposits(
        _NAME,
        Nodes(CHAINS[Network.TRON], own.tron_nodes, tools.clock),
        key,
        tools.operation_log(_NAME, AddressPage),
        # A counter for each wallet: after a change of wallet, addresses are counted from the first.
        tools.counter(_NAME, f"addresses-{key.fingerprint()}"),
        tools.clock,
    )


TRON = AdapterFactory(settings=DepositSettings, make=_tron, prefix="", extra="chains")

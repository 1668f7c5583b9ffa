"""Makes the wallets that send USDT of their settings. Their library is imported only then."""

from ...ports.chain import Network
from ...ports.faults import NotConfigured
from ...ports.payouts import UsdtSender
from ...ports.settings import AdapterFactory
from ...ports.tools import Tools
from .settings import BscSettings, EvmSettings, TronSettings

_TRON, _TRON_READ, _EVM, _BSC = "tron", "tron-payouts", "evm", "bsc"
"""Names stored with payouts and notes: never change them."""


def _tron(tools: Tools, own: TronSettings) -> UsdtSender:
    from ..nodes.networks import CHAINS
    from ..nodes.nodes import Nodes
    from .signer import KeySigner
    from .tron.api import TronApi
    from .tron.sender import SUN, TronSender
    from .tron.sent import Sent, SentTransfers, Whole

    urls = own.api or [each.removesuffix("/jsonrpc") for each in own.nodes if each.endswith("/jsonrpc")]
    if not urls:
        raise NotConfigured("set CAMBIST_TRON_API: the nodes of CAMBIST_TRON_NODES have no path /jsonrpc")
    nodes, signer = Nodes(CHAINS[Network.TRON], own.nodes, tools.clock), KeySigner(own.key)
    apis = [TronApi(place, url, tools.clock) for place, url in enumerate(urls, 1)]
    whole, sent = tools.operation_log(_TRON_READ, Whole), tools.operation_log(_TRON_READ, Sent)
    return TronSender(
        _TRON,
        nodes,
        apis,
        signer,
        SentTransfers(nodes, apis, signer.payload, whole, sent),
        tools.clock,
        fee_limit=own.fee_limit * SUN,
    )


def _ethereum(tools: Tools, own: EvmSettings) -> UsdtSender:
    return _evm(_EVM, Network.ETHEREUM, tools, own)


def _bsc(tools: Tools, own: BscSettings) -> UsdtSender:
    return _evm(_BSC, Network.BSC, tools, own)


def _evm(name: str, network: Network, tools: Tools, own: EvmSettings | BscSettings) -> UsdtSender:
    from ..nodes.networks import CHAINS
    from ..nodes.nodes import Nodes
    from .evm.book import Attempt, Book, Known
    from .evm.fees import GWEI
    from .evm.sender import EvmSender
    from .signer import KeySigner

    signer = KeySigner(own.key)
    book = Book(
        CHAINS[network].spelling.write(signer.payload),
        tools.operation_log(name, Attempt),
        tools.operation_log(name, str),
        tools.operation_log(name, Known),
    )
    nodes = Nodes(CHAINS[network], own.nodes, tools.clock)
    return EvmSender(name, nodes, signer, book, tools.clock, price_limit=own.gas_price_limit * GWEI)


TRON = AdapterFactory(settings=TronSettings, make=_tron, extra="chains")
EVM = AdapterFactory(settings=EvmSettings, make=_ethereum, extra="chains")
BSC = AdapterFactory(settings=BscSettings, make=_bsc, extra="chains")

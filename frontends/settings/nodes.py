"""Composition root's part for blockchain networks: makes their nodes and the wallet's addresses
(docs/providers/chains.md)."""

from collections.abc import Sequence

from ...adapters.chain.nodes import NodesChain
from ...adapters.deposits.derived import AccountKey
from ...adapters.deposits.nodes import NodesDeposits
from ...adapters.deposits.watched import AddressPage
from ...adapters.nodes.networks import CHAINS
from ...adapters.nodes.nodes import Nodes
from ...adapters.payouts.evm.book import Attempt, Book, Known
from ...adapters.payouts.evm.fees import GWEI
from ...adapters.payouts.evm.sender import EvmSender
from ...adapters.payouts.signer import KeySigner
from ...adapters.payouts.tron.api import TronApi
from ...adapters.payouts.tron.sender import SUN, TronSender
from ...adapters.payouts.tron.sent import Sent, SentTransfers, Whole
from ...ports.chain import Network
from ...ports.clock import Clock
from ...ports.faults import NotConfigured
from ...ports.tools import FileTools, Tools
from .provider_options import ProviderSettings

SETTINGS = {Network.TRON: "tron", Network.ETHEREUM: "evm", Network.BSC: "bsc"}
"""By network: the adapter whose `nodes` setting it uses (provider_options.py)."""
PAYOUTS = "tron"
PAYOUTS_READ = "tron-payouts"
DEPOSITS = "tron"
"""Names that are stored with payouts and exchanges: never change them. The same holds for the names in SETTINGS."""
_FEE_LIMIT = 60
"""Default fee limit, in TRX."""
_GAS_PRICE_LIMITS = {Network.ETHEREUM: 50, Network.BSC: 5}
"""Default gas price limits, in Gwei: above it a network is as good as closed."""


def nodes_of(network: Network, own: ProviderSettings, clock: Clock) -> Nodes:
    """Return the nodes of a network. Raises: NotConfigured."""
    return Nodes(CHAINS[network], own.beside(SETTINGS[network]).need("nodes"), clock)


def chain_of(own: ProviderSettings, tools: FileTools) -> NodesChain:
    """Return the chain watcher of the networks whose nodes are set. Raises: NotConfigured when no nodes are set."""
    there = [network for network, name in SETTINGS.items() if own.beside(name).get("nodes")]
    if not there:
        raise NotConfigured(f"set {', '.join(f'CAMBIST_{name.upper()}_NODES' for name in SETTINGS.values())}, or some")
    return NodesChain({network: nodes_of(network, own, tools.clock) for network in there})


def deposits_of(own: ProviderSettings, tools: Tools) -> NodesDeposits:
    """Return the deposit watcher on TRON. Raises: NotConfigured."""
    key = account_key(own)
    return NodesDeposits(
        DEPOSITS,
        nodes_of(Network.TRON, own, tools.clock),
        key,
        tools.operation_log(DEPOSITS, AddressPage),
        # A counter for each wallet: after a change of wallet, addresses are counted from the first.
        tools.counter(DEPOSITS, f"addresses-{key.fingerprint()}"),
        tools.clock,
    )


def payouts_of(own: ProviderSettings, tools: Tools) -> TronSender:
    """Return the sender on TRON. Raises: NotConfigured."""
    urls = own.get("api") or [each.removesuffix("/jsonrpc") for each in own.need("nodes") if each.endswith("/jsonrpc")]
    if not urls:
        raise NotConfigured("set CAMBIST_TRON_API: the nodes of CAMBIST_TRON_NODES have no path /jsonrpc")
    nodes, signer = nodes_of(Network.TRON, own, tools.clock), KeySigner(own.need("key"))
    apis = [TronApi(place, url, tools.clock) for place, url in enumerate(urls, 1)]
    whole, sent = tools.operation_log(PAYOUTS_READ, Whole), tools.operation_log(PAYOUTS_READ, Sent)
    return TronSender(
        PAYOUTS,
        nodes,
        apis,
        signer,
        SentTransfers(nodes, apis, signer.payload, whole, sent),
        tools.clock,
        fee_limit=own.get("fee_limit", _FEE_LIMIT) * SUN,
    )


def evm_payouts_of(network: Network, own: ProviderSettings, tools: Tools) -> EvmSender:
    """Return the sender on Ethereum or BNB Smart Chain. Raises: NotConfigured."""
    name, signer = SETTINGS[network], KeySigner(own.need("key"))
    book = Book(
        CHAINS[network].spelling.write(signer.payload),
        tools.operation_log(name, Attempt),
        tools.operation_log(name, str),
        tools.operation_log(name, Known),
    )
    limit = own.get("gas_price_limit", _GAS_PRICE_LIMITS[network]) * GWEI
    return EvmSender(name, nodes_of(network, own, tools.clock), signer, book, tools.clock, price_limit=limit)


def account_key(own: ProviderSettings) -> AccountKey:
    """Return the wallet's account key. Raises: NotConfigured."""
    return AccountKey(own.beside("deposit").need("xpub_tron"))


def first_addresses(own: ProviderSettings, most: int) -> Sequence[str]:
    """Return the wallet's addresses from number 0 on. Raises: NotConfigured."""
    key, spelling = account_key(own), CHAINS[Network.TRON].spelling
    return [spelling.write(key.payload(number)) for number in range(most)]

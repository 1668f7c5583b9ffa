"""Harnesses of the watchers by nodes, over real ones (frontends/conformance)."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import count

from cambist.adapters.chain.nodes import NodesChain
from cambist.adapters.deposits.derived import AccountKey
from cambist.adapters.deposits.nodes import NodesDeposits
from cambist.adapters.deposits.watched import AddressPage
from cambist.adapters.nodes.networks import CHAINS
from cambist.adapters.nodes.nodes import Nodes
from cambist.adapters.nodes.spelling import base58check, read_base58check
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.frontends.conformance.harnesses import ChainHarness, DepositsHarness
from cambist.ports.chain import Network, Sighting, TokenMove, TransactionState
from cambist.ports.operation_log import NumberedOperations, OperationLog
from tests.chains.fronts import Front
from tests.chains.world import PAYER_ADDRESS, SOMEBODY, STRANGE, ChainWorld

XPUB = "xpub6BuRy7ZmkGfP2RWhoor1kWB1w9DvrtmJbFBvnC1bQ4SB5NbCHTyQYCJSXZtxDbFyHTmC7wkU2he3nYYdpZ3Vf6qUAkXSnL6RPif4BDtDEKr"
"""Derived from the words that all test wallets have: "test" eleven times, and "junk"."""
KEY = "nodes-secret-key"

_WALLETS = count()


def new_wallet() -> str:
    """The xpub of a wallet whose addresses nobody has had yet: the nodes are shared, and forget nothing."""
    raw = read_base58check(XPUB)
    return base58check(raw[:13] + sha256(str(next(_WALLETS)).encode()).digest() + raw[45:])


class Aliased(NodesChain):
    """Knows transactions by the hashes that the suite gives them."""

    def __init__(self, nodes: Mapping[Network, Nodes]) -> None:
        super().__init__(nodes)
        self.true: dict[tuple[Network, str], str] = {}

    async def lookup(self, network: Network, tx_hash: str) -> Sighting:
        return await super().lookup(network, self.true.get((network, tx_hash), tx_hash))


class NodesChainHarness(ChainHarness):
    """Delivery proofs on real nodes."""

    secrets = (KEY,)

    def __init__(self, world: ChainWorld, fronts: Mapping[Network, Front]) -> None:
        self.world = world.renewed()
        self._fronts = fronts
        self.networks = tuple(fronts)
        self.watcher = self._aliased = Aliased(
            {network: Nodes(CHAINS[network], [front.address], world.clock) for network, front in fronts.items()}
        )

    async def show(
        self, network: Network, tx_hash: str, state: TransactionState, moves: Sequence[TokenMove] = ()
    ) -> None:
        if state is TransactionState.MISSING:
            await self.world.take_back(network)
            return
        chain = CHAINS[network]
        wanted = [(chain.usdt if move.genuine else STRANGE, SOMEBODY, chain.amount(move.units)) for move in moves]
        if state is TransactionState.REVERTED:
            wanted.append((chain.usdt, SOMEBODY, 1 << 250))  # more than there is: all of it is taken back
        self._aliased.true[network, tx_hash] = self.world.send(network, wanted)
        await self.world.mine()
        if state is not TransactionState.IN_BLOCK:
            await self.world.finalise()

    async def parties(self, network: Network, tx_hash: str) -> Sequence[tuple[str, str]]:
        spelling = CHAINS[network].spelling
        return [(spelling.write(bytes.fromhex(PAYER_ADDRESS[2:])), spelling.write(SOMEBODY))] * 2

    async def be_away(self) -> None:
        for front in self._fronts.values():
            front.be_away()
        await self.world.clock.advance(60)

    async def close(self) -> None:
        await self._aliased.close()


class NodesDepositsHarness(DepositsHarness):
    """Deposits on a real node."""

    def __init__(self, world: ChainWorld, *fronts: Front, network: Network = Network.TRON) -> None:
        self.world = world.renewed()
        self.clock = self.world.clock
        self._fronts = fronts
        self._network = network
        self._xpub = new_wallet()
        self.secrets = (KEY, self._xpub)
        self.storage = MemoryStorage(world.clock)
        self.made: list[NodesDeposits] = []
        self.watcher = self.wallet = self.restarted()

    def restarted(self, *, span: int = 1000) -> NodesDeposits:
        clock, key = self.world.clock, AccountKey(self._xpub)
        made = NodesDeposits(
            "tron",
            Nodes(CHAINS[self._network], [front.address for front in self._fronts], clock),
            key,
            OperationLog("tron", AddressPage, self.storage, clock),
            NumberedOperations("tron", "addresses", self.storage, clock),
            clock,
            span=span,
        )
        self.made.append(made)
        return made

    def payload(self, address: str) -> bytes:
        return CHAINS[self._network].spelling.read(address)

    async def send(self, address: str, *units: int, genuine: bool = True, final: bool = True) -> str:
        moves = [(self.payload(address), amount) for amount in units]
        tx_hash = self.world.pay(self._network, *moves, token=None if genuine else STRANGE)
        await self.world.mine()
        if final:
            await self.world.finalise()
        return tx_hash

    async def drop(self, address: str, tx_hash: str) -> None:
        await self.world.take_back(self._network)

    async def make_final(self, address: str, tx_hash: str) -> None:
        await self.world.finalise()

    async def be_away(self) -> None:
        for front in self._fronts:
            front.be_away()
        await self.world.clock.advance(10)

    async def close(self) -> None:
        for made in self.made:
            await made.close()

"""Networks controlled by tests: a real node each, USDT at its real contract, a rich account, and one clock for all."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from cambist.adapters.clock import VirtualClock
from cambist.adapters.nodes.networks import CHAINS, Chain
from cambist.ports.chain import Network
from tests.chains.anvil import Anvil, anvil
from tests.chains.contracts import PAYER, TOKEN, orders

STRANGE = "0x00000000000000000000000000000000000fa1ce"
"""A token that is not USDT."""
PAYER_ADDRESS = "0x00000000000000000000000000000000000ba7c4"
_RICH = 1 << 200
_START = datetime(2026, 8, 8, 12, tzinfo=UTC)
_GAS = hex(25_000_000)
_PACE = 6
"""Seconds from block to block, and for the watchers more than they take a look for the present."""
SOMEBODY = bytes.fromhex("00112233445566778899aabbccddeeff00112233")

Move = tuple[bytes, int]
"""Recipient, and units of the port."""


class ChainWorld:
    """The nodes, and the clock that advances with their blocks."""

    def __init__(self, nodes: Mapping[Network, Anvil], start: datetime) -> None:
        self.nodes = nodes
        self.clock = VirtualClock(start)
        self._start = start
        self._mine(4)
        self._begun = {network: node.ask("evm_snapshot") for network, node in nodes.items()}

    def join(self, clock: VirtualClock) -> None:
        """Go on by this clock."""
        self.clock = clock

    def renewed(self) -> "ChainWorld":
        """Return the same world for another test: chains and clock start over, but the nodes do not restart. A chain
        that grew from test to test would make each block slower."""
        self.clock = VirtualClock(self._start)
        for network, node in self.nodes.items():
            node.ask("anvil_dropAllTransactions")
            assert node.ask("evm_revert", self._begun[network])
            self._begun[network] = node.ask("evm_snapshot")  # each is gone back to once
        self._mine(1)
        return self

    async def mine(self, blocks: int = 1) -> None:
        """Make blocks, on all networks, in the course of time."""
        await self.clock.advance(blocks * _PACE)
        self._mine(blocks)

    async def catch_up(self, moment: datetime) -> None:
        """Mine the missing blocks up to this time, as far as anybody reads them."""
        missing = int((moment - self.clock.now()).total_seconds()) // _PACE
        await self.clock.advance_to(max(moment, self.clock.now()))
        self._mine(max(1, min(missing, 30)))

    async def finalise(self) -> None:
        """Make the transactions in blocks final."""
        await self.mine(3)

    def height(self, network: Network) -> int:
        """Return the number of the newest block."""
        return int(self.nodes[network].ask("eth_blockNumber"), 16)

    def pay(self, network: Network, *moves: Move, token: str | None = None) -> str:
        """Hand a transaction to the network that moves all this, of USDT or another token; its hash, without 0x. It
        stands in no block yet."""
        chain = CHAINS[network]
        wanted = [(token or chain.usdt, to, chain.amount(units)) for to, units in moves]
        return self.send(network, wanted)

    def send(self, network: Network, transfers: Sequence[tuple[str, bytes, int]]) -> str:
        """The same, of any tokens at once, in their smallest parts."""
        node = self.nodes[network]
        [sender, *_] = node.ask("eth_accounts")
        sent = node.ask(
            "eth_sendTransaction", {"from": sender, "to": PAYER_ADDRESS, "data": orders(*transfers), "gas": _GAS}
        )
        return str(sent)[2:]

    async def take_back(self, network: Network, blocks: int = 1) -> None:
        """Replace the newest blocks, with their transactions, by empty ones, and add one more."""
        self.nodes[network].ask("anvil_reorg", blocks, [])
        await self.mine()

    def _mine(self, blocks: int) -> None:
        first = int(self.clock.now().timestamp()) - (blocks - 1) * _PACE
        for node in self.nodes.values():
            newest = int(node.ask("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
            node.ask("evm_setNextBlockTimestamp", max(newest + 1, first))
            node.ask("anvil_mine", hex(blocks), hex(_PACE))


def furnish(node: Anvil, chain: Chain) -> None:
    """Deploy USDT and another token, and an account rich in both."""
    for token in (chain.usdt, STRANGE):
        node.ask("anvil_setCode", token, TOKEN)
        node.ask("anvil_setStorageAt", token, f"0x{int(PAYER_ADDRESS, 16):064x}", f"0x{_RICH:064x}")
    node.ask("anvil_setCode", PAYER_ADDRESS, PAYER)


@contextmanager
def chain_world(
    folder: Path, networks: Sequence[Network] = tuple(Network), start: datetime = _START
) -> Iterator[ChainWorld]:
    """A world of these networks at this moment; nothing of it is left behind."""
    with ExitStack() as stack:
        nodes = {}
        for network in networks:
            chain = CHAINS[network]
            nodes[network] = stack.enter_context(anvil(chain.chain_id, folder, int(start.timestamp()) - 1000))
            furnish(nodes[network], chain)
        yield ChainWorld(nodes, start)

"""Wallets on real nodes of Ethereum and BNB Smart Chain, for the contract of the port and for their own tests."""

from collections.abc import Iterable
from hashlib import sha256
from itertools import count

import msgspec

from cambist.adapters.nodes.networks import CHAINS
from cambist.adapters.nodes.nodes import Nodes
from cambist.adapters.nodes.spelling import EVM, TRON
from cambist.adapters.payouts.evm.book import Attempt, Book, Known
from cambist.adapters.payouts.evm.fees import GWEI
from cambist.adapters.payouts.evm.sender import EvmSender
from cambist.adapters.payouts.evm.transaction import Fees, Transaction
from cambist.adapters.payouts.signer import KeySigner
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.frontends.conformance.harnesses import PayoutsHarness
from cambist.ports.chain import Network
from cambist.ports.notes import ProviderNote
from cambist.ports.operation_log import OperationLog
from cambist.ports.payouts import SignedTransfer
from cambist.ports.storage import Storage
from cambist.testing import ProviderAnswer, ProviderRequest
from tests.chains.fronts import Front
from tests.chains.harnesses import KEY
from tests.chains.world import ChainWorld

RICH = 10**6 * 10**8
"""Units of the port."""
COIN = 10**18
LIMIT = 100 * GWEI

_KEYS = count()


def new_key() -> str:
    """Return the key of a fresh wallet: the nodes are shared and forget nothing."""
    return sha256(f"wallet {next(_KEYS)}".encode()).hexdigest()


def is_broadcast(request: ProviderRequest) -> bool:
    return b"eth_sendRawTransaction" in request.body


class LivelyFront(Front):
    """A network that puts each transaction into a block at once."""

    world: ChainWorld | None = None

    async def _relayed(self, request: ProviderRequest) -> ProviderAnswer:
        answer = await super()._relayed(request)
        if is_broadcast(request) and self.world is not None:
            await self.world.mine()
        return answer


class EvmHarness(PayoutsHarness):
    """A wallet on one network, behind one node or several."""

    address = EVM.write(bytes(range(20)))

    def __init__(self, world: ChainWorld, network: Network, *fronts: Front, storage: Storage | None = None) -> None:
        self.world = world
        self.network = network
        self.node = world.nodes[network]
        self.chain = CHAINS[network]
        self.fronts = fronts
        for front in fronts:
            if isinstance(front, LivelyFront):
                front.world = world
        self.clock = world.clock
        self.provider = fronts[0]
        self.key = new_key()
        self.secrets = (KEY, self.key)
        self.owner = KeySigner(self.key).payload
        self.storage = storage or MemoryStorage(world.clock)
        self.wallets: list[EvmSender] = []
        self.sender = self.wallet = self.restarted()
        self.wrong_addresses = (
            *("", "0x" + "0" * 39, TRON.write(bytes(range(20))), self.address.replace("a", "A", 1)),
            *(EVM.write(each) for each in (bytes(20), self.owner, bytes.fromhex(self.chain.usdt[2:]))),
        )
        self.endow()
        self._before_payouts = self._balance(self.address)

    def endow(self, usdt: int = RICH, coins: int = 10 * COIN) -> None:
        """Let the wallet have this."""
        self.node.ask("anvil_setBalance", f"0x{self.owner.hex()}", hex(coins))
        self.node.ask("anvil_setStorageAt", self.chain.usdt, self._slot, f"0x{self.chain.amount(usdt):064x}")

    @property
    def _slot(self) -> str:
        return f"0x{int.from_bytes(self.owner):064x}"

    def operation_logs(self) -> tuple[OperationLog[Attempt], OperationLog[str], OperationLog[Known]]:
        storage, clock = self.storage, self.world.clock
        return (
            OperationLog("evm", Attempt, storage, clock),
            OperationLog("evm", str, storage, clock),
            OperationLog("evm", Known, storage, clock),
        )

    def restarted(self, limit: int = LIMIT) -> EvmSender:
        clock = self.world.clock
        nodes = Nodes(self.chain, [front.address for front in self.fronts], clock)
        book = Book(EVM.write(self.owner), *self.operation_logs())
        self.wallets.append(EvmSender("evm", nodes, KeySigner(self.key), book, clock, price_limit=limit))
        return self.wallets[-1]

    async def begin(self) -> "EvmHarness":
        """The wallet has been at work before: its book says from where on it is whole."""
        await self.world.mine(2)  # mine past the chain's restart: the node has no state from before it
        await self.wallet.find("wd_before")
        self._before = await self._notes()
        return self

    async def forget(self) -> None:
        kept = {note.id: note for note in self._before}
        async with self.storage.unit() as unit:
            for note in await unit[ProviderNote].find(provider="evm"):
                if note.id in kept:
                    unit[ProviderNote].save(msgspec.structs.replace(note, body=kept[note.id].body))
                else:
                    unit[ProviderNote].remove(note)
            await unit.commit()

    async def _notes(self) -> list[ProviderNote]:
        async with self.storage.unit() as unit:
            return list(await unit[ProviderNote].find(provider="evm"))

    def raw(self, nonce: int, *, to: bytes | None = None, data: bytes = b"", price: int = 20 * GWEI) -> Transaction:
        """Build a transaction that another holder of the key might sign."""
        return Transaction(
            chain_id=self.chain.chain_id,
            nonce=nonce,
            fees=Fees(price, GWEI),
            gas=100_000,
            to=self.owner if to is None else to,
            data=data,
        )

    async def send_raw(self, made: Transaction) -> str:
        raw = made.signed(await KeySigner(self.key).sign(made.digest))
        return str(self.node.ask("eth_sendRawTransaction", f"0x{raw.hex()}"))[2:]

    def count(self, tag: str = "latest") -> int:
        return int(self.node.ask("eth_getTransactionCount", f"0x{self.owner.hex()}", tag), 16)

    def in_pool(self) -> list[str]:
        """Hashes of the wallet's transactions that wait for a block."""
        pool = self.node.ask("txpool_content")
        return [
            str(each["hash"])[2:]
            for part in ("pending", "queued")
            for address, by_nonce in pool[part].items()
            if address.lower() == f"0x{self.owner.hex()}"
            for each in by_nonce.values()
        ]

    def drop(self, hashes: Iterable[str]) -> None:
        """The node forgets what waits for a block."""
        for each in hashes:
            self.node.ask("anvil_dropTransaction", f"0x{each}")

    async def settle(self) -> None:
        """Mine until the transfers in blocks are final and deep enough to be beyond doubt."""
        await self.world.mine()
        await self.world.mine(self.chain.reread + 3)

    async def make_final(self, signed: SignedTransfer) -> None:
        await self.world.mine()
        await self.world.finalise()

    async def outlive(self, signed: SignedTransfer) -> None:
        await self.world.mine()
        if self.node.ask("eth_getTransactionReceipt", f"0x{signed.tx_hash}") is None:
            await self.send_raw(self.raw(self.count()))
        await self.settle()

    async def revert(self, signed: SignedTransfer) -> None:
        self.endow(usdt=0)
        await self.make_final(signed)

    async def take_back(self, signed: SignedTransfer) -> None:
        await self.world.mine()
        await self.world.take_back(self.network)

    async def moved(self) -> int:
        await self.world.mine()
        left = int(self.node.ask("eth_getStorageAt", self.chain.usdt, self._slot, "latest"), 16)
        return RICH - self.chain.units(left)

    async def paid(self, address: str) -> int:
        return self._balance(address) - self._before_payouts

    def _balance(self, address: str) -> int:
        place = f"0x{int.from_bytes(EVM.read(address)):064x}"
        return self.chain.units(int(self.node.ask("eth_getStorageAt", self.chain.usdt, place, "latest"), 16))

    def is_write(self, request: ProviderRequest) -> bool:
        return is_broadcast(request)

    async def recover(self) -> None:
        """A node that gave no answer is left alone for a while."""
        await super().recover()
        await self.world.clock.advance(60)
        await self.world.mine()

    async def be_away(self) -> None:
        for front in self.fronts:
            front.be_away()
        await self.world.clock.advance(10)

    async def close(self) -> None:
        # The nodes are shared: a pending transaction would enter the next test's blocks.
        self.drop(self.in_pool())
        for wallet in self.wallets:
            await wallet.close()

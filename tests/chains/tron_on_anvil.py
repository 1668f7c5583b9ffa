"""A node of TRON over a real one: it checks transactions as strictly as the fake does (tron_network.py), executes the
transfers there, and reports them under TRON's own hashes."""

from typing import Any

from cambist.adapters.nodes.networks import CHAINS
from cambist.ports.chain import Network
from tests.chains.anvil import Anvil
from tests.chains.tron_network import USDT, TronNetwork
from tests.chains.world import ChainWorld

_GAS = hex(200_000)
_TOKEN = CHAINS[Network.TRON].usdt


class _Blocks(list[tuple[str, int, list[str]]]):
    """Blocks of the node in the fake's form: id, milliseconds, and no transactions."""

    def __init__(self, node: Anvil) -> None:
        super().__init__()
        self._node = node

    def __len__(self) -> int:
        return int(self._node.ask("eth_blockNumber"), 16) + 1

    def __getitem__(self, number: Any) -> Any:
        height = number if number >= 0 else len(self) + number
        block = self._node.ask("eth_getBlockByNumber", hex(height), False)
        return block_id(height, block["hash"]), int(block["timestamp"], 16) * 1000, []


class _Balances(dict[bytes, int]):
    """USDT balances, read from the contract."""

    def __init__(self, node: Anvil) -> None:
        super().__init__()
        self._node = node

    def get(self, owner: bytes, _: Any = None) -> Any:
        return int(self._node.ask("eth_getStorageAt", _TOKEN, f"0x{int.from_bytes(owner):064x}", "latest"), 16)


def block_id(height: int, block_hash: str) -> str:
    """TRON's ids begin with the number of the block."""
    return height.to_bytes(8).hex() + block_hash[18:]


class TronOnAnvil(TronNetwork):
    """One node, of the TRON of this world."""

    def __init__(self, world: ChainWorld) -> None:
        self.node_below = world.nodes[Network.TRON]
        super().__init__(world.clock)
        self.blocks = _Blocks(self.node_below)
        self.usdt = _Balances(self.node_below)
        self.true: dict[str, str] = {}
        """The node's hash of a transaction, by TRON's hash."""
        self.calls: dict[str, dict[str, str]] = {}
        """The call of a transaction, by TRON's hash."""
        self.holds = False
        """Whether new transactions wait here until `remind`."""

    def mine(self, blocks: int = 1) -> None:
        """The world does."""

    def remind(self) -> None:
        """Hand over again each transaction without a block: it was held back, or its block was taken back."""
        self.holds = False
        for tx, call in self.calls.items():
            if tx not in self.true or self._ask("eth_getTransactionByHash", f"0x{self.true[tx]}") is None:
                self.true[tx] = str(self._ask("eth_sendTransaction", call))[2:]

    def _ask(self, method: str, *params: Any) -> Any:
        return self.node_below.ask(method, *params)

    def _broadcast(self, body: dict[str, Any]) -> dict[str, Any]:
        said = super()._broadcast(body)
        if said["code"] != "SUCCESS":
            return said
        transaction = self.pool.pop(said["txid"])
        owner, data = self.transfer_of(transaction)
        self._ask("anvil_impersonateAccount", f"0x{owner.hex()}")
        self._ask("anvil_setBalance", f"0x{owner.hex()}", hex(10**18))
        call = {"from": f"0x{owner.hex()}", "to": f"0x{USDT.hex()}", "data": f"0x{data.hex()}", "gas": _GAS}
        self.calls[said["txid"]] = call
        if not self.holds:
            self.remind()
        return said

    def _info(self, body: dict[str, Any]) -> dict[str, Any]:
        below = self.true.get(body["value"])
        known = below is not None and self._ask("eth_getTransactionReceipt", f"0x{below}") is not None
        return {"id": body["value"]} if known else {}

    def _known(self, body: dict[str, Any]) -> dict[str, Any]:
        return super()._known(body) if body["value"] in self.true else {}

    def _json_rpc(self, asked: dict[str, Any]) -> dict[str, Any]:
        method, params = asked["method"], asked["params"]
        if method == "eth_getBalance":
            result: Any = hex(self.sun.get(bytes.fromhex(params[0][2:]), 0))
        else:
            if method == "eth_getTransactionReceipt":
                params = [f"0x{self.true.get(params[0][2:], params[0][2:])}"]
            try:
                result = self._told(self._ask(method, *params))
            except RuntimeError as error:
                return {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32602, "message": str(error)}}
        return {"jsonrpc": "2.0", "id": asked["id"], "result": result}

    def _told(self, said: Any) -> Any:
        """The same with TRON's hashes."""
        if isinstance(said, list):
            return [self._told(each) for each in said]
        if not isinstance(said, dict):
            return said
        told = {name: self._told(value) for name, value in said.items()}
        above = {f"0x{below}": f"0x{tx}" for tx, below in self.true.items()}
        if "transactionHash" in told:
            told["transactionHash"] = above.get(told["transactionHash"], told["transactionHash"])
        if "blockHash" in told and told.get("blockNumber"):
            told["blockHash"] = f"0x{block_id(int(told['blockNumber'], 16), told['blockHash'])}"
        if "parentHash" in told:
            told["hash"] = f"0x{block_id(int(told['number'], 16), told['hash'])}"
        return told

"""TRON as one node shows it to wallets: blocks, a pool, finality, USDT and the cost of a transfer. It speaks JSON-RPC
and the node's own HTTP interface, and is as strict as the real one. The protobuf library reads transactions, not
our own code."""

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped]

from cambist.adapters.clock import VirtualClock
from cambist.adapters.nodes.networks import CHAINS
from cambist.adapters.nodes.records import TRANSFER
from cambist.adapters.nodes.secp256k1 import long_form, recover
from cambist.adapters.nodes.spelling import TRON
from cambist.core.domain.keccak import keccak256
from cambist.ports.chain import Network
from cambist.testing import FakeProvider, ProviderAnswer, ProviderRequest

USDT = bytes.fromhex(CHAINS[Network.TRON].usdt[2:])
PACE = 3
FINALITY = 19
_TAPOS_BLOCKS = 65_536
_DAY = 86_400_000
_ENERGY = 64_300
_ENERGY_OF_A_NEW_HOLDER = 130_300
_ENERGY_PRICE = 100
_FEE_LIMIT_MOST = 15_000_000_000
_TYPE = "type.googleapis.com/protocol.TriggerSmartContract"


def _messages() -> dict[str, Any]:
    """The part of TRON's protocol that is needed, as it is published: names and numbers of fields."""
    file = descriptor_pb2.FileDescriptorProto(name="tron.proto", package="protocol", syntax="proto3")
    kind = descriptor_pb2.FieldDescriptorProto

    def message(name: str, *fields: tuple[str, int, int, str | None], repeated: tuple[str, ...] = ()) -> None:
        made = file.message_type.add(name=name)
        for field, number, of, other in fields:
            label = kind.LABEL_REPEATED if field in repeated else kind.LABEL_OPTIONAL
            made.field.add(name=field, number=number, type=of, label=label, type_name=other and f".protocol.{other}")

    raw, whole, text, inner = kind.TYPE_BYTES, kind.TYPE_INT64, kind.TYPE_STRING, kind.TYPE_MESSAGE
    message("Any", ("type_url", 1, text, None), ("value", 2, raw, None))
    message(
        "Contract", ("type", 1, kind.TYPE_INT32, None), ("parameter", 2, inner, "Any"), ("permission", 5, whole, None)
    )
    message(
        "Raw",
        *(("ref_block_bytes", 1, raw, None), ("ref_block_num", 3, whole, None), ("ref_block_hash", 4, raw, None)),
        *(("expiration", 8, whole, None), ("data", 10, raw, None), ("contract", 11, inner, "Contract")),
        *(("timestamp", 14, whole, None), ("fee_limit", 18, whole, None)),
        repeated=("contract",),
    )
    message("Transaction", ("raw_data", 1, inner, "Raw"), ("signature", 2, raw, None), repeated=("signature",))
    message(
        "Trigger",
        *(("owner_address", 1, raw, None), ("contract_address", 2, raw, None), ("call_value", 3, whole, None)),
        ("data", 4, raw, None),
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"protocol.{name}"))
        for name in ("Transaction", "Raw", "Trigger")
    }


_MESSAGES = _messages()


def _raw_of(said: dict[str, Any]) -> Any:
    """Build a transaction's message from its JSON. Addresses are hex."""
    [contract] = said["contract"]
    value = contract["parameter"]["value"]
    assert (contract["type"], contract["parameter"]["type_url"].encode()) == ("TriggerSmartContract", _TYPE.encode())
    call = _MESSAGES["Trigger"](
        owner_address=bytes.fromhex(value["owner_address"]),
        contract_address=bytes.fromhex(value["contract_address"]),
        call_value=value.get("call_value", 0),
        data=bytes.fromhex(value["data"]),
    )
    raw = _MESSAGES["Raw"](
        ref_block_bytes=bytes.fromhex(said["ref_block_bytes"]),
        ref_block_hash=bytes.fromhex(said["ref_block_hash"]),
        expiration=said["expiration"],
        timestamp=said["timestamp"],
        fee_limit=said["fee_limit"],
    )
    inner = raw.contract.add()
    inner.type = 31
    inner.parameter.type_url, inner.parameter.value = _TYPE, call.SerializeToString()
    return raw


def _bandwidth(raw: Any) -> int:
    """Return the size of a transaction with one signature, plus the bytes charged for its result."""
    made = _MESSAGES["Transaction"](signature=[bytes(65)])
    made.raw_data.CopyFrom(raw)
    return len(made.SerializeToString()) + 64


class Refusal(Exception):
    """A code of the node."""


class TronNetwork(FakeProvider):
    """One network behind one node. `key` is the required value of the header TRON-PRO-API-KEY."""

    def __init__(self, clock: VirtualClock, key: str | None = None) -> None:
        super().__init__()
        self.clock = clock
        self.key = key
        self.usdt: dict[bytes, int] = {}
        self.sun: dict[bytes, int] = {}
        self.energy: dict[bytes, int] = {}
        self.blocks: list[tuple[str, int, list[str]]] = []
        """Id, milliseconds, and the hashes of its transactions."""
        self.pool: dict[str, Any] = {}
        self.seen: set[str] = set()
        self.signed: dict[str, Any] = {}
        self.receipts: dict[str, dict[str, Any]] = {}
        self.code: str | None = None
        """Code that the next broadcasts answer without examining the transaction."""
        self.hides: set[str] = set()
        """Transactions that JSON-RPC does not know, although they are in a block."""
        self.blacklisted: set[bytes] = set()
        self.lively = False
        """Blocks are made by themselves, seen whenever somebody asks."""
        for path, answer in {
            "/jsonrpc": self._json_rpc,
            "/wallet/broadcasthex": self._broadcast,
            "/wallet/broadcasttransaction": self._broadcast_json,
            "/wallet/getsignweight": self._weighed,
            "/wallet/getnodeinfo": self._node_info,
            "/wallet/gettransactioninfobyid": self._info,
            "/wallet/gettransactionbyid": self._known,
            "/wallet/getaccountresource": self._resources,
            "/wallet/triggerconstantcontract": self._constant,
            "/wallet/getchainparameters": lambda _: {
                "chainParameter": [{"key": "getEnergyFee", "value": _ENERGY_PRICE}]
            },
        }.items():
            self.on("POST", path, self._guarded(answer))
        self.mine(FINALITY + 5)

    @property
    def node(self) -> str:
        """As CAMBIST_TRON_NODES says it."""
        return f"{self.api}/jsonrpc"

    @property
    def api(self) -> str:
        return self.url.replace("://", f"://{self.key}@") if self.key else self.url

    @property
    def final(self) -> int:
        return max(0, len(self.blocks) - 1 - FINALITY)

    def mine(self, blocks: int = 1) -> None:
        """Make blocks at the clock's present, the last one now."""
        now = int(self.clock.now().timestamp() * 1000) // 1000 * 1000
        for left in reversed(range(blocks)):
            parent = self.blocks[-1][1] if self.blocks else 0
            at = max(now - left * PACE * 1000, parent + 1)
            taken = [tx for tx, raw in self.pool.items() if raw.expiration > parent]
            number = len(self.blocks)
            block = number.to_bytes(8).hex() + sha256(f"{number}:{at}".encode()).hexdigest()[16:]
            self.blocks.append((block, at, taken))
            for tx in taken:
                self.receipts[tx] = self._executed(tx, self.pool.pop(tx), number, block)
            for tx in [tx for tx, raw in self.pool.items() if raw.expiration <= at]:
                del self.pool[tx]

    async def pass_time(self, seconds: float) -> None:
        """Blocks are made meanwhile."""
        await self.clock.advance(seconds)
        self.mine(max(1, min(int(seconds // PACE), 30)))

    def _live(self) -> None:
        missing = int(self.clock.now().timestamp() * 1000 - self.blocks[-1][1]) // (PACE * 1000)
        if self.lively and missing:
            self.mine(min(missing, 2 * FINALITY))

    def _guarded(self, answer: Callable[[Any], Any]) -> Callable[[ProviderRequest], ProviderAnswer]:
        def handle(request: ProviderRequest) -> ProviderAnswer:
            self._live()
            if self.key is not None and request.headers.get("tron-pro-api-key") != self.key:
                return ProviderAnswer(status=401)
            if request.headers.get("content-type") != "application/json":
                return ProviderAnswer(status=415)
            return ProviderAnswer.of_json(answer(json.loads(request.body)))

        return handle

    def _broadcast(self, body: dict[str, Any]) -> dict[str, Any]:
        try:
            transaction = _MESSAGES["Transaction"].FromString(bytes.fromhex(body["transaction"]))
            raw = transaction.raw_data.SerializeToString()
            tx = sha256(raw).hexdigest()
            self._check(transaction, raw, tx)
        except Refusal as refusal:
            return {"result": False, "code": str(refusal), "txid": "", "message": b"no".hex()}
        self.seen.add(tx)
        self.signed[tx] = transaction
        self.pool[tx] = transaction.raw_data
        return {"result": True, "code": "SUCCESS", "txid": tx, "message": ""}

    def _broadcast_json(self, body: dict[str, Any]) -> dict[str, Any]:
        """The same, as other clients hand it over: the node writes the bytes."""
        made = _MESSAGES["Transaction"](signature=[bytes.fromhex(each) for each in body["signature"]])
        made.raw_data.CopyFrom(_raw_of(body["raw_data"]))
        said = self._broadcast({"transaction": made.SerializeToString().hex()})
        assert not said["result"] or said["txid"] == body["txID"]
        return said

    def _weighed(self, body: dict[str, Any]) -> dict[str, Any]:
        """Answer for an account with one key."""
        tx = sha256(_raw_of(body["raw_data"]).SerializeToString()).hexdigest()
        return {"result": {"code": "NOT_ENOUGH_PERMISSION"}, "transaction": {"transaction": {"txID": tx}}}

    def _node_info(self, _: Any) -> dict[str, Any]:
        heads = {"block": len(self.blocks) - 1, "solidityBlock": self.final}
        return {name: f"Num:{number},ID:{self.blocks[number][0]}" for name, number in heads.items()}

    def _check(self, transaction: Any, raw: bytes, tx: str) -> None:
        """In the order in which a node does."""
        if self.code is not None:
            raise Refusal(self.code)
        data = transaction.raw_data
        [contract], [signature] = data.contract, transaction.signature
        call = _MESSAGES["Trigger"].FromString(contract.parameter.value)
        assert (contract.type, contract.parameter.type_url) == (31, _TYPE)
        if tx in self.seen:
            raise Refusal("DUP_TRANSACTION_ERROR")
        key = recover(signature, sha256(raw).digest())
        if keccak256(long_form(key))[-20:] != call.owner_address[1:]:
            raise Refusal("SIGERROR")
        recent = range(max(0, len(self.blocks) - _TAPOS_BLOCKS), len(self.blocks))
        named = [n for n in recent if (n & 0xFFFF).to_bytes(2) == data.ref_block_bytes]
        if not any(bytes.fromhex(self.blocks[n][0])[8:16] == data.ref_block_hash for n in named):
            raise Refusal("TAPOS_ERROR")
        head = self.blocks[-1][1]
        if not head < data.expiration <= head + _DAY:
            raise Refusal("TRANSACTION_EXPIRATION_ERROR")
        if not 0 < data.fee_limit <= _FEE_LIMIT_MOST:
            raise Refusal("CONTRACT_VALIDATE_ERROR")
        if self.sun.get(call.owner_address[1:], 0) < _bandwidth(data) * 1000:
            raise Refusal("BANDWITH_ERROR")

    def _executed(self, tx: str, data: Any, number: int, block: str) -> dict[str, Any]:
        call = _MESSAGES["Trigger"].FromString(data.contract[0].parameter.value)
        owner, to, amount = call.owner_address[1:], call.data[16:36], int.from_bytes(call.data[36:68])
        energy = self._energy(to)
        bought = max(0, energy - self.energy.get(owner, 0)) * _ENERGY_PRICE
        self.sun[owner] = self.sun.get(owner, 0) - _bandwidth(data) * 1000 - min(bought, data.fee_limit)
        fine = call.data[:4].hex() == "a9059cbb" and call.contract_address[1:] == USDT
        fine &= energy * _ENERGY_PRICE <= data.fee_limit and self._would(owner, to, amount)
        logs = []
        if fine:
            self.usdt[owner] -= amount
            self.usdt[to] = self.usdt.get(to, 0) + amount
            topics = [TRANSFER, *(f"0x{each.rjust(32, bytes(1)).hex()}" for each in (owner, to))]
            logs = [{"address": f"0x{USDT.hex()}", "topics": topics, "data": f"0x{amount:064x}"}]
        return {
            "transactionHash": f"0x{tx}",
            "blockNumber": hex(number),
            "blockHash": f"0x{block}",
            "status": "0x1" if fine else "0x0",
            "logs": logs,
        }

    def transfer_of(self, data: Any) -> tuple[bytes, bytes]:
        """Return the caller of a transaction and the data of its contract call."""
        call = _MESSAGES["Trigger"].FromString(data.contract[0].parameter.value)
        return call.owner_address[1:], call.data

    def _would(self, owner: bytes, to: bytes, amount: int) -> bool:
        return self.usdt.get(owner, 0) >= amount and not {owner, to} & self.blacklisted

    def _energy(self, to: bytes) -> int:
        return _ENERGY if self.usdt.get(to) else _ENERGY_OF_A_NEW_HOLDER

    def _info(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"id": body["value"]} if body["value"] in self.receipts else {}

    def _known(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a transaction that is in a block. `raw_data` as JSON is left out here."""
        made = self.signed.get(body["value"])
        if made is None or "id" not in self._info(body):
            return {}
        raw = made.raw_data.SerializeToString()
        return {
            "txID": body["value"],
            "raw_data_hex": raw.hex(),
            "signature": [each.hex() for each in made.signature],
            "visible": False,
        }

    def _resources(self, body: dict[str, Any]) -> dict[str, Any]:
        owner = TRON.read(body["address"])
        assert body["visible"] is True
        energy = self.energy.get(owner, 0)
        return {"freeNetLimit": 600, "freeNetUsed": 600, **({"EnergyLimit": energy} if energy else {})}

    def _constant(self, body: dict[str, Any]) -> dict[str, Any]:
        assert TRON.read(body["contract_address"]) == USDT
        if "function_selector" in body:
            data = keccak256(body["function_selector"].encode())[:4] + bytes.fromhex(body["parameter"])
        else:
            data = bytes.fromhex(body["data"])
        if data[:4].hex() == "70a08231":
            held = self.usdt.get(data[16:36], 0)
            return {"result": {"result": True}, "energy_used": 935, "constant_result": [f"{held:064x}"]}
        to, amount = data[16:36], int.from_bytes(data[36:68])
        fine = self._would(TRON.read(body["owner_address"]), to, amount)
        ret = {} if fine else {"ret": "FAILED"}  # the result says true all the same
        return {"result": {"result": True}, "energy_used": self._energy(to), "transaction": {"ret": [ret]}}

    def _parameters(self, _: dict[str, Any]) -> dict[str, Any]:
        return {
            "chainParameter": [{"key": "getAllowUpdateAccountName"}, {"key": "getEnergyFee", "value": _ENERGY_PRICE}]
        }

    def _json_rpc(self, asked: dict[str, Any]) -> dict[str, Any]:
        method, params = asked["method"], asked["params"]
        result: Any
        if method == "eth_chainId":
            result = hex(CHAINS[Network.TRON].chain_id)
        elif method == "eth_getBlockByNumber":
            result = self._block(params[0])
        elif method == "eth_getTransactionReceipt":
            tx = params[0][2:]
            result = None if tx in self.hides else self.receipts.get(tx)
        elif method == "eth_getLogs":
            result = self._logs(params[0])
        elif method == "eth_call":
            assert (params[1], params[0]["to"], params[0]["data"][:10]) == ("latest", f"0x{USDT.hex()}", "0x70a08231")
            result = f"0x{self.usdt.get(bytes.fromhex(params[0]['data'][34:]), 0):064x}"
        else:
            assert (method, params[1]) == ("eth_getBalance", "latest")
            result = hex(self.sun.get(bytes.fromhex(params[0][2:]), 0))
        return {"jsonrpc": "2.0", "id": asked["id"], "result": result}

    def _logs(self, wanted: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the token's logs by sender."""
        first, last = int(wanted["fromBlock"], 16), int(wanted["toBlock"], 16)
        assert (wanted["address"], wanted["topics"][0], last - first < 5000) == (f"0x{USDT.hex()}", TRANSFER, True)
        [_, sender] = wanted["topics"]
        return [
            {**log, **{name: receipt[name] for name in ("blockNumber", "blockHash", "transactionHash")}}
            for tx, receipt in self.receipts.items()
            if tx not in self.hides and first <= int(receipt["blockNumber"], 16) <= last
            for log in receipt["logs"]
            if log["topics"][1] == sender
        ]

    def _block(self, number: str) -> dict[str, Any] | None:
        last = len(self.blocks) - 1
        height = {"latest": last, "finalized": self.final}.get(number)
        height = int(number, 16) if height is None else height
        if height > last:
            return None
        block, at, _ = self.blocks[height]
        return {"number": hex(height), "hash": f"0x{block}", "timestamp": hex(at // 1000)}

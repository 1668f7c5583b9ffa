"""A front before a test's node, as a provider of nodes runs one. It counts calls, and refuses, lags and lies on
request. TRON's front has rules of its own."""

import asyncio
import json
import re
import urllib.request
from collections import Counter
from collections.abc import Callable
from typing import Any

from cambist.testing import FakeProvider, ProviderAnswer, ProviderRequest
from tests.chains.anvil import Anvil

Rule = Callable[[str, list[Any]], tuple[int, str] | None]
"""Maps a method and its parameters to the code and text of a refusal, or to None."""
Lie = Callable[[str, list[Any], Any], Any]
"""Maps a method, its parameters and the true result to the result that the front answers."""

_QUANTITY = re.compile(r"0x(0|[1-9a-f][0-9a-f]*)\Z")
_DATA = re.compile(r"(0x)?([0-9a-fA-F]{2})*\Z")


class Front(FakeProvider):
    """A provider of a node: POST at /jsonrpc."""

    def __init__(self, node: Anvil, *, key: str | None = None) -> None:
        super().__init__()
        self._node = node
        self._key = key
        self.calls: Counter[str] = Counter()
        self.refuse: Rule = lambda method, params: None
        self.lie: Lie = lambda method, params, result: result
        self.on("POST", "/jsonrpc", self._relayed)

    @property
    def address(self) -> str:
        """As a setting says it."""
        before = "" if self._key is None else f"{self._key}@"
        return f"{self.url.replace('://', f'://{before}')}/jsonrpc"

    def rule(self, method: str, params: list[Any]) -> tuple[int, str] | None:
        """Return the network's own refusal of a call, if any."""
        return None

    def is_let_in(self, request: ProviderRequest) -> bool:
        return self._key is None or request.headers.get("authorization", "").startswith("Basic ")

    async def _relayed(self, request: ProviderRequest) -> ProviderAnswer:
        if not self.is_let_in(request):
            return ProviderAnswer(status=401)
        if request.headers.get("content-type") != "application/json":
            return ProviderAnswer(status=415)
        asked = json.loads(request.body)
        method, params = asked["method"], asked["params"]
        assert asked["jsonrpc"] == "2.0"
        self.calls[method] += 1
        refusal = self.rule(method, params) or self.refuse(method, params)
        if refusal is not None:
            code, message = refusal
            error = {"code": code, "message": message, "data": "{}"}
            return ProviderAnswer.of_json({"jsonrpc": "2.0", "id": asked["id"], "error": error})
        try:
            said = await asyncio.to_thread(self._passed_on, request.body)
        except OSError:
            return ProviderAnswer(status=502)  # the node behind it is away
        if "result" in said:
            said["result"] = self.lie(method, params, said["result"])
        return ProviderAnswer.of_json(said)

    def _passed_on(self, body: bytes) -> Any:
        request = urllib.request.Request(self._node.url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())


class TronFront(Front):
    """TRON's own JSON-RPC: its methods, its tags, and its limits on blocks and addresses per call, with the texts and
    codes of its node (java-tron)."""

    _METHODS = ("eth_chainId", "eth_getBlockByNumber", "eth_getTransactionReceipt", "eth_getLogs", "eth_call")
    _SPAN = 5000
    _TOPICS = 1000

    def is_let_in(self, request: ProviderRequest) -> bool:
        return self._key is None or request.headers.get("tron-pro-api-key") == self._key

    def rule(self, method: str, params: list[Any]) -> tuple[int, str] | None:
        if method not in self._METHODS:
            return -32601, "the method does not exist / is not available"
        check = getattr(self, f"_of_{method}", None)
        wrong = None if check is None else check(*params)
        return None if wrong is None else (-32602, wrong)

    def _of_eth_getBlockByNumber(self, number: str, _: bool) -> str | None:  # noqa: N802 - named like the method
        return self._block(number)

    def _of_eth_getTransactionReceipt(self, tx_hash: str) -> str | None:  # noqa: N802
        return None if re.fullmatch("(0x)?[0-9a-fA-F]{64}", tx_hash) else "invalid hash value"

    def _of_eth_call(self, call: dict[str, str], tag: str) -> str | None:
        if tag != "latest":
            return "QUANTITY not supported, just support TAG as latest"
        return None if all(_DATA.match(call[name]) for name in ("to", "data")) else "invalid param value: invalid hex"

    def _of_eth_getLogs(self, wanted: dict[str, Any]) -> str | None:  # noqa: N802
        wrong = self._block(wanted["fromBlock"]) or self._block(wanted["toBlock"])
        if wrong is not None:
            return wrong
        first, last = int(wanted["fromBlock"], 16), int(wanted["toBlock"], 16)
        if first > last:
            return "please verify: fromBlock <= toBlock"
        if last - first > self._SPAN:
            return f"exceed max block range: {self._SPAN}"
        if not re.fullmatch("(0x)?[0-9a-fA-F]{40}", wanted["address"]):
            return f"invalid address at index 0: {wanted['address']}"
        for slot in wanted["topics"]:
            topics = slot if isinstance(slot, list) else [slot]
            if len(topics) > self._TOPICS:
                return f"exceed max topics: {self._TOPICS}"
            if any(topic is not None and not re.fullmatch("0x[0-9a-fA-F]{64}", topic) for topic in topics):
                return "invalid topic(s)"
        return None

    def _block(self, number: str) -> str | None:
        if number in ("pending", "safe"):
            return f"TAG {number} not supported"
        if number in ("latest", "earliest", "finalized"):
            return None
        return None if _QUANTITY.match(number) else "invalid block number"

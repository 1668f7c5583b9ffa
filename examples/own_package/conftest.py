"""What the shipped contract asks of whoever runs it: each adapter, and a hand on its provider, which is a fake here.

pytest --pyargs cambist.conformance.rates cambist.conformance.kyc \
    cambist.conformance.chain cambist.conformance.storage
"""

import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import httpx
import msgspec
import pytest
from deskadapters.chain import USDT, DeskChain
from deskadapters.kyc import DeskVerifier
from deskadapters.rates import DeskRates
from deskadapters.storage import DeskStorage

import cambist
from cambist.conformance import KIT_CATALOGUE, ChainBench, KycBench, RatesBench, StoragePlace, Uploads
from cambist.ports import InboundNotice, Network, TokenMove, TransactionState

TOKEN = "a-token-that-must-not-show"  # noqa: S105 - of a fake


class Fake(httpx.AsyncBaseTransport):
    """A provider in place of the network: it can be away, be silent, or lose the next answer."""

    away = False
    silent = False
    lose: bool | None = None
    """The next POST gets no answer: True, it is carried out; False, it is not."""

    def __init__(self, answer: Callable[[httpx.Request], httpx.Response]) -> None:
        self._answer = answer

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.away:
            raise httpx.ConnectError("no route", request=request)
        lose = None
        if request.method == "POST":
            lose, self.lose = self.lose, None
        if self.silent or lose is False:
            raise httpx.ReadTimeout("no answer", request=request)
        await request.aread()
        answer = self._answer(request)
        if lose:
            raise httpx.ReadTimeout("no answer", request=request)
        return answer


class DeskRatesBench(RatesBench):
    secrets = (TOKEN,)

    def __init__(self, tools: cambist.Tools) -> None:
        self.said = httpx.Response(503)
        self.source = self.made = DeskRates(tools, "https://desk.example", TOKEN, Fake(lambda _: self.said))

    async def say(self, rate: str) -> None:
        await self.say_nonsense(rate)

    async def say_nonsense(self, text: str) -> None:
        self.said = httpx.Response(200, text=f'{{"rub_per_usdt": {text}}}')

    async def be_silent(self) -> None:
        self.said = httpx.Response(503)

    async def refuse_key(self) -> None:
        self.said = httpx.Response(401)


class DeskKycBench(KycBench):
    secrets = (TOKEN,)

    def __init__(self, tools: cambist.Tools) -> None:
        self.checks: dict[str, dict[str, Any]] = {}
        self.fake = Fake(self._answer)
        self.verifier = self.made = DeskVerifier(tools, "https://kyc.example", TOKEN, self.fake)

    async def verify(self, operation: str) -> None:
        self.checks[operation]["status"] = "passed"

    async def fail(self, operation: str) -> None:
        self.checks[operation]["status"] = "refused"

    async def notice(self, operation: str) -> InboundNotice:
        body = json.dumps({"key": operation}).encode()
        signature = hmac.new(TOKEN.encode(), body, hashlib.sha256).hexdigest()
        return InboundNotice(headers={"x-desk-signature": signature}, body=body, query={}, address="203.0.113.5")

    async def lose_next_answer(self, *, done: bool) -> None:
        self.fake.lose = done

    async def be_silent(self) -> None:
        self.fake.silent = True

    async def be_away(self) -> None:
        self.fake.away = True

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            number = len(self.checks) + 1
            status = "form" if json.loads(request.content)["form"] else "begun"
            made = {"id": f"check-{number}", "status": status, "form_url": f"https://kyc.example/form/{number}"}
            return httpx.Response(200, json=self.checks.setdefault(request.headers["Idempotency-Key"], made))
        last = request.url.path.rpartition("/")[2]
        found = [check for key, check in self.checks.items() if last in (key, check["id"])]
        return httpx.Response(200, json=found[0]) if found else httpx.Response(404)


class DeskChainBench(ChainBench):
    secrets = (TOKEN,)
    networks = (Network.TRON,)

    def __init__(self) -> None:
        self.known: dict[str, dict[str, Any]] = {}
        self.fake = Fake(self._answer)
        self.watcher = self.made = DeskChain("https://node.example", TOKEN, self.fake)

    async def show(
        self,
        network: Network,  # noqa: ARG002 - the bench's signature
        tx_hash: str,
        state: TransactionState,
        moves: Sequence[TokenMove] = (),
    ) -> None:
        self.known.pop(tx_hash, None)
        if state is TransactionState.MISSING:
            return
        events = [
            {"index": place, "from": "Tone", "to": "Tother", "amount": move.units // 100, "contract": contract}
            for place, move in enumerate(moves)
            for contract in [USDT if move.genuine else "Tfake"]
        ]
        final, reverted = state is not TransactionState.IN_BLOCK, state is TransactionState.REVERTED
        self.known[tx_hash] = {"final": final, "reverted": reverted, "events": events}

    async def be_away(self) -> None:
        self.fake.away = True

    def _answer(self, request: httpx.Request) -> httpx.Response:
        found = self.known.get(request.url.path.rpartition("/")[2])
        return httpx.Response(404) if found is None else httpx.Response(200, json=found)


@pytest.fixture
async def rates_bench() -> AsyncIterator[RatesBench]:
    async with cambist.open() as service:
        bench = DeskRatesBench(service.tools())
        yield bench
        await bench.made.close()


@pytest.fixture
async def kyc_bench() -> AsyncIterator[KycBench]:
    async with cambist.open() as service:
        bench = DeskKycBench(msgspec.structs.replace(service.tools(), files=Uploads()))
        yield bench
        await bench.made.close()


@pytest.fixture
async def chain_bench() -> AsyncIterator[ChainBench]:
    bench = DeskChainBench()
    yield bench
    await bench.made.close()


@pytest.fixture
def place() -> StoragePlace:
    async def opened(clock: Any, kick: Any) -> DeskStorage:
        return DeskStorage(clock, kick, KIT_CATALOGUE)

    return StoragePlace(opened, is_shared=False)

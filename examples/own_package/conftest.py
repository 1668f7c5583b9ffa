"""Harnesses for the shipped contract tests: each adapter, and control of its fake provider. In this folder:

pip install 'cambist[testing]' -e '.[dev]'
pytest --pyargs cambist.conformance.rates cambist.conformance.kyc \
    cambist.conformance.chain cambist.conformance.storage
"""

import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from deskadapters.chain import USDT, DeskChain
from deskadapters.kyc import DeskVerifier
from deskadapters.rates import DeskRates
from deskadapters.storage import DeskStorage

import cambist
from cambist.conformance import (
    KIT_CATALOGUE,
    AskedCheck,
    ChainHarness,
    KycHarness,
    RatesHarness,
    StorageLocation,
    Uploads,
)
from cambist.ports import InboundNotification, Network, Purpose, TokenMove, TransactionState
from cambist.testing import FakeProvider, ProviderAnswer, ProviderFault, ProviderRequest

TOKEN = "a-token-that-must-not-show"  # noqa: S105 - of a fake


class DeskRatesHarness(RatesHarness):
    secrets = (TOKEN,)

    def __init__(self, tools: cambist.Tools, provider: FakeProvider) -> None:
        self.clock = tools.clock
        self.provider = provider
        self.said = ProviderAnswer(status=503)
        provider.on("GET", "/rate", lambda _: self.said)
        self.source = self.made = DeskRates(tools, provider.url, TOKEN)

    async def say(self, rate: str) -> None:
        await self.say_garbage(rate)

    async def say_garbage(self, text: str) -> None:
        self.said = ProviderAnswer(body=f'{{"rub_per_usdt": {text}}}'.encode())

    async def say_old(self, rate: str, age: timedelta) -> None:
        at = self.clock.now() - age
        self.said = ProviderAnswer(body=f'{{"rub_per_usdt": {rate}, "at": "{at.isoformat()}"}}'.encode())

    async def be_silent(self) -> None:
        self.said = ProviderAnswer(status=503)

    async def refuse_key(self) -> None:
        self.said = ProviderAnswer(status=401)


class DeskKycHarness(KycHarness):
    secrets = (TOKEN,)

    def __init__(self, tools: cambist.Tools, provider: FakeProvider) -> None:
        self.clock = tools.clock
        self.provider = provider
        self.checks: dict[str, dict[str, Any]] = {}
        self.people: dict[str, dict[str, Any]] = {}
        provider.on("POST", "/checks", self._begin)
        provider.on("GET", "/checks/by-key/{key}", lambda request: self._shown(request.parts["key"]))
        provider.on("GET", "/checks/{id}", lambda request: self._shown(request.parts["id"]))
        self.tools, self.fake = tools, provider
        self.verifiers: list[DeskVerifier] = []
        self.verifier = self.another()

    def another(self) -> DeskVerifier:
        self.verifiers.append(DeskVerifier(self.tools, self.fake.url, TOKEN))
        return self.verifiers[-1]

    async def verify(self, operation: str) -> None:
        self.checks[operation]["status"] = "passed"

    async def fail(self, operation: str) -> None:
        self.checks[operation]["status"] = "refused"

    async def withdraw(self, operation: str) -> None:
        await self.fail(operation)

    async def asked(self, operation: str) -> AskedCheck:
        person = self.people[operation]
        purposes = tuple(sorted(Purpose(each) for each in person["documents"]))
        return AskedCheck(phone=person["phone"], email=person["email"], purposes=purposes)

    async def notification(self, operation: str) -> InboundNotification:
        body = json.dumps({"key": operation}).encode()
        signature = hmac.new(TOKEN.encode(), body, hashlib.sha256).hexdigest()
        return InboundNotification(headers={"x-desk-signature": signature}, body=body, query={}, address="203.0.113.5")

    async def be_silent(self) -> None:
        self.fake.next(ProviderFault.LOST_AFTER, always=True)

    async def skew(self, span: timedelta) -> None:
        """Do nothing: the provider reports no time and uses none."""

    def _begin(self, request: ProviderRequest) -> ProviderAnswer:
        number = len(self.checks) + 1
        person = self.people.setdefault(request.headers["idempotency-key"], json.loads(request.body))
        status = "form" if person["form"] else "begun"
        made = {"id": f"check-{number}", "status": status, "form_url": f"https://kyc.example/form/{number}"}
        return ProviderAnswer.of_json(self.checks.setdefault(request.headers["idempotency-key"], made))

    def _shown(self, name: str) -> ProviderAnswer:
        found = [check for key, check in self.checks.items() if name in (key, check["id"])]
        return ProviderAnswer.of_json(found[0]) if found else ProviderAnswer(status=404)


class DeskChainHarness(ChainHarness):
    secrets = (TOKEN,)
    networks = (Network.TRON,)

    def __init__(self, provider: FakeProvider) -> None:
        self.provider = provider
        self.known: dict[str, dict[str, Any]] = {}
        provider.on("GET", "/transactions/{hash}", lambda request: self._shown(request.parts["hash"]))
        self.watcher = self.made = DeskChain(provider.url, TOKEN)

    async def parties(self, network: Network, tx_hash: str) -> Sequence[tuple[str, str]]:  # noqa: ARG002
        return [(event["from"], event["to"]) for event in self.known[tx_hash]["events"] if event["contract"] == USDT]

    async def show(
        self,
        network: Network,  # noqa: ARG002 - the harness's signature
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

    def _shown(self, tx_hash: str) -> ProviderAnswer:
        found = self.known.get(tx_hash)
        return ProviderAnswer(status=404) if found is None else ProviderAnswer.of_json(found)


@pytest.fixture
async def provider() -> AsyncIterator[FakeProvider]:
    async with FakeProvider() as opened:
        yield opened


@pytest.fixture
async def rates_harness(provider: FakeProvider) -> AsyncIterator[RatesHarness]:
    async with cambist.open() as service:
        harness = DeskRatesHarness(service.tools(), provider)
        yield harness
        await harness.made.close()


@pytest.fixture
async def kyc_harness(provider: FakeProvider) -> AsyncIterator[KycHarness]:
    async with cambist.open() as service:
        harness = DeskKycHarness(msgspec.structs.replace(service.tools(), files=Uploads()), provider)
        yield harness
        for verifier in harness.verifiers:
            await verifier.close()


@pytest.fixture
async def chain_harness(provider: FakeProvider) -> AsyncIterator[ChainHarness]:
    harness = DeskChainHarness(provider)
    yield harness
    await harness.made.close()


@pytest.fixture
def place() -> StorageLocation:
    async def opened(clock: Any, wake_up: Any) -> DeskStorage:
        return DeskStorage(clock, wake_up, KIT_CATALOGUE)

    return StorageLocation(opened, is_shared=False)

"""ATOL's adapter at its fake, for the conformance kit."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from cambist.adapters.clock import SystemClock
from cambist.adapters.ids import SeededIds
from cambist.adapters.receipts.atol.register import AtolRegister
from cambist.adapters.receipts.atol.settings import AtolSettings
from cambist.adapters.receipts.atol.tills import Till, Tills
from cambist.adapters.receipts.atol.wire import OPERATIONS
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.frontends.conformance.harnesses import AskedReceipt, RegisterHarness
from cambist.ports.clock import Clock
from cambist.ports.notifications import InboundNotification
from cambist.ports.receipts import ReceiptKind
from cambist.ports.tools import Tools
from cambist.testing import ProviderRequest
from tests.providers.atol.fake import EMAIL, GROUP, INN, LOGIN, PASSWORD, SITE, FakeAtol

TILL = Till(login=LOGIN, password=PASSWORD, group=GROUP, inn=INN, email=EMAIL, site=SITE)
_KINDS = {word: kind for kind, word in OPERATIONS.items()}
_PREPAID = 2


class AtolHarness(RegisterHarness):
    finds_lost = False
    signs_notifications = False
    secrets = (PASSWORD, "-secret")

    def __init__(self, fake: FakeAtol, clock: Clock, **settings: Any) -> None:
        self.fake = self.provider = fake
        self.clock = clock
        self.storage = MemoryStorage(clock)
        self.settings = {"format": "1.2" if fake.version == "v5" else "1.05", "registers": 1000, **settings}
        if fake.version == "v4":
            self.corrects = frozenset({ReceiptKind.SALE_CORRECTION})
        self.opened: list[AtolRegister] = []
        self.register = self.made = self.another()

    def another(self, *tills: Till) -> AtolRegister:
        tools: Any = Tools(
            storage=self.storage,
            clock=self.clock,
            ids=SeededIds(),
            base_url="https://pay.example",
            mode="live",
            files=None,  # type: ignore[arg-type]  # it reads none
        )
        merchants = {till.owner: till for till in tills}
        own = None if tills else TILL
        made = AtolRegister(tools, Tills(own, merchants), AtolSettings(url=self.fake.url, **self.settings))
        self.opened.append(made)
        return made

    def is_write(self, request: ProviderRequest) -> bool:
        return request.method == "POST" and not request.path.endswith("/getToken")

    async def write(self, operation: str) -> None:
        self.fake.write(operation)

    async def reject(self, operation: str, quoted: str) -> None:
        self.fake.fail(operation, text=quoted)

    async def asked(self, operation: str) -> Sequence[AskedReceipt]:
        return [self._asked(each) for each in self.fake.named(operation)]

    def _asked(self, document: dict[str, Any]) -> AskedReceipt:
        body = document["body"]
        kept: dict[str, Any] = {}
        if "items" in body:
            kept = {"items": [item["name"] for item in body["items"]], "email": body["client"].get("email")}
        prepaid = sum(each["sum"] for each in body["payments"] if each["type"] == _PREPAID)
        return AskedReceipt(
            kind=_KINDS[document["operation"]],
            total_kopecks=int(document["total"] * 100),
            prepaid_kopecks=int(prepaid * 100),
            **kept,
        )

    async def notification(self, operation: str) -> InboundNotification:
        [document] = self.fake.named(operation)
        body = json.dumps(self.fake.report_of(document)).encode()
        return InboundNotification(headers={}, body=body, query={}, address="127.0.0.1")


@asynccontextmanager
async def open_harness(version: str = "v5", clock: Clock | None = None, **settings: Any) -> AsyncIterator[AtolHarness]:
    clock = clock or SystemClock()
    async with FakeAtol(clock.now, version=version) as fake:
        harness = AtolHarness(fake, clock, **settings)
        try:
            yield harness
        finally:
            for each in harness.opened:
                await each.close()

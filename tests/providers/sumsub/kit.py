"""A verifier at a fake Sumsub, and the files that merchants uploaded."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import msgspec

from cambist.adapters.clock import VirtualClock
from cambist.adapters.kyc.sumsub.api import SumsubApi
from cambist.adapters.kyc.sumsub.rules import SumsubRules
from cambist.adapters.kyc.sumsub.verifier import SumsubVerifier
from cambist.adapters.provider_http import ProviderHttp
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.frontends.conformance.harnesses import AskedCheck, KycHarness
from cambist.ports.faults import Refused
from cambist.ports.files import StoredFile
from cambist.ports.kyc import CheckRequest, Document, Purpose
from cambist.ports.notifications import InboundNotification
from cambist.testing import ProviderFault, ProviderRequest
from tests.kyc_kit import JPEG, PNG
from tests.providers.sumsub.fake import LEVEL, NOTIFICATION_SECRET, SECRET, TOKEN, FakeSumsub

OPERATION = "kyc_0c7b2c44-93f4-4c58-9d3e-0f5a0b0f0001_1"
ADDRESS = Document(purpose=Purpose.ADDRESS, key="address", content_type="application/pdf")


class Files:
    """A file store of what lies in a dict."""

    def __init__(self, content: Mapping[str, bytes]) -> None:
        self.content = dict(content)

    def grant(
        self, key: str, content_type: str, max_bytes: int, expires_at: datetime, *, size: int | None = None
    ) -> str:
        raise NotImplementedError

    async def stat(self, key: str) -> StoredFile | None:
        content = self.content.get(key)
        return None if content is None else StoredFile(key=key, size=len(content))

    async def read(self, key: str) -> AsyncIterator[bytes]:
        if key not in self.content:
            raise Refused("there is no such file", reason="not_found")
        for start in range(0, len(self.content[key]), 50):
            yield self.content[key][start : start + 50]

    async def remove(self, key: str) -> None:
        self.content.pop(key, None)


class SumsubHarness(KycHarness):
    """The adapter at a fake sandbox, in one time."""

    secrets = (TOKEN, SECRET, NOTIFICATION_SECRET)

    def __init__(self, fake: FakeSumsub, clock: VirtualClock, **rules: Any) -> None:
        self.fake, self.clock, self.virtual = fake, clock, clock
        self.storage = MemoryStorage(clock)
        self.files = Files({"selfie": JPEG, "document": PNG, "address": b"%PDF-1.7\n"})
        self._rules = SumsubRules(**{"level": LEVEL, **rules})
        self.http = ProviderHttp("sumsub", fake.url, limit=15.0)
        self.verifier: Any = self.made()

    def made(self, **other: Any) -> SumsubVerifier:
        """Return another verifier over the same storage, as after a restart; or with `other` credentials or storage."""
        return SumsubVerifier(
            SumsubApi(self.http, other.get("token", TOKEN), other.get("secret", SECRET), self.clock),
            self._rules,
            NOTIFICATION_SECRET,
            other.get("storage", self.storage),
            self.clock,
            self.files,
        )

    def request(self, *, redirect: bool = False, **more: Any) -> CheckRequest:
        """A person with documents, or one for the form."""
        of_form = {"email": self.email, "user_type": self.user_type} if redirect else {"documents": self.documents}
        given: dict[str, Any] = {"operation": OPERATION, "phone": self.phone, "redirect": redirect, **of_form}
        return CheckRequest(**(given | more))

    def count(self, method: str, ending: str = "") -> int:
        """Return the number of such requests."""
        return sum(request.method == method and request.path.endswith(ending) for request in self.fake.requests)

    async def verify(self, operation: str) -> None:
        self.fake.decide(operation, "GREEN")

    async def fail(self, operation: str) -> None:
        self.fake.decide(operation, "RED", "FINAL", ("IDENTITY",))

    async def withdraw(self, operation: str) -> None:
        await self.fail(operation)

    async def asked(self, operation: str) -> AskedCheck:
        applicant = self.fake.world.named(operation)
        kinds = {self._rules.kind(each): each.purpose for each in (*self.documents, ADDRESS)}
        return AskedCheck(
            phone=applicant.told.get("phone", msgspec.UNSET),
            purposes=tuple(sorted(kinds[image.kind] for image in applicant.images)),
        )

    async def notification(self, operation: str) -> InboundNotification:
        return self.fake.notification(operation)

    async def lose_next_answer(self, *, done: bool) -> None:
        if done:
            self.fake.next(ProviderFault.LOST_AFTER, matching=ending("/status/pending"))
        else:
            self.fake.next(ProviderFault.LOST_BEFORE, matching=ending("/applicants"))

    async def be_silent(self) -> None:
        self.fake.next(ProviderFault.LOST_BEFORE, always=True)

    async def be_away(self) -> None:
        self.fake.be_away()


def ending(path: str) -> Any:
    """Return a filter for requests whose path ends so."""

    def matching(request: ProviderRequest) -> bool:
        return request.path.endswith(path)

    return matching


@asynccontextmanager
async def open_harness(token: str = TOKEN, **rules: Any) -> AsyncIterator[SumsubHarness]:
    clock = VirtualClock()
    async with FakeSumsub(clock.now, token=token) as fake:
        harness = SumsubHarness(fake, clock, **rules)
        yield harness
        await harness.verifier.close()


def without(request: CheckRequest, purpose: Purpose) -> CheckRequest:
    kept = tuple(document for document in request.documents if document.purpose is not purpose)
    return msgspec.structs.replace(request, documents=kept)

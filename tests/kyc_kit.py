"""Apps whose merchant requires KYC, and the ways in that the merchant, the client's browser and the verifier have."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from cambist.adapters.kyc.simulator import SimulatedVerifier
from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.kyc.clients import Client, operation_of
from cambist.core.domain.kyc.kyc import Upload
from cambist.core.usecases.accounts.accounts import NewAccount, create_account, set_settings
from cambist.core.usecases.kyc.gate import find_client
from cambist.core.usecases.kyc.results import CHECKS, on_notification
from cambist.core.usecases.operations.engine import conclude
from cambist.frontends.app.own_adapters import Adapters
from cambist.ports.bundle import Ports
from cambist.ports.kyc import Check, CheckStatus, Verdict
from cambist.ports.notes import ProviderNote
from tests.apps import TestApp, open_test_app

PHONE = "+79001234567"
OTHER = "+79001234568"
JPEG = b"\xff\xd8\xff\xe0" + bytes(100)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)
PDF = b"%PDF-1.7\n" + bytes(100)
FORM = {"email": "client@example.com", "user_type": "individual"}


async def apply(ports: Ports, client: Client, check: Check) -> Client:
    """Apply this answer of the verifier to the client's check, and return the client."""
    await conclude(CHECKS, ports, operation_of(client), check)
    return await ports.storage.get(Client, client.id) or client


class KycApp:
    """An app with a merchant that requires KYC, in live mode."""

    def __init__(self, app: TestApp) -> None:
        self.app = app
        self.ports: Ports = app.ports
        self.account: NewAccount = app.account

    @property
    def verifier(self) -> SimulatedVerifier:
        assert isinstance(self.ports.kyc, SimulatedVerifier)
        return self.ports.kyc

    async def set(self, **settings: str) -> None:
        await set_settings(self.ports, self.account.account_id, settings)

    async def other_account(self) -> NewAccount:
        """A second merchant, whose keys `self.app.account` then holds."""
        other = await create_account(self.ports, "Other")
        await set_settings(self.ports, other.account_id, {"kyc": "required"})
        self.app.account = other
        return other

    async def post(self, path: str, body: Any = None, mode: str = "live") -> httpx.Response:
        return await self.app.http.post(f"/api/v1{path}", json=body, headers=self.app.headers(mode))

    async def check(self, phone: str = PHONE) -> dict[str, Any]:
        response = await self.post("/kyc/check", {"phone": phone})
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    async def grant(self, content_type: str = "image/jpeg") -> dict[str, Any]:
        response = await self.post("/kyc/upload-url", {"content_type": content_type})
        assert response.status_code == 200, response.text
        grant: dict[str, Any] = response.json()
        return grant

    async def put(self, url: str, content: Any = JPEG, content_type: str | None = "image/jpeg") -> httpx.Response:
        """Upload as the client's browser does: without an API key and from another origin."""
        headers = {"Origin": "https://shop.example"}
        if content_type is not None:
            headers["Content-Type"] = content_type
        return await self.app.http.put(url, content=content, headers=headers)

    async def uploaded(self, content: bytes = JPEG, content_type: str = "image/jpeg") -> str:
        """The key of a document that was uploaded."""
        grant = await self.grant(content_type)
        response = await self.put(grant["upload_url"], content, content_type)
        assert response.status_code == 200, response.text
        key: str = grant["file_key"]
        return key

    async def documents(self, phone: str = PHONE) -> dict[str, str]:
        """Return the body of a registration with both documents uploaded."""
        return {
            "phone": phone,
            "selfie_key": await self.uploaded(),
            "document_key": await self.uploaded(PNG, "image/png"),
        }

    async def register(self, body: dict[str, Any] | None = None) -> httpx.Response:
        return await self.post("/kyc/register", await self.documents() if body is None else body)

    async def client(self, phone: str = PHONE, mode: Mode = Mode.LIVE) -> Client:
        async with self.ports.storage.unit() as unit:
            client = await find_client(self.ports, unit, self.account.account_id, mode, phone)
        assert client is not None
        return client

    async def upload(self, key: str) -> Upload | None:
        async with self.ports.storage.unit() as unit:
            return await unit[Upload].get(key)

    async def decide(self, status: CheckStatus, phone: str = PHONE, *, told: bool = True, **more: Any) -> None:
        """Let the verifier decide the client's present check. Handle its notifications if `told`."""
        operation = operation_of(await self.client(phone))
        notifications = await self.verifier.simulate(operation, Verdict(status=status, **more))
        for notification in notifications if told else ():
            await on_notification(self.ports, notification)

    async def events(self, phone: str = PHONE) -> list[tuple[str, str]]:
        """Return status and previous status of the client's events, in order."""
        found = await self.app.events((await self.client(phone)).id)
        return [(event["status"], event["previous_status"]) for event in found]

    def twist(self, call: str, *endings: Ending) -> None:
        """Let the next calls of a kind end so."""
        getattr(self.verifier.script, call).extend(Twist(ending=ending) for ending in endings)

    async def begun(self) -> int:
        """Return how many checks the verifier has begun in total."""
        return sum([len(batch) async for batch in self.ports.storage.scan(ProviderNote, provider="simulator")])


@asynccontextmanager
async def open_kyc_app(
    folder: Path, *, adapters: Adapters | None = None, database_url: str = "memory://", **settings: str
) -> AsyncIterator[KycApp]:
    """`settings` are the account's."""
    async with open_test_app(data_dir=folder, adapters=adapters, database_url=database_url) as app:
        opened = KycApp(app)
        await opened.set(**{"kyc": "required", **settings})
        yield opened


def code(response: httpx.Response) -> tuple[int, str]:
    """Return status and code of a refusal."""
    return response.status_code, response.json()["error"]["code"]

"""A merchant and a payer over real HTTP."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import aiohttp
import msgspec

from cambist.core.usecases.accounts.accounts import KeyPair
from tests.patience import HANGS


@dataclass(frozen=True)
class Answer:
    """An answer, read to its end."""

    status: int
    headers: Mapping[str, str]
    """Looked up without regard to case."""
    text: str

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.text)


class Merchant:
    """Calls the API with one key pair. `more` headers go with every request."""

    def __init__(self, client: aiohttp.ClientSession, base: str, pair: KeyPair, more: Mapping[str, str] | None) -> None:
        self.client = client
        self.base = base
        self._headers = {"X-Api-Key": pair.api_key, "X-Api-Secret": pair.api_secret, **(more or {})}

    async def ask(
        self, method: str, path: str, *, key: str | None = None, body: Any = None, secret: str | None = None
    ) -> Answer:
        """A request below /api/v1; with `secret`, with another API secret than ours."""
        headers = dict(self._headers)
        if key is not None:
            headers["Idempotency-Key"] = key
        if secret is not None:
            headers["X-Api-Secret"] = secret
        async with self.client.request(method, f"{self.base}/api/v1{path}", json=body, headers=headers) as answer:
            return Answer(answer.status, answer.headers, await answer.text())

    async def create(self, key: str | None = None, **body: Any) -> Answer:
        """POST /payments, for 100 RUB unless `body` says otherwise, with a fresh key unless one is given."""
        return await self.ask("POST", "/payments", key=key or str(uuid4()), body={"amount_rub": "100.00", **body})

    async def created(self, **body: Any) -> dict[str, Any]:
        """A new payment's object."""
        answer = await self.create(**body)
        assert answer.status == 201, answer.text
        payment: dict[str, Any] = answer.json
        return payment

    async def simulate(self, payment_id: str, **body: Any) -> Answer:
        """POST /sandbox/payments/{id}/simulate."""
        return await self.ask("POST", f"/sandbox/payments/{payment_id}/simulate", body=body)

    async def paid(self, **body: Any) -> dict[str, Any]:
        """A payment that was created and paid."""
        answer = await self.simulate((await self.created(**body))["id"], outcome="paid")
        assert answer.status == 200, answer.text
        payment: dict[str, Any] = answer.json
        return payment


@asynccontextmanager
async def merchant(base: str, pair: KeyPair, more: Mapping[str, str] | None = None) -> AsyncIterator[Merchant]:
    """A merchant with connections of its own, as many as it wants."""
    timeout = aiohttp.ClientTimeout(total=HANGS)
    async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as client:
        yield Merchant(client, base, pair, more)

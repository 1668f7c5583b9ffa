"""A merchant's client in a sandbox, once sync and once async; the same stories run with both."""

import inspect
from collections.abc import AsyncIterable, Iterable, Iterator
from typing import Any

import pytest

from cambist.frontends.client import AsyncClient, Client
from cambist.frontends.testing import Sandbox, SandboxOptions, Stage, open_stage


class Merchant:
    """One face of the client: `now` calls it, whichever it is."""

    def __init__(self, sandbox: Sandbox, face: str) -> None:
        self.sandbox = sandbox
        self.face = face
        self.client: Any = sandbox.client if face == "sync" else sandbox.async_client

    def live(self) -> Any:
        """The same face with the live keys: KYC and delivery proofs have no test mode."""
        pair = self.sandbox._account.live
        if self.face == "sync":
            return Client(self.sandbox.base_url, pair.api_key, pair.api_secret, http=self.sandbox.http())
        return AsyncClient(self.sandbox.base_url, pair.api_key, pair.api_secret, http=self.sandbox.async_http())


async def now(result: Any) -> Any:
    """Return the answer of a call, sync or async."""
    return await result if inspect.isawaitable(result) else result


async def every(walk: Iterable[Any] | AsyncIterable[Any]) -> list[Any]:
    """Return the elements of a paged list, sync or async."""
    if isinstance(walk, AsyncIterable):
        return [each async for each in walk]
    return list(walk)


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    with open_stage() as opened:
        yield opened


@pytest.fixture
def sandbox(stage: Stage) -> Iterator[Sandbox]:
    with stage.open_sandbox(SandboxOptions()) as opened:
        yield opened


@pytest.fixture(params=["sync", "async"])
def merchant(request: pytest.FixtureRequest, sandbox: Sandbox) -> Merchant:
    return Merchant(sandbox, request.param)

"""One client does not take the event streams of all payers (docs/limits.md "Sizes")."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from uuid import uuid4

import httpx
import pytest

from cambist.core.usecases.accounts import accounts
from cambist.frontends.http.edge.streams import PER_ADDRESS, PER_PAGE, Seat, WindowStreams
from cambist.frontends.server.server import running
from cambist.frontends.settings.settings import Settings
from tests.tables import table


@asynccontextmanager
async def a_service_with_payments(count: int) -> AsyncIterator[tuple[httpx.AsyncClient, list[str]]]:
    """A client, and the addresses of the event streams of so many payments."""
    async with (
        running(Settings(database_url="memory://", port=0), works=False) as service,
        httpx.AsyncClient(base_url=service.app.settings.base_url) as client,
    ):
        account = await accounts.create_account(service.app.ports, "Merchant")
        keys = {"X-Api-Key": account.test.api_key, "X-Api-Secret": account.test.api_secret}
        urls = []
        for _ in range(count):
            made = await client.post(
                "/api/v1/payments",
                json={"amount_rub": "100.00"},
                headers={**keys, "Idempotency-Key": str(uuid4())},
            )
            urls.append(f"{made.json()['payment_url']}/events")
        yield client, urls


async def opened(client: httpx.AsyncClient, held: AsyncExitStack, url: str) -> int:
    """The status; a stream stays open until `held` ends."""
    answer = await held.enter_async_context(client.stream("GET", url))
    if answer.status_code == 200:
        heard = answer.aiter_bytes()
        held.push_async_callback(heard.aclose)  # type: ignore[attr-defined]  # it is a generator
        await anext(heard)
    return answer.status_code


async def test_a_payment_has_eight_streams_and_others_have_theirs() -> None:
    async with a_service_with_payments(2) as (client, urls), AsyncExitStack() as held:
        statuses = [await opened(client, held, urls[0]) for _ in range(PER_PAGE + 2)]
        assert statuses == [200] * PER_PAGE + [503, 503]
        assert await opened(client, held, urls[1]) == 200


async def test_an_address_has_thirty_streams_and_who_leaves_makes_room() -> None:
    async with a_service_with_payments(5) as (client, urls), AsyncExitStack() as held:
        one, rest = urls[0], [url for url in urls[1:] for _ in range(PER_PAGE)]
        async with AsyncExitStack() as left:
            assert await opened(client, left, one) == 200
            assert [await opened(client, held, url) for url in rest[: PER_ADDRESS - 1]] == [200] * (PER_ADDRESS - 1)
            assert await opened(client, held, rest[PER_ADDRESS]) == 503
        for _ in range(50):  # the service learns of the end of a connection when it reads it
            if await opened(client, held, rest[PER_ADDRESS]) == 200:
                break
        else:
            pytest.fail("nobody was let in after one had left")


@table("other", [Seat(page="b", address="a"), Seat(page="a", address="b")], ids=["page", "address"])
def test_closed_stream_is_forgotten(other: Seat) -> None:
    streams = WindowStreams()
    with streams.taken(Seat(page="a", address="a")), streams.taken(other):
        assert streams.open == 2
    assert (streams.open, len(streams._pages), len(streams._addresses)) == (0, 0, 0)

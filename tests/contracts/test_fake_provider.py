"""The fake provider fails as scripted, seen through the HTTP clients that adapters use (docs/adapters.md "A provider
that fails")."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime

import aiohttp
import httpx
import pytest

from cambist.frontends.fake_provider.provider import BODY_LIMIT, CONNECTION_LIMIT, KEPT_REQUESTS
from cambist.testing import FakeProvider, ProviderAnswer, ProviderFault, ProviderRequest, is_read, is_write

SECRET = "a-token-that-must-not-show"
Answered = tuple[int, bytes, dict[str, str]]
Ask = Callable[..., Awaitable[Answered]]


class NoAnswer(Exception):
    """The client raised its error for a missing or cut answer."""


class NoConnection(Exception):
    """The client says that nothing was sent."""


async def by_httpx(method: str, url: str, body: bytes = b"{}") -> Answered:
    headers = {"Authorization": f"Bearer {SECRET}"}
    async with httpx.AsyncClient(timeout=60) as http:
        try:
            answer = await http.request(method, url, content=body if method == "POST" else None, headers=headers)
        except httpx.ConnectError as error:
            raise NoConnection from error
        except httpx.HTTPError as error:
            raise NoAnswer from error
        return answer.status_code, answer.content, dict(answer.headers)


async def by_aiohttp(method: str, url: str, body: bytes = b"{}") -> Answered:
    headers = {"Authorization": f"Bearer {SECRET}"}
    data = body if method == "POST" else None
    async with aiohttp.ClientSession() as session:
        try:
            async with session.request(method, url, data=data, headers=headers, allow_redirects=False) as answer:
                shown = {name.lower(): value for name, value in answer.headers.items()}
                return answer.status, await answer.read(), shown
        except aiohttp.ClientConnectorError as error:
            raise NoConnection from error
        except aiohttp.ClientError as error:
            raise NoAnswer from error


@pytest.fixture(params=[by_httpx, by_aiohttp])
def ask(request: pytest.FixtureRequest) -> Ask:
    client: Ask = request.param
    return client


class Books(FakeProvider):
    """A service that records the requests."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[bytes] = []
        self.on("POST", "/invoices", self.make)
        self.on("GET", "/invoices/{reference}", self.show)

    def make(self, request: ProviderRequest) -> ProviderAnswer:
        self.made.append(request.body)
        return ProviderAnswer.of_json({"id": f"inv-{len(self.made)}"}, 201)

    async def show(self, request: ProviderRequest) -> ProviderAnswer:
        return ProviderAnswer.of_json({"id": request.parts["reference"], "expand": request.query.get("expand")})


@pytest.fixture
async def provider() -> AsyncIterator[Books]:
    async with Books() as opened:
        yield opened


async def test_fake_answers_by_its_handlers_and_keeps_the_requests(provider: Books, ask: Ask) -> None:
    status, body, _ = await ask("POST", f"{provider.url}/invoices", b'{"amount": 1}')
    assert (status, json.loads(body)) == (201, {"id": "inv-1"})
    status, body, _ = await ask("GET", f"{provider.url}/invoices/inv%2D1?expand=a%20b")
    assert (status, json.loads(body)) == (200, {"id": "inv-1", "expand": "a b"})
    assert (await ask("GET", f"{provider.url}/elsewhere"))[0] == 404
    first, second, _ = provider.requests
    assert (first.method, first.path, first.body) == ("POST", "/invoices", b'{"amount": 1}')
    assert first.headers["authorization"] == f"Bearer {SECRET}"
    assert (second.path, second.query) == ("/invoices/inv-1", {"expand": "a b"})


F = ProviderFault
_NO_ANSWER = {F.LOST_BEFORE, F.LOST_AFTER, F.CUT_IN_HEAD, F.CUT_IN_BODY, F.ENDLESS}
_STATUSES = {
    F.UNAUTHORIZED: 401,
    F.FORBIDDEN: 403,
    F.BUSY: 429,
    F.SERVER_ERROR: 500,
    F.BAD_GATEWAY: 502,
    F.OVERLOADED: 503,
    F.TIMED_OUT: 504,
    F.REDIRECT: 302,
    F.REDIRECT_WITH_BODY: 307,
}


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("fault", ProviderFault)
async def test_each_fault_is_met_by_one_call_and_done_as_it_says(
    provider: Books, ask: Ask, fault: ProviderFault, method: str
) -> None:
    url = f"{provider.url}/invoices" if method == "POST" else f"{provider.url}/invoices/inv-1"
    provider.next(fault, always=method == "GET")  # aiohttp itself repeats a GET without an answer
    if fault in _NO_ANSWER:
        with pytest.raises(NoAnswer):
            await ask(method, url)
    else:
        assert (await ask(method, url))[0] == _STATUSES.get(fault, 200)
    if method == "POST":
        assert len(provider.requests) == 1, "the client sent it again unseen"
        assert len(provider.made) == fault.done
    else:
        provider.recover()
    assert (await ask(method, url))[0] in (200, 201)


_READABLE = [F.OTHER_JSON, F.JSON_WITHOUT_FIELDS, F.NULL_FIELDS, F.HUGE]
_UNREADABLE = [F.HTML, F.NO_BODY, F.BROKEN_JSON, F.WRONG_CHARSET]


@pytest.mark.parametrize("fault", [*_READABLE, *_UNREADABLE])
async def test_a_good_status_has_a_body_that_is_no_answer(provider: Books, ask: Ask, fault: ProviderFault) -> None:
    provider.next(fault)
    _, body, _ = await ask("POST", f"{provider.url}/invoices")
    assert body != b'{"id": "inv-1"}'
    if fault in _READABLE:
        json.loads(body)
    else:
        with pytest.raises(ValueError, match=r"."):
            json.loads(body)


def test_each_fault_is_in_one_of_these_tables() -> None:
    tables = [*_NO_ANSWER, *_STATUSES, *_READABLE, *_UNREADABLE]
    assert len(tables) == len(set(tables)) == len(ProviderFault)


@pytest.mark.parametrize(
    ("said", "shown"),
    [(7, "7"), (datetime(2026, 8, 8, 12, 0, tzinfo=UTC), "Sat, 08 Aug 2026 12:00:00 GMT")],
)
@pytest.mark.parametrize("fault", [F.BUSY, F.OVERLOADED])
async def test_fault_names_the_time_to_retry(
    provider: Books, ask: Ask, fault: ProviderFault, said: int | datetime, shown: str
) -> None:
    provider.next(fault, retry_after=said)
    status, _, headers = await ask("POST", f"{provider.url}/invoices")
    assert (status, headers["retry-after"]) == (_STATUSES[fault], shown)


@pytest.mark.parametrize("done", [True, False])
async def test_the_test_says_whether_it_was_done(provider: Books, ask: Ask, done: bool) -> None:
    for problem in (F.SERVER_ERROR, F.CUT_IN_BODY, ProviderAnswer(status=418)):
        provider.next(problem, done=done)
    for expected in (500, None, 418):
        if expected is None:
            with pytest.raises(NoAnswer):
                await ask("POST", f"{provider.url}/invoices")
        else:
            assert (await ask("POST", f"{provider.url}/invoices"))[0] == expected
    assert len(provider.made) == 3 * done


async def test_a_fault_waits_for_the_call_that_it_is_for(provider: Books, ask: Ask) -> None:
    provider.next(F.SERVER_ERROR, matching=is_write)
    provider.next(F.FORBIDDEN, matching=lambda request: request.path == "/invoices/2", always=True)
    assert (await ask("GET", f"{provider.url}/invoices/1"))[0] == 200
    assert (await ask("GET", f"{provider.url}/invoices/2"))[0] == 403
    assert (await ask("POST", f"{provider.url}/invoices"))[0] == 500
    assert (await ask("POST", f"{provider.url}/invoices"))[0] == 201
    assert (await ask("GET", f"{provider.url}/invoices/2"))[0] == 403
    provider.recover()
    assert (await ask("GET", f"{provider.url}/invoices/2"))[0] == 200


@pytest.mark.parametrize("done", [True, False])
async def test_a_held_call_goes_on_when_it_is_released(provider: Books, ask: Ask, done: bool) -> None:
    held = provider.hold_next(matching=is_write, done=done)
    call = asyncio.ensure_future(ask("POST", f"{provider.url}/invoices"))
    await held.arrived()
    assert len(provider.made) == done
    assert (await ask("GET", f"{provider.url}/invoices/1"))[0] == 200, "the others do not wait"
    await held.release()
    assert (await call)[0] == 201
    assert len(provider.made) == 1


@pytest.mark.parametrize("done", [True, False])
async def test_a_held_call_is_done_though_nobody_listens_any_more(provider: Books, ask: Ask, done: bool) -> None:
    held = provider.hold_next(done=done)
    call = asyncio.ensure_future(ask("POST", f"{provider.url}/invoices"))
    await held.arrived()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await held.release()
    assert len(provider.made) == 1


async def test_away_no_connection_is_made_and_then_it_is_back_at_its_port(provider: Books, ask: Ask) -> None:
    url = provider.url
    for _ in range(2):
        provider.be_away()
        with pytest.raises(NoConnection):
            await ask("POST", f"{url}/invoices")
        await provider.come_back()
        assert provider.url == url
        assert (await ask("POST", f"{url}/invoices"))[0] == 201
    assert len(provider.made) == 2


async def test_a_body_in_pieces_is_read_whole(provider: Books) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"one "
        yield b"two"

    async with httpx.AsyncClient() as http:
        await http.post(f"{provider.url}/invoices", content=pieces())
    assert provider.made == [b"one two"]


async def test_no_secret_shows(provider: Books, ask: Ask) -> None:
    await ask("POST", f"{provider.url}/invoices?key={SECRET}", SECRET.encode())
    shown = repr(provider) + repr(provider.requests) + repr(ProviderAnswer(body=SECRET.encode()))
    assert SECRET not in shown
    assert "POST /invoices" in shown


async def test_error_of_a_handler_is_raised_at_the_end(ask: Ask) -> None:
    def broken(_: ProviderRequest) -> ProviderAnswer:
        raise LookupError("the fake is wrong")

    async def tried() -> None:
        async with FakeProvider() as provider:
            provider.on("GET", "/", broken)
            assert (await ask("GET", f"{provider.url}/"))[0] == 500

    with pytest.raises(LookupError, match="the fake is wrong"):
        await tried()


async def test_a_body_over_its_bound_is_not_read(provider: Books) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(provider.url.rpartition(":")[2]))
    writer.write(b"POST /invoices HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (BODY_LIMIT + 1))
    assert (await reader.read()).startswith(b"HTTP/1.1 413 ")
    writer.close()
    assert provider.made == []


async def test_connections_and_what_is_kept_have_a_bound(provider: Books) -> None:
    port = int(provider.url.rpartition(":")[2])
    held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(CONNECTION_LIMIT)]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    assert await reader.read() == b""
    for each in (writer, *(opened for _, opened in held)):
        each.close()
    assert provider.requests.maxlen == KEPT_REQUESTS


@pytest.mark.parametrize("sent", [b"garbage\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"x" * 100_000])
async def test_request_that_is_no_http_gets_no_answer(provider: Books, ask: Ask, sent: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(provider.url.rpartition(":")[2]))
    writer.write(sent)
    with suppress(ConnectionResetError):  # closed before all was read
        assert await reader.read() == b""
    writer.close()
    assert (await ask("GET", f"{provider.url}/invoices/1"))[0] == 200


def test_reads_and_writes_are_distinguished_by_method() -> None:
    told = {
        method: is_read(ProviderRequest(method=method, target="/", path="/", query={}, headers={}, body=b""))
        for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH")
    }
    assert [method for method, reads in told.items() if reads] == ["GET", "HEAD"]

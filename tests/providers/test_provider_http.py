"""HTTP to providers: the outcome of an exchange, and the secrets that never show (docs/adapters.md "A bank: three
outcomes")."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import msgspec
import pytest

from cambist.adapters.provider_http import Answer, ProviderHttp, checked_base
from cambist.ports import NotConfigured, OutcomeUnknown, Unavailable
from cambist.testing import FakeProvider, ProviderAnswer, ProviderFault
from tests.tables import table

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


class Shown(msgspec.Struct):
    id: str


@pytest.fixture
async def provider() -> AsyncIterator[FakeProvider]:
    async with FakeProvider() as opened:
        for method in ("GET", "POST"):
            opened.on(method, "/things", lambda _: ProviderAnswer.of_json({"id": "t-1"}))
        yield opened


@pytest.fixture
async def http(provider: FakeProvider) -> AsyncIterator[ProviderHttp]:
    opened = ProviderHttp("desk", f"{provider.url}/", limit=5, headers={"Authorization": "Bearer hunter2"})
    yield opened
    await opened.close()


async def read(http: ProviderHttp) -> Answer:
    return await http.call("GET", "/things", writes=False, query={"phone": "+79991234567", "a b": "ё&"})


async def write(http: ProviderHttp) -> Answer:
    return await http.call("POST", "/things", writes=True, body=b'{"phone":"+79991234567"}')


class TestARequest:
    async def test_a_large_body_goes_as_it_is(self) -> None:
        """Documents of megabytes: in parts, but with their length, because signatures are over these very bytes."""
        async with FakeProvider(body_limit=4_000_000) as provider:
            provider.on("POST", "/things", lambda _: ProviderAnswer.of_json({"id": "t-1"}))
            large = ProviderHttp("desk", provider.url, limit=5)
            body = bytes(range(256)) * 8_000
            await large.call("POST", "/things", writes=True, body=body, headers={"Content-Type": "image/png"})
            [request] = provider.requests
            assert request.body == body
            assert (request.headers["content-length"], request.headers["content-type"]) == (f"{len(body)}", "image/png")
            await large.close()


class TestAnAnswer:
    async def test_is_whole_whatever_its_status(self, provider: FakeProvider, http: ProviderHttp) -> None:
        """The adapter interprets the status: some providers refuse with 200, others with 400."""
        for fault, status in ((ProviderFault.REDIRECT, 302), (ProviderFault.SERVER_ERROR, 500)):
            provider.next(fault)
            assert (await write(http)).status == status
        assert (await write(http)).decoded(Shown).id == "t-1"

    async def test_follows_the_request_as_it_was_asked(self, provider: FakeProvider, http: ProviderHttp) -> None:
        await read(http)
        await write(http)
        asked, sent = provider.requests
        assert asked.query == {"phone": "+79991234567", "a b": "ё&"}
        assert sent.body == b'{"phone":"+79991234567"}'
        assert {each.headers["authorization"] for each in (asked, sent)} == {"Bearer hunter2"}
        assert "accept-encoding" not in asked.headers or asked.headers["accept-encoding"] == "identity"

    @table("body", [b"", b"[]", b"{}", b'{"id": 1}', b"[" * 100_000, b"\xff", b'{"id": "t'])
    def test_answer_of_another_shape_raises_the_calls_own_fault(self, body: bytes) -> None:
        for fault in (OutcomeUnknown, Unavailable):
            answer = Answer(status=200, headers={}, body=body, unreadable=fault, name="desk")
            with pytest.raises(fault):
                answer.decoded(Shown)

    @table(
        ("said", "seconds"),
        [
            ("7", 7.0),
            ("9" * 30, 86400.0),
            ("Mon, 23 Nov 2026 12:00:30 GMT", 30.0),
            ("Mon, 23 Nov 2026 11:00:00 GMT", 0.0),
            *((said, None) for said in ("", "-1", "soon", "٣", "Mon, 23 Nov 2026 12:00:30")),
        ],
    )
    def test_may_say_how_long_to_wait(self, said: str, seconds: float | None) -> None:
        answer = Answer(status=429, headers={"retry-after": said}, body=b"", unreadable=Unavailable, name="desk")
        assert answer.retry_after(NOW) == seconds


class TestNoAnswer:
    @pytest.mark.parametrize(
        "fault",
        [
            ProviderFault.LOST_BEFORE,
            ProviderFault.LOST_AFTER,
            ProviderFault.CUT_IN_HEAD,
            ProviderFault.CUT_IN_BODY,
            ProviderFault.HUGE,
            ProviderFault.ENDLESS,
        ],
    )
    async def test_fault_of_a_write_is_unknown_and_of_a_read_unavailable(
        self, provider: FakeProvider, http: ProviderHttp, fault: ProviderFault
    ) -> None:
        provider.next(fault, always=True)
        with pytest.raises(OutcomeUnknown):
            await write(http)
        with pytest.raises(Unavailable):
            await read(http)

    async def test_no_connection_means_that_nothing_was_sent(self, provider: FakeProvider, http: ProviderHttp) -> None:
        provider.be_away()
        with pytest.raises(Unavailable):
            await write(http)

    async def test_within_the_limit_is_unknown(self, provider: FakeProvider) -> None:
        held = provider.hold_next()
        quick = ProviderHttp("desk", provider.url, limit=0.05)
        with pytest.raises(OutcomeUnknown, match=r"within 0\.05 s"):
            await write(quick)
        await held.release()
        await quick.close()

    async def test_after_close_nothing_is_sent(self, provider: FakeProvider, http: ProviderHttp) -> None:
        await http.close()
        await http.close()
        with pytest.raises(Unavailable):
            await write(http)
        assert not provider.requests

    async def test_call_in_flight_at_close_has_an_unknown_outcome(
        self, provider: FakeProvider, http: ProviderHttp
    ) -> None:
        held = provider.hold_next()
        sending = asyncio.create_task(write(http))
        await held.arrived()
        await http.close()
        with pytest.raises(OutcomeUnknown):
            await sending
        await held.release()

    async def test_faults_do_not_quote_the_request(self, provider: FakeProvider, http: ProviderHttp) -> None:
        """Phones stand in queries and bodies, credentials in headers, and faults go to the log."""
        provider.next(ProviderFault.LOST_AFTER, always=True)
        for call in (read, write):
            with pytest.raises((OutcomeUnknown, Unavailable)) as caught:
                await call(http)
            told = f"{caught.value!r} {caught.value.__cause__!r} {http!r}"
            assert not any(secret in told for secret in ("9991234567", "hunter2", "things"))
            assert caught.value.__suppress_context__


class TestAnAddress:
    @table(
        "url",
        [
            "https://api.desk.example/v3",
            "https://api.desk.example:8443/v3/",
            "http://127.0.0.1:8080",
            "http://localhost/x",
            "http://[::1]:1",
        ],
    )
    def test_is_of_tls_or_of_this_machine(self, url: str) -> None:
        assert checked_base("desk", url) == url.rstrip("/")

    @table(
        "url",
        [
            "http://api.desk.example",
            "ftp://127.0.0.1",
            "https://user:hunter2@desk.example",
            "https://desk.example/?key=hunter2",
            "https://desk.example/#hunter2",
            "https://",
            "https://desk.example:0",
            "https://desk.example:99999",
            "hunter2",
            "https://деск.example",
        ],
    )
    def test_other_address_is_refused_without_being_quoted(self, url: str) -> None:
        with pytest.raises(NotConfigured) as caught:
            checked_base("desk", url)
        assert "hunter2" not in str(caught.value)

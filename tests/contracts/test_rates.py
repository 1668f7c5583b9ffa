"""Every source of rates keeps what ports/rates.py promises: the simulator, and the real ones against small servers."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.rates.coingecko import CoinGeckoRates
from cambist.adapters.rates.rapira import RapiraRates
from cambist.adapters.rates.shared import SharedSource
from cambist.adapters.rates.simulator import RATE, SimulatedRates
from cambist.adapters.script import Ending, RateScript, Twist
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.frontends.conformance.harnesses import RatesHarness
from cambist.frontends.conformance.rates import LONG, TestRates, TestWhatItSays
from cambist.ports.faults import Fault, NotConfigured, Unavailable
from cambist.ports.rates import RateQuote, RateSimulation, RateSimulator
from tests.receivers import Receiver, Script, flood, half, raw, redirect, reply, reset, silence, slow_body
from tests.tables import table

__all__ = ["TestRates", "TestWhatItSays"]

START = datetime(2026, 1, 1, tzinfo=UTC)


class Exact(RatesHarness):
    """To the webhook: our clocks stand still."""

    def is_now(self, moment: datetime) -> bool:
        return moment == self.clock.now()


class SimulatorHarness(Exact):
    def __init__(self) -> None:
        self.clock = self.virtual = VirtualClock()
        self.storage = MemoryStorage(self.clock)
        self.script = RateScript()
        self.source = self.made = self.restarted()

    def restarted(self) -> SimulatedRates:
        return SimulatedRates("simulator-rates-test", self.storage, self.clock, script=self.script)

    async def say(self, rate: str) -> None:
        await self.made.simulate(RateSimulation(rate=Decimal(rate)))

    async def say_old(self, rate: str, age: timedelta) -> None:
        await self.made.simulate(RateSimulation(rate=Decimal(rate), age=age.total_seconds()))

    async def be_silent(self) -> None:
        await self.made.simulate(RateSimulation(rate=RATE, silent=True))

    async def refuse_key(self) -> None:
        self.script.quote.append(Twist(ending=Ending.NOT_CONFIGURED))


class OnTheWeb(Exact):
    """A source with an HTTP interface, and a small server that simulates it."""

    receiver: Receiver

    def body(self, rate: str) -> bytes:
        raise NotImplementedError

    async def say(self, rate: str) -> None:
        self.receiver.answer_with(reply(200, self.body(rate)))

    async def say_garbage(self, text: str) -> None:
        await self.say(text)

    async def be_silent(self) -> None:
        self.receiver.answer_with(503)

    async def refuse_key(self) -> None:
        self.receiver.answer_with(401)


class RapiraHarness(OnTheWeb):
    def __init__(self, receiver: Receiver) -> None:
        self.clock = self.virtual = VirtualClock()
        self.receiver = receiver
        self.source = self.made = RapiraRates(self.clock, base=f"http://127.0.0.1:{receiver.port}", limit=3.0)

    def body(self, rate: str) -> bytes:
        return rapira(f'"askPrice": {rate}, "bidPrice": {rate}')


class CoinGeckoHarness(OnTheWeb):
    secrets = ("CG-key",)

    def __init__(self, receiver: Receiver) -> None:
        self.clock = self.virtual = VirtualClock()
        self.receiver = receiver
        self.source = self.made = CoinGeckoRates(key="CG-key", base=f"http://127.0.0.1:{receiver.port}", limit=3.0)

    async def say_old(self, rate: str, age: timedelta) -> None:
        moment = str(int((self.clock.now() - age).timestamp()))
        self.receiver.answer_with(reply(200, coingecko(rate, moment)))

    def body(self, rate: str) -> bytes:
        return coingecko(rate, str(int(self.clock.now().timestamp())))


WebHarness = RapiraHarness | CoinGeckoHarness
Harness = SimulatorHarness | WebHarness


def rapira(prices: str) -> bytes:
    """Return an answer with other pairs around ours, one of them without prices."""
    others = '{"symbol": "BTC/USDT", "askPrice": 1, "bidPrice": 1}, {"symbol": "NEW/RUB", "askPrice": null}'
    return f'{{"data": [{others}, {{"symbol": "USDT/RUB", {prices}, "close": 1}}], "code": 0}}'.encode()


def coingecko(rate: str, at: str) -> bytes:
    return f'{{"tether": {{"rub": {rate}, "last_updated_at": {at}}}}}'.encode()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as opened:
        yield opened


@pytest.fixture(params=["simulator", "rapira", "coingecko"])
async def rates_harness(request: pytest.FixtureRequest, receiver: Receiver) -> AsyncIterator[Harness]:
    if request.param == "simulator":
        yield SimulatorHarness()
        return
    web: WebHarness = RapiraHarness(receiver) if request.param == "rapira" else CoinGeckoHarness(receiver)
    yield web
    await web.made.close()


@pytest.fixture(params=[RapiraHarness, CoinGeckoHarness])
async def web(request: pytest.FixtureRequest, receiver: Receiver) -> AsyncIterator[WebHarness]:
    made: WebHarness = request.param(receiver)
    yield made
    await made.made.close()


@pytest.fixture
async def rapira_harness(receiver: Receiver) -> AsyncIterator[RapiraHarness]:
    made = RapiraHarness(receiver)
    yield made
    await made.made.close()


@pytest.fixture
async def coingecko_harness(receiver: Receiver) -> AsyncIterator[CoinGeckoHarness]:
    made = CoinGeckoHarness(receiver)
    yield made
    await made.made.close()


BAD_ANSWERS: dict[str, Script] = {
    "429": reply(429),
    "500": reply(500, b"{}"),
    "502": reply(502),
    "403": reply(403),
    "404": reply(404, b"{}"),
    "204": reply(204),
    "redirect": redirect("/elsewhere"),
    "half an answer": half(),
    "nothing": raw(b""),
    "no HTTP": raw(b"hello\r\n\r\n"),
    "reset": reset(),
    "silence": silence(),
    "slow body": slow_body(),
    "endless body": flood(2 * 1024 * 1024),
    "empty": reply(200),
    "no JSON": reply(200, b"<html>"),
    "no UTF-8": reply(200, b'{"data": "\xff"}'),
    "half JSON": reply(200, b'{"tether": {"rub": 92.'),
    "too deep": reply(200, b"[" * 100_000),
    "null": reply(200, b"null"),
    "array": reply(200, b"[]"),
    "empty object": reply(200, b"{}"),
    "empty parts": reply(200, b'{"tether": {}, "data": []}'),
    "nulls": reply(200, b'{"tether": null, "data": null}'),
    "parts of other kinds": reply(200, b'{"tether": 92.5, "data": [92.5]}'),
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
async def test_every_failed_read_is_unavailable(web: WebHarness, name: str) -> None:
    web.receiver.answer_with(BAD_ANSWERS[name])
    if name in ("silence", "slow body"):  # it is waited out
        web.made._http._limit = 0.2
    with pytest.raises(Unavailable) as caught:
        await web.source.quote()
    assert str(caught.value).startswith(web.source.name)


@pytest.mark.parametrize("rate", ["-0.0", '"sNaN"', '"Infinity"', "NaN", "1e400"])
async def test_implausible_rate_is_unavailable(web: WebHarness, rate: str) -> None:
    await web.say(rate)
    with pytest.raises(Unavailable):
        await web.source.quote()


async def test_unreachable_source_is_unavailable(web: WebHarness) -> None:
    await web.receiver.__aexit__(None)
    with pytest.raises(Unavailable):
        await web.source.quote()


@pytest.mark.parametrize(
    ("header", "wait"), [("7", 7.0), ("99999", 3600.0), ("-1", None), ("soon", None), ("٣", None), (None, None)]
)
async def test_the_source_says_how_long_to_wait(web: WebHarness, header: str | None, wait: float | None) -> None:
    web.receiver.answer_with(reply(429, headers={} if header is None else {"Retry-After": header}))
    with pytest.raises(Unavailable) as caught:
        await web.source.quote()
    assert caught.value.retry_after == wait


async def test_a_closed_source_is_unavailable(web: WebHarness) -> None:
    await web.say("92.5")
    await web.source.quote()
    await web.made.close()
    with pytest.raises(Unavailable):
        await web.source.quote()


async def test_closing_ends_what_is_under_way(web: WebHarness) -> None:
    web.receiver.answer_with(silence())
    asking = asyncio.create_task(web.source.quote())
    await web.receiver.arrived()
    await web.made.close()
    with pytest.raises(Unavailable):
        await asking


class TestRapira:
    async def test_rapira_is_asked_for_the_open_rates_without_a_key(self, rapira_harness: RapiraHarness) -> None:
        await rapira_harness.say("92.5")
        await rapira_harness.source.quote()
        [request] = rapira_harness.receiver.requests
        assert (request.method, request.target) == ("GET", "/open/market/rates")

    async def test_the_rate_is_the_middle_of_ask_and_bid(self, rapira_harness: RapiraHarness) -> None:
        rapira_harness.receiver.answer_with(reply(200, rapira('"askPrice": 92.51, "bidPrice": "92.48"')))
        assert (await rapira_harness.source.quote()).rate == Decimal("92.495")

    @pytest.mark.parametrize(
        "prices",
        [
            '"askPrice": 92.4, "bidPrice": 92.5',
            '"askPrice": 92.5, "bidPrice": 0',
            '"askPrice": 92.5',
            '"bidPrice": 92.5',
        ],
        ids=["crossed", "nothing bid", "no bid", "no ask"],
    )
    async def test_a_broken_book_is_unavailable(self, rapira_harness: RapiraHarness, prices: str) -> None:
        rapira_harness.receiver.answer_with(reply(200, rapira(prices)))
        with pytest.raises(Unavailable):
            await rapira_harness.source.quote()

    async def test_another_pair_is_not_ours(self, rapira_harness: RapiraHarness) -> None:
        body = b'{"data": [{"symbol": "RUB/USDT", "askPrice": 0.01, "bidPrice": 0.01}]}'
        rapira_harness.receiver.answer_with(reply(200, body))
        with pytest.raises(Unavailable, match="no USDT/RUB"):
            await rapira_harness.source.quote()


class TestCoinGecko:
    async def test_coingecko_is_asked_for_tether_in_rub_without_a_key(self, receiver: Receiver) -> None:
        receiver.answer_with(reply(200, coingecko("92.5", "1767225600")))
        source = CoinGeckoRates(base=f"http://127.0.0.1:{receiver.port}")
        await source.quote()
        await source.close()
        [request] = receiver.requests
        path, _, query = request.target.partition("?")
        assert (request.method, path) == ("GET", "/api/v3/simple/price")
        assert set(query.split("&")) == {
            "ids=tether", "vs_currencies=rub", "include_last_updated_at=true", "precision=full",
        }  # fmt: skip
        assert "x-cg-demo-api-key" not in request.headers

    async def test_a_key_travels_in_its_header(self, coingecko_harness: CoinGeckoHarness) -> None:
        await coingecko_harness.say("92.5")
        await coingecko_harness.source.quote()
        [request] = coingecko_harness.receiver.requests
        assert request.headers["x-cg-demo-api-key"] == "CG-key"
        assert "CG-key" not in request.target

    @pytest.mark.parametrize("at", ["1711356300", "0", "4102444800"], ids=["old", "oldest", "future"])
    async def test_the_moment_is_the_source_s_own(self, coingecko_harness: CoinGeckoHarness, at: str) -> None:
        coingecko_harness.receiver.answer_with(reply(200, coingecko("92.5", at)))
        assert (await coingecko_harness.source.quote()).at.timestamp() == int(at)

    @pytest.mark.parametrize("at", ["1e3", "null", '"2026-01-01"', "9" * 15, "9" * 30, "1711356300.5"])
    async def test_quote_without_a_valid_moment_is_unavailable(
        self, coingecko_harness: CoinGeckoHarness, at: str
    ) -> None:
        coingecko_harness.receiver.answer_with(reply(200, coingecko("92.5", at)))
        with pytest.raises(Unavailable):
            await coingecko_harness.source.quote()


class TestSimulator:
    async def test_simulated_rate_is_92_50_by_default(self) -> None:
        assert (await SimulatorHarness().source.quote()).rate == Decimal("92.50")

    def test_source_is_a_simulator(self) -> None:
        assert isinstance(SimulatorHarness().source, RateSimulator)

    async def test_simulated_rate_survives_a_restart(self) -> None:
        harness = SimulatorHarness()
        await harness.say(LONG)
        assert (await harness.restarted().quote()).rate == Decimal(LONG)

    async def test_two_modes_are_two_sources(self) -> None:
        harness = SimulatorHarness()
        await harness.say("50")
        other = SimulatedRates("simulator-rates-live", harness.storage, harness.clock)
        assert (await other.quote()).rate == RATE

    @table("age", [0.0, 301.5, -60.0])
    async def test_a_quote_may_be_old_or_of_the_future(self, age: float) -> None:
        harness = SimulatorHarness()
        await harness.made.simulate(RateSimulation(rate=RATE, age=age))
        await harness.virtual.advance(1000)
        assert (await harness.source.quote()).at == harness.clock.now() - timedelta(seconds=age)

    @table("rate", ["0", "-1", "NaN", "Infinity"])
    async def test_simulator_can_give_rates_that_no_market_gives(self, rate: str) -> None:
        harness = SimulatorHarness()
        await harness.say(rate)
        assert str((await harness.source.quote()).rate) == rate

    @table(("ending", "fault"), [(Ending.UNAVAILABLE, Unavailable), (Ending.NOT_CONFIGURED, NotConfigured)])
    async def test_the_script_brings_about_every_fault_once(self, ending: Ending, fault: type[Fault]) -> None:
        harness = SimulatorHarness()
        harness.script.quote.append(Twist(ending=ending))
        with pytest.raises(fault):
            await harness.source.quote()
        assert (await harness.source.quote()).rate == RATE
        assert harness.script.asked == 2

    async def test_after_a_silence_the_quote_is_of_the_end(self) -> None:
        harness = SimulatorHarness()
        harness.script.quote.append(Twist(silence=3))
        asking = asyncio.create_task(harness.source.quote())
        await asyncio.sleep(0)
        await harness.virtual.advance(3)
        assert (await asking).at == harness.clock.now()


class Slow:
    """A source that answers when it is let."""

    name = "slow"

    def __init__(self) -> None:
        self.asked = 0
        self.may_answer = asyncio.Event()
        self.fault: Fault | None = None

    async def quote(self) -> RateQuote:
        self.asked += 1
        await self.may_answer.wait()
        if self.fault is not None:
            raise self.fault
        return RateQuote(rate=Decimal(self.asked), at=START, source=self.name)


class SharedHarness:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.slow = Slow()
        self.shared = SharedSource(self.slow, self.clock, pause=5)

    async def ask(self, count: int) -> list[asyncio.Task[RateQuote]]:
        asking = [asyncio.create_task(self.shared.quote()) for _ in range(count)]
        for _ in range(3):
            await asyncio.sleep(0)
        return asking


class TestShared:
    async def test_concurrent_callers_get_the_same_answer(self) -> None:
        harness = SharedHarness()
        asking = await harness.ask(5)
        harness.slow.may_answer.set()
        assert {(await each).rate for each in asking} == {Decimal(1)}
        assert (await harness.shared.quote()).rate == 2
        assert harness.shared.name == "slow"

    async def test_one_who_gives_up_takes_nothing_from_the_others(self) -> None:
        harness = SharedHarness()
        first, second = await harness.ask(2)
        first.cancel()
        harness.slow.may_answer.set()
        assert (await second).rate == 1

    async def test_a_fault_is_everybody_s(self) -> None:
        harness = SharedHarness()
        harness.slow.fault = NotConfigured("no")
        asking = await harness.ask(3)
        harness.slow.may_answer.set()
        ends: list[Any] = await asyncio.gather(*asking, return_exceptions=True)
        assert [type(end) for end in ends] == [NotConfigured] * 3
        assert harness.slow.asked == 1

    @table(("wanted", "pause"), [(None, 5.0), (1.0, 5.0), (20.0, 20.0), (3600.0, 60.0)])
    async def test_after_a_failure_it_is_left_alone(self, wanted: float | None, pause: float) -> None:
        harness = SharedHarness()
        harness.slow.may_answer.set()
        harness.slow.fault = Unavailable("no", retry_after=wanted)
        with pytest.raises(Unavailable):
            await harness.shared.quote()
        harness.slow.fault = None
        await harness.clock.advance(pause - 0.001)
        with pytest.raises(Unavailable, match="just now"):
            await harness.shared.quote()
        assert harness.slow.asked == 1
        await harness.clock.advance(0.001)
        assert (await harness.shared.quote()).rate == 2

    async def test_hanging_request_is_abandoned_for_a_caller_after_twenty_seconds(self) -> None:
        """The first caller has given up by then; later callers must not wait for the same request."""
        harness = SharedHarness()
        await harness.ask(1)
        await harness.clock.advance(19.999)
        await harness.ask(1)
        assert harness.slow.asked == 1
        await harness.clock.advance(0.001)
        [anew] = await harness.ask(1)
        harness.slow.may_answer.set()
        assert (await anew).rate == 2
        assert (await harness.shared.quote()).rate == 3

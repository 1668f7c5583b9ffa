"""The rate of a mode: read, judged, and shared by all processes (docs/settlement.md "The rate")."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from decimal import Decimal

import msgspec
import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.ids import SeededIds
from cambist.adapters.rates.simulator import SimulatedRates
from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.accounts.shops import Shop
from cambist.core.domain.errors import Refusal
from cambist.core.domain.settlement.rates import KnownRate
from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.accounts.shops import create_shop, disable_shop
from cambist.core.usecases.settlement.rates import market_rate, merchant_rates
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.bundle import Ports
from cambist.ports.faults import Conflict, Fault, Stale
from cambist.ports.rates import RateQuote, RateSimulation, RateSource, RateSources
from cambist.ports.storage import Unit


@asynccontextmanager
async def opened(url: str, clock: VirtualClock, **settings: object) -> AsyncIterator[Ports]:
    wanted = Settings(**{"database_url": url, **settings})  # type: ignore[arg-type]  # a test names what it wants
    async with open_app(wanted, clock=clock, ids=SeededIds()) as app:
        yield app.ports


class World:
    """Live sources `a` and `b` on one storage under one clock."""

    def __init__(self, ports: Ports, clock: VirtualClock) -> None:
        self.clock = clock
        self.a = SimulatedRates("a", ports.storage, clock)
        self.b = SimulatedRates("b", ports.storage, clock)
        self.ports = with_sources(ports, self.a, self.b)

    async def say(self, a: str | None = None, b: str | None = None) -> None:
        """Let the sources say this from now on; None: silent."""
        for source, rate in ((self.a, a), (self.b, b)):
            await source.simulate(RateSimulation(rate=Decimal(rate or "1"), silent=rate is None))

    async def rate(self, *, fresh: bool = False) -> str:
        return (await market_rate(self.ports, Mode.LIVE, fresh=fresh)).rate

    async def refused(self, *, fresh: bool = False) -> None:
        with pytest.raises(Refusal) as caught:
            await self.rate(fresh=fresh)
        assert (caught.value.code, caught.value.status, caught.value.retry_after) == ("RATE_UNAVAILABLE", 503, 30)

    async def kept(self) -> KnownRate | None:
        async with self.ports.storage.unit() as unit:
            return await unit[KnownRate].get("live")

    @property
    def asked(self) -> tuple[int, int]:
        return self.a.script.asked, self.b.script.asked


def with_sources(ports: Ports, *live: RateSource) -> Ports:
    return msgspec.structs.replace(ports, rates=RateSources(sources={"live": live}))


@pytest.fixture
async def world() -> AsyncIterator[World]:
    clock = VirtualClock()
    async with opened("memory://", clock) as ports:
        made = World(ports, clock)
        await made.say("92.50", "93")
        yield made


class TestWiring:
    async def test_each_mode_has_its_simulator(self) -> None:
        async with opened("memory://", VirtualClock()) as ports:
            for mode in Mode:
                known = await market_rate(ports, mode)
                assert (known.id, known.rate, known.source) == (mode.value, "92.50", f"simulator-rates-{mode}")

    async def test_live_sources_are_named_in_order_and_test_mode_keeps_its_simulator(self) -> None:
        names = ("coingecko", "simulator", "rapira")
        async with opened(
            "memory://", VirtualClock(), rate_sources=names, providers={"coingecko_key": "CG-key"}
        ) as ports:
            live = [source.name for source in ports.rates.of_mode("live")]
            assert live == ["coingecko", "simulator-rates-live", "rapira"]
            assert [source.name for source in ports.rates.of_mode("test")] == ["simulator-rates-test"]

    async def test_a_mode_without_a_source_has_no_rate(self, world: World) -> None:
        with pytest.raises(Refusal) as caught:
            await market_rate(world.ports, Mode.TEST)
        assert caught.value.code == "RATE_UNAVAILABLE"


class TestAsking:
    async def test_no_source_is_asked_within_30_seconds(self, world: World) -> None:
        await world.rate()
        await world.say("93")
        await world.clock.advance(29.999)
        assert (await world.rate(), await world.rate(fresh=True)) == ("92.50", "92.50")
        # The very first rate is held against the second source.
        assert world.asked == (1, 1)
        await world.clock.advance(0.001)
        assert await world.rate() == "93"
        assert world.asked == (2, 1)

    async def test_the_first_acceptable_source_wins(self, world: World) -> None:
        await world.say(None, "93")
        assert await world.rate() == "93"
        kept = await world.kept()
        assert kept is not None
        assert (kept.source, kept.at, kept.fetched_at) == ("b", world.clock.now(), world.clock.now())

    @pytest.mark.parametrize("ending", [Ending.UNAVAILABLE, Ending.NOT_CONFIGURED])
    async def test_every_fault_of_a_source_leads_to_the_next(self, world: World, ending: Ending) -> None:
        world.a.script.quote.append(Twist(ending=ending))
        assert await world.rate() == "93"

    @pytest.mark.parametrize(
        "simulation",
        [
            *(RateSimulation(rate=Decimal(rate)) for rate in ("0", "-92.5", "NaN", "sNaN", "Infinity", "1E+9")),
            RateSimulation(rate=Decimal("92.5"), age=300.001),
            RateSimulation(rate=Decimal("92.5"), age=-30.001),
        ],
        ids=str,
    )
    async def test_quote_that_is_no_current_price_is_never_believed(
        self, world: World, simulation: RateSimulation
    ) -> None:
        await world.say(None, None)
        await world.a.simulate(simulation)
        await world.refused()
        assert await world.kept() is None
        await world.say(None, "93")
        assert await world.rate() == "93"

    async def test_no_digit_is_lost_in_the_storage(self, world: World) -> None:
        text = "92.123456789012345678901234567890"
        await world.say(text)
        await world.rate()
        kept = await world.kept()
        assert kept is not None
        assert kept.value == Decimal(text)


class TestSilence:
    async def test_the_last_rate_is_shown_until_it_is_5_minutes_old(self, world: World) -> None:
        await world.rate()
        await world.say()
        await world.clock.advance(299.999)
        assert await world.rate() == "92.50"
        await world.clock.advance(0.001)
        await world.refused()
        await world.say("92.60")
        assert await world.rate() == "92.60"

    async def test_age_of_a_rate_counts_from_its_creation_at_the_source(self, world: World) -> None:
        await world.a.simulate(RateSimulation(rate=Decimal("92.50"), age=200))
        await world.rate()
        await world.say()
        await world.clock.advance(100)
        await world.refused()

    async def test_a_settlement_takes_no_rate_that_was_fetched_30_seconds_ago(self, world: World) -> None:
        await world.rate()
        await world.say()
        await world.clock.advance(29)
        assert await world.rate(fresh=True) == "92.50"
        await world.clock.advance(1)
        await world.refused(fresh=True)
        assert await world.rate() == "92.50"


class TestJumps:
    async def test_a_spike_passes_by(self, world: World) -> None:
        await world.say("92.50")
        await world.rate()
        await world.say("120")
        await world.clock.advance(60)
        assert await world.rate() == "92.50"
        await world.refused(fresh=True)
        await world.say("92.60")
        assert await world.rate(fresh=True) == "92.60"
        kept = await world.kept()
        assert kept is not None
        assert kept.candidate is None

    async def test_a_second_source_takes_its_place(self, world: World) -> None:
        await world.rate()
        await world.say("120", "93")
        await world.clock.advance(60)
        assert await world.rate(fresh=True) == "93"

    async def test_a_second_source_confirms_a_jump_at_once(self, world: World) -> None:
        await world.rate()
        await world.say("120", "120.5")
        await world.clock.advance(60)
        assert await world.rate(fresh=True) == "120"

    async def test_a_true_move_heals_by_itself_in_10_minutes(self, world: World) -> None:
        await world.say("92.50")
        await world.rate()
        await world.say("120")
        await world.clock.advance(30)
        for _ in range(20):
            assert (await self._fresh(world)) is None
            await world.clock.advance(30)
        assert (await self._fresh(world)) == "120"
        await world.clock.advance(30)
        assert (await self._fresh(world)) == "120"

    async def test_asking_often_writes_the_candidate_once(self, world: World) -> None:
        await world.say("92.50")
        await world.rate()
        await world.say("120")
        await world.clock.advance(60)
        for _ in range(5):
            await world.rate()
        kept = await world.kept()
        assert kept is not None
        assert kept.version == 1

    async def test_after_an_hour_without_a_rate_any_price_is_believed(self, world: World) -> None:
        await world.say("92.50")
        await world.rate()
        await world.say("120")
        await world.clock.advance(3600)
        assert await world.rate(fresh=True) == "120"

    async def _fresh(self, world: World) -> str | None:
        try:
            return await world.rate(fresh=True)
        except Refusal:
            return None


ON_FILES = pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)
"""Databases that several processes may open."""


class Gated:
    """A source that returns its rate once all others that it waits for were called."""

    name = "gated"

    def __init__(self, clock: VirtualClock, rate: str, barrier: asyncio.Barrier) -> None:
        self._clock = clock
        self._rate = Decimal(rate)
        self._barrier = barrier

    async def quote(self) -> RateQuote:
        await self._barrier.wait()
        return RateQuote(rate=self._rate, at=self._clock.now(), source=self.name)


class TestProcesses:
    @ON_FILES
    async def test_rate_fetched_by_one_process_serves_all_and_survives_a_restart(self, url: str) -> None:
        clock = VirtualClock()
        async with opened(url, clock) as ports:
            world = World(ports, clock)
            await world.say("92.123456789")
            await world.rate()
            async with opened(url, clock) as other:
                assert await market_rate(with_sources(other), Mode.LIVE, fresh=True) == await world.kept()
        async with opened(url, clock) as again:
            assert (await market_rate(with_sources(again), Mode.LIVE, fresh=True)).rate == "92.123456789"

    @ON_FILES
    @pytest.mark.parametrize("is_first", [True, False])
    async def test_two_that_fetch_at_once_do_not_fail_each_other(self, url: str, is_first: bool) -> None:
        clock = VirtualClock()
        async with AsyncExitStack() as stack:
            apps = [await stack.enter_async_context(opened(url, clock)) for _ in range(4)]
            if not is_first:
                await market_rate(apps[0], Mode.LIVE)
                await clock.advance(30)
            barrier = asyncio.Barrier(4)
            apart = [with_sources(ports, Gated(clock, f"92.{number}", barrier)) for number, ports in enumerate(apps)]
            found = await asyncio.gather(*(market_rate(ports, Mode.LIVE, fresh=True) for ports in apart))
            # One of the four wrote the rate first, and the others used it.
            assert len({known.rate for known in found}) == 1
            assert {known.version for known in found} == {found[0].version}

    async def test_candidate_of_another_process_does_not_displace_a_good_quote(self) -> None:
        clock = VirtualClock()
        async with opened("memory://", clock) as ports:
            world = World(ports, clock)
            await world.say("92.50")
            await world.rate()
            await clock.advance(60)
            await world.say("150")
            await world.rate()
            jumped = world.ports
            barrier = asyncio.Barrier(2)
            asking = asyncio.create_task(
                market_rate(with_sources(ports, Gated(clock, "92.60", barrier)), Mode.LIVE, fresh=True)
            )
            await asyncio.sleep(0)
            await world.say("140")
            await market_rate(jumped, Mode.LIVE)
            await barrier.wait()
            assert (await asking).rate == "92.60"

    @pytest.mark.parametrize("lost", [lambda: Stale("lost"), lambda: Conflict("known_rates_id")])
    async def test_a_lost_write_reads_again(
        self, world: World, monkeypatch: pytest.MonkeyPatch, lost: Callable[[], Fault]
    ) -> None:
        losses = [lost(), lost()]
        async with world.ports.storage.unit() as unit:
            kind = type(unit)
        commit = kind.commit

        async def losing(self: Unit) -> None:
            if losses:
                raise losses.pop()
            await commit(self)

        monkeypatch.setattr(kind, "commit", losing)
        assert await world.rate() == "92.50"
        assert losses == []


async def caller_of(ports: Ports, account_id: str, mode: Mode = Mode.TEST) -> Caller:
    async with ports.storage.unit() as unit:
        account = await unit[Account].get(account_id)
    assert account is not None
    return Caller(account=account, mode=mode, key_id="key")


@pytest.fixture
async def ports() -> AsyncIterator[Ports]:
    async with opened("memory://", VirtualClock()) as made:
        yield made


class TestMerchantRates:
    async def test_the_markup_is_that_of_the_default_shop_or_of_the_given_one(self, ports: Ports) -> None:
        account = await create_account(ports, "Merchant")
        caller = await caller_of(ports, account.account_id)
        shop = await create_shop(ports, account.account_id, "Tea", "0.075")
        usual = await merchant_rates(ports, caller, None)
        assert (usual.market, usual.merchant) == (Decimal("92.50"), Decimal("95.36082474226804123711340206"))
        assert usual.updated_at == ports.clock.now()
        assert await merchant_rates(ports, caller, account.default_shop_id) == usual
        assert (await merchant_rates(ports, caller, shop.id.upper())).merchant == 100
        await disable_shop(ports, shop.id)
        assert (await merchant_rates(ports, caller, shop.id)).merchant == 100

    async def test_modes_have_their_own_rate(self, ports: Ports) -> None:
        account = await create_account(ports, "Merchant")
        [simulator] = ports.rates.of_mode("test")
        assert isinstance(simulator, SimulatedRates)
        await simulator.simulate(RateSimulation(rate=Decimal(50)))
        for mode, rate in ((Mode.TEST, "50"), (Mode.LIVE, "92.50")):
            caller = await caller_of(ports, account.account_id, mode)
            assert (await merchant_rates(ports, caller, None)).market == Decimal(rate)

    async def test_updated_at_is_when_the_source_made_it(self, ports: Ports) -> None:
        account = await create_account(ports, "Merchant")
        [simulator] = ports.rates.of_mode("test")
        assert isinstance(simulator, SimulatedRates)
        await simulator.simulate(RateSimulation(rate=Decimal(50), age=90))
        found = await merchant_rates(ports, await caller_of(ports, account.account_id), None)
        assert found.updated_at == ports.clock.now() - timedelta(seconds=90)

    async def test_shops_are_refused_before_a_source_is_asked(self, ports: Ports) -> None:
        account = await create_account(ports, "Merchant")
        other = await create_account(ports, "Other")
        plain = await create_shop(ports, account.account_id, "Tea")
        caller = await caller_of(ports, account.account_id)
        rows: Sequence[tuple[str, str, int]] = (
            ("", "VALIDATION_ERROR", 400),
            ("x\0", "VALIDATION_ERROR", 400),
            ("01890000-0000-7000-8000-000000000000", "SHOP_NOT_FOUND", 400),
            (other.default_shop_id, "SHOP_NOT_FOUND", 400),
            (plain.id, "SHOP_MARKUP_NOT_SET", 422),
        )
        for shop_id, code, status in rows:
            with pytest.raises(Refusal) as caught:
                await merchant_rates(ports, caller, shop_id)
            assert (caught.value.code, caught.value.status) == (code, status)
        async with ports.storage.unit() as unit:
            assert await unit[KnownRate].get("test") is None

    async def test_a_default_shop_without_a_markup_has_no_rate(self, ports: Ports) -> None:
        account = await create_account(ports, "Merchant")
        async with ports.storage.unit() as unit:
            shop = await unit[Shop].get(account.default_shop_id)
            assert shop is not None
            unit[Shop].save(msgspec.structs.replace(shop, markup=None))
            await unit.commit()
        with pytest.raises(Refusal) as caught:
            await merchant_rates(ports, await caller_of(ports, account.account_id), None)
        assert caught.value.code == "SHOP_MARKUP_NOT_SET"

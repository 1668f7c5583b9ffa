"""The simulated chain of deposits does all that a chain can do to us, beyond what every watcher must
(frontends/conformance/deposits.py)."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.adapters.clock import VirtualClock
from cambist.adapters.deposits.simulator import FINALITY, SimulatedDeposits
from cambist.adapters.ids import SeededIds
from cambist.adapters.script import DepositScript, Ending, Twist
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.tron import is_tron_address, tron_address
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.chain import Network
from cambist.ports.deposits import Deposit, DepositSimulator, DepositWatcher
from cambist.ports.faults import Fault, NotConfigured, Unavailable

START = datetime(2026, 11, 21, 12, tzinfo=UTC)
OPERATION = "exch_1"
UNITS = 100 * 10**8


class World:
    """A storage, a clock, and the watcher over them; `watcher()` again is the watcher after a restart."""

    def __init__(self) -> None:
        self.clock = VirtualClock(START)
        self.storage = MemoryStorage(self.clock)
        self.ids = SeededIds()
        self.script = DepositScript()

    def watcher(self, name: str = "sim") -> SimulatedDeposits:
        return SimulatedDeposits(name, self.storage, self.clock, self.ids, spell=tron_address, script=self.script)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def watcher(world: World) -> SimulatedDeposits:
    return world.watcher()


async def units(watcher: DepositWatcher, address: str) -> list[tuple[int, bool]]:
    return [(deposit.units, deposit.is_final) for deposit in await watcher.deposits(address)]


class TestAddress:
    @given(operation=st.text(min_size=1, max_size=60))
    async def test_an_address_passes_the_networks_checksum(self, operation: str) -> None:
        assert is_tron_address(await World().watcher().address(operation))

    async def test_no_two_watchers_share_one(self, world: World, watcher: DepositWatcher) -> None:
        """Deposits are matched by address (docs/exchanges.md "Rules")."""
        assert await watcher.address(OPERATION) != await world.watcher("other").address(OPERATION)

    def test_watcher_is_on_tron(self, watcher: DepositWatcher) -> None:
        assert watcher.network is Network.TRON


class TestDeposits:
    async def test_deposit_is_named_by_transaction_and_index(self, world: World, watcher: SimulatedDeposits) -> None:
        address = await watcher.address(OPERATION)
        tx_hash = await watcher.simulate_deposit(address, UNITS)
        wanted = Deposit(tx_hash=tx_hash, index=0, units=UNITS, at=START, is_final=True)
        assert await watcher.deposits(address) == [wanted]
        await world.clock.advance(3600)
        assert await world.watcher().deposits(address) == [wanted], "over a restart, and later"

    async def test_a_deposit_is_final_after_a_while(self, world: World, watcher: SimulatedDeposits) -> None:
        address = await watcher.address(OPERATION)
        await watcher.simulate_deposit(address, 5, final=False)
        await world.clock.advance(FINALITY.total_seconds() - 1)
        assert await units(watcher, address) == [(5, False)]
        await world.clock.advance(1)
        assert await units(watcher, address) == [(5, True)]

    async def test_a_block_may_be_of_earlier(self, watcher: SimulatedDeposits) -> None:
        """A watcher that was offline sees older blocks."""
        address, before = await watcher.address(OPERATION), START - timedelta(hours=1)
        await watcher.simulate_deposit(address, 5, final=False, at=before)
        (found,) = await watcher.deposits(address)
        assert (found.at, found.is_final) == (before, True)

    async def test_a_dropped_one_is_gone_and_may_come_again(self, world: World, watcher: SimulatedDeposits) -> None:
        address = await watcher.address(OPERATION)
        tx_hash = await watcher.simulate_deposit(address, 5, final=False)
        await watcher.simulate_drop(address, tx_hash)
        assert await watcher.deposits(address) == []
        await world.clock.advance(30)
        await watcher.simulate_deposit(address, 5, tx_hash=tx_hash, final=False)
        (found,) = await watcher.deposits(address)
        assert (found.tx_hash, found.index, found.units, found.is_final) == (tx_hash, 0, 5, False)
        assert found.at == START + timedelta(seconds=30), "in another block"

    async def test_an_answer_may_name_everything_twice_and_out_of_order(
        self, world: World, watcher: SimulatedDeposits
    ) -> None:
        address = await watcher.address(OPERATION)
        for amount in (1, 2):
            await watcher.simulate_deposit(address, amount)
        world.script.deposits.append(Twist(doubled=True))
        assert [amount for amount, _ in await units(watcher, address)] == [2, 1, 2, 1]
        assert [amount for amount, _ in await units(watcher, address)] == [1, 2]

    async def test_many_at_once_are_all_there(self, watcher: SimulatedDeposits) -> None:
        address = await watcher.address(OPERATION)
        await asyncio.gather(*(watcher.simulate_deposit(address, amount) for amount in range(1, 11)))
        assert sorted(amount for amount, _ in await units(watcher, address)) == list(range(1, 11))


class TestSimulator:
    def test_watcher_is_a_simulator(self, watcher: SimulatedDeposits) -> None:
        assert isinstance(watcher, DepositSimulator)

    @pytest.mark.parametrize("amount", [0, -1])
    async def test_deposit_of_nothing_or_less_is_refused(self, watcher: SimulatedDeposits, amount: int) -> None:
        with pytest.raises(ValueError, match="more than nothing"):
            await watcher.simulate_deposit(await watcher.address(OPERATION), amount)

    async def test_unknown_transaction_can_be_neither_dropped_nor_repeated(self, watcher: SimulatedDeposits) -> None:
        address = await watcher.address(OPERATION)
        for _ in range(2):
            with pytest.raises(ValueError, match="no transaction"):
                await watcher.simulate_drop(address, "f" * 64)
            with pytest.raises(ValueError, match="no transaction"):
                await watcher.simulate_deposit(address, 5, tx_hash="f" * 64)
            await watcher.simulate_deposit(address, 5)

    @pytest.mark.parametrize(
        ("ending", "fault"), [(Ending.UNAVAILABLE, Unavailable), (Ending.NOT_CONFIGURED, NotConfigured)]
    )
    async def test_the_script_brings_every_fault_about_once(
        self, world: World, watcher: SimulatedDeposits, ending: Ending, fault: type[Fault]
    ) -> None:
        address = await watcher.address(OPERATION)
        world.script.address.append(Twist(ending=ending))
        world.script.deposits.append(Twist(ending=ending))
        with pytest.raises(fault):
            await watcher.address(OPERATION)
        with pytest.raises(fault):
            await watcher.deposits(address)
        assert (await watcher.address(OPERATION), await watcher.deposits(address)) == (address, [])

    async def test_late_answer_shows_the_state_at_that_time(self, world: World, watcher: SimulatedDeposits) -> None:
        address = await watcher.address(OPERATION)
        world.script.deposits.append(Twist(silence=30))
        asking = asyncio.create_task(units(watcher, address))
        await world.clock.advance(29)
        await watcher.simulate_deposit(address, 5)
        await world.clock.advance(1)
        assert await asking == [(5, True)]


class TestWiring:
    async def test_each_mode_has_a_watcher_of_its_own(self) -> None:
        async with open_app(Settings(database_url="memory://"), clock=VirtualClock(), ids=SeededIds()) as app:
            watchers = app.ports.deposits
            live, test = (watchers.of_mode(mode) for mode in Mode)
            assert (watchers.named(live.name), watchers.named(test.name)) == (live, test)
            assert await live.address(OPERATION) != await test.address(OPERATION)
            with pytest.raises(NotConfigured):
                watchers.named("gone")
            with pytest.raises(NotConfigured):
                watchers.of_mode("other")

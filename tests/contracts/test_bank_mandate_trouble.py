"""The simulated bank's mandates and charges by its script, and when its books do not answer."""

import asyncio

import pytest

from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.adapters.script import Ending, Twist
from cambist.ports.faults import Fault, OutcomeUnknown, Refused, Stale, Unavailable
from cambist.ports.mandates import NEXT_PENDING, MandateBank, MandateState, MandateStatus
from tests.contracts.bank_kit import Busy, World
from tests.contracts.mandate_kit import BINDING, CHARGE, binding, bound, debit, state_of
from tests.tables import table

S = MandateStatus


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def bank(world: World) -> SimulatedBank:
    return world.bank()


class TestScript:
    @pytest.mark.parametrize(
        ("ending", "fault", "is_made"),
        [
            (Ending.REFUSED, Refused, False),
            (Ending.UNAVAILABLE, Unavailable, False),
            (Ending.UNKNOWN_DONE, OutcomeUnknown, True),
            (Ending.UNKNOWN_NOT_DONE, OutcomeUnknown, False),
        ],
    )
    async def test_every_end_of_the_writes(
        self, world: World, bank: SimulatedBank, ending: Ending, fault: type[Fault], is_made: bool
    ) -> None:
        twist = Twist(ending=ending)
        world.script.bind.append(twist)
        with pytest.raises(fault):
            await bank.bind(binding())
        assert (await bank.find_binding(BINDING) is not None) is is_made
        mandate = await bound(bank)
        world.script.charge.append(twist)
        with pytest.raises(fault):
            await bank.charge(debit(mandate))
        assert (await bank.find_charge(CHARGE) is not None) is is_made
        world.script.revoke.append(twist)
        with pytest.raises(fault):
            await bank.revoke(mandate.reference)
        assert ((await state_of(bank)).status is S.ENDED) is is_made

    @pytest.mark.parametrize("ending", [Ending.UNAVAILABLE, Ending.UNKNOWN_DONE, Ending.UNKNOWN_NOT_DONE])
    async def test_a_read_that_failed_is_unavailable(self, world: World, bank: MandateBank, ending: Ending) -> None:
        made = await bank.bind(binding())
        script = world.script
        for twists in (script.find_binding, script.mandate_state, script.find_charge):
            twists.append(Twist(ending=ending))
        for read in (bank.find_binding(BINDING), bank.mandate_state(made.reference), bank.find_charge(CHARGE)):
            with pytest.raises(Unavailable):
                await read
        assert await bank.find_binding(BINDING) == made

    async def test_a_slow_binding_is_made_before_the_silence(self, world: World, bank: MandateBank) -> None:
        world.script.bind.append(Twist(silence=25))
        task = asyncio.ensure_future(bank.bind(binding()))
        await world.clock.advance(24)
        assert not task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert await bank.find_binding(BINDING) is not None


class TestStorageProblem:
    @table("problem", [Unavailable("no answer"), Stale("somebody was quicker")])
    async def test_unanswered_write_is_an_unknown_outcome_until_repeated(self, problem: Fault) -> None:
        world = World()
        storage = world.storage = Busy(world.clock)
        bank = world.bank()
        mandate: MandateState = await bound(bank)
        storage.fault = problem
        with pytest.raises(OutcomeUnknown):
            await bank.revoke(mandate.reference)
        if isinstance(problem, Unavailable):
            with pytest.raises(OutcomeUnknown):
                await bank.bind(binding(operation="bind_2"))
        storage.fault = None
        assert await bank.find_binding("bind_2") is None
        await bound(bank, "bind_2")
        await bank.revoke(mandate.reference)
        assert (await state_of(bank)).status is S.ENDED

    @table(
        ("problem", "spared"),
        [
            (Unavailable("no answer"), 0),
            (Unavailable("no answer"), 1),
            (Stale("somebody was quicker"), 0),
        ],
    )
    @table("result", ["insufficient_funds", NEXT_PENDING])
    async def test_crash_between_the_writes_charges_once_and_as_simulated(
        self, problem: Fault, spared: int, result: str
    ) -> None:
        """A charge is two pages: the mandate's, which knows what is to become of it, and its own."""
        world = World()
        storage = world.storage = Busy(world.clock)
        bank = world.bank()
        mandate = await bound(bank)
        await bank.simulate_next_charge(BINDING, result)
        storage.fault, storage.spared = problem, spared
        with pytest.raises(OutcomeUnknown):
            await bank.charge(debit(mandate))
        storage.fault = None
        assert await bank.find_charge(CHARGE) is None
        if spared:
            assert (await bank.charge(debit(mandate, operation="pay_8"))).failure is None, "it is not meant"
        state = await bank.charge(debit(mandate))
        assert state.failure == (None if result == NEXT_PENDING else result)
        assert state.check_after is None

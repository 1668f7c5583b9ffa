"""Refunds at the simulated bank besides the contract: its instructions, time, its script, its books."""

import asyncio
from datetime import timedelta

import pytest

from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.adapters.script import Ending, Twist
from cambist.ports.bank import Bank, ListingBank, RefundState, RefundStatus
from cambist.ports.faults import Fault, OutcomeUnknown, Refused, Stale, Unavailable
from cambist.ports.notes import ProviderNote
from tests.contracts.bank_kit import (
    DONE,
    OPERATION,
    PROCESSING,
    REFUND,
    START,
    Busy,
    World,
    back,
    is_refused,
    left,
    sent,
)
from tests.tables import table

S = RefundStatus


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def bank(world: World) -> SimulatedBank:
    """With one invoice of 100 RUB, paid."""
    bank = world.bank()
    await world.paid(bank)
    return bank


@pytest.fixture
async def slow_bank(world: World, bank: SimulatedBank) -> SimulatedBank:
    """The same, and refunds stay in processing until somebody says how they end."""
    return world.bank(refunds_hold=None)


class TestSimulate:
    @pytest.mark.parametrize(
        ("before", "told", "after"),
        [
            ((), (S.PROCESSING, None), PROCESSING),
            ((), (S.DONE, None), DONE),
            ((), (S.DONE, "ignored"), DONE),
            ((), (S.FAILED, None), RefundState(status=S.FAILED, failure="declined_by_bank")),
            ((), (S.FAILED, "account_closed"), RefundState(status=S.FAILED, failure="account_closed")),
            ((), (S.REVERSED, None), PROCESSING),
            ((S.DONE,), (S.REVERSED, None), RefundState(status=S.REVERSED)),
            ((S.DONE,), (S.FAILED, None), DONE),
            ((S.DONE,), (S.PROCESSING, None), DONE),
            ((S.FAILED,), (S.DONE, None), RefundState(status=S.FAILED, failure="declined_by_bank")),
            ((S.DONE, S.REVERSED), (S.DONE, None), RefundState(status=S.REVERSED)),
        ],
    )
    async def test_refund_follows_every_possible_simulation(
        self,
        slow_bank: SimulatedBank,
        before: tuple[RefundStatus, ...],
        told: tuple[RefundStatus, str | None],
        after: RefundState,
    ) -> None:
        await slow_bank.refund(back())
        for status in before:
            await slow_bank.simulate_refund(REFUND, status)
        notifications = await slow_bank.simulate_refund(REFUND, *told)
        assert [notification.operation for notification in notifications] == [REFUND]
        assert await slow_bank.find_refund(REFUND) == after

    async def test_only_the_refund_that_is_meant(self, slow_bank: SimulatedBank) -> None:
        await slow_bank.refund(back(50_00))
        await slow_bank.refund(back(50_00, "ref_2"))
        await slow_bank.simulate_refund("ref_2", S.DONE)
        assert (await slow_bank.find_refund(REFUND), await slow_bank.find_refund("ref_2")) == (PROCESSING, DONE)

    async def test_no_such_refund(self, bank: SimulatedBank) -> None:
        for operation in (REFUND, OPERATION):
            with pytest.raises(Refused):
                await bank.simulate_refund(operation, S.DONE)


class TestTime:
    async def test_refund_without_a_hold_is_done_at_once_and_after_a_restart(self, world: World, bank: Bank) -> None:
        await bank.refund(back())
        assert await world.bank(refunds_hold=None).find_refund(REFUND) == DONE

    async def test_with_a_hold_it_is_done_then_and_hints_when(self, world: World, bank: Bank) -> None:
        held = world.bank(refunds_hold=timedelta(seconds=5))
        assert await held.refund(back()) == RefundState(status=S.PROCESSING, check_after=5.0)
        await world.clock.advance(3)
        assert await held.refund(back()) == RefundState(status=S.PROCESSING, check_after=2.0)
        await world.clock.advance(1.999)
        state = await held.find_refund(REFUND)
        assert state is not None
        assert state.status is S.PROCESSING
        await world.clock.advance(0.001)
        assert await held.find_refund(REFUND) == DONE
        await held.simulate_refund(REFUND, S.FAILED)
        assert await held.find_refund(REFUND) == DONE, "done in time, whoever comes later"

    @pytest.mark.parametrize("status", [S.FAILED, S.PROCESSING])
    async def test_outcome_simulated_in_time_decides(self, world: World, bank: Bank, status: RefundStatus) -> None:
        held = world.bank(refunds_hold=timedelta(seconds=5))
        await held.refund(back())
        await world.clock.advance(4)
        await held.simulate_refund(REFUND, status)
        await world.clock.advance(3600)
        state = await held.find_refund(REFUND)
        assert state is not None
        assert (state.status, state.check_after) == (status, None)

    async def test_held_refund_waits_until_simulated(self, world: World, slow_bank: Bank) -> None:
        await slow_bank.refund(back())
        await world.clock.advance(30 * 24 * 3600)
        assert await slow_bank.find_refund(REFUND) == PROCESSING

    @pytest.mark.parametrize("kopecks", [404_01, 404_02, 404_04])
    async def test_no_amount_actions_without_a_call(self, world: World, kopecks: int) -> None:
        """Only payments have such amounts (docs/sandbox.md "Amounts that act by themselves")."""
        bank = world.bank()
        await world.paid(bank, 500_00)
        assert await bank.refund(back(kopecks)) == DONE

    async def test_an_acting_amount_that_came_in_the_meantime_counts(self, world: World) -> None:
        bank = world.bank()
        await bank.create_invoice(world.request(404_03))
        await is_refused(bank, back(403_03), "not_paid")
        await world.clock.advance(1)
        await is_refused(bank, back(403_04), "amount")
        assert await bank.refund(back(403_03)) == DONE


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
    async def test_every_end_of_a_refund(
        self, world: World, bank: Bank, ending: Ending, fault: type[Fault], is_made: bool
    ) -> None:
        world.script.refund.append(Twist(ending=ending))
        with pytest.raises(fault):
            await bank.refund(back())
        assert (await bank.find_refund(REFUND) is not None) is is_made
        assert await bank.refund(back()) == DONE

    @pytest.mark.parametrize("ending", [Ending.UNAVAILABLE, Ending.UNKNOWN_DONE, Ending.UNKNOWN_NOT_DONE])
    async def test_a_read_that_failed_is_unavailable(self, world: World, bank: Bank, ending: Ending) -> None:
        await bank.refund(back())
        world.script.find_refund.append(Twist(ending=ending))
        with pytest.raises(Unavailable):
            await bank.find_refund(REFUND)
        assert await bank.find_refund(REFUND) == DONE

    async def test_a_listing_that_failed_is_unavailable(self, world: World, bank: ListingBank) -> None:
        world.script.refunds_since.append(Twist(ending=Ending.UNAVAILABLE))
        with pytest.raises(Unavailable):
            await bank.refunds_since(START)
        assert await bank.refunds_since(START) == []

    async def test_a_slow_refund_is_done_before_the_silence(self, world: World, bank: Bank) -> None:
        world.script.refund.append(Twist(silence=25))
        task = asyncio.ensure_future(bank.refund(back()))
        await world.clock.advance(24)
        assert not task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert await bank.find_refund(REFUND) == DONE


class TestStorageProblem:
    @table(
        ("problem", "spared"),
        [(Unavailable("no answer"), 0), (Unavailable("no answer"), 1), (Stale("somebody was quicker"), 1)],
    )
    async def test_unanswered_refund_is_an_unknown_outcome_until_repeated(self, problem: Fault, spared: int) -> None:
        """A refund is two pages: whichever of them was not written, the refund was not made, or is made once."""
        world = World()
        storage = world.storage = Busy(world.clock)
        bank = world.bank()
        await world.paid(bank)
        storage.fault, storage.spared = problem, spared
        with pytest.raises(OutcomeUnknown):
            await bank.refund(back(60_00))
        storage.fault = None
        assert await bank.find_refund(REFUND) is None
        assert await bank.refund(back(60_00)) == DONE
        assert await left(bank) == 40_00

    async def test_one_operation_of_two_invoices_at_once_is_one_refund(self, world: World, bank: SimulatedBank) -> None:
        """Each invoice would allow it; the operation's own page decides which has it."""
        await world.paid(bank, operation="pay_2")
        assert await sent(bank, back(60_00), back(60_00, reference="sim:pay_2")) == ["done", "operation"]
        whole = [back(100_00, f"ref_{invoice}", reference=f"sim:{invoice}") for invoice in ("pay_1", "pay_2")]
        assert await sent(bank, *whole) == ["amount", "done"]

    async def test_refused_refund_leaves_no_record(self, world: World, bank: Bank) -> None:
        async with world.storage.unit() as unit:
            before = await unit[ProviderNote].find()
        await is_refused(bank, back(100_01), "amount")
        async with world.storage.unit() as unit:
            assert await unit[ProviderNote].find() == before

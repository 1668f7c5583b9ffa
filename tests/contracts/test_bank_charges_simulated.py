"""Charges at the simulated bank besides the contract: its instructions, exact amounts, its books."""

import asyncio
from datetime import timedelta

import pytest

from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.ports.faults import OutcomeUnknown, Refused
from cambist.ports.mandates import (
    NEXT_PAID,
    NEXT_PENDING,
    NEXT_UNAVAILABLE,
    ChargeSimulation,
    ChargeStatus,
    MandateEvent,
    MandateState,
    MandateStatus,
)
from tests.contracts.bank_kit import DONE, World, back
from tests.contracts.mandate_kit import (
    BINDING,
    CHARGE,
    binding,
    bound,
    charge_of,
    debit,
    has_debited,
    is_refused,
    state_of,
    tell,
)

C, E, S = ChargeStatus, MandateEvent, MandateStatus


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def bank(world: World) -> SimulatedBank:
    return world.bank()


@pytest.fixture
async def mandate(bank: SimulatedBank) -> MandateState:
    """Given without a first charge."""
    return await bound(bank, first=None)


class TestNextCharge:
    """`POST /sandbox/subscriptions/{id}/next-charge` (docs/sandbox.md "The calls")."""

    @pytest.mark.parametrize(
        ("result", "at_once", "later"),
        [
            (NEXT_PAID, (C.PROCESSING, None, 1.0), (C.PAID, None)),
            (NEXT_PENDING, (C.PROCESSING, None, None), (C.PROCESSING, None)),
            ("insufficient_funds", (C.FAILED, "insufficient_funds", None), (C.FAILED, "insufficient_funds")),
            ("declined_by_bank", (C.FAILED, "declined_by_bank", None), (C.FAILED, "declined_by_bank")),
            ("cancelled_by_bank", (C.FAILED, "cancelled_by_bank", None), (C.FAILED, "cancelled_by_bank")),
        ],
    )
    async def test_charge_ends_as_simulated(
        self,
        world: World,
        bank: SimulatedBank,
        mandate: MandateState,
        result: str,
        at_once: tuple[ChargeStatus, str | None, float | None],
        later: tuple[ChargeStatus, str | None],
    ) -> None:
        await bank.simulate_next_charge(BINDING, result)
        begun = await bank.charge(debit(mandate))
        assert (begun.status, begun.failure, begun.check_after) == at_once
        await world.clock.advance(3600)
        ended = await charge_of(bank)
        assert (ended.status, ended.failure) == later

    async def test_charge_is_paid_after_exactly_a_second_by_default(
        self, world: World, bank: SimulatedBank, mandate: MandateState
    ) -> None:
        assert (await bank.charge(debit(mandate))).check_after == 1.0
        await world.clock.advance(0.999)
        assert (await charge_of(bank)).status is C.PROCESSING
        await world.clock.advance(0.001)
        assert (await charge_of(bank)).status is C.PAID

    async def test_unavailable_may_have_debited(self, world: World, bank: SimulatedBank, mandate: MandateState) -> None:
        """PROVIDER_UNAVAILABLE (docs/subscriptions.md "When a charge is refused"): the same request again, and no
        second debit."""
        await bank.simulate_next_charge(BINDING, NEXT_UNAVAILABLE)
        request = debit(mandate)
        answers = await asyncio.gather(bank.charge(request), bank.charge(request), return_exceptions=True)
        assert sorted(type(answer).__name__ for answer in answers) == ["ChargeState", "OutcomeUnknown"]
        assert (await bank.charge(request)).status is C.PROCESSING
        await world.clock.advance(1)
        assert (await charge_of(bank)).status is C.PAID
        await has_debited(bank, f"sim:{CHARGE}", 250_00)

    async def test_unavailable_may_not_have_debited(self, bank: SimulatedBank, mandate: MandateState) -> None:
        await bank.simulate_next_charge(BINDING, NEXT_UNAVAILABLE, executed=False)
        with pytest.raises(OutcomeUnknown):
            await bank.charge(debit(mandate))
        assert await bank.find_charge(CHARGE) is None
        assert (await bank.charge(debit(mandate))).status is C.PROCESSING

    async def test_charge_that_is_not_unavailable_is_executed(self, bank: SimulatedBank, mandate: MandateState) -> None:
        await bank.simulate_next_charge(BINDING, NEXT_PAID, executed=False)
        assert (await bank.charge(debit(mandate))).status is C.PROCESSING

    async def test_the_last_wish_counts_and_once(self, bank: SimulatedBank, mandate: MandateState) -> None:
        await bank.simulate_next_charge(BINDING, "declined_by_bank")
        await bank.simulate_next_charge(BINDING, "insufficient_funds")
        states = [await bank.charge(debit(mandate, operation=f"pay_{number}")) for number in range(3)]
        assert [state.failure for state in states] == ["insufficient_funds", None, None]

    async def test_one_of_simultaneous_charges_meets_the_planned_failure(
        self, bank: SimulatedBank, mandate: MandateState
    ) -> None:
        await bank.simulate_next_charge(BINDING, "insufficient_funds")
        requests = [debit(mandate, operation=f"pay_{number}") for number in range(5)]
        states = await asyncio.gather(*(bank.charge(request) for request in requests))
        assert [state.failure for state in states].count("insufficient_funds") == 1

    async def test_only_charges_by_that_mandate_meet_it(self, bank: SimulatedBank, mandate: MandateState) -> None:
        other = await bound(bank, "bind_2")
        await bank.simulate_next_charge(BINDING, "insufficient_funds")
        assert (await bank.charge(debit(other, operation="pay_8"))).failure is None
        assert (await bank.charge(debit(mandate))).failure == "insufficient_funds"

    async def test_refused_or_repeated_charge_does_not_use_up_the_planned_failure(
        self, world: World, bank: SimulatedBank, mandate: MandateState
    ) -> None:
        await bank.charge(debit(mandate))
        await bank.simulate_next_charge(BINDING, "insufficient_funds")
        await bank.charge(debit(mandate))
        await is_refused(bank, debit(mandate, 0, "pay_8"), "amount")
        await is_refused(bank, debit(mandate, operation="pay_8", token="another"), "not_found")
        await tell(bank, E.MANDATE_LOST)
        await bank.charge(debit(mandate, operation="pay_9"))
        await tell(bank, E.MANDATE_RESTORED)
        restarted = world.bank()
        assert (await restarted.charge(debit(mandate, operation="pay_8"))).failure == "insufficient_funds"

    async def test_a_revoked_mandate_is_lost_with_the_charge(self, bank: SimulatedBank, mandate: MandateState) -> None:
        """`mandate_revoked`, retrying is pointless (docs/subscriptions.md "When a charge is refused")."""
        await bank.simulate_next_charge(BINDING, "mandate_revoked")
        assert (await bank.charge(debit(mandate))).failure == "mandate_revoked"
        assert (await state_of(bank)).status is S.LOST
        assert (await bank.charge(debit(mandate, operation="pay_8"))).failure == "mandate_revoked"

    async def test_simulated_next_charge_goes_before_an_acting_amount(
        self, bank: SimulatedBank, mandate: MandateState
    ) -> None:
        await bank.simulate_next_charge(BINDING, NEXT_PAID)
        assert (await bank.charge(debit(mandate, 404_01))).status is C.PROCESSING


class TestAmountsThatSteer:
    """The amounts of payments act for charges, too, and the bank's answer comes at once
    (docs/sandbox.md "Amounts that act by themselves")."""

    @pytest.mark.parametrize(("kopecks", "failure"), [(404_01, "insufficient_funds"), (404_02, "declined_by_bank")])
    async def test_404_01_and_404_02_fail(
        self, bank: SimulatedBank, mandate: MandateState, kopecks: int, failure: str
    ) -> None:
        state = await bank.charge(debit(mandate, kopecks))
        assert (state.status, state.failure) == (C.FAILED, failure)
        assert (await state_of(bank)).status is S.ACTIVE

    async def test_404_04_is_debited_and_its_answer_lost(
        self, world: World, bank: SimulatedBank, mandate: MandateState
    ) -> None:
        with pytest.raises(OutcomeUnknown):
            await bank.charge(debit(mandate, 404_04))
        await world.clock.advance(1)
        assert (await bank.charge(debit(mandate, 404_04))).status is C.PAID

    async def test_404_03_does_not_action(self, world: World, bank: SimulatedBank, mandate: MandateState) -> None:
        """A debit always has the requested amount; only a payer can send another amount."""
        await bank.charge(debit(mandate, 404_03))
        await world.clock.advance(1)
        transfer = (await charge_of(bank)).transfer
        assert transfer is not None
        assert transfer.amount_kopecks == 404_03


class TestSimulate:
    @pytest.mark.parametrize(
        ("told", "after"),
        [
            ((ChargeSimulation(status=C.PAID),), (C.PAID, None)),
            ((ChargeSimulation(status=C.FAILED),), (C.FAILED, "declined_by_bank")),
            ((ChargeSimulation(status=C.FAILED, failure="expired"),), (C.FAILED, "expired")),
            ((ChargeSimulation(status=C.PROCESSING),), (C.PROCESSING, None)),
            ((ChargeSimulation(status=C.PAID), ChargeSimulation(status=C.FAILED)), (C.PAID, None)),
            ((ChargeSimulation(status=C.FAILED), ChargeSimulation(status=C.PAID)), (C.FAILED, "declined_by_bank")),
        ],
    )
    async def test_charge_in_processing_takes_the_simulated_status(
        self,
        world: World,
        bank: SimulatedBank,
        mandate: MandateState,
        told: tuple[ChargeSimulation, ...],
        after: tuple[ChargeStatus, str | None],
    ) -> None:
        await bank.charge(debit(mandate))
        for simulation in told:
            await bank.simulate_charge(CHARGE, simulation)
        await world.clock.advance(3600)
        state = await charge_of(bank)
        assert (state.status, state.failure) == after
        assert (state.transfer is not None) is (state.status is C.PAID)

    async def test_charge_names_the_simulated_payer(self, bank: SimulatedBank, mandate: MandateState) -> None:
        await bank.charge(debit(mandate))
        await bank.simulate_charge(CHARGE, ChargeSimulation(status=C.PAID, payer_name="Ivan Petrovich P."))
        transfer = (await charge_of(bank)).transfer
        assert transfer is not None
        assert transfer.payer_name == "Ivan Petrovich P."

    @pytest.mark.parametrize(
        ("silent", "doubled", "notifications"), [(False, False, 1), (True, False, 0), (False, True, 2)]
    )
    async def test_notifications(
        self, bank: SimulatedBank, mandate: MandateState, silent: bool, doubled: bool, notifications: int
    ) -> None:
        await bank.charge(debit(mandate))
        sent = await bank.simulate_charge(CHARGE, ChargeSimulation(status=C.PAID, silent=silent, doubled=doubled))
        assert [notification.operation for notification in sent] == [CHARGE] * notifications

    async def test_no_such_charge(self, bank: SimulatedBank, mandate: MandateState) -> None:
        for operation in (CHARGE, BINDING):
            with pytest.raises(Refused):
                await bank.simulate_charge(operation, ChargeSimulation(status=C.PAID))


class TestBooks:
    async def test_a_token_is_of_no_use_before_it_was_given(self, bank: SimulatedBank) -> None:
        made = await bank.bind(binding())
        page = await bank._pages.read(BINDING)
        assert page is not None
        assert page.binding is not None
        token = page.binding.token
        await is_refused(bank, debit(await bank.mandate_state(made.reference), token=token), "not_found")

    async def test_refunds_of_bindings_and_charges_are_done_in_time_too(self, world: World) -> None:
        bank = world.bank(refunds_hold=timedelta(seconds=5))
        mandate = await bound(bank)
        await bank.charge(debit(mandate))
        await world.clock.advance(1)
        references = (mandate.reference, (await charge_of(bank)).reference)
        for reference in references:
            assert (await bank.refund(back(1_00, f"ref_{reference}", reference=reference))).check_after == 5
        await world.clock.advance(5)
        for reference in references:
            assert await bank.find_refund(f"ref_{reference}") == DONE


class TestOverdue:
    """`past_due` clears when the bank clears it or a charge succeeds
    (docs/subscriptions.md "When the mandate is lost")."""

    async def test_until_the_bank_clears_it(self, bank: SimulatedBank) -> None:
        mandate = await bound(bank)
        await tell(bank, E.PAST_DUE)
        state = await state_of(bank)
        assert (state.status, state.overdue) == (S.ACTIVE, True)
        await tell(bank, E.PAST_DUE_CLEARED)
        assert await state_of(bank) == mandate

    async def test_a_later_success_clears_it_and_an_earlier_one_does_not(
        self, world: World, bank: SimulatedBank
    ) -> None:
        mandate = await bound(bank)
        await bank.charge(debit(mandate, operation="pay_1"))
        await world.clock.advance(1)
        await tell(bank, E.PAST_DUE)
        assert (await state_of(bank)).overdue
        await bank.simulate_next_charge(BINDING, "insufficient_funds")
        await bank.charge(debit(mandate, operation="pay_2"))
        assert (await state_of(bank)).overdue, "a failure clears nothing"
        await bank.charge(debit(mandate, operation="pay_3"))
        assert (await state_of(bank)).overdue, "not paid yet"
        await bank.simulate_charge("pay_3", ChargeSimulation(status=C.PAID))
        assert not (await state_of(bank)).overdue
        await tell(bank, E.PAST_DUE)
        assert (await state_of(bank)).overdue, "again"

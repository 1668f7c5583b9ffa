"""What every bank must do that charges mandates (ports/mandates.py)."""

import asyncio
from datetime import timedelta

import pytest

from cambist.adapters.bank.script import Ending, Twist
from cambist.adapters.bank.simulator import SimulatedBank
from cambist.ports.bank import BankCapabilities
from cambist.ports.faults import Fault, NotConfigured, OutcomeUnknown, Refused
from cambist.ports.mandates import (
    MANDATE_REVOKED,
    ChargePretence,
    ChargeRequest,
    ChargeStatus,
    MandateBank,
    MandateEvent,
    MandateState,
    MandateStatus,
)
from cambist.ports.notes import ProviderNote
from tests.contracts.bank_kit import START, World, back
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
    """Given with a first charge of 100 RUB."""
    return await bound(bank)


class TestCharge:
    async def test_it_is_paid_and_can_be_found_by_its_operation(
        self, world: World, bank: MandateBank, mandate: MandateState
    ) -> None:
        assert await bank.find_charge(CHARGE) is None, "the bank never saw it"
        begun = await bank.charge(debit(mandate))
        assert (begun.status, begun.failure, begun.transfer) == (C.PROCESSING, None, None)
        assert await bank.find_charge(CHARGE) == begun
        await world.clock.advance(begun.check_after or 0)
        paid = await charge_of(bank)
        assert (paid.status, paid.failure, paid.check_after) == (C.PAID, None, None)
        assert paid.transfer is not None
        assert paid.transfer.amount_kopecks == 250_00
        assert paid.transfer.at == START + timedelta(seconds=begun.check_after or 0)
        await has_debited(bank, paid.reference, 250_00)

    async def test_a_repeat_never_debits_again_whatever_it_says(
        self, world: World, bank: SimulatedBank, mandate: MandateState
    ) -> None:
        await bank.charge(debit(mandate))
        await world.clock.advance(1)
        paid = await charge_of(bank)
        other = await bound(bank, "bind_2")
        repeats = (
            debit(mandate),
            debit(mandate, 5_000_00),
            debit(mandate, 0),
            debit(mandate, token="another"),
            debit(other),
            debit(mandate, reference="nothing"),
        )
        for repeat in repeats:
            assert await bank.charge(repeat) == paid
        await has_debited(bank, paid.reference, 250_00)

    async def test_one_operation_at_once_debits_once(
        self, world: World, bank: MandateBank, mandate: MandateState
    ) -> None:
        answers = await asyncio.gather(*(bank.charge(debit(mandate)) for _ in range(10)))
        assert {answer.reference for answer in answers} == {answers[0].reference}
        async with world.storage.unit() as unit:
            assert await unit[ProviderNote].total() == 2, "the binding and one charge"
        await world.clock.advance(1)
        await has_debited(bank, answers[0].reference, 250_00)

    async def test_operations_at_once_are_each_debited(
        self, world: World, bank: MandateBank, mandate: MandateState
    ) -> None:
        operations = [f"pay_{number}" for number in range(5)]
        await asyncio.gather(*(bank.charge(debit(mandate, operation=operation)) for operation in operations))
        await world.clock.advance(1)
        transfers = [(await charge_of(bank, operation)).transfer for operation in operations]
        assert len({transfer.id for transfer in transfers if transfer is not None}) == 5

    async def test_after_a_lost_answer_it_is_found_and_a_repeat_debits_nothing(
        self, world: World, bank: MandateBank, mandate: MandateState
    ) -> None:
        world.script.charge.append(Twist(ending=Ending.UNKNOWN_DONE))
        with pytest.raises(OutcomeUnknown):
            await bank.charge(debit(mandate))
        assert (await charge_of(bank)).status is C.PROCESSING
        await world.clock.advance(1)
        assert await bank.charge(debit(mandate)) == await bank.find_charge(CHARGE)
        await has_debited(bank, f"sim:{CHARGE}", 250_00)

    async def test_after_a_request_that_never_came_a_repeat_debits(
        self, world: World, bank: MandateBank, mandate: MandateState
    ) -> None:
        world.script.charge.append(Twist(ending=Ending.UNKNOWN_NOT_DONE))
        with pytest.raises(OutcomeUnknown):
            await bank.charge(debit(mandate))
        assert await bank.find_charge(CHARGE) is None
        await bank.charge(debit(mandate))
        await world.clock.advance(1)
        await has_debited(bank, f"sim:{CHARGE}", 250_00)

    async def test_a_failed_one_stays_failed_and_another_operation_may_succeed(
        self, world: World, bank: SimulatedBank, mandate: MandateState
    ) -> None:
        await bank.charge(debit(mandate))
        await bank.pretend_charge(CHARGE, ChargePretence(status=C.FAILED, failure="insufficient_funds"))
        await world.clock.advance(3600)
        failed = await bank.charge(debit(mandate))
        assert (failed.status, failed.failure, failed.transfer) == (C.FAILED, "insufficient_funds", None)
        with pytest.raises(Refused) as refused:
            await bank.refund(back(1, reference=failed.reference))
        assert refused.value.reason == "not_paid"
        await bank.charge(debit(mandate, operation="pay_8"))
        await world.clock.advance(1)
        assert (await charge_of(bank, "pay_8")).status is C.PAID

    async def test_what_is_refused_leaves_no_charge(self, world: World, bank: SimulatedBank) -> None:
        mandate = await bound(bank)
        await bound(world.bank("other"))
        await bank.bind(binding(operation="bind_2"))
        rows: tuple[tuple[ChargeRequest, str], ...] = (
            (debit(mandate, 0), "amount"),
            (debit(mandate, -1), "amount"),
            (debit(mandate, token="another"), "not_found"),
            (debit(mandate, reference="nothing"), "not_found"),
            (debit(mandate, reference=f"other:{BINDING}"), "not_found"),
            (debit(mandate, reference="sim:bind_2"), "not_found"),
        )
        for request, reason in rows:
            await is_refused(bank, request, reason)
        assert (await bank.charge(debit(mandate))).status is C.PROCESSING

    @pytest.mark.parametrize("events", [(E.MANDATE_LOST,), (E.CONSENT_ENDED,), (E.MANDATE_LOST, E.CONSENT_ENDED), ()])
    async def test_a_mandate_that_is_over_fails_for_good(
        self, world: World, bank: SimulatedBank, mandate: MandateState, events: tuple[MandateEvent, ...]
    ) -> None:
        """`mandate_revoked` (SPEC "Charge errors"); without events, because we revoked it."""
        await tell(bank, *events)
        if not events:
            await bank.revoke(mandate.reference)
        failed = await bank.charge(debit(mandate))
        assert (failed.status, failed.failure, failed.transfer) == (C.FAILED, MANDATE_REVOKED, None)
        await tell(bank, E.MANDATE_RESTORED)
        await world.clock.advance(3600)
        assert await bank.charge(debit(mandate)) == failed, "the same operation, whatever came after"

    async def test_a_mandate_that_is_valid_again_can_be_charged(
        self, bank: SimulatedBank, mandate: MandateState
    ) -> None:
        """DECISIONS 5: paused to active when the bank reports the token valid again."""
        await tell(bank, E.MANDATE_LOST)
        assert (await state_of(bank)).status is S.LOST
        await tell(bank, E.MANDATE_RESTORED)
        assert await state_of(bank) == mandate
        assert (await bank.charge(debit(mandate))).status is C.PROCESSING

    @pytest.mark.parametrize("event", [E.MANDATE_LOST, E.CONSENT_ENDED])
    async def test_a_charge_under_way_does_not_end_with_its_mandate(
        self, world: World, bank: SimulatedBank, mandate: MandateState, event: MandateEvent
    ) -> None:
        """DECISIONS 5: a success that still arrives after cancelling."""
        await bank.charge(debit(mandate))
        await tell(bank, event)
        await world.clock.advance(1)
        assert (await charge_of(bank)).status is C.PAID

    @pytest.mark.parametrize("ending", [Ending.REFUSED, Ending.UNAVAILABLE])
    async def test_a_charge_that_was_certainly_not_made_is_not_there(
        self, world: World, bank: MandateBank, mandate: MandateState, ending: Ending
    ) -> None:
        world.script.charge.append(Twist(ending=ending))
        with pytest.raises(Fault):
            await bank.charge(debit(mandate))
        assert await bank.find_charge(CHARGE) is None

    async def test_a_bank_that_charges_no_mandates_binds_all_the_same(self, world: World) -> None:
        """SPEC "Charge errors", PROVIDER_NOT_CONFIGURED: nothing is made; what was charged before is known."""
        bank = world.bank(capabilities=BankCapabilities(simulated=True, mandates=True))
        mandate = await bound(bank)
        with pytest.raises(NotConfigured):
            await bank.charge(debit(mandate))
        assert await bank.find_charge(CHARGE) is None
        begun = await world.bank().charge(debit(mandate))
        assert await bank.charge(debit(mandate)) == begun
        assert await bank.find_charge(CHARGE) == begun

    async def test_no_repr_tells_a_token_or_a_payer(
        self, world: World, bank: SimulatedBank, mandate: MandateState
    ) -> None:
        await bank.charge(debit(mandate))
        await bank.pretend_charge(CHARGE, ChargePretence(status=C.PAID, payer_name="Ivan Petrovich P."))
        page = await bank._books.read(BINDING)
        assert page is not None
        told = repr([mandate, debit(mandate), await charge_of(bank), page, page.binding])
        assert "Ivan" not in told
        assert mandate.token is not None
        assert mandate.token not in told

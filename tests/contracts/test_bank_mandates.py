"""Mandates at the simulated bank, beyond the contract of every bank (frontends/conformance/mandates.py)."""

from datetime import timedelta

import pytest

from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.ports.bank import Transfer
from cambist.ports.faults import Refused
from cambist.ports.mandates import (
    ChargeStatus,
    MandateBank,
    MandateEvent,
    MandateSimulation,
    MandateSimulator,
    MandateState,
    MandateStatus,
)
from tests.contracts.bank_kit import OPERATION, PAID, START, World, back
from tests.contracts.mandate_kit import (
    BINDING,
    CHARGE,
    FIRST,
    binding,
    bound,
    charge_of,
    debit,
    has_debited,
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


class TestBinding:
    async def test_a_reference_of_no_binding_is_refused(self, world: World, bank: SimulatedBank) -> None:
        await bank.create_invoice(world.request())
        await world.bank("other").bind(binding())
        for reference in ("nothing", f"sim:{BINDING}", f"other:{BINDING}", f"sim:{OPERATION}"):
            for call in (bank.mandate_state, bank.revoke):
                with pytest.raises(Refused):
                    await call(reference)


class TestConfirmation:
    async def test_the_first_charge_is_paid_and_the_mandate_given(self, world: World, bank: SimulatedBank) -> None:
        """The payer confirms, the binding payment is paid (docs/subscriptions.md "How the payer binds")."""
        made = await bank.bind(binding())
        await world.clock.advance(30)
        await tell(bank, E.CONFIRM, payer_name="Ivan Petrovich P.")
        state = await bank.mandate_state(made.reference)
        money = Transfer(
            id=f"{BINDING}/1", amount_kopecks=FIRST, at=START + timedelta(seconds=30), payer_name="Ivan Petrovich P."
        )
        assert (state.status, state.transfers, state.failure, state.overdue) == (S.ACTIVE, (money,), None, False)
        assert state.token

    async def test_confirmation_without_a_first_charge_debits_nothing(self, bank: SimulatedBank) -> None:
        """With `binding_charge` `none` the QR is of a symbolic 1 RUB, which the bank does not debit
        (docs/subscriptions.md "How the payer binds")."""
        made = await bank.bind(binding(None))
        assert made.payload is not None
        assert "sum=100&" in made.payload
        await tell(bank, E.CONFIRM)
        state = await bank.mandate_state(made.reference)
        assert (state.status, state.transfers) == (S.ACTIVE, ())
        assert state.token
        with pytest.raises(Refused) as refused:
            await bank.refund(back(1_00, reference=made.reference))
        assert refused.value.reason == "not_paid"

    @pytest.mark.parametrize(
        ("events", "between"),
        [((E.PAID, E.BOUND), (S.OPEN, 1)), ((E.BOUND, E.PAID), (S.ACTIVE, 0))],
        ids=["money first", "mandate first"],
    )
    async def test_money_and_mandate_come_in_any_order(
        self, bank: SimulatedBank, events: tuple[MandateEvent, ...], between: tuple[MandateStatus, int]
    ) -> None:
        """The order of the two is not guaranteed (docs/subscriptions.md "How the payer binds")."""
        await bank.bind(binding())
        await tell(bank, events[0])
        state = await state_of(bank)
        assert (state.status, len(state.transfers)) == between
        assert (state.token is not None) is (state.status is S.ACTIVE)
        await tell(bank, events[1])
        state = await state_of(bank)
        assert (state.status, len(state.transfers)) == (S.ACTIVE, 1)

    async def test_payer_who_confirms_twice_pays_once(self, bank: SimulatedBank) -> None:
        await bank.bind(binding())
        await tell(bank, E.CONFIRM, E.CONFIRM, E.PAID, E.BOUND)
        await has_debited(bank, f"sim:{BINDING}", FIRST)

    async def test_a_payer_may_refuse(self, bank: SimulatedBank) -> None:
        await bank.bind(binding())
        await tell(bank, E.REFUSE)
        state = await state_of(bank)
        assert (state.status, state.failure) == (S.REFUSED, "cancelled_by_customer")
        assert (state.token, state.transfers) == (None, ())

    async def test_a_payer_may_pay_and_not_bind(self, bank: SimulatedBank) -> None:
        """The money is there, and goes back as any other."""
        await bank.bind(binding())
        await tell(bank, E.PAID_NOT_BOUND)
        state = await state_of(bank)
        assert (state.status, state.token, len(state.transfers)) == (S.REFUSED, None, 1)
        assert state.failure
        await has_debited(bank, state.reference, FIRST)


class TestRevoke:
    async def test_revocation_ends_the_mandate_and_may_be_repeated(
        self, bank: SimulatedBank, mandate: MandateState
    ) -> None:
        for _ in range(3):
            await bank.revoke(mandate.reference)
            assert (await state_of(bank)).status is S.ENDED
        await tell(bank, E.MANDATE_RESTORED, E.CONFIRM, E.BOUND)
        assert (await state_of(bank)).status is S.ENDED

    async def test_a_binding_that_is_open_is_closed_and_cannot_be_confirmed(self, bank: SimulatedBank) -> None:
        made = await bank.bind(binding())
        await bank.revoke(made.reference)
        await tell(bank, E.CONFIRM, E.BOUND)
        state = await bank.mandate_state(made.reference)
        assert (state.status, state.token, state.transfers) == (S.CLOSED, None, ())

    async def test_money_on_its_way_comes_all_the_same(self, bank: SimulatedBank) -> None:
        made = await bank.bind(binding())
        await bank.revoke(made.reference)
        await tell(bank, E.PAID)
        state = await bank.mandate_state(made.reference)
        assert (state.status, len(state.transfers)) == (S.CLOSED, 1)
        await has_debited(bank, made.reference, FIRST)

    @pytest.mark.parametrize(
        ("event", "after"), [(E.REFUSE, S.REFUSED), (E.NO_LINK, S.CLOSED), (E.MANDATE_LOST, S.ENDED)]
    )
    async def test_from_any_state(self, bank: SimulatedBank, event: MandateEvent, after: MandateStatus) -> None:
        made = await bank.bind(binding())
        if event is E.MANDATE_LOST:
            await tell(bank, E.CONFIRM)
        await tell(bank, event)
        await bank.revoke(made.reference)
        assert (await bank.mandate_state(made.reference)).status is after


class TestBeside:
    async def test_everything_survives_a_restart(
        self, world: World, bank: SimulatedBank, mandate: MandateState
    ) -> None:
        await bank.charge(debit(mandate))
        restarted = world.bank()
        assert await state_of(restarted) == mandate
        assert (await charge_of(restarted)).status is C.PROCESSING
        await world.clock.advance(1)
        assert (await restarted.charge(debit(mandate))).status is C.PAID
        await has_debited(restarted, f"sim:{CHARGE}", 250_00)

    async def test_bindings_and_charges_are_no_invoices(
        self, world: World, bank: SimulatedBank, mandate: MandateState
    ) -> None:
        await bank.charge(debit(mandate))
        for operation in (BINDING, CHARGE):
            assert await bank.find_invoice(operation) is None
            with pytest.raises(Refused):
                await bank.invoice_state(f"sim:{operation}")
            with pytest.raises(Refused, match="began as no invoice"):
                await bank.create_invoice(world.request(operation=operation))
            with pytest.raises(Refused):
                await bank.simulate(operation, PAID)
        await bank.create_invoice(world.request())
        assert await bank.find_binding(OPERATION) is None
        assert await bank.find_charge(OPERATION) is None
        assert await bank.find_charge(BINDING) is None
        assert await bank.find_binding(CHARGE) is None
        for operation in (OPERATION, BINDING):
            with pytest.raises(Refused, match="began as no charge"):
                await bank.charge(debit(mandate, operation=operation))
        with pytest.raises(Refused, match="began as no binding"):
            await bank.bind(binding(operation=OPERATION))

    @pytest.mark.parametrize("event", [E.PAST_DUE, E.MANDATE_LOST, E.CONSENT_ENDED])
    async def test_a_notification_names_the_binding_and_the_state_says_the_rest(
        self, bank: SimulatedBank, mandate: MandateState, event: MandateEvent
    ) -> None:
        notifications = await bank.simulate_mandate(BINDING, MandateSimulation(event=event))
        assert [notification.operation for notification in notifications] == [BINDING]
        assert await state_of(bank) != mandate

    async def test_bank_declares_its_mandate_capabilities(self, bank: MandateBank) -> None:
        assert isinstance(bank, MandateBank)
        assert isinstance(bank, MandateSimulator)
        assert bank.capabilities.mandates
        assert bank.capabilities.mandate_charges

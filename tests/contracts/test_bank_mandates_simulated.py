"""Mandates at the simulated bank besides the contract: its instructions, time, its script, its books."""

from datetime import timedelta

import pytest

from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.core.domain.accounts.accounts import Mode
from cambist.ports.faults import OutcomeUnknown, Refused
from cambist.ports.mandates import (
    MandateBank,
    MandateEvent,
    MandateSimulation,
    MandateStatus,
)
from tests.apps import open_test_app
from tests.contracts.bank_kit import World
from tests.contracts.mandate_kit import BINDING, LIFETIME, binding, bound, state_of, tell

E, S = MandateEvent, MandateStatus


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def bank(world: World) -> SimulatedBank:
    return world.bank()


class TestSimulate:
    @pytest.mark.parametrize(
        ("before", "told", "after"),
        [
            ((), E.CONFIRM, (S.ACTIVE, 1)),
            ((E.REFUSE,), E.CONFIRM, (S.ACTIVE, 1)),
            ((E.NO_LINK,), E.CONFIRM, (S.ACTIVE, 1)),
            ((E.PAID_NOT_BOUND,), E.CONFIRM, (S.ACTIVE, 1)),
            ((E.BOUND,), E.CONFIRM, (S.ACTIVE, 1)),
            ((E.BOUND, E.MANDATE_LOST), E.CONFIRM, (S.LOST, 0)),
            ((E.BOUND, E.CONSENT_ENDED), E.CONFIRM, (S.ENDED, 0)),
            ((E.BOUND, E.CONSENT_ENDED), E.PAID, (S.ENDED, 1)),
            ((E.REFUSE,), E.PAID, (S.REFUSED, 1)),
            ((E.CONFIRM,), E.REFUSE, (S.ACTIVE, 1)),
            ((E.CONFIRM,), E.NO_LINK, (S.ACTIVE, 1)),
            ((E.BOUND,), E.PAID_NOT_BOUND, (S.ACTIVE, 1)),
            ((E.REFUSE,), E.NO_LINK, (S.REFUSED, 0)),
            ((E.NO_LINK,), E.REFUSE, (S.CLOSED, 0)),
            ((E.NO_LINK,), E.LINK_READY, (S.CLOSED, 0)),
            ((), E.MANDATE_LOST, (S.OPEN, 0)),
            ((), E.MANDATE_RESTORED, (S.OPEN, 0)),
            ((), E.CONSENT_ENDED, (S.OPEN, 0)),
            ((), E.PAST_DUE, (S.OPEN, 0)),
            ((E.CONFIRM,), E.MANDATE_RESTORED, (S.ACTIVE, 1)),
            ((E.CONFIRM, E.MANDATE_LOST), E.CONSENT_ENDED, (S.ENDED, 1)),
            ((E.CONFIRM, E.CONSENT_ENDED), E.MANDATE_LOST, (S.ENDED, 1)),
            ((E.CONFIRM, E.CONSENT_ENDED), E.MANDATE_RESTORED, (S.ENDED, 1)),
        ],
    )
    async def test_mandate_follows_every_possible_simulation(
        self,
        bank: SimulatedBank,
        before: tuple[MandateEvent, ...],
        told: MandateEvent,
        after: tuple[MandateStatus, int],
    ) -> None:
        await bank.bind(binding())
        await tell(bank, *before, told)
        state = await state_of(bank)
        assert (state.status, len(state.transfers)) == after
        assert not state.overdue
        assert (state.failure is not None) is (state.status is S.REFUSED)

    async def test_a_refusal_may_have_another_reason(self, bank: SimulatedBank) -> None:
        await bank.bind(binding(None))
        await tell(bank, E.REFUSE, failure="cancelled_by_bank")
        assert (await state_of(bank)).failure == "cancelled_by_bank"

    @pytest.mark.parametrize(
        ("first", "event", "notifications"),
        [
            (100_00, E.CONFIRM, 2),
            (100_00, E.PAID_NOT_BOUND, 2),
            (100_00, E.PAID, 1),
            (100_00, E.BOUND, 1),
            (None, E.CONFIRM, 1),
            (None, E.LINK_READY, 1),
        ],
    )
    async def test_money_and_mandate_notify_separately_maybe_twice_or_never(
        self, bank: SimulatedBank, first: int | None, event: MandateEvent, notifications: int
    ) -> None:
        for number, (silent, doubled, factor) in enumerate(((False, False, 1), (False, True, 2), (True, True, 0))):
            operation = f"bind_{number}"
            await bank.bind(binding(first, operation))
            simulation = MandateSimulation(event=event, silent=silent, doubled=doubled)
            sent = await bank.simulate_mandate(operation, simulation)
            assert [notification.operation for notification in sent] == [operation] * notifications * factor

    @pytest.mark.parametrize("event", [E.PAID, E.PAID_NOT_BOUND])
    async def test_a_binding_without_a_first_charge_brings_no_money(
        self, bank: SimulatedBank, event: MandateEvent
    ) -> None:
        await bank.bind(binding(None))
        with pytest.raises(ValueError, match="no money"):
            await tell(bank, event)

    async def test_no_such_binding(self, world: World, bank: SimulatedBank) -> None:
        await bank.create_invoice(world.request(operation="pay_1"))
        for operation in (BINDING, "pay_1"):
            with pytest.raises(Refused):
                await tell(bank, E.CONFIRM, operation=operation)
            with pytest.raises(Refused):
                await bank.simulate_next_charge(operation, "paid")


class TestLink:
    """The link may come later (docs/subscriptions.md "How the payer binds")."""

    async def test_link_comes_at_once_by_default(self, bank: SimulatedBank) -> None:
        assert not bank.capabilities.mandate_links_later
        made = await bank.bind(binding())
        assert made.link == made.payload is not None
        assert made.check_after is None

    async def test_some_time_later_by_itself(self, world: World) -> None:
        bank = world.bank(links_after=timedelta(minutes=10))
        assert bank.capabilities.mandate_links_later
        made = await bank.bind(binding())
        assert (made.link, made.payload, made.check_after) == (None, None, 600)
        await world.clock.advance(599)
        assert (await state_of(bank)).link is None
        await world.clock.advance(1)
        repeat, state = await bank.bind(binding()), await state_of(bank)
        assert repeat.link == repeat.payload == state.link == state.payload is not None
        assert (state.status, repeat.check_after) == (S.OPEN, None)

    async def test_link_comes_when_simulated(self, world: World) -> None:
        bank = world.bank(links_after=None)
        made = await bank.bind(binding())
        assert (made.link, made.check_after) == (None, None)
        await world.clock.advance(3600)
        assert (await state_of(bank)).link is None
        await tell(bank, E.LINK_READY)
        issued = (await state_of(bank)).link
        assert issued is not None
        await world.clock.advance(60)
        await tell(bank, E.LINK_READY)
        assert (await state_of(bank)).link == issued

    @pytest.mark.parametrize("ends", ["no link", "refused", "revoked", "too late"])
    async def test_none_comes_after_the_end(self, world: World, ends: str) -> None:
        bank = world.bank(links_after=LIFETIME if ends == "too late" else timedelta(minutes=10))
        made = await bank.bind(binding())
        if ends == "revoked":
            await bank.revoke(made.reference)
        elif ends != "too late":
            await tell(bank, E.NO_LINK if ends == "no link" else E.REFUSE)
        await world.clock.advance(LIFETIME.total_seconds() * 2)
        state = await state_of(bank)
        assert (state.status, state.link) == (S.REFUSED if ends == "refused" else S.CLOSED, None)

    async def test_confirming_payer_has_the_link(self, world: World) -> None:
        bank = world.bank(links_after=None)
        await bound(bank)
        assert (await state_of(bank)).link is not None


class TestTime:
    async def test_a_binding_is_closed_at_the_moment_wished_for(self, world: World, bank: SimulatedBank) -> None:
        await bank.bind(binding())
        await world.clock.advance(LIFETIME.total_seconds() - 0.001)
        assert (await state_of(bank)).status is S.OPEN
        await world.clock.advance(0.001)
        assert (await state_of(bank)).status is S.CLOSED

    async def test_a_mandate_is_not(self, world: World, bank: SimulatedBank) -> None:
        mandate = await bound(bank)
        await world.clock.advance(LIFETIME.total_seconds() * 800)
        assert await state_of(bank) == mandate

    @pytest.mark.parametrize(("kopecks", "failure"), [(404_01, "insufficient_funds"), (404_02, "declined_by_bank")])
    async def test_a_first_charge_of_such_an_amount_fails_a_second_after_its_link(
        self, world: World, kopecks: int, failure: str
    ) -> None:
        """The outcomes of docs/sandbox.md "The calls"."""
        bank = world.bank(links_after=timedelta(seconds=5))
        made = await bank.bind(binding(kopecks))
        assert made.check_after == 5
        await world.clock.advance(5)
        assert (await bank.bind(binding(kopecks))).check_after == 1
        assert (await state_of(bank)).status is S.OPEN
        await world.clock.advance(1)
        state = await state_of(bank)
        assert (state.status, state.failure, state.transfers) == (S.REFUSED, failure, ())

    async def test_money_that_came_first_decides(self, world: World, bank: SimulatedBank) -> None:
        await bank.bind(binding(404_01))
        await tell(bank, E.PAID)
        found = await bank.find_binding(BINDING)
        assert found is not None
        assert found.check_after is None
        await world.clock.advance(1)
        assert (await state_of(bank)).status is S.OPEN

    async def test_a_first_charge_of_404_04_is_there_and_its_answer_lost(
        self, world: World, bank: SimulatedBank
    ) -> None:
        with pytest.raises(OutcomeUnknown):
            await bank.bind(binding(404_04))
        found = await bank.find_binding(BINDING)
        assert await bank.bind(binding(404_04)) == found is not None

    async def test_no_other_amount_actions(self, world: World, bank: SimulatedBank) -> None:
        await bank.bind(binding(404_03))
        await world.clock.advance(1)
        assert (await state_of(bank)).status is S.OPEN
        await tell(bank, E.CONFIRM)
        assert (await state_of(bank)).transfers[0].amount_kopecks == 404_03


async def test_only_test_mode_mandates_can_be_charged_by_default() -> None:
    """PROVIDER_NOT_CONFIGURED is a capability of the adapter (docs/subscriptions.md "When a charge is refused")."""
    async with open_test_app() as app:
        for mode, charges in ((Mode.LIVE, False), (Mode.TEST, True)):
            (bank,) = app.ports.banks.of_mode(mode)
            assert isinstance(bank, MandateBank)
            assert (bank.capabilities.mandates, bank.capabilities.mandate_charges) == (True, charges)

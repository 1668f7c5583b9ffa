"""Charges at the simulated bank, beyond the contract of every bank (frontends/conformance/charges.py)."""

import pytest

from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.adapters.script import Ending, Twist
from cambist.ports.bank import BankCapabilities
from cambist.ports.faults import Fault, NotConfigured
from cambist.ports.mandates import (
    MANDATE_REVOKED,
    ChargeRequest,
    ChargeSimulation,
    ChargeStatus,
    MandateBank,
    MandateEvent,
    MandateState,
    MandateStatus,
)
from tests.contracts.bank_kit import World
from tests.contracts.mandate_kit import (
    BINDING,
    CHARGE,
    bound,
    charge_of,
    debit,
    is_refused,
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
    async def test_refused_charge_leaves_no_charge(self, world: World, bank: SimulatedBank) -> None:
        mandate = await bound(bank)
        await bound(world.bank("other"))
        rows: tuple[tuple[ChargeRequest, str], ...] = (
            (debit(mandate, 0), "amount"),
            (debit(mandate, reference=f"other:{BINDING}"), "not_found"),
        )
        for request, reason in rows:
            await is_refused(bank, request, reason)
        assert (await bank.charge(debit(mandate))).status is C.PROCESSING

    @pytest.mark.parametrize("events", [(E.CONSENT_ENDED,), (E.MANDATE_LOST, E.CONSENT_ENDED), ()])
    async def test_a_mandate_that_is_over_fails_for_good(
        self, world: World, bank: SimulatedBank, mandate: MandateState, events: tuple[MandateEvent, ...]
    ) -> None:
        """`mandate_revoked` (docs/subscriptions.md "When a charge is refused"); without events, because we revoked
        it."""
        await tell(bank, *events)
        if not events:
            await bank.revoke(mandate.reference)
        failed = await bank.charge(debit(mandate))
        assert (failed.status, failed.failure, failed.transfer) == (C.FAILED, MANDATE_REVOKED, None)
        await tell(bank, E.MANDATE_RESTORED)
        await world.clock.advance(3600)
        assert await bank.charge(debit(mandate)) == failed, "the same operation, whatever came after"

    @pytest.mark.parametrize("event", [E.MANDATE_LOST, E.CONSENT_ENDED])
    async def test_a_charge_under_way_does_not_end_with_its_mandate(
        self, world: World, bank: SimulatedBank, mandate: MandateState, event: MandateEvent
    ) -> None:
        """A success may still arrive after cancelling (docs/subscriptions.md "Changing and ending")."""
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
        """PROVIDER_NOT_CONFIGURED (docs/subscriptions.md "When a charge is refused"): the bank creates nothing, and
        still knows the earlier charges."""
        bank = world.bank(capabilities=BankCapabilities(simulated=True, mandates=True))
        mandate = await bound(bank)
        with pytest.raises(NotConfigured):
            await bank.charge(debit(mandate))
        assert await bank.find_charge(CHARGE) is None
        begun = await world.bank().charge(debit(mandate))
        assert await bank.charge(debit(mandate)) == begun
        assert await bank.find_charge(CHARGE) == begun

    async def test_no_repr_shows_a_token_or_a_payer(
        self, world: World, bank: SimulatedBank, mandate: MandateState
    ) -> None:
        await bank.charge(debit(mandate))
        await bank.simulate_charge(CHARGE, ChargeSimulation(status=C.PAID, payer_name="Ivan Petrovich P."))
        page = await bank._pages.read(BINDING)
        assert page is not None
        told = repr([mandate, debit(mandate), await charge_of(bank), page, page.binding])
        assert "Ivan" not in told
        assert mandate.token is not None
        assert mandate.token not in told

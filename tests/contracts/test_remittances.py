"""Remittances at the simulated bank, beyond the contract of every bank (frontends/conformance/remittances.py)."""

import asyncio
from typing import Any

import msgspec
import pytest

from cambist.adapters.bank.simulator.remittances import TAKES
from cambist.adapters.bank.simulator.simulator import REMITTANCE_MOST, SimulatedBank
from cambist.adapters.ids import SeededIds
from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Mode
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.bank import Bank, BankCapabilities, Notification
from cambist.ports.faults import Fault, NotSupported, OutcomeUnknown, Refused, Unavailable
from cambist.ports.notes import ProviderNote
from cambist.ports.remittances import (
    RemittanceBank,
    RemittanceRequest,
    RemittanceSimulator,
    RemittanceState,
    RemittanceStatus,
    remitting,
)
from tests.contracts.bank_kit import Busy, World

PHONE = "+79990000001"
OPERATION = "exch_1/1"
DONE = RemittanceState(status=RemittanceStatus.DONE)
PROCESSING, FAILED = RemittanceStatus.PROCESSING, RemittanceStatus.FAILED


def to(**more: Any) -> RemittanceRequest:
    fields: dict[str, Any] = {"operation": OPERATION, "phone": PHONE, "bank_id": "bank1", "amount_kopecks": 1000_00}
    return RemittanceRequest(**{**fields, **more})


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def bank(world: World) -> SimulatedBank:
    return world.bank()


async def notes(world: World) -> list[ProviderNote]:
    async with world.storage.unit() as unit:
        return await unit[ProviderNote].find()


async def state(bank: RemittanceBank, operation: str = OPERATION) -> RemittanceState:
    found = await bank.find_remittance(operation)
    assert found is not None
    return found


class TestTime:
    async def test_a_remittance_is_done_after_a_second(self, world: World, bank: RemittanceBank) -> None:
        begun = await bank.remit(to())
        assert begun == RemittanceState(status=PROCESSING, check_after=TAKES.total_seconds())
        await world.clock.advance(0.5)
        assert (await state(bank)).check_after == 0.5
        await world.clock.advance(0.5)
        assert await state(bank) == DONE
        assert await state(world.bank()) == DONE, "after a restart"

    async def test_a_repeat_for_another_bank_is_refused(self, world: World, bank: RemittanceBank) -> None:
        await bank.remit(to())
        with pytest.raises(Refused) as refused:
            await bank.remit(to(bank_id="bank2"))
        assert refused.value.reason == "operation"
        await world.clock.advance(1)
        assert await state(bank) == DONE

    @pytest.mark.parametrize(
        ("wrong", "reason"),
        [
            ({"amount_kopecks": 0}, "amount"),
            *(({"phone": phone}, "recipient") for phone in ("+7999", "+" + "1" * 16, "+٧9990000001")),
            *(({"bank_id": bank_id}, "recipient") for bank_id in ("bank", "1", "Bank1", "bankx")),
        ],
        ids=str,
    )
    async def test_refused_remittance_leaves_no_record(
        self, world: World, bank: RemittanceBank, wrong: dict[str, Any], reason: str
    ) -> None:
        with pytest.raises(Refused) as refused:
            await bank.remit(to(**wrong))
        assert refused.value.reason == reason
        assert await bank.find_remittance(OPERATION) is None
        assert await notes(world) == []

    async def test_the_most_is_allowed(self, bank: RemittanceBank) -> None:
        """A provider cap below the amount is met by several payouts (docs/exchanges.md "Rules")."""
        assert bank.capabilities.remittance_max_kopecks == REMITTANCE_MOST < 1_000_000_00
        assert (await bank.remit(to(amount_kopecks=REMITTANCE_MOST))).status is PROCESSING

    async def test_no_phone_is_kept_or_shown(self, world: World, bank: RemittanceBank) -> None:
        await bank.remit(to())
        assert PHONE[1:] not in repr(to())
        assert all(PHONE[1:-4].encode() not in note.body for note in await notes(world))


class TestEnds:
    """Three outcomes: done, refused for certain, unknown."""

    @pytest.mark.parametrize(
        ("ending", "fault", "was_done"),
        [
            (Ending.REFUSED, Refused, False),
            (Ending.UNKNOWN_DONE, OutcomeUnknown, True),
        ],
    )
    async def test_every_end_of_a_call(
        self, world: World, bank: RemittanceBank, ending: Ending, fault: type[Fault], was_done: bool
    ) -> None:
        world.script.remit.append(Twist(ending=ending))
        with pytest.raises(fault):
            await bank.remit(to())
        assert (await bank.find_remittance(OPERATION) is not None) is was_done
        assert (await bank.remit(to())).status is PROCESSING
        assert len(await notes(world)) == 1

    async def test_a_failed_read_says_nothing(self, world: World, bank: RemittanceBank) -> None:
        await bank.remit(to())
        world.script.find_remittance.append(Twist(ending=Ending.UNKNOWN_DONE))
        with pytest.raises(Unavailable):
            await bank.find_remittance(OPERATION)
        assert (await state(bank)).status is PROCESSING

    async def test_when_the_storage_loses_its_answer_the_outcome_is_unknown(self, world: World) -> None:
        busy = Busy(world.clock)
        bank = SimulatedBank("sim", busy, world.clock, SeededIds())
        busy.fault = Unavailable("away")
        with pytest.raises(OutcomeUnknown):
            await bank.remit(to())

    async def test_a_late_answer_comes_late(self, world: World, bank: RemittanceBank) -> None:
        world.script.remit.append(Twist(silence=30))
        asking = asyncio.create_task(bank.remit(to()))
        await world.clock.advance(29)
        assert not asking.done()
        await world.clock.advance(1)
        assert await asking == DONE


class TestSimulate:
    def test_bank_is_a_remittance_simulator(self, bank: SimulatedBank) -> None:
        assert isinstance(bank, RemittanceSimulator)

    @pytest.mark.parametrize(
        ("status", "failure", "wanted"),
        [
            (RemittanceStatus.DONE, None, DONE),
            (PROCESSING, None, RemittanceState(status=PROCESSING)),
            (FAILED, None, RemittanceState(status=FAILED, failure="declined_by_bank")),
            (FAILED, "recipient", RemittanceState(status=FAILED, failure="recipient")),
        ],
    )
    async def test_simulated_status_stays(
        self,
        world: World,
        bank: SimulatedBank,
        status: RemittanceStatus,
        failure: str | None,
        wanted: RemittanceState,
    ) -> None:
        await bank.remit(to())
        assert await bank.simulate_remittance(OPERATION, status, failure) == (Notification(operation=OPERATION),)
        assert await state(bank) == wanted
        await world.clock.advance(3600)
        assert await state(bank) == wanted
        assert await bank.remit(to()) == wanted

    async def test_held_it_may_be_done_or_fail_and_then_nothing_more(self, bank: SimulatedBank) -> None:
        await bank.remit(to())
        for status in (PROCESSING, FAILED, RemittanceStatus.DONE, PROCESSING):
            await bank.simulate_remittance(OPERATION, status)
        assert (await state(bank)).status is FAILED

    async def test_done_by_itself_it_fails_no_more(self, world: World, bank: SimulatedBank) -> None:
        await bank.remit(to())
        await world.clock.advance(1)
        await bank.simulate_remittance(OPERATION, FAILED)
        assert await state(bank) == DONE

    async def test_unknown_remittance_cannot_be_simulated(self, bank: SimulatedBank) -> None:
        with pytest.raises(Refused) as refused:
            await bank.simulate_remittance(OPERATION, FAILED)
        assert refused.value.reason == "not_found"


class TestCapability:
    async def test_a_bank_that_does_not_remit_says_so(self, world: World) -> None:
        bank = world.bank(capabilities=BankCapabilities(simulated=True))
        with pytest.raises(NotSupported):
            await bank.find_remittance(OPERATION)
        with pytest.raises(NotSupported):
            remitting(bank)

    def test_bank_with_remittances_is_found(self, bank: Bank) -> None:
        assert remitting(bank) is bank

    async def test_a_bank_without_a_bound_takes_any_amount(self, world: World) -> None:
        can = msgspec.structs.replace(world.bank().capabilities, remittance_max_kopecks=None)
        bank = world.bank(capabilities=can)
        assert (await bank.remit(to(amount_kopecks=10**12))).status is PROCESSING

    async def test_the_bank_of_each_mode_remits(self) -> None:
        async with open_app(Settings(database_url="memory://"), ids=SeededIds()) as app:
            for mode in Mode:
                (bank,) = app.ports.banks.of_mode(mode)
                assert remitting(bank).capabilities.remittance_max_kopecks == REMITTANCE_MOST

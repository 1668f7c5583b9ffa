"""The simulated bank keeps what ports/bank.py promises, and can do all that a bank can do to us."""

import asyncio
import binascii
import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import NoReturn
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from cambist.adapters.bank.simulator.pages import InvoiceEntry
from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.adapters.script import Ending, Twist
from cambist.ports.bank import Bank, InvoiceState, InvoiceStatus, Transfer
from cambist.ports.bank_simulator import BankSimulator, Simulation
from cambist.ports.faults import Fault, OutcomeUnknown, Refused, Stale, Unavailable
from cambist.ports.notes import ProviderNote
from tests.contracts.bank_kit import LIFETIME, OPERATION, PAID, START, Busy, World
from tests.tables import table


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def bank(world: World) -> SimulatedBank:
    return world.bank()


class TestContract:
    async def test_a_repeat_is_the_same_operation(self, world: World, bank: Bank) -> None:
        first = await bank.create_invoice(world.request())
        await world.clock.advance(60)
        assert await bank.create_invoice(world.request(kopecks=5_000_00)) == first

    async def test_a_reference_of_no_invoice_is_refused(self, world: World, bank: Bank) -> None:
        await world.bank("other").create_invoice(world.request())
        for reference in ("nothing", "sim:pay_2", "other:pay_1"):
            with pytest.raises(Refused):
                await bank.invoice_state(reference)

    async def test_two_banks_over_one_storage_keep_apart(self, world: World, bank: Bank) -> None:
        other = world.bank("other")
        await bank.create_invoice(world.request())
        assert await other.find_invoice(OPERATION) is None
        await other.create_invoice(world.request())
        await other.simulate(OPERATION, PAID)
        assert (await world.state(bank)).status is InvoiceStatus.OPEN

    async def test_bank_declares_its_capabilities(self, bank: Bank) -> None:
        assert isinstance(bank, BankSimulator)
        assert bank.name == "sim"
        assert bank.capabilities.simulated
        assert bank.capabilities.own_lifetime
        assert bank.capabilities.direct_link

    async def test_the_qr_looks_like_one_of_nspk_and_cannot_be_one(self, world: World, bank: Bank) -> None:
        invoice = await bank.create_invoice(world.request(1234_05))
        assert invoice.payload is not None
        parts = urlsplit(invoice.payload)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        assert (parts.scheme, parts.netloc) == ("https", "qr.nspk.ru")
        assert re.fullmatch(r"/AD[0-9A-Z]{30}", parts.path)
        assert "SIMULATED" in parts.path
        assert list(query) == ["type", "bank", "sum", "cur", "crc"]
        assert (query["type"], query["sum"], query["cur"]) == ("02", "123405", "RUB")
        told, _, crc = invoice.payload.partition("&crc=")
        assert int(crc, 16) == binascii.crc_hqx(told.encode(), 0xFFFF)
        assert invoice.link == invoice.payload

    def test_a_name_that_would_mix_up_notes_is_no_name(self, world: World) -> None:
        for name in ("", "a:b"):
            with pytest.raises(ValueError, match="name"):
                world.bank(name)


class TestSimulate:
    async def test_paid_brings_what_was_asked(self, world: World, bank: SimulatedBank) -> None:
        await bank.create_invoice(world.request())
        await world.clock.advance(30)
        notifications = await bank.simulate(
            OPERATION, Simulation(status=InvoiceStatus.PAID, payer_name="Ivan Petrovich P.")
        )
        assert [notification.operation for notification in notifications] == [OPERATION]
        state = await world.state(bank)
        assert state.status is InvoiceStatus.PAID
        assert state.transfers == (
            Transfer(
                id="pay_1/1",
                amount_kopecks=100_00,
                at=START + timedelta(seconds=30),
                payer_name="Ivan Petrovich P.",
            ),
        )

    async def test_paid_with_another_amount(self, world: World, bank: SimulatedBank) -> None:
        await bank.create_invoice(world.request())
        await bank.simulate(OPERATION, Simulation(status=InvoiceStatus.PAID, amount_kopecks=99_99))
        state = await world.state(bank)
        assert [transfer.amount_kopecks for transfer in state.transfers] == [99_99]
        assert state.transfers[0].payer_name is None

    async def test_a_repeat_brings_no_second_transfer_but_again_does(self, world: World, bank: SimulatedBank) -> None:
        await bank.create_invoice(world.request())
        await bank.simulate(OPERATION, PAID)
        first = await world.state(bank)
        await world.clock.advance(5)
        await bank.simulate(OPERATION, PAID)
        assert await world.state(bank) == first
        await bank.simulate(OPERATION, Simulation(status=InvoiceStatus.PAID, again=True, amount_kopecks=50_00))
        after = await world.state(bank)
        assert after.transfers[:1] == first.transfers
        assert [transfer.amount_kopecks for transfer in after.transfers] == [100_00, 50_00]
        assert len({transfer.id for transfer in after.transfers}) == 2

    async def test_again_on_an_unpaid_invoice_is_one_transfer(self, world: World, bank: SimulatedBank) -> None:
        await bank.create_invoice(world.request())
        await bank.simulate(OPERATION, Simulation(status=InvoiceStatus.PAID, again=True))
        assert len((await world.state(bank)).transfers) == 1

    @pytest.mark.parametrize(
        ("simulation", "failure"),
        [
            (Simulation(status=InvoiceStatus.FAILED), "declined_by_bank"),
            (Simulation(status=InvoiceStatus.FAILED, failure="cancelled_by_customer"), "cancelled_by_customer"),
            (Simulation(status=InvoiceStatus.CANCELLED, failure="ignored"), None),
            (Simulation(status=InvoiceStatus.PROCESSING), None),
            (Simulation(status=InvoiceStatus.EXPIRED), None),
        ],
    )
    async def test_other_ends_bring_no_money(
        self, world: World, bank: SimulatedBank, simulation: Simulation, failure: str | None
    ) -> None:
        invoice = await bank.create_invoice(world.request())
        assert len(await bank.simulate(OPERATION, simulation)) == 1
        assert await world.state(bank) == InvoiceState(
            reference=invoice.reference, status=simulation.status, failure=failure
        )

    @pytest.mark.parametrize(
        "status", [InvoiceStatus.FAILED, InvoiceStatus.CANCELLED, InvoiceStatus.EXPIRED, InvoiceStatus.PROCESSING]
    )
    async def test_money_comes_in_whatever_was_before(
        self, world: World, bank: SimulatedBank, status: InvoiceStatus
    ) -> None:
        """Late and impossible payments happen; the core decides how to handle them (docs/payments.md "How it ends")."""
        await bank.create_invoice(world.request())
        await bank.simulate(OPERATION, Simulation(status=status))
        await world.clock.advance(7 * 3600)
        await bank.simulate(OPERATION, PAID)
        state = await world.state(bank)
        assert (state.status, state.failure, len(state.transfers)) == (InvoiceStatus.PAID, None, 1)

    @pytest.mark.parametrize("status", [InvoiceStatus.FAILED, InvoiceStatus.CANCELLED, InvoiceStatus.EXPIRED])
    async def test_money_that_came_does_not_go_away(
        self, world: World, bank: SimulatedBank, status: InvoiceStatus
    ) -> None:
        await bank.create_invoice(world.request())
        await bank.simulate(OPERATION, PAID)
        paid = await world.state(bank)
        await bank.simulate(OPERATION, Simulation(status=status))
        assert await world.state(bank) == paid

    @pytest.mark.parametrize(
        ("silent", "doubled", "notifications"), [(False, False, 1), (True, False, 0), (False, True, 2)]
    )
    async def test_notifications(
        self, world: World, bank: SimulatedBank, silent: bool, doubled: bool, notifications: int
    ) -> None:
        await bank.create_invoice(world.request())
        sent = await bank.simulate(OPERATION, Simulation(status=InvoiceStatus.PAID, silent=silent, doubled=doubled))
        assert [notification.operation for notification in sent] == [OPERATION] * notifications
        assert (await world.state(bank)).status is InvoiceStatus.PAID

    async def test_no_such_invoice(self, bank: SimulatedBank) -> None:
        with pytest.raises(Refused):
            await bank.simulate(OPERATION, PAID)

    @pytest.mark.parametrize(
        "simulation",
        [Simulation(status=InvoiceStatus.OPEN), Simulation(status=InvoiceStatus.PAID, amount_kopecks=0)],
    )
    async def test_impossible_simulation_is_refused(
        self, world: World, bank: SimulatedBank, simulation: Simulation
    ) -> None:
        await bank.create_invoice(world.request())
        with pytest.raises(ValueError, match=r"open|nothing"):
            await bank.simulate(OPERATION, simulation)

    async def test_transfers_at_once_are_all_kept(self, world: World, bank: SimulatedBank) -> None:
        await bank.create_invoice(world.request())
        again = Simulation(status=InvoiceStatus.PAID, again=True)
        await asyncio.gather(*(bank.simulate(OPERATION, again) for _ in range(10)))
        state = await world.state(bank)
        assert len({transfer.id for transfer in state.transfers}) == 10


class TestTime:
    async def test_an_invoice_ends_at_the_moment_wished_for(self, world: World, bank: SimulatedBank) -> None:
        await bank.create_invoice(world.request())
        await world.clock.advance(LIFETIME.total_seconds() - 0.001)
        assert (await world.state(bank)).status is InvoiceStatus.OPEN
        await world.clock.advance(0.001)
        assert (await world.state(bank)).status is InvoiceStatus.EXPIRED

    async def test_one_in_processing_ends_then_too(self, world: World, bank: SimulatedBank) -> None:
        await bank.create_invoice(world.request())
        await bank.simulate(OPERATION, Simulation(status=InvoiceStatus.PROCESSING))
        await world.clock.advance(LIFETIME.total_seconds())
        assert (await world.state(bank)).status is InvoiceStatus.EXPIRED

    async def test_the_books_survive_a_restart(self, world: World, bank: SimulatedBank) -> None:
        first = await bank.create_invoice(world.request())
        await bank.create_invoice(world.request(operation="pay_2"))
        await bank.simulate(OPERATION, PAID)
        before = await world.state(bank)
        restarted = world.bank()
        assert await restarted.find_invoice(OPERATION) == first
        assert await world.state(restarted) == before
        assert (await world.state(restarted, "pay_2")).status is InvoiceStatus.OPEN


class TestAmountsThatSteer:
    """The amounts of docs/sandbox.md "Amounts that act by themselves"."""

    @pytest.mark.parametrize(("kopecks", "failure"), [(404_01, "insufficient_funds"), (404_02, "declined_by_bank")])
    async def test_404_01_and_404_02_fail_after_a_second(
        self, world: World, bank: SimulatedBank, kopecks: int, failure: str
    ) -> None:
        invoice = await bank.create_invoice(world.request(kopecks))
        assert invoice.check_after == 1.0
        await world.clock.advance(0.999)
        assert (await world.state(bank)).status is InvoiceStatus.OPEN
        await world.clock.advance(0.001)
        state = await world.state(bank)
        assert (state.status, state.failure, state.transfers) == (InvoiceStatus.FAILED, failure, ())

    async def test_404_03_is_paid_with_another_amount(self, world: World, bank: SimulatedBank) -> None:
        invoice = await bank.create_invoice(world.request(404_03))
        assert invoice.check_after == 1.0
        await world.clock.advance(1)
        state = await world.state(bank)
        assert state.status is InvoiceStatus.PAID
        assert [transfer.amount_kopecks for transfer in state.transfers] == [403_03]
        assert state.transfers[0].at == START + timedelta(seconds=1)
        await world.clock.advance(3600)
        assert await world.state(bank) == state, "the same transfer however often and late it is asked for"

    async def test_a_second_transfer_after_404_03_has_its_own_id(self, world: World, bank: SimulatedBank) -> None:
        await bank.create_invoice(world.request(404_03))
        await world.clock.advance(10)
        first = (await world.state(bank)).transfers
        await bank.simulate(OPERATION, Simulation(status=InvoiceStatus.PAID, again=True))
        after = (await world.state(bank)).transfers
        assert after[:1] == first
        assert after[1].id != first[0].id

    async def test_404_04_is_made_and_its_answer_lost(self, world: World, bank: SimulatedBank) -> None:
        with pytest.raises(OutcomeUnknown):
            await bank.create_invoice(world.request(404_04))
        found = await bank.find_invoice(OPERATION)
        assert found is not None
        assert (await bank.invoice_state(found.reference)).status is InvoiceStatus.OPEN
        assert await bank.create_invoice(world.request(404_04)) == found, "a repeat of the operation is answered"

    async def test_first_event_decides_over_an_amount_that_acts_by_itself(
        self, world: World, bank: SimulatedBank
    ) -> None:
        await bank.create_invoice(world.request(404_01))
        await bank.simulate(OPERATION, PAID)
        await world.clock.advance(10)
        assert (await world.state(bank)).status is InvoiceStatus.PAID

    async def test_other_amounts_do_nothing_by_themselves(self, world: World, bank: SimulatedBank) -> None:
        for number, kopecks in enumerate((404_00, 404_05, 4_04, 4040_10)):
            invoice = await bank.create_invoice(world.request(kopecks, operation=f"pay_{number}"))
            assert invoice.check_after is None
        await world.clock.advance(60)
        for number in range(4):
            assert (await world.state(bank, f"pay_{number}")).status is InvoiceStatus.OPEN


Call = Callable[[World, SimulatedBank], Awaitable[object]]


async def _create(world: World, bank: SimulatedBank) -> object:
    return await bank.create_invoice(world.request())


async def _find(_: World, bank: SimulatedBank) -> object:
    return await bank.find_invoice(OPERATION)


async def _state(_: World, bank: SimulatedBank) -> object:
    return await bank.invoice_state(f"{bank.name}:{OPERATION}")


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
    async def test_every_end_of_a_creation(
        self, world: World, bank: SimulatedBank, ending: Ending, fault: type[Fault], is_made: bool
    ) -> None:
        world.script.create.append(Twist(ending=ending))
        with pytest.raises(fault):
            await bank.create_invoice(world.request())
        assert (await bank.find_invoice(OPERATION) is not None) is is_made
        await bank.create_invoice(world.request())
        assert await bank.find_invoice(OPERATION) is not None

    @pytest.mark.parametrize("verb", ["find", "state"])
    @pytest.mark.parametrize(
        ("ending", "fault"),
        [
            (Ending.REFUSED, Refused),
            (Ending.UNAVAILABLE, Unavailable),
            (Ending.UNKNOWN_DONE, Unavailable),
            (Ending.UNKNOWN_NOT_DONE, Unavailable),
        ],
    )
    async def test_every_end_of_a_read(
        self, world: World, bank: SimulatedBank, verb: str, ending: Ending, fault: type[Fault]
    ) -> None:
        """A failed read is Unavailable, never an unknown outcome (ARCHITECTURE.md "Three outcomes")."""
        await bank.create_invoice(world.request())
        getattr(world.script, verb).append(Twist(ending=ending))
        call = {"find": _find, "state": _state}[verb]
        with pytest.raises(fault):
            await call(world, bank)
        assert await call(world, bank) is not None

    async def test_twists_are_taken_in_order_and_each_kind_has_its_own(self, world: World, bank: SimulatedBank) -> None:
        world.script.create.extend(
            [
                Twist(ending=Ending.UNAVAILABLE, retry_after=30),
                Twist(),
                Twist(ending=Ending.REFUSED, reason="limit"),
            ]
        )
        with pytest.raises(Unavailable) as unavailable:
            await bank.create_invoice(world.request())
        assert unavailable.value.retry_after == 30
        assert await bank.find_invoice(OPERATION) is None
        await bank.create_invoice(world.request())
        with pytest.raises(Refused) as refused:
            await bank.create_invoice(world.request(operation="pay_2"))
        assert refused.value.reason == "limit"

    @pytest.mark.parametrize(("verb", "call"), [("create", _create), ("find", _find), ("state", _state)])
    async def test_silence_before_an_answer(self, world: World, bank: SimulatedBank, verb: str, call: Call) -> None:
        if verb != "create":
            await bank.create_invoice(world.request())
        getattr(world.script, verb).append(Twist(silence=25))
        task = asyncio.ensure_future(call(world, bank))
        await world.clock.advance(24.9)
        assert not task.done()
        await world.clock.advance(1)
        assert task.done()
        assert await task is not None

    async def test_a_slow_creation_is_done_before_the_silence(self, world: World, bank: SimulatedBank) -> None:
        """The caller that gives up in between leaves an invoice behind, as with a real bank."""
        world.script.create.append(Twist(silence=25))
        task = asyncio.ensure_future(bank.create_invoice(world.request()))
        await world.clock.advance(1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert await bank.find_invoice(OPERATION) is not None

    async def test_silence_before_a_fault(self, world: World, bank: SimulatedBank) -> None:
        world.script.create.append(Twist(ending=Ending.UNKNOWN_NOT_DONE, silence=10))
        task = asyncio.ensure_future(bank.create_invoice(world.request()))
        await world.clock.advance(9)
        assert not task.done()
        await world.clock.advance(1)
        with pytest.raises(OutcomeUnknown):
            await task


class TestStorageProblem:
    async def test_a_commit_without_an_answer_is_an_unknown_outcome(self) -> None:
        """A storage that did not answer may have written (ports/storage.py, commit)."""
        world = World()
        storage = world.storage = Busy(world.clock)
        storage.fault = Unavailable("no answer")
        with pytest.raises(OutcomeUnknown):
            await world.bank().create_invoice(world.request())

    @table("is_cancelled", [False, True])
    async def test_report_on_a_drawn_invoice_may_be_repeated(self, is_cancelled: bool) -> None:
        """Its page may have been written, and nothing was reported on it yet."""
        world = World()
        storage = world.storage = Busy(world.clock)
        bank = world.bank()
        drawn = bank.draw_invoice(world.request())
        assert drawn is not None
        storage.fault = Unavailable("no answer")
        told = (
            bank.cancel_invoice(drawn.reference)
            if is_cancelled
            else bank.simulate(OPERATION, PAID, reference=drawn.reference)
        )
        with pytest.raises(Unavailable):
            await told
        storage.fault = None
        assert (await bank.invoice_state(drawn.reference)).status is InvoiceStatus.OPEN

    async def test_books_that_cannot_be_opened_certainly_hold_no_invoice(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """So a restart of the database leaves no key that answers 502 for ever."""

        def unit() -> NoReturn:
            raise Unavailable("no connection")

        world = World()
        monkeypatch.setattr(world.storage, "unit", unit)
        with pytest.raises(Unavailable):
            await world.bank().create_invoice(world.request())

    async def test_pretending_against_endless_rivals_gives_up(self) -> None:
        world = World()
        storage = world.storage = Busy(world.clock)
        bank = world.bank()
        await bank.create_invoice(world.request())
        storage.fault = Stale("somebody was quicker")
        with pytest.raises(Unavailable):
            await bank.simulate(OPERATION, PAID)
        storage.fault = None
        assert (await world.state(bank)).status is InvoiceStatus.OPEN

    async def test_no_payer_shows_in_the_repr_of_the_books(self, world: World, bank: SimulatedBank) -> None:
        await bank.create_invoice(world.request())
        await bank.simulate(OPERATION, Simulation(status=InvoiceStatus.PAID, payer_name="Ivan Petrovich P."))
        async with world.storage.unit() as unit:
            note = await unit[ProviderNote].get("sim:pay_1")
        assert note is not None
        assert "Ivan" not in repr(msgspec.json.decode(note.body, type=InvoiceEntry))

"""Invoices that the caller creates for the simulated bank: they behave like requested ones, and nothing is written
before somebody acts (ports/bank.py: DrawingBank)."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.adapters.bank.simulator.drawn import drawn_entry, drawn_reference
from cambist.adapters.bank.simulator.pages import ACTING, InvoiceEntry
from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.adapters.script import Twist
from cambist.ports.bank import Invoice, InvoiceRequest, InvoiceState, InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.faults import Refused
from cambist.ports.notes import ProviderNote
from tests.contracts.bank_kit import LIFETIME, OPERATION, PAID, START, World, back


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def bank(world: World) -> SimulatedBank:
    return world.bank()


def draw(world: World, bank: SimulatedBank, kopecks: int = 100_00) -> Invoice:
    invoice = bank.draw_invoice(world.request(kopecks))
    assert invoice is not None
    return invoice


async def pages(world: World) -> Sequence[ProviderNote]:
    async with world.storage.unit() as unit:
        return await unit[ProviderNote].find()


async def test_drawn_invoice_is_open_and_writes_nothing(world: World, bank: SimulatedBank) -> None:
    invoice = draw(world, bank)
    assert invoice.link == invoice.payload
    assert "sum=10000" in (invoice.payload or "")
    assert await bank.invoice_state(invoice.reference) == InvoiceState(
        reference=invoice.reference, status=InvoiceStatus.OPEN
    )
    assert await bank.find_invoice(OPERATION) is None
    assert await pages(world) == []


async def test_drawn_invoice_ends_with_its_lifetime(world: World, bank: SimulatedBank) -> None:
    invoice = draw(world, bank)
    await world.clock.advance(LIFETIME.total_seconds() - 0.001)
    assert (await bank.invoice_state(invoice.reference)).status is InvoiceStatus.OPEN
    await world.clock.advance(0.001)
    assert (await bank.invoice_state(invoice.reference)).status is InvoiceStatus.EXPIRED


async def test_payment_makes_a_drawn_invoice_known_and_refundable(world: World, bank: SimulatedBank) -> None:
    invoice = draw(world, bank)
    await world.clock.advance(30)
    notifications = await bank.simulate(OPERATION, PAID, reference=invoice.reference)
    assert [notification.operation for notification in notifications] == [OPERATION]
    # The bank after a restart.
    state = await world.bank().invoice_state(invoice.reference)
    assert state.status is InvoiceStatus.PAID
    assert [(each.amount_kopecks, each.at) for each in state.transfers] == [(100_00, START + timedelta(seconds=30))]
    found = await bank.find_invoice(OPERATION)
    assert found is not None
    assert (found.payload, (await bank.invoice_state(found.reference)).transfers) == (invoice.payload, state.transfers)
    await bank.refund(back(60_00, reference=invoice.reference))
    with pytest.raises(Refused) as refused:
        await bank.refund(back(40_01, "ref_2", reference=invoice.reference))
    assert refused.value.reason == "amount"


async def test_late_money_comes_in_as_for_any_invoice(world: World, bank: SimulatedBank) -> None:
    invoice = draw(world, bank)
    await world.clock.advance(7 * 3600)
    await bank.simulate(OPERATION, PAID, reference=invoice.reference)
    assert (await bank.invoice_state(invoice.reference)).status is InvoiceStatus.PAID


async def test_drawn_invoice_is_unknown_without_its_reference(world: World, bank: SimulatedBank) -> None:
    draw(world, bank)
    with pytest.raises(Refused):
        await bank.simulate(OPERATION, PAID)
    assert await pages(world) == []


async def test_unpaid_it_sends_nothing_back(world: World, bank: SimulatedBank) -> None:
    invoice = draw(world, bank)
    with pytest.raises(Refused) as refused:
        await bank.refund(back(reference=invoice.reference))
    assert refused.value.reason == "not_paid"


@pytest.mark.parametrize("told", ["", "1", "1.2", "a.b.c", "1.2.3.4", f"1.{10**30}.2", "1.2.", "100.1\u00b2.3"])
async def test_a_reference_that_we_did_not_draw_is_refused(bank: SimulatedBank, told: str) -> None:
    for reference in (f"sim:pay_1!{told}", f"other:pay_1!{told}", "other:pay_1!1.2.3"):
        with pytest.raises(Refused):
            await bank.invoice_state(reference)
        with pytest.raises(Refused):
            await bank.simulate(OPERATION, Simulation(status=InvoiceStatus.PAID), reference=reference)


@pytest.mark.parametrize("kopecks", [*sorted(ACTING), 0, -1])
def test_amount_that_acts_by_itself_or_is_refused_is_not_drawn(world: World, bank: SimulatedBank, kopecks: int) -> None:
    assert bank.draw_invoice(world.request(kopecks)) is None


def test_scripted_invoice_is_not_drawn(world: World, bank: SimulatedBank) -> None:
    world.script.create.append(Twist())
    assert bank.draw_invoice(world.request()) is None


def test_bank_set_to_be_asked_draws_no_invoices_and_declares_so(world: World) -> None:
    asked = world.bank(asked=True)
    assert not asked.capabilities.draws_invoices
    assert asked.draw_invoice(world.request()) is None


MOMENTS = st.timedeltas(timedelta(0), timedelta(days=200_000)).map(
    lambda since: datetime(1970, 1, 1, tzinfo=UTC) + since
)


@given(kopecks=st.integers(1, 10**12), made=MOMENTS, ends=MOMENTS)
def test_the_reference_says_all_to_the_microsecond(kopecks: int, made: datetime, ends: datetime) -> None:
    request = InvoiceRequest(operation=OPERATION, amount_kopecks=kopecks, purpose="Order 1", expires_at=ends)
    entry = drawn_entry(drawn_reference(request, made), lambda kopecks, chance: f"{kopecks}/{chance}")
    assert isinstance(entry, InvoiceEntry)
    assert (entry.operation, entry.amount_kopecks, entry.created_at, entry.expires_at) == (
        OPERATION, kopecks, made, ends
    )  # fmt: skip

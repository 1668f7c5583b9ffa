"""Refunds of the simulated bank to the kopeck, beyond what every bank must do (conformance/bank/refunds.py)."""

import pytest

from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.ports.bank import Bank, InvoiceStatus, RefundRequest, RefundState, RefundStatus
from cambist.ports.bank_simulator import Simulation
from tests.contracts.bank_kit import DONE, OPERATION, PROCESSING, REFUND, World, back, is_refused, left, sent

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


class TestContract:
    async def test_a_repeat_is_the_same_operation_and_moves_no_second_money(self, bank: Bank) -> None:
        await bank.refund(back(60_00))
        for repeat in (back(60_00), back(1_00), back(5_000_00)):
            assert await bank.refund(repeat) == DONE
        assert await left(bank) == 40_00

    async def test_repeats_at_once_are_one_refund(self, bank: Bank) -> None:
        assert await sent(bank, *(back(60_00) for _ in range(10))) == ["done"] * 10
        assert await left(bank) == 40_00

    async def test_a_repeat_answers_with_the_present_state(self, slow_bank: SimulatedBank) -> None:
        assert await slow_bank.refund(back()) == PROCESSING
        for status in (S.DONE, S.REVERSED):
            await slow_bank.simulate_refund(REFUND, status)
            assert await slow_bank.refund(back()) == RefundState(status=status)

    @pytest.mark.parametrize(
        ("request_", "reason"),
        [
            (back(reference="sim:pay_2"), "not_found"),
            (back(reference="nothing"), "not_found"),
            (back(reference=f"other:{OPERATION}"), "not_found"),
            (back(reference=f"sim/refunds:{REFUND}"), "not_found"),
            (back(transfer="pay_1/2"), "not_found"),
            (back(0), "amount"),
            (back(-1), "amount"),
            (back(100_01), "amount"),
        ],
    )
    async def test_refused_refund_moves_no_money(self, bank: Bank, request_: RefundRequest, reason: str) -> None:
        await is_refused(bank, request_, reason)
        assert await bank.refund(back(100_00, "ref_2")) == DONE

    @pytest.mark.parametrize("status", [None, InvoiceStatus.PROCESSING, InvoiceStatus.FAILED, InvoiceStatus.EXPIRED])
    async def test_an_invoice_that_brought_no_money_is_not_refunded(
        self, world: World, status: InvoiceStatus | None
    ) -> None:
        bank = world.bank()
        await bank.create_invoice(world.request())
        if status is not None:
            await bank.simulate(OPERATION, Simulation(status=status))
        await is_refused(bank, back(), "not_paid")

    async def test_several_parts_up_to_the_amount_and_no_further(self, bank: Bank) -> None:
        for number, kopecks in enumerate((30_00, 69_99, 1)):
            await is_refused(bank, back(100_01, f"ref_{number}"), "amount")
            assert await bank.refund(back(kopecks, f"ref_{number}")) == DONE
        await is_refused(bank, back(1, "ref_9"), "amount")

    async def test_refunds_are_limited_by_the_received_amount(self, world: World) -> None:
        """An invoice of 100 RUB may bring less, or more."""
        bank = world.bank()
        for operation, kopecks in (("pay_1", 99_00), ("pay_2", 101_00)):
            await bank.create_invoice(world.request(operation=operation))
            await bank.simulate(operation, Simulation(status=InvoiceStatus.PAID, amount_kopecks=kopecks))
            reference = f"sim:{operation}"
            await is_refused(bank, back(kopecks + 1, f"ref_{operation}", reference=reference), "amount")
            assert await bank.refund(back(kopecks, f"ref_{operation}", reference=reference)) == DONE

    async def test_one_in_processing_keeps_its_money(self, slow_bank: SimulatedBank) -> None:
        await slow_bank.refund(back(60_00))
        await is_refused(slow_bank, back(40_01, "ref_2"), "amount")
        assert await slow_bank.refund(back(40_00, "ref_2")) == PROCESSING

    @pytest.mark.parametrize("end", [(S.FAILED,), (S.DONE, S.REVERSED)], ids=["failed", "reversed"])
    async def test_money_that_did_not_go_or_came_back_can_be_sent_again(
        self, slow_bank: SimulatedBank, end: tuple[RefundStatus, ...]
    ) -> None:
        await slow_bank.refund(back())
        for status in end:
            await slow_bank.simulate_refund(REFUND, status)
        state = await slow_bank.find_refund(REFUND)
        assert state is not None
        assert state.status is end[-1]
        assert await slow_bank.refund(back(operation="ref_2")) == PROCESSING

    async def test_no_more_of_a_transfer_than_is_left_of_it(self, bank: SimulatedBank) -> None:
        """A payer can scan a QR code twice. The second transfer is returned by its own id, up to its own amount."""
        await bank.simulate(OPERATION, Simulation(status=InvoiceStatus.PAID, again=True, amount_kopecks=50_00))
        await is_refused(bank, back(50_01, transfer="pay_1/2"), "amount")
        assert await bank.refund(back(50_00, transfer="pay_1/2")) == DONE
        await is_refused(bank, back(1, "ref_2", transfer="pay_1/2"), "amount")
        assert await bank.refund(back(100_00, "ref_3")) == DONE
        await is_refused(bank, back(1, "ref_4", transfer="pay_1/1"), "amount")

    async def test_invoices_and_banks_keep_apart(self, world: World, bank: SimulatedBank) -> None:
        other = world.bank("other")
        await world.paid(other)
        await bank.refund(back())
        assert await other.find_refund(REFUND) is None
        assert await other.refund(back(reference=f"other:{OPERATION}")) == DONE

    async def test_the_same_operation_of_another_invoice_moves_nothing(self, world: World, bank: SimulatedBank) -> None:
        await world.paid(bank, operation="pay_2")
        await bank.refund(back(60_00))
        assert await bank.refund(back(60_00, reference="sim:pay_2")) == DONE
        assert await bank.refund(back(100_00, "ref_2", reference="sim:pay_2")) == DONE

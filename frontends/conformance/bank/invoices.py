"""Contract of invoices: created once, found by operation, with their state (ports/bank.py)."""

import asyncio

import pytest

from ....ports.bank import (
    Invoice,
    InvoiceKind,
    InvoiceStatus,
)
from ....ports.faults import OutcomeUnknown, Refused, Unavailable
from ..bank_harness import BankHarness
from ..operation_ids import exchange_invoice_id, operation_id
from .kit import OPERATION, OTHER, assert_open, state_of


class TestInvoices:
    """An operation creates one invoice, whatever fails on the way, and the bank reports the invoice's state."""

    async def test_an_invoice_is_open_and_can_be_found_by_its_operation(self, bank_harness: BankHarness) -> None:
        invoice = await bank_harness.bank.create_invoice(bank_harness.request(OPERATION))
        assert invoice.reference
        assert (invoice.payload is not None) is (invoice.kind is InvoiceKind.QR), "a QR has a payload, nothing else has"
        assert invoice.link
        found = await bank_harness.bank.find_invoice(OPERATION)
        assert found is not None
        assert shown(found) == shown(invoice)
        state = await bank_harness.bank.invoice_state(invoice.reference)
        assert_open(state, invoice)

    async def test_an_operation_that_never_came_is_not_found(self, bank_harness: BankHarness) -> None:
        assert await bank_harness.bank.find_invoice(operation_id("pay", 99)) is None

    async def test_a_repeat_is_the_same_operation(self, bank_harness: BankHarness) -> None:
        request = bank_harness.request(OPERATION)
        first = await bank_harness.bank.create_invoice(request)
        again = await bank_harness.bank.create_invoice(request)
        assert shown(again) == shown(first)

    async def test_repeats_at_once_make_one_invoice(self, bank_harness: BankHarness) -> None:
        request = bank_harness.request(OPERATION)
        invoices = await asyncio.gather(*(bank_harness.bank.create_invoice(request) for _ in range(5)))
        assert len({invoice.reference for invoice in invoices}) == 1

    async def test_two_operations_are_two_invoices(self, bank_harness: BankHarness) -> None:
        first = await bank_harness.bank.create_invoice(bank_harness.request(OPERATION))
        second = await bank_harness.bank.create_invoice(bank_harness.request(OTHER))
        assert first.reference != second.reference
        assert first.link != second.link

    async def test_an_exchange_has_invoices_too(self, bank_harness: BankHarness) -> None:
        """Their ids have another prefix and the same length."""
        operation = exchange_invoice_id()
        invoice = await bank_harness.bank.create_invoice(bank_harness.request(operation))
        assert shown(await bank_harness.bank.create_invoice(bank_harness.request(operation))) == shown(invoice)
        found = await bank_harness.bank.find_invoice(operation)
        assert (found and found.reference) == invoice.reference
        payment = operation_id("pay", 1)
        assert await bank_harness.bank.find_invoice(payment) is None, "an id with the same UUID is another operation"

    async def test_each_of_many_is_found(self, bank_harness: BankHarness) -> None:
        """A provider may return them in pages."""
        operations = [operation_id("pay", number) for number in range(bank_harness.page * 2 + 1)]
        made = [await bank_harness.bank.create_invoice(bank_harness.request(operation)) for operation in operations]
        found = [await bank_harness.bank.find_invoice(operation) for operation in operations]
        assert [each and each.reference for each in found] == [each.reference for each in made]

    @pytest.mark.parametrize("kopecks", [100_00, 490_05, 1_234_50])
    async def test_provider_is_asked_for_the_amount_to_the_kopeck(
        self, bank_harness: BankHarness, kopecks: int
    ) -> None:
        """Confusing kopecks with roubles, or 490.5 with 490.05, would charge the payer a different price."""
        await bank_harness.bank.create_invoice(bank_harness.request(OPERATION, kopecks))
        asked = await bank_harness.asked(OPERATION)
        assert asked == kopecks, f"the invoice is of {kopecks} kopecks, and the provider asks the payer for {asked}"

    @pytest.mark.parametrize("kopecks", [0, -1])
    async def test_an_invoice_for_nothing_is_refused(self, bank_harness: BankHarness, kopecks: int) -> None:
        with pytest.raises(Refused):
            await bank_harness.bank.create_invoice(bank_harness.request(OPERATION, kopecks))
        assert await bank_harness.bank.find_invoice(OPERATION) is None

    async def test_a_reference_of_no_invoice_is_refused(self, bank_harness: BankHarness) -> None:
        with pytest.raises(Refused):
            await bank_harness.bank.invoice_state("no-such-reference")

    async def test_money_that_came_is_told_to_the_kopeck_and_the_same_each_time(
        self, bank_harness: BankHarness
    ) -> None:
        invoice = await bank_harness.bank.create_invoice(bank_harness.request(OPERATION, 100_01))
        await bank_harness.pay(OPERATION, invoice, 100_01)
        state = await state_of(bank_harness.bank, OPERATION)
        assert state.status is InvoiceStatus.PAID
        [transfer] = state.transfers
        assert transfer.id
        assert transfer.amount_kopecks == 100_01
        assert transfer.at.utcoffset() is not None, "a transfer's moment has a time zone"
        assert (await state_of(bank_harness.bank, OPERATION)).transfers == state.transfers

    async def test_money_of_one_invoice_is_no_other_s(self, bank_harness: BankHarness) -> None:
        invoice = await bank_harness.bank.create_invoice(bank_harness.request(OPERATION))
        await bank_harness.bank.create_invoice(bank_harness.request(OTHER))
        await bank_harness.pay(OPERATION, invoice, 100_00)
        assert (await state_of(bank_harness.bank, OTHER)).transfers == ()

    async def test_paid_invoices_report_their_own_transfers_only(self, bank_harness: BankHarness) -> None:
        """Transfers of two invoices may have equal ids: an id is unique only within its invoice."""
        amounts = {OPERATION: 100_00, OTHER: 200_00}
        for operation, kopecks in amounts.items():
            invoice = await bank_harness.bank.create_invoice(bank_harness.request(operation, kopecks))
            await bank_harness.pay(operation, invoice, kopecks)
        for operation, kopecks in amounts.items():
            state = await state_of(bank_harness.bank, operation)
            came = [transfer.amount_kopecks for transfer in state.transfers]
            assert came == [kopecks], f"{operation}: transfers of another invoice are reported, or its own are missing"

    @pytest.mark.parametrize("done", [True, False])
    async def test_a_lost_answer_is_an_unknown_outcome_and_the_operation_settles_it(
        self, bank_harness: BankHarness, done: bool
    ) -> None:
        """A call ends as done, refused or unknown (ARCHITECTURE.md). A call that may have happened is never reported as
        not done."""
        request = bank_harness.request(OPERATION)
        await bank_harness.lose_next_answer(done=done)
        with pytest.raises(OutcomeUnknown):
            await bank_harness.bank.create_invoice(request)
        assert (await bank_harness.bank.find_invoice(OPERATION) is not None) is done
        await bank_harness.bank.create_invoice(request)
        assert await bank_harness.bank.find_invoice(OPERATION) is not None

    async def test_a_bank_that_is_away_was_certainly_not_asked(self, bank_harness: BankHarness) -> None:
        await bank_harness.be_away()
        with pytest.raises(Unavailable):
            await bank_harness.bank.create_invoice(bank_harness.request(OPERATION))
        with pytest.raises(Unavailable):
            await bank_harness.bank.find_invoice(OPERATION)


def shown(invoice: Invoice) -> tuple[str, str | None, str, InvoiceKind]:
    """Return the fields of an invoice that payers see, and its reference."""
    return (invoice.reference, invoice.payload, invoice.link, invoice.kind)

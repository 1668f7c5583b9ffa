"""Contract of invoices: created once, found by operation, with their state (ports/bank.py)."""

import asyncio

import pytest

from ....ports.bank import (
    Invoice,
    InvoiceKind,
)
from ....ports.faults import OutcomeUnknown, Refused, Unavailable
from ..bank_harness import BankHarness
from ..expectations import must_answer, must_raise
from ..operation_ids import exchange_invoice_id, operation_id
from .kit import OPERATION, OTHER, assert_open

FOUND = "an invoice must be found by its operation id alone"
SAME = "a repeat of an operation must return the invoice of its first call"


class TestInvoices:
    """An operation creates one invoice, whatever fails on the way, and the bank reports the invoice's state."""

    async def test_an_invoice_is_open_and_can_be_found_by_its_operation(self, bank_harness: BankHarness) -> None:
        invoice = await bank_harness.bank.create_invoice(bank_harness.request(OPERATION))
        assert invoice.reference, "an invoice must have the provider's reference"
        assert (invoice.payload is not None) is (invoice.kind is InvoiceKind.QR), "a QR has a payload, nothing else has"
        assert invoice.link, "an invoice must have a link for its payer"
        found = await bank_harness.bank.find_invoice(OPERATION)
        assert found is not None, FOUND
        assert shown(found) == shown(invoice), "find_invoice must return the invoice as create_invoice returned it"
        state = await bank_harness.bank.invoice_state(invoice.reference)
        assert_open(state, invoice)

    async def test_an_operation_that_never_came_is_not_found(self, bank_harness: BankHarness) -> None:
        found = await bank_harness.bank.find_invoice(operation_id("pay", 99))
        assert found is None, "an operation that the provider never saw must not be found"

    async def test_a_repeat_is_the_same_operation(self, bank_harness: BankHarness) -> None:
        request = bank_harness.request(OPERATION)
        first = await bank_harness.bank.create_invoice(request)
        with must_answer(SAME):
            again = await bank_harness.bank.create_invoice(request)
        assert shown(again) == shown(first), SAME

    async def test_repeats_at_once_make_one_invoice(self, bank_harness: BankHarness) -> None:
        request = bank_harness.request(OPERATION)
        with must_answer(SAME):
            invoices = await asyncio.gather(*(bank_harness.bank.create_invoice(request) for _ in range(5)))
        assert len({invoice.reference for invoice in invoices}) == 1, SAME

    async def test_two_operations_are_two_invoices(self, bank_harness: BankHarness) -> None:
        first = await bank_harness.bank.create_invoice(bank_harness.request(OPERATION))
        second = await bank_harness.bank.create_invoice(bank_harness.request(OTHER))
        assert first.reference != second.reference, "two operations must be two invoices: is the operation id cut?"
        assert first.link != second.link, "two invoices must have two links"

    async def test_an_exchange_has_invoices_too(self, bank_harness: BankHarness) -> None:
        """Their ids have another prefix and the same length."""
        operation = exchange_invoice_id()
        invoice = await bank_harness.bank.create_invoice(bank_harness.request(operation))
        again = await bank_harness.bank.create_invoice(bank_harness.request(operation))
        assert shown(again) == shown(invoice), SAME
        found = await bank_harness.bank.find_invoice(operation)
        assert (found and found.reference) == invoice.reference, FOUND
        payment = await bank_harness.bank.find_invoice(operation_id("pay", 1))
        assert payment is None, "an id with the same UUID and another prefix is another operation"

    async def test_each_of_many_is_found(self, bank_harness: BankHarness) -> None:
        """A provider may return them in pages."""
        operations = [operation_id("pay", number) for number in range(bank_harness.page * 2 + 1)]
        made = [await bank_harness.bank.create_invoice(bank_harness.request(operation)) for operation in operations]
        found = [await bank_harness.bank.find_invoice(operation) for operation in operations]
        assert [each and each.reference for each in found] == [each.reference for each in made], (
            "each of many invoices must be found, also on the later pages of the provider's list"
        )

    @pytest.mark.parametrize("kopecks", [0, -1])
    async def test_an_invoice_for_nothing_is_refused(self, bank_harness: BankHarness, kopecks: int) -> None:
        with must_raise(f"an invoice of {kopecks} kopecks must be refused", Refused):
            await bank_harness.bank.create_invoice(bank_harness.request(OPERATION, kopecks))
        assert await bank_harness.bank.find_invoice(OPERATION) is None, "a refused invoice must not exist"

    async def test_a_reference_of_no_invoice_is_refused(self, bank_harness: BankHarness) -> None:
        with must_raise("invoice_state must refuse a reference that the provider does not know", Refused):
            await bank_harness.bank.invoice_state("no-such-reference")

    @pytest.mark.parametrize("done", [True, False])
    async def test_a_lost_answer_is_an_unknown_outcome_and_the_operation_settles_it(
        self, bank_harness: BankHarness, done: bool
    ) -> None:
        """A call ends as done, refused or unknown (ARCHITECTURE.md). A call that may have happened is never reported as
        not done."""
        request = bank_harness.request(OPERATION)
        await bank_harness.lose_next_answer(done=done)
        with must_raise("a writing call whose answer is lost has an unknown outcome", OutcomeUnknown):
            await bank_harness.bank.create_invoice(request)
        is_found = await bank_harness.bank.find_invoice(OPERATION) is not None
        assert is_found is done, "after a lost answer the operation id must show whether the invoice was made"
        await bank_harness.bank.create_invoice(request)
        assert await bank_harness.bank.find_invoice(OPERATION) is not None, FOUND

    async def test_a_bank_that_is_away_was_certainly_not_asked(self, bank_harness: BankHarness) -> None:
        await bank_harness.be_away()
        with must_raise("without a connection nothing was sent, so another bank may be tried", Unavailable):
            await bank_harness.bank.create_invoice(bank_harness.request(OPERATION))
        with must_raise("a search without a connection says nothing about the invoice", Unavailable):
            await bank_harness.bank.find_invoice(OPERATION)


def shown(invoice: Invoice) -> tuple[str, str | None, str, InvoiceKind]:
    """Return the fields of an invoice that payers see, and its reference."""
    return (invoice.reference, invoice.payload, invoice.link, invoice.kind)

"""Contract of a bank under provider failures, cancelled calls, and several adapters of the same name (docs/adapters.md
"When the provider fails")."""

import pytest

from ....ports.bank import Bank, Invoice, InvoiceStatus, RefundRequest
from ....ports.faults import Refused
from ..bank_harness import BankHarness
from ..expectations import must_answer, must_raise
from ..operation_ids import operation_id
from ..problem import CancelRules, Reading, ReadRules, TwoProcessRules, Work, WriteRules
from .invoices import FOUND, SAME
from .kit import OPERATION, OTHER, REFUND, paid
from .refunds import ONCE, REST


async def _paid(bank_harness: BankHarness) -> Invoice:
    """Return a paid invoice. Skips if the bank does not refund."""
    if not bank_harness.bank.capabilities.refunds:
        pytest.skip("the bank does not refund (`capabilities.refunds`)")
    return await paid(bank_harness)


def _back(invoice: Invoice, kopecks: int, operation: str = REFUND) -> RefundRequest:
    return RefundRequest(operation=operation, reference=invoice.reference, amount_kopecks=kopecks)


async def _assert_refunded_once(bank: Bank, invoice: Invoice) -> None:
    """Assert that exactly 60 of 100 RUB were refunded: a further 40.01 is refused and 40 is accepted."""
    with must_raise("60 RUB must have gone back once, and they did not", Refused):
        await bank.refund(_back(invoice, 40_01, operation_id("ref", 2)))
    with must_answer(f"{ONCE}; {REST}"):
        await bank.refund(_back(invoice, 40_00, operation_id("ref", 3)))


async def _invoices(harness: BankHarness) -> Work:
    bank, request = harness.bank, harness.request(OPERATION)

    async def once() -> None:
        found = await bank.find_invoice(OPERATION)
        assert found is not None, FOUND
        assert (await bank.create_invoice(request)).reference == found.reference, SAME

    async def is_there() -> bool:
        return await bank.find_invoice(OPERATION) is not None

    return Work(
        harness=harness,
        adapter=bank,
        write=lambda: bank.create_invoice(request),
        is_there=is_there,
        once=once,
        beside=lambda: harness.beside().create_invoice(request),
    )


async def _refunds(harness: BankHarness) -> Work:
    bank, invoice = harness.bank, await _paid(harness)

    async def is_there() -> bool:
        return await bank.find_refund(REFUND) is not None

    return Work(
        harness=harness,
        adapter=bank,
        write=lambda: bank.refund(_back(invoice, 60_00)),
        is_there=is_there,
        once=lambda: _assert_refunded_once(bank, invoice),
        beside=lambda: harness.beside().refund(_back(invoice, 60_00)),
        outlasts=True,
    )


class _OfInvoices:
    @pytest.fixture
    async def work(self, bank_harness: BankHarness) -> Work:
        return await _invoices(bank_harness)


class _OfRefunds:
    @pytest.fixture
    async def work(self, bank_harness: BankHarness) -> Work:
        return await _refunds(bank_harness)


class TestFaults(_OfInvoices, WriteRules, ReadRules):
    """Invoices while the provider fails."""

    @pytest.fixture
    async def read(self, bank_harness: BankHarness) -> Reading:
        bank = bank_harness.bank
        invoice = await bank.create_invoice(bank_harness.request(OPERATION))
        reads = (lambda: bank.invoice_state(invoice.reference), lambda: bank.find_invoice(OTHER))
        return Reading(harness=bank_harness, adapter=bank, reads=reads)


class TestRefundsAtFaults(_OfRefunds, WriteRules, ReadRules):
    """Refunds while the provider fails."""

    @pytest.fixture
    async def read(self, bank_harness: BankHarness) -> Reading:
        bank, invoice = bank_harness.bank, await _paid(bank_harness)
        await bank.refund(_back(invoice, 60_00))
        return Reading(harness=bank_harness, adapter=bank, finds=(lambda: bank.find_refund(REFUND),))


class TestCancelledCalls(_OfInvoices, CancelRules):
    """Invoices when the caller cancels the call."""


class TestCancelledRefunds(_OfRefunds, CancelRules):
    """Refunds when the caller cancels the call."""


class TestTwoOfOneName(_OfInvoices, TwoProcessRules):
    """Two processes create one invoice."""

    async def test_invoice_of_one_process_is_found_by_another(self, bank_harness: BankHarness) -> None:
        other = bank_harness.beside()
        made = await bank_harness.bank.create_invoice(bank_harness.request(OPERATION))
        found = await other.find_invoice(OPERATION)
        assert (found and found.reference) == made.reference, f"{FOUND}, also by another process"
        await bank_harness.pay(OPERATION, made, 100_00)
        state = await other.invoice_state(made.reference)
        assert state.status is InvoiceStatus.PAID, "another process must see what was paid"


class TestTwoRefund(_OfRefunds, TwoProcessRules):
    """Two processes send one refund."""

"""Contract of a bank under provider failures, cancelled calls, and several adapters of the same name (docs/adapters.md
"When the provider fails")."""

import msgspec
import pytest

from ....ports.bank import Bank, Invoice, InvoiceStatus, RefundRequest
from ....ports.faults import Fault, Refused, Unavailable
from ..bank_harness import BankHarness
from ..harnesses import check_hidden
from ..operation_ids import operation_id
from ..problem import CancelRules, Reading, ReadRules, TwoProcessRules, Work, WriteRules
from .kit import OPERATION, OTHER, REFUND, state_of


async def _paid(bank_harness: BankHarness, kopecks: int = 100_00) -> Invoice:
    """Return a paid invoice. Skips if the bank does not refund."""
    if not bank_harness.bank.capabilities.refunds:
        pytest.skip("the bank does not refund")
    invoice = await bank_harness.bank.create_invoice(bank_harness.request(OPERATION, kopecks))
    await bank_harness.pay(OPERATION, invoice, kopecks)
    return invoice


def _back(invoice: Invoice, kopecks: int, operation: str = REFUND) -> RefundRequest:
    return RefundRequest(operation=operation, reference=invoice.reference, amount_kopecks=kopecks)


async def _assert_refunded_once(bank: Bank, invoice: Invoice) -> None:
    """Assert that exactly 60 of 100 RUB were refunded: a further 40.01 is refused and 40 is accepted."""
    with pytest.raises(Refused):
        await bank.refund(_back(invoice, 40_01, operation_id("ref", 2)))
    await bank.refund(_back(invoice, 40_00, operation_id("ref", 3)))


async def _invoices(harness: BankHarness) -> Work:
    bank, request = harness.bank, harness.request(OPERATION)

    async def once() -> None:
        found = await bank.find_invoice(OPERATION)
        assert found is not None
        assert (await bank.create_invoice(request)).reference == found.reference

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
        assert found is not None
        assert found.reference == made.reference
        await bank_harness.pay(OPERATION, made, 100_00)
        assert (await other.invoice_state(made.reference)).status is InvoiceStatus.PAID


class TestTwoRefund(_OfRefunds, TwoProcessRules):
    """Two processes send one refund."""


class TestExtremes:
    """Rare but valid values pass unchanged."""

    @pytest.mark.parametrize("kopecks", [1, 99, 100_07, 4_35, 2**31 - 1, 2**31 + 1, 9_999_999_999_99])
    async def test_an_amount_is_told_to_the_kopeck(self, bank_harness: BankHarness, kopecks: int) -> None:
        """Includes amounts beyond 32 bits, and 4.35 RUB, which a binary fraction would round to another kopeck."""
        can = bank_harness.bank.capabilities
        if not can.min_kopecks <= kopecks <= (can.max_kopecks or kopecks):
            pytest.skip("the bank takes no such amount")
        invoice = await bank_harness.bank.create_invoice(bank_harness.request(OPERATION, kopecks))
        await bank_harness.pay(OPERATION, invoice, kopecks)
        state = await state_of(bank_harness.bank, OPERATION)
        assert [transfer.amount_kopecks for transfer in state.transfers] == [kopecks]

    @pytest.mark.parametrize("purpose", ["Ж" * 255, "«Ёлка» №\u202f7 \U0001f384 " * 17, '"<&>\\ %s {}'])
    async def test_a_purpose_that_is_long_or_strange_makes_an_invoice(
        self, bank_harness: BankHarness, purpose: str
    ) -> None:
        """255 characters may be 510 bytes. The adapter shortens the text for a provider with a lower limit."""
        request = msgspec.structs.replace(bank_harness.request(OPERATION), purpose=purpose)
        invoice = await bank_harness.bank.create_invoice(request)
        assert (await bank_harness.bank.invoice_state(invoice.reference)).status is InvoiceStatus.OPEN
        assert (await bank_harness.bank.create_invoice(request)).reference == invoice.reference


class TestClosed:
    """An adapter with `close` is closed at shutdown, perhaps while calls are still running."""

    async def test_it_is_closed_twice_and_then_has_faults_alone(self, bank_harness: BankHarness) -> None:
        close = getattr(bank_harness.bank, "close", None)
        if close is None:
            pytest.skip("the adapter has nothing to close")
        invoice = await bank_harness.bank.create_invoice(bank_harness.request(OPERATION))
        await close()
        await close()
        with pytest.raises(Fault) as raised:
            await bank_harness.bank.create_invoice(bank_harness.request(OTHER))
        check_hidden(bank_harness.secrets, bank_harness.bank, raised.value)
        with pytest.raises(Unavailable):
            await bank_harness.bank.invoice_state(invoice.reference)

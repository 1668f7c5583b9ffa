"""A bank whose provider fails, whose caller goes away, and which is not the only one of its name (docs/adapters.md
"When the provider fails")."""

import asyncio
import logging
from datetime import timedelta

import msgspec
import pytest

from ....ports.bank import Bank, Invoice, InvoiceStatus, RefundRequest
from ....ports.faults import Fault, NotConfigured, OutcomeUnknown, Refused, Unavailable
from ...fake_provider.faults import UNCLEAR, ProviderFault
from ..benches import BankBench, check_hidden
from ..operation_ids import operation_id
from .kit import OPERATION, OTHER, REFUND, state_of


async def _paid(bank_bench: BankBench, kopecks: int = 100_00) -> Invoice:
    """An invoice that is paid, at a bank that refunds."""
    if not bank_bench.bank.capabilities.refunds:
        pytest.skip("the bank does not refund")
    invoice = await bank_bench.bank.create_invoice(bank_bench.request(OPERATION, kopecks))
    await bank_bench.pay(OPERATION, invoice, kopecks)
    return invoice


def _back(invoice: Invoice, kopecks: int, operation: str = REFUND) -> RefundRequest:
    return RefundRequest(operation=operation, reference=invoice.reference, amount_kopecks=kopecks)


async def _assert_refunded_once(bank: Bank, invoice: Invoice) -> None:
    """Of 100 RUB 60 went, and no more: 40.01 cannot go, 40 can."""
    with pytest.raises(Refused):
        await bank.refund(_back(invoice, 40_01, operation_id("ref", 2)))
    await bank.refund(_back(invoice, 40_00, operation_id("ref", 3)))


class TestFaults:
    """What an answer means is told by three ends, and nothing is done twice or lost by it."""

    @pytest.mark.parametrize("fault", UNCLEAR)
    async def test_a_write_without_a_clear_answer_is_unknown_and_once(
        self, bank_bench: BankBench, fault: ProviderFault
    ) -> None:
        """Half an answer, a 5xx, a redirect, what cannot be read: none says that nothing was done."""
        await bank_bench.spoil_write(fault)
        with pytest.raises(OutcomeUnknown):
            await bank_bench.bank.create_invoice(bank_bench.request(OPERATION))
        assert (await bank_bench.bank.find_invoice(OPERATION) is not None) is fault.done
        made = await bank_bench.bank.create_invoice(bank_bench.request(OPERATION))
        found = await bank_bench.bank.find_invoice(OPERATION)
        assert found is not None
        assert found.reference == made.reference

    @pytest.mark.parametrize("fault", UNCLEAR)
    async def test_a_refund_without_a_clear_answer_is_unknown_and_goes_once(
        self, bank_bench: BankBench, fault: ProviderFault
    ) -> None:
        invoice = await _paid(bank_bench)
        await bank_bench.spoil_write(fault)
        with pytest.raises(OutcomeUnknown):
            await bank_bench.bank.refund(_back(invoice, 60_00))
        await bank_bench.outlast_lost_calls()
        await bank_bench.bank.refund(_back(invoice, 60_00))
        await _assert_refunded_once(bank_bench.bank, invoice)

    @pytest.mark.parametrize("fault", UNCLEAR)
    async def test_a_read_that_fails_is_unavailable_and_no_absence(
        self, bank_bench: BankBench, fault: ProviderFault
    ) -> None:
        invoice = await bank_bench.bank.create_invoice(bank_bench.request(OPERATION))
        await bank_bench.spoil_reads(fault)
        with pytest.raises(Unavailable):
            await bank_bench.bank.invoice_state(invoice.reference)
        with pytest.raises(Unavailable):
            await bank_bench.bank.find_invoice(OTHER)
        await bank_bench.recover()
        assert (await bank_bench.bank.invoice_state(invoice.reference)).status is InvoiceStatus.OPEN

    async def test_a_limit_of_the_provider_was_certainly_not_executed(self, bank_bench: BankBench) -> None:
        """429: and when to come back, where the provider says it in seconds."""
        await bank_bench.spoil_write(ProviderFault.BUSY, retry_after=7)
        with pytest.raises(Unavailable) as busy:
            await bank_bench.bank.create_invoice(bank_bench.request(OPERATION))
        assert busy.value.retry_after == 7
        assert await bank_bench.bank.find_invoice(OPERATION) is None

    async def test_a_limit_that_ends_at_a_moment_is_one_too(self, bank_bench: BankBench) -> None:
        """The date may be passed over; taken for a number it may not be."""
        await bank_bench.spoil_write(ProviderFault.BUSY, retry_after=bank_bench.clock.now() + timedelta(minutes=2))
        with pytest.raises(Unavailable) as busy:
            await bank_bench.bank.create_invoice(bank_bench.request(OPERATION))
        assert busy.value.retry_after is None or 0 <= busy.value.retry_after <= 120

    async def test_a_limit_on_reads_says_nothing_about_what_is_read(self, bank_bench: BankBench) -> None:
        invoice = await bank_bench.bank.create_invoice(bank_bench.request(OPERATION))
        await bank_bench.spoil_reads(ProviderFault.BUSY)
        with pytest.raises(Unavailable):
            await bank_bench.bank.invoice_state(invoice.reference)
        with pytest.raises(Unavailable):
            await bank_bench.bank.find_invoice(OTHER)

    @pytest.mark.parametrize("fault", [ProviderFault.UNAUTHORIZED, ProviderFault.FORBIDDEN])
    async def test_credentials_that_are_refused_once_refuse_one_call(
        self, bank_bench: BankBench, fault: ProviderFault
    ) -> None:
        """In the middle of life: the next call is as good as before."""
        await bank_bench.bank.create_invoice(bank_bench.request(OPERATION))
        await bank_bench.spoil_write(fault)
        with pytest.raises(NotConfigured):
            await bank_bench.bank.create_invoice(bank_bench.request(OTHER))
        assert await bank_bench.bank.find_invoice(OTHER) is None
        await bank_bench.bank.create_invoice(bank_bench.request(OTHER))

    @pytest.mark.parametrize("fault", [*UNCLEAR, ProviderFault.BUSY, ProviderFault.UNAUTHORIZED])
    async def test_no_credential_shows_in_faults_and_logs(
        self, bank_bench: BankBench, fault: ProviderFault, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Of any logger that Python has, at any level: what a client's library logs of the adapter's calls, too."""
        caplog.set_level(logging.DEBUG)
        await bank_bench.spoil_write(fault)
        with pytest.raises(Fault) as raised:
            await bank_bench.bank.create_invoice(bank_bench.request(OPERATION))
        await bank_bench.spoil_reads(fault)
        with pytest.raises(Fault) as unread:
            await bank_bench.bank.find_invoice(OTHER)
        check_hidden(bank_bench.secrets, bank_bench.bank, raised.value, unread.value, caplog.text)


class TestCancelledCalls:
    """A call that takes too long is cancelled, wherever it stands (docs/adapters.md "A bank: three ends")."""

    @pytest.mark.parametrize("done", [True, False])
    async def test_an_invoice_is_found_and_a_repeat_is_the_same(self, bank_bench: BankBench, done: bool) -> None:
        """Whether the provider carried it out before the caller went away, or does so after it."""
        held = await bank_bench.hold_next_write(done=done)
        call = asyncio.ensure_future(bank_bench.bank.create_invoice(bank_bench.request(OPERATION)))
        await held.arrived()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await held.release()
        found = await bank_bench.bank.find_invoice(OPERATION)
        assert found is not None, "it was made, and is not found"
        again = await bank_bench.bank.create_invoice(bank_bench.request(OPERATION))
        assert again.reference == found.reference

    @pytest.mark.parametrize("done", [True, False])
    async def test_a_refund_is_found_and_goes_once(self, bank_bench: BankBench, done: bool) -> None:
        invoice = await _paid(bank_bench)
        held = await bank_bench.hold_next_write(done=done)
        call = asyncio.ensure_future(bank_bench.bank.refund(_back(invoice, 60_00)))
        await held.arrived()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await held.release()
        assert await bank_bench.bank.find_refund(REFUND) is not None
        await bank_bench.bank.refund(_back(invoice, 60_00))
        await _assert_refunded_once(bank_bench.bank, invoice)


class TestTwoOfOneName:
    """Several processes have an adapter each, of one name, over one storage and one provider."""

    async def test_what_one_made_the_other_finds_and_repeats(self, bank_bench: BankBench) -> None:
        other = bank_bench.beside()
        made = await bank_bench.bank.create_invoice(bank_bench.request(OPERATION))
        found = await other.find_invoice(OPERATION)
        assert found is not None
        assert found.reference == made.reference
        assert (await other.create_invoice(bank_bench.request(OPERATION))).reference == made.reference
        await bank_bench.pay(OPERATION, made, 100_00)
        assert (await other.invoice_state(made.reference)).status is InvoiceStatus.PAID

    async def test_both_at_once_make_one_invoice(self, bank_bench: BankBench) -> None:
        both = (bank_bench.bank, bank_bench.beside())
        made = await asyncio.gather(*(bank.create_invoice(bank_bench.request(OPERATION)) for bank in both * 3))
        assert len({invoice.reference for invoice in made}) == 1

    async def test_both_at_once_send_one_refund(self, bank_bench: BankBench) -> None:
        invoice = await _paid(bank_bench)
        both = (bank_bench.bank, bank_bench.beside())
        await asyncio.gather(*(bank.refund(_back(invoice, 60_00)) for bank in both * 3))
        await _assert_refunded_once(bank_bench.bank, invoice)


class TestExtremes:
    """What is rare and allowed passes unchanged."""

    @pytest.mark.parametrize("kopecks", [1, 99, 100_07, 4_35, 2**31 - 1, 2**31 + 1, 9_999_999_999_99])
    async def test_an_amount_is_told_to_the_kopeck(self, bank_bench: BankBench, kopecks: int) -> None:
        """Beyond 32 bits, and where a binary fraction would lose a kopeck (4.35 RUB)."""
        can = bank_bench.bank.capabilities
        if not can.min_kopecks <= kopecks <= (can.max_kopecks or kopecks):
            pytest.skip("the bank takes no such amount")
        invoice = await bank_bench.bank.create_invoice(bank_bench.request(OPERATION, kopecks))
        await bank_bench.pay(OPERATION, invoice, kopecks)
        state = await state_of(bank_bench.bank, OPERATION)
        assert [transfer.amount_kopecks for transfer in state.transfers] == [kopecks]

    @pytest.mark.parametrize("purpose", ["Ж" * 255, "«Ёлка» №\u202f7 \U0001f384 " * 17, '"<&>\\ %s {}'])
    async def test_a_purpose_that_is_long_or_strange_makes_an_invoice(
        self, bank_bench: BankBench, purpose: str
    ) -> None:
        """255 characters may be 510 bytes; a provider that takes fewer is given fewer."""
        request = msgspec.structs.replace(bank_bench.request(OPERATION), purpose=purpose)
        invoice = await bank_bench.bank.create_invoice(request)
        assert (await bank_bench.bank.invoice_state(invoice.reference)).status is InvoiceStatus.OPEN
        assert (await bank_bench.bank.create_invoice(request)).reference == invoice.reference


class TestClosed:
    """An adapter with `close` is closed at the end, perhaps while something still asks it."""

    async def test_it_is_closed_twice_and_then_has_faults_alone(self, bank_bench: BankBench) -> None:
        close = getattr(bank_bench.bank, "close", None)
        if close is None:
            pytest.skip("the adapter has nothing to close")
        invoice = await bank_bench.bank.create_invoice(bank_bench.request(OPERATION))
        await close()
        await close()
        with pytest.raises(Fault) as raised:
            await bank_bench.bank.create_invoice(bank_bench.request(OTHER))
        check_hidden(bank_bench.secrets, bank_bench.bank, raised.value)
        with pytest.raises(Unavailable):
            await bank_bench.bank.invoice_state(invoice.reference)

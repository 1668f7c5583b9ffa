"""What every bank must do with invoices and refunds (ports/bank.py). Your conftest.py gives a fixture `bank_bench`, a
BankBench; what it cannot play is skipped. Mandates, charges and remittances have suites of their own."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from ...ports.bank import (
    Bank,
    CancellingBank,
    DrawingBank,
    Invoice,
    InvoiceKind,
    InvoiceState,
    InvoiceStatus,
    ListingBank,
    RefundRequest,
    RefundState,
    RefundStatus,
    SentRefund,
)
from ...ports.checking import Checkable
from ...ports.faults import Fault, NotConfigured, NotSupported, OutcomeUnknown, Refused, Unavailable
from ...ports.mandates import MandateBank
from ...ports.remittances import RemittanceBank
from .benches import BankBench, check_hidden, check_name
from .hearing import NoticeRules, Told, told
from .operation_ids import operation_id, suspense_ids

OPERATION = operation_id("pay", 1)
OTHER = operation_id("pay", 2)
REFUND = operation_id("ref", 1)
DAY = timedelta(hours=25)
"""Longer than most providers keep their keys."""
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


async def _state(bank: Bank, operation: str) -> InvoiceState:
    invoice = await bank.find_invoice(operation)
    assert invoice is not None, "an invoice that was made cannot be found by its operation"
    return await bank.invoice_state(invoice.reference)


def shown(invoice: Invoice) -> tuple[str, str | None, str, InvoiceKind]:
    """What payers see of an invoice, and by what the core knows it."""
    return (invoice.reference, invoice.payload, invoice.link, invoice.kind)


def last_repeat(bank: Bank) -> timedelta:
    """How long after its first sending an operation is sent again, at the latest; a day and more stand for ever."""
    window = bank.capabilities.repeat_window
    return DAY if window is None else min(window, DAY)


def assert_open(state: InvoiceState, invoice: Invoice) -> None:
    """Nothing came yet; when to ask again is the provider's to say."""
    assert (state.reference, state.status) == (invoice.reference, InvoiceStatus.OPEN)
    assert (state.transfers, state.failure) == ((), None)


class TestInvoices:
    """An invoice is made once, whatever happens on the way, and says how it stands."""

    async def test_an_invoice_is_open_and_can_be_found_by_its_operation(self, bank_bench: BankBench) -> None:
        invoice = await bank_bench.bank.create_invoice(bank_bench.request(OPERATION))
        assert invoice.reference
        assert (invoice.payload is not None) is (invoice.kind is InvoiceKind.QR), "a QR has a payload, nothing else has"
        assert invoice.link
        found = await bank_bench.bank.find_invoice(OPERATION)
        assert found is not None
        assert shown(found) == shown(invoice)
        state = await bank_bench.bank.invoice_state(invoice.reference)
        assert_open(state, invoice)

    async def test_an_operation_that_never_came_is_not_found(self, bank_bench: BankBench) -> None:
        assert await bank_bench.bank.find_invoice(operation_id("pay", 99)) is None

    async def test_a_repeat_is_the_same_operation(self, bank_bench: BankBench) -> None:
        request = bank_bench.request(OPERATION)
        first = await bank_bench.bank.create_invoice(request)
        again = await bank_bench.bank.create_invoice(request)
        assert shown(again) == shown(first)

    async def test_repeats_at_once_make_one_invoice(self, bank_bench: BankBench) -> None:
        request = bank_bench.request(OPERATION)
        invoices = await asyncio.gather(*(bank_bench.bank.create_invoice(request) for _ in range(5)))
        assert len({invoice.reference for invoice in invoices}) == 1

    async def test_two_operations_are_two_invoices(self, bank_bench: BankBench) -> None:
        first = await bank_bench.bank.create_invoice(bank_bench.request(OPERATION))
        second = await bank_bench.bank.create_invoice(bank_bench.request(OTHER))
        assert first.reference != second.reference
        assert first.link != second.link

    async def test_each_of_many_is_found(self, bank_bench: BankBench) -> None:
        """A provider that lists them does so page by page."""
        operations = [operation_id("pay", number) for number in range(bank_bench.page * 2 + 1)]
        made = [await bank_bench.bank.create_invoice(bank_bench.request(operation)) for operation in operations]
        found = [await bank_bench.bank.find_invoice(operation) for operation in operations]
        assert [each and each.reference for each in found] == [each.reference for each in made]

    @pytest.mark.parametrize("kopecks", [0, -1])
    async def test_an_invoice_for_nothing_is_refused(self, bank_bench: BankBench, kopecks: int) -> None:
        with pytest.raises(Refused):
            await bank_bench.bank.create_invoice(bank_bench.request(OPERATION, kopecks))
        assert await bank_bench.bank.find_invoice(OPERATION) is None

    async def test_a_reference_of_no_invoice_is_refused(self, bank_bench: BankBench) -> None:
        with pytest.raises(Refused):
            await bank_bench.bank.invoice_state("no-such-reference")

    async def test_money_that_came_is_told_to_the_kopeck_and_the_same_each_time(self, bank_bench: BankBench) -> None:
        invoice = await bank_bench.bank.create_invoice(bank_bench.request(OPERATION, 100_01))
        await bank_bench.pay(OPERATION, invoice, 100_01)
        state = await _state(bank_bench.bank, OPERATION)
        assert state.status is InvoiceStatus.PAID
        [transfer] = state.transfers
        assert transfer.id
        assert transfer.amount_kopecks == 100_01
        assert transfer.at.utcoffset() is not None, "a transfer's moment has a time zone"
        assert (await _state(bank_bench.bank, OPERATION)).transfers == state.transfers

    async def test_money_of_one_invoice_is_no_other_s(self, bank_bench: BankBench) -> None:
        invoice = await bank_bench.bank.create_invoice(bank_bench.request(OPERATION))
        await bank_bench.bank.create_invoice(bank_bench.request(OTHER))
        await bank_bench.pay(OPERATION, invoice, 100_00)
        assert (await _state(bank_bench.bank, OTHER)).transfers == ()

    @pytest.mark.parametrize("done", [True, False])
    async def test_a_lost_answer_is_an_unknown_outcome_and_the_operation_settles_it(
        self, bank_bench: BankBench, done: bool
    ) -> None:
        """Three ends (ARCHITECTURE.md): what may have happened is never told as not done."""
        request = bank_bench.request(OPERATION)
        await bank_bench.lose_next_answer(done=done)
        with pytest.raises(OutcomeUnknown):
            await bank_bench.bank.create_invoice(request)
        assert (await bank_bench.bank.find_invoice(OPERATION) is not None) is done
        await bank_bench.bank.create_invoice(request)
        assert await bank_bench.bank.find_invoice(OPERATION) is not None

    async def test_a_bank_that_is_away_was_certainly_not_asked(self, bank_bench: BankBench) -> None:
        await bank_bench.be_away()
        with pytest.raises(Unavailable):
            await bank_bench.bank.create_invoice(bank_bench.request(OPERATION))
        with pytest.raises(Unavailable):
            await bank_bench.bank.find_invoice(OPERATION)


class TestDrawn:
    """An invoice that is drawn up is as good as one that the bank was asked for."""

    @pytest.fixture
    def drawn(self, bank_bench: BankBench) -> Invoice:
        """The invoice of OPERATION, where the bank draws any."""
        if not bank_bench.bank.capabilities.draws_invoices:
            pytest.skip("the bank must be asked for invoices")
        assert isinstance(bank_bench.bank, DrawingBank)
        invoice = bank_bench.bank.draw_invoice(bank_bench.request(OPERATION))
        assert invoice is not None, "of 100 RUB it draws none"
        assert invoice.reference
        assert invoice.payload
        return invoice

    async def test_it_is_open(self, bank_bench: BankBench, drawn: Invoice) -> None:
        state = await bank_bench.bank.invoice_state(drawn.reference)
        assert_open(state, drawn)

    async def test_it_asks_nobody(self, bank_bench: BankBench, drawn: Invoice) -> None:
        await bank_bench.be_away()
        assert isinstance(bank_bench.bank, DrawingBank)
        assert bank_bench.bank.draw_invoice(bank_bench.request(OTHER)) is not None
        assert drawn.reference

    async def test_money_that_came_is_told_to_the_kopeck(self, bank_bench: BankBench, drawn: Invoice) -> None:
        await bank_bench.pay(OPERATION, drawn, 100_00)
        state = await bank_bench.bank.invoice_state(drawn.reference)
        assert state.status is InvoiceStatus.PAID
        assert [transfer.amount_kopecks for transfer in state.transfers] == [100_00]

    async def test_two_operations_are_two_invoices(self, bank_bench: BankBench, drawn: Invoice) -> None:
        assert isinstance(bank_bench.bank, DrawingBank)
        other = bank_bench.bank.draw_invoice(bank_bench.request(OTHER))
        assert other is not None
        assert other.reference != drawn.reference
        assert other.payload != drawn.payload
        await bank_bench.pay(OPERATION, drawn, 100_00)
        assert (await bank_bench.bank.invoice_state(other.reference)).transfers == ()


class TestClosing:
    """An invoice that nobody shall pay any more is closed, and no money is lost by it."""

    @pytest.fixture
    def closing(self, bank_bench: BankBench) -> CancellingBank:
        """The bank, where it closes invoices."""
        if not bank_bench.bank.capabilities.cancels_invoices:
            pytest.skip("the bank closes no invoices")
        assert isinstance(bank_bench.bank, CancellingBank)
        return bank_bench.bank

    async def test_a_closed_invoice_is_open_no_more(self, bank_bench: BankBench, closing: CancellingBank) -> None:
        invoice = await closing.create_invoice(bank_bench.request(OPERATION))
        await closing.cancel_invoice(invoice.reference)
        await closing.cancel_invoice(invoice.reference)
        state = await closing.invoice_state(invoice.reference)
        assert state.status in (InvoiceStatus.CANCELLED, InvoiceStatus.EXPIRED)
        assert state.transfers == ()

    async def test_one_that_is_paid_stays_paid(self, bank_bench: BankBench, closing: CancellingBank) -> None:
        invoice = await closing.create_invoice(bank_bench.request(OPERATION))
        await bank_bench.pay(OPERATION, invoice, 100_00)
        with pytest.raises(Refused):
            await closing.cancel_invoice(invoice.reference)
        assert (await closing.invoice_state(invoice.reference)).status is InvoiceStatus.PAID

    async def test_one_that_is_not_there_is_refused(self, closing: CancellingBank) -> None:
        with pytest.raises(Refused):
            await closing.cancel_invoice("no-such-reference")

    @pytest.mark.parametrize("done", [True, False])
    async def test_a_lost_answer_is_told_by_its_state(
        self, bank_bench: BankBench, closing: CancellingBank, done: bool
    ) -> None:
        invoice = await closing.create_invoice(bank_bench.request(OPERATION))
        await bank_bench.lose_next_answer(done=done)
        with pytest.raises(OutcomeUnknown):
            await closing.cancel_invoice(invoice.reference)
        is_open = (await closing.invoice_state(invoice.reference)).status is InvoiceStatus.OPEN
        assert is_open is not done


class TestRefunds:
    """Money goes back once, never more than came, and says how it stands."""

    @pytest.fixture(autouse=True)
    def refunds(self, bank_bench: BankBench) -> None:
        """Only where the bank says that it refunds."""
        if not bank_bench.bank.capabilities.refunds:
            pytest.skip("the bank does not refund")

    async def _paid(self, bank_bench: BankBench, operation: str = OPERATION, kopecks: int = 100_00) -> Invoice:
        invoice = await bank_bench.bank.create_invoice(bank_bench.request(operation, kopecks))
        await bank_bench.pay(operation, invoice, kopecks)
        return invoice

    async def _ended(self, bank_bench: BankBench, operation: str) -> RefundState | None:
        await bank_bench.finish_refunds()
        return await bank_bench.bank.find_refund(operation)

    async def test_a_refund_can_be_found_by_its_operation_and_ends(self, bank_bench: BankBench) -> None:
        invoice = await self._paid(bank_bench)
        assert await bank_bench.bank.find_refund(REFUND) is None, "the bank never saw it"
        state = await bank_bench.bank.refund(_back(invoice))
        assert state.status in (RefundStatus.PROCESSING, RefundStatus.DONE)
        ended = await self._ended(bank_bench, REFUND)
        assert ended is not None
        assert ended.status is RefundStatus.DONE

    async def test_a_repeat_moves_no_second_money(self, bank_bench: BankBench) -> None:
        invoice = await self._paid(bank_bench)
        for _ in range(3):
            await bank_bench.bank.refund(_back(invoice, 60_00))
        await bank_bench.bank.refund(_back(invoice, 40_00, operation_id("ref", 2)))
        with pytest.raises(Refused):
            await bank_bench.bank.refund(_back(invoice, 1, operation_id("ref", 3)))

    async def test_what_we_forgot_is_found_and_a_repeat_moves_no_second_money(self, bank_bench: BankBench) -> None:
        """By the operation alone: a restored database has no notes of what was done since."""
        invoice = await self._paid(bank_bench)
        await bank_bench.bank.refund(_back(invoice, 60_00))
        await bank_bench.forget()
        found = await bank_bench.bank.find_invoice(OPERATION)
        assert (found and found.reference) == invoice.reference
        assert await self._ended(bank_bench, REFUND) is not None, "it would be sent a second time"
        await bank_bench.bank.refund(_back(invoice, 60_00))
        await bank_bench.bank.refund(_back(invoice, 40_00, operation_id("ref", 2)))
        with pytest.raises(Refused):
            await bank_bench.bank.refund(_back(invoice, 1, operation_id("ref", 3)))

    async def test_each_of_many_is_found(self, bank_bench: BankBench) -> None:
        invoice = await self._paid(bank_bench)
        operations = [operation_id("ref", number) for number in range(bank_bench.page * 2 + 1)]
        for operation in operations:
            await bank_bench.bank.refund(_back(invoice, 1_00, operation))
        found = [await bank_bench.bank.find_refund(operation) for operation in operations]
        assert None not in found, "it would be sent a second time"

    async def test_attempts_whose_ids_are_long_and_differ_at_their_end_are_two(self, bank_bench: BankBench) -> None:
        """Money in suspense goes back by ids that no key of a provider takes as they are: `short_operation`."""
        invoice = await self._paid(bank_bench)
        first, second = suspense_ids(bank_bench.bank.name)
        await bank_bench.bank.refund(_back(invoice, 60_00, first))
        assert await bank_bench.bank.find_refund(second) is None
        await bank_bench.bank.refund(_back(invoice, 40_00, second))
        assert None not in [await bank_bench.bank.find_refund(operation) for operation in (first, second)]

    async def test_a_day_later_it_is_still_found(self, bank_bench: BankBench) -> None:
        """Past its `repeat_window` only that keeps a refund from being taken for one that never went."""
        invoice = await self._paid(bank_bench)
        await bank_bench.bank.refund(_back(invoice, 60_00))
        await bank_bench.pass_time(DAY)
        assert await self._ended(bank_bench, REFUND) is not None

    async def test_as_long_as_it_says_a_repeat_moves_no_second_money(self, bank_bench: BankBench) -> None:
        """`repeat_window`; for ever where it says nothing: many providers forget their keys after a day."""
        invoice = await self._paid(bank_bench)
        await bank_bench.bank.refund(_back(invoice, 60_00))
        await bank_bench.pass_time(last_repeat(bank_bench.bank))
        await bank_bench.bank.refund(_back(invoice, 60_00))
        await bank_bench.bank.refund(_back(invoice, 40_00, operation_id("ref", 2)))
        with pytest.raises(Refused):
            await bank_bench.bank.refund(_back(invoice, 1, operation_id("ref", 3)))

    async def test_what_was_sent_since_a_moment_is_listed(self, bank_bench: BankBench) -> None:
        """Though our notes of it are lost; nothing that the bank refused."""
        bank = _listing(bank_bench.bank)
        invoice = await self._paid(bank_bench)
        assert list(await bank.refunds_since(_LONG_AGO)) == []
        await bank.refund(_back(invoice, 60_00))
        with pytest.raises(Refused):
            await bank.refund(_back(invoice, 40_01, operation_id("ref", 2)))
        await bank_bench.forget()
        expected = [SentRefund(operation=REFUND, reference=invoice.reference, amount_kopecks=60_00)]
        assert list(await bank.refunds_since(_LONG_AGO)) == expected
        await bank_bench.finish_refunds()
        assert list(await bank.refunds_since(_LONG_AGO)) == expected, "money that is there has gone, too"

    async def test_one_that_failed_is_not_listed(self, bank_bench: BankBench) -> None:
        """Its money is here still."""
        bank = _listing(bank_bench.bank)
        invoice = await self._paid(bank_bench)
        await bank_bench.fail_next_refund()
        await bank.refund(_back(invoice))
        await bank_bench.finish_refunds()
        assert list(await bank.refunds_since(_LONG_AGO)) == []

    async def test_a_bank_that_is_away_lists_nothing(self, bank_bench: BankBench) -> None:
        """An empty list would say that all is known."""
        bank = _listing(bank_bench.bank)
        await bank_bench.be_away()
        with pytest.raises(Unavailable):
            await bank.refunds_since(_LONG_AGO)

    async def test_no_more_goes_back_than_came_however_many_ask_at_once(self, bank_bench: BankBench) -> None:
        invoice = await self._paid(bank_bench)
        requests = [_back(invoice, 30_00, operation_id("ref", number)) for number in range(5)]
        answers = await asyncio.gather(*(bank_bench.bank.refund(each) for each in requests), return_exceptions=True)
        assert sorted(isinstance(answer, Refused) for answer in answers) == [False] * 3 + [True] * 2

    @pytest.mark.parametrize("kopecks", [0, -1, 100_01])
    async def test_an_amount_that_cannot_go_is_refused_and_moves_nothing(
        self, bank_bench: BankBench, kopecks: int
    ) -> None:
        invoice = await self._paid(bank_bench)
        with pytest.raises(Refused) as refused:
            await bank_bench.bank.refund(_back(invoice, kopecks))
        assert refused.value.reason == "amount"
        assert await bank_bench.bank.find_refund(REFUND) is None
        await bank_bench.bank.refund(_back(invoice, 100_00, operation_id("ref", 2)))

    async def test_an_invoice_that_nobody_paid_or_made_is_refused(self, bank_bench: BankBench) -> None:
        invoice = await bank_bench.bank.create_invoice(bank_bench.request(OPERATION))
        with pytest.raises(Refused) as refused:
            await bank_bench.bank.refund(_back(invoice))
        assert refused.value.reason == "not_paid"
        with pytest.raises(Refused) as refused:
            await bank_bench.bank.refund(
                RefundRequest(operation=REFUND, reference="no-such-reference", amount_kopecks=1)
            )
        assert refused.value.reason == "not_found"

    async def test_a_refund_leaves_the_invoice_as_it_is(self, bank_bench: BankBench) -> None:
        invoice = await self._paid(bank_bench)
        before = await _state(bank_bench.bank, OPERATION)
        await bank_bench.bank.refund(_back(invoice))
        assert await _state(bank_bench.bank, OPERATION) == before

    @pytest.mark.parametrize("done", [True, False])
    async def test_a_lost_answer_is_an_unknown_outcome_and_a_repeat_moves_the_money_once(
        self, bank_bench: BankBench, done: bool
    ) -> None:
        invoice = await self._paid(bank_bench)
        await bank_bench.lose_next_answer(done=done)
        with pytest.raises(OutcomeUnknown):
            await bank_bench.bank.refund(_back(invoice, 60_00))
        assert (await bank_bench.bank.find_refund(REFUND) is not None) is done
        await bank_bench.bank.refund(_back(invoice, 60_00))
        with pytest.raises(Refused):
            await bank_bench.bank.refund(_back(invoice, 40_01, operation_id("ref", 2)))


class TestNotices(NoticeRules):
    """What the bank's provider posts is believed where it is genuine, and then as a hint."""

    @pytest.fixture
    async def noticed(self, bank_bench: BankBench) -> Told:
        await bank_bench.bank.create_invoice(bank_bench.request(OPERATION))
        return told(bank_bench.bank, await bank_bench.notice(OPERATION), OPERATION, OTHER, bank_bench)


class TestWhatItSays:
    """Of itself, and in its faults."""

    async def test_its_name_can_be_stored(self, bank_bench: BankBench) -> None:
        check_name(bank_bench.bank)

    async def test_it_is_what_it_says_it_can_do(self, bank_bench: BankBench) -> None:
        can = bank_bench.bank.capabilities
        assert not can.mandates or isinstance(bank_bench.bank, MandateBank)
        assert not can.remittances or isinstance(bank_bench.bank, RemittanceBank)
        assert not can.mandate_charges or can.mandates
        assert not can.cancels_invoices or isinstance(bank_bench.bank, CancellingBank)
        assert not can.draws_invoices or isinstance(bank_bench.bank, DrawingBank)

    async def test_a_bank_that_does_not_refund_says_so(self, bank_bench: BankBench) -> None:
        if bank_bench.bank.capabilities.refunds:
            pytest.skip("the bank refunds")
        with pytest.raises(NotSupported):
            await bank_bench.bank.refund(RefundRequest(operation=REFUND, reference="x", amount_kopecks=1))
        with pytest.raises(NotSupported):
            await bank_bench.bank.find_refund(REFUND)

    async def test_credentials_that_are_refused_are_told_as_such(self, bank_bench: BankBench) -> None:
        """By every writing call, and by `check`, which said nothing before; a read may call them an absence."""
        bank = bank_bench.bank
        invoice = await bank.create_invoice(bank_bench.request(OPERATION))
        if isinstance(bank, Checkable):
            await bank.check()
        await bank_bench.refuse_credentials()
        with pytest.raises(NotConfigured) as refused:
            await bank.create_invoice(bank_bench.request(operation_id("pay", 2)))
        check_hidden(bank_bench.secrets, bank, refused.value)
        with pytest.raises((NotConfigured, Unavailable)):
            await bank.invoice_state(invoice.reference)
        if isinstance(bank, Checkable):
            with pytest.raises(NotConfigured) as refused:
                await bank.check()
            check_hidden(bank_bench.secrets, bank, refused.value)

    async def test_no_credential_shows(self, bank_bench: BankBench) -> None:
        """In its repr, and in what it raises."""
        with pytest.raises(Fault) as raised:
            await bank_bench.bank.invoice_state("no-such-reference")
        check_hidden(bank_bench.secrets, bank_bench.bank, raised.value)


def _listing(bank: Bank) -> ListingBank:
    if not isinstance(bank, ListingBank):
        pytest.skip("the bank cannot list what it sent: a restored database is compared with its statements by hand")
    return bank


def _back(invoice: Invoice, kopecks: int = 100_00, operation: str = REFUND) -> RefundRequest:
    return RefundRequest(operation=operation, reference=invoice.reference, amount_kopecks=kopecks)

"""Contract of refunds: sent once, never above the paid amount, found by operation and listed (ports/bank.py)."""

import asyncio
from datetime import UTC, datetime

import pytest

from ....ports.bank import (
    Bank,
    Invoice,
    ListingBank,
    RefundRequest,
    RefundState,
    RefundStatus,
    SentRefund,
)
from ....ports.faults import OutcomeUnknown, Refused, Unavailable
from ..bank_harness import BankHarness
from ..operation_ids import operation_id, return_ids, suspense_ids
from .kit import DAY, OPERATION, REFUND, last_repeat, state_of

_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


class TestRefunds:
    """A refund is sent once, never exceeds the paid amount, and reports its state."""

    @pytest.fixture(autouse=True)
    def refunds(self, bank_harness: BankHarness) -> None:
        """Skip the suite if the bank does not refund."""
        if not bank_harness.bank.capabilities.refunds:
            pytest.skip("the bank does not refund")

    async def _paid(self, bank_harness: BankHarness, operation: str = OPERATION, kopecks: int = 100_00) -> Invoice:
        invoice = await bank_harness.bank.create_invoice(bank_harness.request(operation, kopecks))
        await bank_harness.pay(operation, invoice, kopecks)
        return invoice

    async def _ended(self, bank_harness: BankHarness, operation: str) -> RefundState | None:
        await bank_harness.finish_refunds()
        return await bank_harness.bank.find_refund(operation)

    async def test_a_refund_can_be_found_by_its_operation_and_ends(self, bank_harness: BankHarness) -> None:
        invoice = await self._paid(bank_harness)
        assert await bank_harness.bank.find_refund(REFUND) is None, "the bank never saw it"
        state = await bank_harness.bank.refund(_back(invoice))
        assert state.status in (RefundStatus.PROCESSING, RefundStatus.DONE)
        ended = await self._ended(bank_harness, REFUND)
        assert ended is not None
        assert ended.status is RefundStatus.DONE

    async def test_refund_in_processing_is_not_called_done(self, bank_harness: BankHarness) -> None:
        invoice = await self._paid(bank_harness)
        await bank_harness.hold_next_refund()
        states = [await bank_harness.bank.refund(_back(invoice)), await bank_harness.bank.find_refund(REFUND)]
        statuses = [each and each.status for each in states]
        assert statuses == [RefundStatus.PROCESSING] * 2, "the payer does not have the money yet"
        ended = await self._ended(bank_harness, REFUND)
        assert (ended and ended.status) is RefundStatus.DONE, "the payer has the money now"

    async def test_refund_that_failed_is_called_failed(self, bank_harness: BankHarness) -> None:
        invoice = await self._paid(bank_harness)
        await bank_harness.fail_next_refund()
        await bank_harness.bank.refund(_back(invoice))
        ended = await self._ended(bank_harness, REFUND)
        assert (ended and ended.status) is RefundStatus.FAILED, "the money did not go, whatever it says of the call"

    async def test_a_repeat_moves_no_second_money(self, bank_harness: BankHarness) -> None:
        invoice = await self._paid(bank_harness)
        for _ in range(3):
            await bank_harness.bank.refund(_back(invoice, 60_00))
        await bank_harness.bank.refund(_back(invoice, 40_00, operation_id("ref", 2)))
        with pytest.raises(Refused):
            await bank_harness.bank.refund(_back(invoice, 1, operation_id("ref", 3)))

    async def test_forgotten_refund_is_found_and_a_repeat_moves_no_money(self, bank_harness: BankHarness) -> None:
        """The operation id alone must be enough: a restored database has lost the notes written since the backup."""
        invoice = await self._paid(bank_harness)
        await bank_harness.bank.refund(_back(invoice, 60_00))
        await bank_harness.forget()
        found = await bank_harness.bank.find_invoice(OPERATION)
        assert (found and found.reference) == invoice.reference
        assert await self._ended(bank_harness, REFUND) is not None, "it would be sent a second time"
        await bank_harness.bank.refund(_back(invoice, 60_00))
        await bank_harness.bank.refund(_back(invoice, 40_00, operation_id("ref", 2)))
        with pytest.raises(Refused):
            await bank_harness.bank.refund(_back(invoice, 1, operation_id("ref", 3)))

    async def test_each_of_many_is_found(self, bank_harness: BankHarness) -> None:
        invoice = await self._paid(bank_harness)
        operations = [operation_id("ref", number) for number in range(bank_harness.page * 2 + 1)]
        for operation in operations:
            await bank_harness.bank.refund(_back(invoice, 1_00, operation))
        found = [await bank_harness.bank.find_refund(operation) for operation in operations]
        assert None not in found, "it would be sent a second time"

    @pytest.mark.parametrize("kind", ["suspense", "exchange"])
    async def test_attempts_whose_ids_differ_at_their_end_are_two(self, bank_harness: BankHarness, kind: str) -> None:
        """An adapter that truncates an operation id to fit a provider's key would never send the second refund.
        `short_operation` keeps the two ids distinct."""
        invoice = await self._paid(bank_harness)
        first, second = return_ids() if kind == "exchange" else suspense_ids()
        await bank_harness.bank.refund(_back(invoice, 60_00, first))
        assert await bank_harness.bank.find_refund(second) is None
        await bank_harness.bank.refund(_back(invoice, 40_00, second))
        assert None not in [await bank_harness.bank.find_refund(operation) for operation in (first, second)]

    async def test_a_day_later_it_is_still_found(self, bank_harness: BankHarness) -> None:
        """After `repeat_window` only this search prevents a sent refund from being treated as never sent."""
        invoice = await self._paid(bank_harness)
        await bank_harness.bank.refund(_back(invoice, 60_00))
        await bank_harness.pass_time(DAY)
        assert await self._ended(bank_harness, REFUND) is not None

    async def test_as_long_as_it_says_a_repeat_moves_no_second_money(self, bank_harness: BankHarness) -> None:
        """Repeats within `repeat_window` are safe; without a window they are safe for ever. Many providers forget their
        keys after a day."""
        invoice = await self._paid(bank_harness)
        await bank_harness.bank.refund(_back(invoice, 60_00))
        await bank_harness.pass_time(last_repeat(bank_harness.bank))
        await bank_harness.bank.refund(_back(invoice, 60_00))
        await bank_harness.bank.refund(_back(invoice, 40_00, operation_id("ref", 2)))
        with pytest.raises(Refused):
            await bank_harness.bank.refund(_back(invoice, 1, operation_id("ref", 3)))

    async def test_refunds_sent_since_a_moment_are_listed(self, bank_harness: BankHarness) -> None:
        """The list survives the loss of our notes, and contains no refund that the bank refused."""
        bank = _listing(bank_harness.bank)
        invoice = await self._paid(bank_harness)
        assert list(await bank.refunds_since(_LONG_AGO)) == []
        await bank.refund(_back(invoice, 60_00))
        with pytest.raises(Refused):
            await bank.refund(_back(invoice, 40_01, operation_id("ref", 2)))
        await bank_harness.forget()
        expected = [SentRefund(operation=REFUND, reference=invoice.reference, amount_kopecks=60_00)]
        assert list(await bank.refunds_since(_LONG_AGO)) == expected
        await bank_harness.finish_refunds()
        assert list(await bank.refunds_since(_LONG_AGO)) == expected, "money that is there has gone, too"

    async def test_failed_refund_is_not_listed(self, bank_harness: BankHarness) -> None:
        """A failed refund did not move any money."""
        bank = _listing(bank_harness.bank)
        invoice = await self._paid(bank_harness)
        await bank_harness.fail_next_refund()
        await bank.refund(_back(invoice))
        await bank_harness.finish_refunds()
        assert list(await bank.refunds_since(_LONG_AGO)) == []

    async def test_a_bank_that_is_away_lists_nothing(self, bank_harness: BankHarness) -> None:
        """An empty list would mean that the bank sent nothing else."""
        bank = _listing(bank_harness.bank)
        await bank_harness.be_away()
        with pytest.raises(Unavailable):
            await bank.refunds_since(_LONG_AGO)

    async def test_no_more_goes_back_than_came_however_many_ask_at_once(self, bank_harness: BankHarness) -> None:
        invoice = await self._paid(bank_harness)
        requests = [_back(invoice, 30_00, operation_id("ref", number)) for number in range(5)]
        answers = await asyncio.gather(*(bank_harness.bank.refund(each) for each in requests), return_exceptions=True)
        assert sorted(isinstance(answer, Refused) for answer in answers) == [False] * 3 + [True] * 2

    @pytest.mark.parametrize("kopecks", [0, -1, 100_01])
    async def test_an_amount_that_cannot_go_is_refused_and_moves_nothing(
        self, bank_harness: BankHarness, kopecks: int
    ) -> None:
        invoice = await self._paid(bank_harness)
        with pytest.raises(Refused) as refused:
            await bank_harness.bank.refund(_back(invoice, kopecks))
        assert refused.value.reason == "amount"
        assert await bank_harness.bank.find_refund(REFUND) is None
        await bank_harness.bank.refund(_back(invoice, 100_00, operation_id("ref", 2)))

    async def test_an_invoice_that_nobody_paid_or_made_is_refused(self, bank_harness: BankHarness) -> None:
        invoice = await bank_harness.bank.create_invoice(bank_harness.request(OPERATION))
        with pytest.raises(Refused) as refused:
            await bank_harness.bank.refund(_back(invoice))
        assert refused.value.reason == "not_paid"
        with pytest.raises(Refused) as refused:
            await bank_harness.bank.refund(
                RefundRequest(operation=REFUND, reference="no-such-reference", amount_kopecks=1)
            )
        assert refused.value.reason == "not_found"

    async def test_a_refund_leaves_the_invoice_as_it_is(self, bank_harness: BankHarness) -> None:
        invoice = await self._paid(bank_harness)
        before = await state_of(bank_harness.bank, OPERATION)
        await bank_harness.bank.refund(_back(invoice))
        assert await state_of(bank_harness.bank, OPERATION) == before

    @pytest.mark.parametrize("done", [True, False])
    async def test_lost_answer_is_an_unknown_outcome_and_a_repeat_refunds_once(
        self, bank_harness: BankHarness, done: bool
    ) -> None:
        invoice = await self._paid(bank_harness)
        await bank_harness.lose_next_answer(done=done)
        with pytest.raises(OutcomeUnknown):
            await bank_harness.bank.refund(_back(invoice, 60_00))
        await bank_harness.outlast_lost_calls()
        assert (await bank_harness.bank.find_refund(REFUND) is not None) is done
        await bank_harness.bank.refund(_back(invoice, 60_00))
        with pytest.raises(Refused):
            await bank_harness.bank.refund(_back(invoice, 40_01, operation_id("ref", 2)))


def _listing(bank: Bank) -> ListingBank:
    if not isinstance(bank, ListingBank):
        pytest.skip("the bank cannot list what it sent: a restored database is compared with its statements by hand")
    return bank


def _back(invoice: Invoice, kopecks: int = 100_00, operation: str = REFUND) -> RefundRequest:
    return RefundRequest(operation=operation, reference=invoice.reference, amount_kopecks=kopecks)

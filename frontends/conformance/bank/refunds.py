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
from ..expectations import may_raise, must_answer, must_raise
from ..operation_ids import operation_id, return_ids, suspense_ids
from .kit import DAY, OPERATION, REFUND, asked_of, assert_amount, last_repeat, paid, paid_again, state_of

ONCE = "a repeat of a refund must move no second money"
REST = "what was not sent back must still be refundable, to the kopeck"
FOUND = "a refund must be found by its operation id alone, or it would be sent a second time"
_MORE = "a refund above what came and has not gone back must be refused"
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


class TestRefunds:
    """A refund is sent once, never exceeds the paid amount, and reports its state."""

    @pytest.fixture(autouse=True)
    def refunds(self, bank_harness: BankHarness) -> None:
        """Skip the suite if the bank does not refund."""
        if not bank_harness.bank.capabilities.refunds:
            pytest.skip("the bank does not refund (`capabilities.refunds`)")

    async def test_a_refund_can_be_found_by_its_operation_and_ends(self, bank_harness: BankHarness) -> None:
        invoice = await paid(bank_harness)
        assert await bank_harness.bank.find_refund(REFUND) is None, "a refund that was never sent must not be found"
        state = await bank_harness.bank.refund(_back(invoice))
        assert state.status in (RefundStatus.PROCESSING, RefundStatus.DONE), "a refund that was taken is under way"
        ended = await self._ended(bank_harness, REFUND)
        assert ended is not None, FOUND
        assert ended.status is RefundStatus.DONE, "a refund whose payer has the money must be DONE"

    async def test_provider_is_asked_for_the_refund_to_the_kopeck(self, bank_harness: BankHarness) -> None:
        """Confusing kopecks with roubles, or 60.05 with 60.5, would send back another sum."""
        invoice = await paid(bank_harness)
        await bank_harness.bank.refund(_back(invoice, 60_05))
        assert_amount(await asked_of(bank_harness, REFUND), 60_05)

    async def test_parts_of_a_payment_go_back_to_the_kopeck(self, bank_harness: BankHarness) -> None:
        invoice = await paid(bank_harness)
        await bank_harness.bank.refund(_back(invoice, 60_05))
        await bank_harness.finish_refunds()
        await self._left(bank_harness, invoice, 39_95)

    async def test_refund_in_processing_is_not_called_done(self, bank_harness: BankHarness) -> None:
        invoice = await paid(bank_harness)
        await bank_harness.hold_next_refund()
        states = [await bank_harness.bank.refund(_back(invoice)), await bank_harness.bank.find_refund(REFUND)]
        statuses = [each and each.status for each in states]
        assert statuses == [RefundStatus.PROCESSING] * 2, "a refund is PROCESSING until the payer has the money"
        ended = await self._ended(bank_harness, REFUND)
        assert (ended and ended.status) is RefundStatus.DONE, "a refund whose payer has the money must be DONE"

    async def test_refund_that_failed_is_called_failed(self, bank_harness: BankHarness) -> None:
        invoice = await paid(bank_harness)
        await bank_harness.fail_next_refund()
        await bank_harness.bank.refund(_back(invoice))
        ended = await self._ended(bank_harness, REFUND)
        assert (ended and ended.status) is RefundStatus.FAILED, "a refund whose money did not go must be FAILED"

    async def test_refund_that_came_back_is_called_reversed(self, bank_harness: BankHarness) -> None:
        invoice = await paid(bank_harness)
        await bank_harness.bank.refund(_back(invoice))
        await self._ended(bank_harness, REFUND)
        await bank_harness.reverse_refund(REFUND)
        state = await bank_harness.bank.find_refund(REFUND)
        assert (state and state.status) is RefundStatus.REVERSED, "a refund whose money came back must be REVERSED"

    async def test_refund_status_that_nobody_knows_decides_nothing(self, bank_harness: BankHarness) -> None:
        """Providers add statuses without notice."""
        invoice = await paid(bank_harness)
        await bank_harness.hold_next_refund()
        await bank_harness.bank.refund(_back(invoice))
        await bank_harness.say_unknown_status(REFUND)
        rule = "a status that the adapter does not know must leave the refund PROCESSING, or make the read Unavailable"
        with may_raise(rule, Unavailable):
            state = await bank_harness.bank.find_refund(REFUND)
            assert (state and state.status) is RefundStatus.PROCESSING, rule

    async def test_refund_takes_the_transfer_that_it_names(self, bank_harness: BankHarness) -> None:
        """Two people may have paid one invoice. Money of one must not go back to the other."""
        invoice = await paid(bank_harness)
        await paid_again(bank_harness, invoice)
        second = (await state_of(bank_harness.bank, OPERATION)).transfers[-1].id
        await bank_harness.bank.refund(_back(invoice, 60_00, transfer=second))
        rule = "at most the rest of the transfer that a refund names may go back: does the provider get its id?"
        with must_raise(rule, Refused, reason="amount"):
            await bank_harness.bank.refund(_back(invoice, 40_01, operation_id("ref", 2), transfer=second))
        await bank_harness.bank.refund(_back(invoice, 40_00, operation_id("ref", 3), transfer=second))

    async def test_refund_of_an_unknown_transfer_is_refused(self, bank_harness: BankHarness) -> None:
        invoice = await paid(bank_harness)
        with must_raise("a refund of a transfer that the invoice does not have must be refused", Refused):
            await bank_harness.bank.refund(_back(invoice, transfer="no-such-transfer"))
        await self._left(bank_harness, invoice, 100_00)

    async def test_a_repeat_moves_no_second_money(self, bank_harness: BankHarness) -> None:
        invoice = await paid(bank_harness)
        with must_answer(f"{ONCE}, and return the refund's present state"):
            for _ in range(3):
                await bank_harness.bank.refund(_back(invoice, 60_00))
        await self._left(bank_harness, invoice, 40_00)

    async def test_forgotten_refund_is_found_and_a_repeat_moves_no_money(self, bank_harness: BankHarness) -> None:
        """The operation id alone must be enough: a restored database has lost the notes written since the backup."""
        invoice = await paid(bank_harness)
        await bank_harness.bank.refund(_back(invoice, 60_00))
        await bank_harness.forget()
        found = await bank_harness.bank.find_invoice(OPERATION)
        assert (found and found.reference) == invoice.reference, "without notes an invoice must be found by its id"
        assert await self._ended(bank_harness, REFUND) is not None, FOUND
        with must_answer(ONCE):
            await bank_harness.bank.refund(_back(invoice, 60_00))
        await self._left(bank_harness, invoice, 40_00)

    async def test_each_of_many_is_found(self, bank_harness: BankHarness) -> None:
        invoice = await paid(bank_harness)
        operations = [operation_id("ref", number) for number in range(bank_harness.page * 2 + 1)]
        for operation in operations:
            await bank_harness.bank.refund(_back(invoice, 1_00, operation))
        found = [await bank_harness.bank.find_refund(operation) for operation in operations]
        assert None not in found, f"{FOUND}: also on the later pages of the provider's list"

    @pytest.mark.parametrize("kind", ["suspense", "exchange"])
    async def test_attempts_whose_ids_differ_at_their_end_are_two(self, bank_harness: BankHarness, kind: str) -> None:
        """An adapter that truncates an operation id to fit a provider's key would never send the second refund.
        `short_operation` keeps the two ids distinct."""
        invoice = await paid(bank_harness)
        first, second = return_ids() if kind == "exchange" else suspense_ids()
        await bank_harness.bank.refund(_back(invoice, 60_00, first))
        rule = "ids that differ in their last character are two refunds: is the operation id cut?"
        assert await bank_harness.bank.find_refund(second) is None, rule
        await bank_harness.bank.refund(_back(invoice, 40_00, second))
        assert None not in [await bank_harness.bank.find_refund(operation) for operation in (first, second)], rule

    async def test_a_day_later_it_is_still_found(self, bank_harness: BankHarness) -> None:
        """After `repeat_window` only this search prevents a sent refund from being treated as never sent."""
        invoice = await paid(bank_harness)
        await bank_harness.bank.refund(_back(invoice, 60_00))
        await bank_harness.pass_time(DAY)
        assert await self._ended(bank_harness, REFUND) is not None, FOUND

    async def test_as_long_as_it_says_a_repeat_moves_no_second_money(self, bank_harness: BankHarness) -> None:
        """Repeats within `repeat_window` are safe; without a window they are safe for ever. Many providers forget their
        keys after a day."""
        invoice = await paid(bank_harness)
        await bank_harness.bank.refund(_back(invoice, 60_00))
        await bank_harness.pass_time(last_repeat(bank_harness.bank))
        with must_answer(f"{ONCE} within `capabilities.repeat_window`"):
            await bank_harness.bank.refund(_back(invoice, 60_00))
        await self._left(bank_harness, invoice, 40_00)

    async def test_refunds_sent_since_a_moment_are_listed(self, bank_harness: BankHarness) -> None:
        """The list survives the loss of our notes, and contains no refund that the bank refused."""
        bank = _listing(bank_harness.bank)
        invoice = await paid(bank_harness)
        assert list(await bank.refunds_since(_LONG_AGO)) == [], "without refunds the list must be empty"
        await bank.refund(_back(invoice, 60_00))
        with must_raise(_MORE, Refused):
            await bank.refund(_back(invoice, 40_01, operation_id("ref", 2)))
        await bank_harness.forget()
        expected = [SentRefund(operation=REFUND, reference=invoice.reference, amount_kopecks=60_00)]
        assert list(await bank.refunds_since(_LONG_AGO)) == expected, "the list must have each refund that was sent"
        await bank_harness.finish_refunds()
        assert list(await bank.refunds_since(_LONG_AGO)) == expected, "the list must keep refunds that are done"

    async def test_failed_refund_is_not_listed(self, bank_harness: BankHarness) -> None:
        """A failed refund did not move any money."""
        bank = _listing(bank_harness.bank)
        invoice = await paid(bank_harness)
        await bank_harness.fail_next_refund()
        await bank.refund(_back(invoice))
        await bank_harness.finish_refunds()
        assert list(await bank.refunds_since(_LONG_AGO)) == [], "the list must not have a refund that failed"

    async def test_a_bank_that_is_away_lists_nothing(self, bank_harness: BankHarness) -> None:
        """An empty list would mean that the bank sent nothing else."""
        bank = _listing(bank_harness.bank)
        await bank_harness.be_away()
        with must_raise("a list that cannot be read is Unavailable, and not empty", Unavailable):
            await bank.refunds_since(_LONG_AGO)

    async def test_no_more_goes_back_than_came_however_many_ask_at_once(self, bank_harness: BankHarness) -> None:
        invoice = await paid(bank_harness)
        requests = [_back(invoice, 30_00, operation_id("ref", number)) for number in range(5)]
        answers = await asyncio.gather(*(bank_harness.bank.refund(each) for each in requests), return_exceptions=True)
        refused = sorted(isinstance(answer, Refused) for answer in answers)
        assert refused == [False] * 3 + [True] * 2, f"{_MORE}, also when several are sent at once: {answers}"

    @pytest.mark.parametrize("kopecks", [0, -1, 100_01])
    async def test_an_amount_that_cannot_go_is_refused_and_moves_nothing(
        self, bank_harness: BankHarness, kopecks: int
    ) -> None:
        invoice = await paid(bank_harness)
        with must_raise(f"a refund of {kopecks} of 10000 kopecks must be refused", Refused, reason="amount"):
            await bank_harness.bank.refund(_back(invoice, kopecks))
        assert await bank_harness.bank.find_refund(REFUND) is None, "a refund that was refused must not be found"
        await self._left(bank_harness, invoice, 100_00)

    async def test_an_invoice_that_nobody_paid_or_made_is_refused(self, bank_harness: BankHarness) -> None:
        invoice = await bank_harness.bank.create_invoice(bank_harness.request(OPERATION))
        with must_raise("a refund of an invoice that nobody paid must be refused", Refused, reason="not_paid"):
            await bank_harness.bank.refund(_back(invoice))
        unknown = RefundRequest(operation=REFUND, reference="no-such-reference", amount_kopecks=1)
        with must_raise("a refund of an invoice that nobody made must be refused", Refused, reason="not_found"):
            await bank_harness.bank.refund(unknown)

    async def test_a_refund_leaves_the_invoice_as_it_is(self, bank_harness: BankHarness) -> None:
        invoice = await paid(bank_harness)
        before = await state_of(bank_harness.bank, OPERATION)
        await bank_harness.bank.refund(_back(invoice))
        rule = "an invoice whose money went back must stay PAID, with its transfers"
        assert await state_of(bank_harness.bank, OPERATION) == before, rule
        await bank_harness.finish_refunds()
        assert await state_of(bank_harness.bank, OPERATION) == before, rule

    @pytest.mark.parametrize("done", [True, False])
    async def test_lost_answer_is_an_unknown_outcome_and_a_repeat_refunds_once(
        self, bank_harness: BankHarness, done: bool
    ) -> None:
        invoice = await paid(bank_harness)
        await bank_harness.lose_next_answer(done=done)
        with must_raise("a writing call whose answer is lost has an unknown outcome", OutcomeUnknown):
            await bank_harness.bank.refund(_back(invoice, 60_00))
        await bank_harness.outlast_lost_calls()
        is_found = await bank_harness.bank.find_refund(REFUND) is not None
        assert is_found is done, "after a lost answer the operation id must show whether the refund was sent"
        await bank_harness.bank.refund(_back(invoice, 60_00))
        with must_raise(ONCE, Refused):
            await bank_harness.bank.refund(_back(invoice, 40_01, operation_id("ref", 2)))

    async def _ended(self, bank_harness: BankHarness, operation: str) -> RefundState | None:
        await bank_harness.finish_refunds()
        return await bank_harness.bank.find_refund(operation)

    async def _left(self, bank_harness: BankHarness, invoice: Invoice, kopecks: int) -> None:
        """Assert that exactly this much can still go back."""
        with must_answer(f"{REST}; {ONCE}"):
            await bank_harness.bank.refund(_back(invoice, kopecks, operation_id("ref", 12)))
        with must_raise(_MORE, Refused):
            await bank_harness.bank.refund(_back(invoice, 1, operation_id("ref", 13)))


def _listing(bank: Bank) -> ListingBank:
    if not isinstance(bank, ListingBank):
        pytest.skip("the bank is no ListingBank: an operator compares a restored database with its statements")
    return bank


def _back(
    invoice: Invoice, kopecks: int = 100_00, operation: str = REFUND, transfer: str | None = None
) -> RefundRequest:
    return RefundRequest(operation=operation, reference=invoice.reference, amount_kopecks=kopecks, transfer=transfer)

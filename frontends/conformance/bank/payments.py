"""Contract of an invoice's state: what payers do is reported, to the kopeck, and nothing else is (ports/bank.py:
InvoiceState)."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from ....core.domain.payments.payments import FailureReason
from ....ports.bank import Invoice, InvoiceState, InvoiceStatus
from ....ports.faults import Unavailable
from ..bank_harness import BankHarness
from ..expectations import may_raise, must_play
from .kit import OPERATION, OTHER, paid, paid_again, state_of

_OVER = (InvoiceStatus.FAILED, InvoiceStatus.CANCELLED, InvoiceStatus.EXPIRED)
_ZONES = timedelta(minutes=59)
"""Less than any two time zones of Russia differ by, and more than clocks do."""


class TestPayments:
    """The bank reports the money that came, each time it is asked."""

    async def test_money_that_came_is_told_to_the_kopeck_and_the_same_each_time(
        self, bank_harness: BankHarness
    ) -> None:
        await paid(bank_harness, kopecks=100_01)
        state = await state_of(bank_harness.bank, OPERATION)
        assert state.status is InvoiceStatus.PAID, "an invoice that was paid must be PAID"
        assert _amounts(state) == [100_01], "one payment must be one transfer of its exact amount, before any fee"
        [transfer] = state.transfers
        assert transfer.id, "a transfer must have an id"
        assert transfer.at.utcoffset() is not None, "a transfer's moment has a time zone"
        difference = abs(transfer.at - bank_harness.clock.now())
        assert difference < _ZONES, f"a transfer's moment must be when it came; {difference} off: is the zone right?"
        again = await state_of(bank_harness.bank, OPERATION)
        assert again.transfers == state.transfers, "a transfer must be the same in every report"

    async def test_payment_after_a_poll_is_seen(self, bank_harness: BankHarness) -> None:
        """An adapter that remembers OPEN would never see the money."""
        invoice = await bank_harness.bank.create_invoice(bank_harness.request(OPERATION))
        before = await bank_harness.bank.invoice_state(invoice.reference)
        assert before.status is InvoiceStatus.OPEN, "an invoice that nobody paid must be OPEN"
        await bank_harness.pay(OPERATION, invoice, 100_00)
        state = await bank_harness.bank.invoice_state(invoice.reference)
        assert (state.status, _amounts(state)) == (InvoiceStatus.PAID, [100_00]), (
            "invoice_state must ask the provider each time: money that comes after a poll must be seen"
        )

    async def test_second_transfer_after_a_poll_is_seen(self, bank_harness: BankHarness) -> None:
        """A payer can scan a QR code twice. An adapter that remembers PAID would never see the second money."""
        invoice = await paid(bank_harness)
        [first] = (await bank_harness.bank.invoice_state(invoice.reference)).transfers
        await paid_again(bank_harness, invoice)
        state = await bank_harness.bank.invoice_state(invoice.reference)
        assert state.status is InvoiceStatus.PAID, "an invoice that was paid twice must be PAID"
        assert _amounts(state) == [100_00] * 2, "money that comes after the invoice is paid must be reported as well"
        ids = [transfer.id for transfer in state.transfers]
        assert len(set(ids)) == len(ids), f"two transfers of one invoice must have two ids: {ids}"
        assert first in state.transfers, "a transfer must be the same in every report"

    async def test_money_of_one_invoice_is_no_other_s(self, bank_harness: BankHarness) -> None:
        invoice = await bank_harness.bank.create_invoice(bank_harness.request(OPERATION))
        other = await bank_harness.bank.create_invoice(bank_harness.request(OTHER))
        await bank_harness.pay(OPERATION, invoice, 100_00)
        assert (await state_of(bank_harness.bank, OPERATION)).transfers, "an invoice that was paid must have a transfer"
        state = await bank_harness.bank.invoice_state(other.reference)
        assert (state.status, state.transfers) == (InvoiceStatus.OPEN, ()), "money of one invoice must be no other's"

    async def test_paid_invoices_report_their_own_transfers_only(self, bank_harness: BankHarness) -> None:
        """Transfers of two invoices may have equal ids: an id is unique only within its invoice."""
        amounts = {OPERATION: [100_00], OTHER: [200_00]}
        for operation, [kopecks] in amounts.items():
            invoice = await paid(bank_harness, operation, kopecks)
            if bank_harness.pays_twice:
                await paid_again(bank_harness, invoice, operation, kopecks)
                amounts[operation] = [kopecks] * 2
        for operation, expected in amounts.items():
            came = _amounts(await state_of(bank_harness.bank, operation))
            assert came == expected, f"{operation}: transfers of another invoice are reported, or its own are missing"

    @pytest.mark.parametrize("kopecks", [99_99, 100_01])
    async def test_another_amount_than_asked_for_is_told_as_it_came(
        self, bank_harness: BankHarness, kopecks: int
    ) -> None:
        """The service compares it with the payment's amount, so it must not be the invoice's."""
        if not bank_harness.pays_other_amounts:
            pytest.skip("payers cannot pay another amount at this provider (`pays_other_amounts`)")
        invoice = await bank_harness.bank.create_invoice(bank_harness.request(OPERATION))
        with must_play("`pay` must let a payer pay any amount, or the harness set `pays_other_amounts = False`"):
            await bank_harness.pay(OPERATION, invoice, kopecks)
        came = _amounts(await bank_harness.bank.invoice_state(invoice.reference))
        assert came == [kopecks], "a transfer's amount must be the money that came, and not the invoice's amount"

    async def test_money_that_was_taken_back_says_so(self, bank_harness: BankHarness) -> None:
        """The service books it out. A transfer that disappears would stay booked."""
        invoice = await paid(bank_harness)
        [before] = (await bank_harness.bank.invoice_state(invoice.reference)).transfers
        assert not before.taken_back, "a transfer that nobody took back must not say `taken_back`"
        await bank_harness.take_back(OPERATION, invoice)
        state = await bank_harness.bank.invoice_state(invoice.reference)
        assert [(each.id, each.taken_back) for each in state.transfers] == [(before.id, True)], (
            "a transfer that was taken back must stay in the report, with `taken_back`"
        )

    async def test_declined_payment_ends_the_invoice(self, bank_harness: BankHarness) -> None:
        """An invoice that stays OPEN keeps the payer's window waiting."""
        state = await self._unpaid(bank_harness, bank_harness.decline)
        assert state.status in _OVER, f"a payment declined for good must end the invoice, and it is {state.status}"
        if state.status is InvoiceStatus.FAILED:
            assert state.failure in set(FailureReason), (
                f"with FAILED, `failure` must be a reason of docs/payments.md, and not the provider's {state.failure!r}"
            )

    async def test_lapsed_invoice_is_over(self, bank_harness: BankHarness) -> None:
        state = await self._unpaid(bank_harness, bank_harness.lapse)
        assert state.status in _OVER, f"an invoice that ended unpaid must be over, and it is {state.status}"

    async def test_status_that_nobody_knows_decides_nothing(self, bank_harness: BankHarness) -> None:
        """Providers add statuses without notice."""
        invoice = await bank_harness.bank.create_invoice(bank_harness.request(OPERATION))
        await bank_harness.say_unknown_status(OPERATION)
        rule = "a status that the adapter does not know must leave the invoice open, or make the read Unavailable"
        with may_raise(rule, Unavailable):
            state = await bank_harness.bank.invoice_state(invoice.reference)
            assert state.status in (InvoiceStatus.OPEN, InvoiceStatus.PROCESSING), rule

    async def _unpaid(self, harness: BankHarness, end: Callable[[str, Invoice], Awaitable[None]]) -> InvoiceState:
        invoice = await harness.bank.create_invoice(harness.request(OPERATION))
        assert (await harness.bank.invoice_state(invoice.reference)).status is InvoiceStatus.OPEN, "nobody paid it yet"
        await end(OPERATION, invoice)
        state = await harness.bank.invoice_state(invoice.reference)
        assert state.status is not InvoiceStatus.PAID, "an invoice that nobody paid must not be PAID"
        assert state.transfers == (), "an invoice that nobody paid must have no transfer"
        return state


def _amounts(state: InvoiceState) -> list[int]:
    return [transfer.amount_kopecks for transfer in state.transfers]

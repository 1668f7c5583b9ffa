"""Contract of a bank that lists its booked entries (ports/reporting.py). Your conftest.py provides a fixture
`bank_harness`, a BankHarness. A bank without such a list is skipped."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from ...ports.bank import Invoice, RefundRequest
from ...ports.faults import NotConfigured, Unavailable
from ...ports.reporting import ReportedEntry, ReportedKind, ReportedState, ReportingBank
from .bank.kit import OPERATION, REFUND
from .bank_harness import BankHarness
from .charges import CHARGE, charger, debit
from .mandates import binder, binding, bound
from .operation_ids import binding_id, operation_id
from .remittances import AMOUNT, remitter, to
from .remittances import OPERATION as REMITTANCE

HOUR = timedelta(hours=1)
_PAGES = 100
"""More pages than any test creates, so that an endless list fails."""


def reporter(harness: BankHarness) -> ReportingBank:
    """Return the bank. Skips if it does not list its entries."""
    if not isinstance(harness.bank, ReportingBank):
        pytest.skip("the bank gives no list of what it booked: reconciliation passes it over")
    return harness.bank


async def listed(
    harness: BankHarness, since: datetime | None = None, until: datetime | None = None, *, whose: str | None = None
) -> list[ReportedEntry]:
    """Return all entries of a period, by default one hour around now, for the credentials of every owner."""
    bank, now = reporter(harness), harness.clock.now()
    begin, end = since or now - HOUR, until or now + HOUR
    found: list[ReportedEntry] = []
    for owner in bank.owners() if whose is None else (whose,):
        cursor: str | None = None
        for _ in range(_PAGES):
            page = await bank.entries(owner, begin, end, cursor)
            found += page.entries
            cursor = page.next_cursor
            if cursor is None:
                break
        else:
            pytest.fail("the list has no end")
    assert all(begin <= each.moment < end for each in found), "an entry is of another time than was asked for"
    return found


def only(found: Sequence[ReportedEntry], kind: ReportedKind, operation: str) -> ReportedEntry:
    """Return the single entry of an operation."""
    named = [each for each in found if (each.kind, each.operation) == (kind, operation)]
    assert len(named) == 1, f"{len(named)} entries of {operation}: {found}"
    return named[0]


class TestReporting:
    """Every movement of money is listed once, in its current state, at the moment when it began."""

    async def _paid(self, harness: BankHarness, operation: str = OPERATION, kopecks: int = 100_00) -> Invoice:
        invoice = await harness.bank.create_invoice(harness.request(operation, kopecks))
        await harness.pay(operation, invoice, kopecks)
        return invoice

    async def test_a_paid_invoice_is_listed_with_its_operation_and_amount(self, bank_harness: BankHarness) -> None:
        bank = reporter(bank_harness)
        invoice = await self._paid(bank_harness)
        entry = only(await listed(bank_harness), ReportedKind.PAYMENT, OPERATION)
        assert (entry.state, entry.amount_kopecks) == (ReportedState.DONE, 100_00)
        assert entry.reference in (None, invoice.reference), "a reference is spelt as it was given out"
        assert bank.owner_of(invoice.reference) in bank.owners()
        [transfer] = (await bank.invoice_state(invoice.reference)).transfers
        assert None in (entry.fee_kopecks, transfer.fee_kopecks) or entry.fee_kopecks == transfer.fee_kopecks

    async def test_unpaid_invoice_is_not_done(self, bank_harness: BankHarness) -> None:
        reporter(bank_harness)
        await bank_harness.bank.create_invoice(bank_harness.request(OPERATION))
        assert [each for each in await listed(bank_harness) if each.state is ReportedState.DONE] == []

    async def test_entry_that_ends_later_keeps_its_moment(self, bank_harness: BankHarness) -> None:
        """A day then has the same entries whenever it is read."""
        reporter(bank_harness)
        invoice, began = (
            await bank_harness.bank.create_invoice(bank_harness.request(OPERATION)),
            bank_harness.clock.now(),
        )
        await bank_harness.pass_time(timedelta(minutes=10))
        await bank_harness.pay(OPERATION, invoice, 100_00)
        found = await listed(bank_harness, began - timedelta(minutes=5), began + timedelta(minutes=5))
        assert only(found, ReportedKind.PAYMENT, OPERATION).state is ReportedState.DONE
        assert await listed(bank_harness, began + timedelta(minutes=5)) == []

    async def test_it_is_listed_though_our_notes_are_lost(self, bank_harness: BankHarness) -> None:
        reporter(bank_harness)
        await self._paid(bank_harness)
        await bank_harness.forget()
        only(await listed(bank_harness), ReportedKind.PAYMENT, OPERATION)

    async def test_each_of_many_is_listed_once(self, bank_harness: BankHarness) -> None:
        reporter(bank_harness)
        names = [operation_id("pay", number) for number in range(1, 2 * bank_harness.page + 2)]
        for name in names:
            await self._paid(bank_harness, name)
        found = await listed(bank_harness)
        assert sorted(each.operation or "" for each in found) == names
        assert len({each.id for each in found}) == len(names)

    async def test_no_entry_falls_between_two_stretches(self, bank_harness: BankHarness) -> None:
        """`since` is inclusive and `until` exclusive, to the microsecond."""
        reporter(bank_harness)
        await self._paid(bank_harness)
        moment = only(await listed(bank_harness), ReportedKind.PAYMENT, OPERATION).moment
        step = timedelta(microseconds=1)
        assert len(await listed(bank_harness, moment, moment + step)) == 1
        assert await listed(bank_harness, moment - HOUR, moment) == []
        assert await listed(bank_harness, moment + step, moment + HOUR) == []
        assert len(await listed(bank_harness, moment - HOUR, moment + step)) == 1

    async def test_a_refund_is_listed_as_it_ends(self, bank_harness: BankHarness) -> None:
        bank = reporter(bank_harness)
        if not bank.capabilities.refunds:
            pytest.skip("the bank does not refund")
        invoice = await self._paid(bank_harness)
        await bank.refund(RefundRequest(operation=REFUND, reference=invoice.reference, amount_kopecks=40_00))
        begun = only(await listed(bank_harness), ReportedKind.REFUND, REFUND)
        assert begun.state is not ReportedState.FAILED
        await bank_harness.finish_refunds()
        found = await listed(bank_harness)
        entry = only(found, ReportedKind.REFUND, REFUND)
        assert (entry.id, entry.state, entry.amount_kopecks) == (begun.id, ReportedState.DONE, 40_00)
        paid = only(found, ReportedKind.PAYMENT, OPERATION)
        assert (paid.state, paid.amount_kopecks) == (ReportedState.DONE, 100_00), "what came, came, though it went back"

    async def test_a_refund_that_failed_is_not_done(self, bank_harness: BankHarness) -> None:
        bank = reporter(bank_harness)
        if not bank.capabilities.refunds:
            pytest.skip("the bank does not refund")
        invoice = await self._paid(bank_harness)
        await bank_harness.fail_next_refund()
        await bank.refund(RefundRequest(operation=REFUND, reference=invoice.reference, amount_kopecks=40_00))
        await bank_harness.finish_refunds()
        assert only(await listed(bank_harness), ReportedKind.REFUND, REFUND).state is ReportedState.FAILED

    async def test_the_first_charge_of_a_binding_is_listed(self, bank_harness: BankHarness) -> None:
        reporter(bank_harness)
        made = await binder(bank_harness).bind(binding(bank_harness, 250_00))
        await bank_harness.confirm(binding_id())
        entry = only(await listed(bank_harness), ReportedKind.PAYMENT, binding_id())
        assert (entry.state, entry.amount_kopecks) == (ReportedState.DONE, 250_00)
        assert entry.reference in (None, made.reference)

    async def test_a_charge_is_listed(self, bank_harness: BankHarness) -> None:
        reporter(bank_harness)
        bank, mandate = charger(bank_harness), await bound(bank_harness)
        made = await bank.charge(debit(mandate))
        await bank_harness.finish_charges()
        entry = only(await listed(bank_harness), ReportedKind.PAYMENT, CHARGE)
        assert (entry.state, entry.amount_kopecks) == (ReportedState.DONE, 250_00)
        assert entry.reference in (None, made.reference)

    async def test_money_to_a_person_is_listed(self, bank_harness: BankHarness) -> None:
        bank = reporter(bank_harness)
        await remitter(bank_harness).remit(to(bank_harness))
        await bank_harness.finish_remittances()
        assert "" in bank.owners(), "payouts go by the installation's own credentials"
        entry = only(await listed(bank_harness, whose=""), ReportedKind.PAYOUT, REMITTANCE)
        assert (entry.state, entry.amount_kopecks) == (ReportedState.DONE, AMOUNT)

    async def test_a_bank_that_is_away_gives_no_list(self, bank_harness: BankHarness) -> None:
        """An empty list would mean that nothing was booked."""
        reporter(bank_harness)
        await self._paid(bank_harness)
        await bank_harness.be_away()
        with pytest.raises(Unavailable):
            await listed(bank_harness)

    async def test_credentials_that_are_refused_give_no_list(self, bank_harness: BankHarness) -> None:
        reporter(bank_harness)
        await bank_harness.refuse_credentials()
        with pytest.raises((NotConfigured, Unavailable)):
            await listed(bank_harness)

"""Contract of a bank that lists its booked entries (ports/reporting.py). Your conftest.py provides a fixture
`bank_harness`, a BankHarness. A bank without such a list is skipped."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from ...ports.bank import RefundRequest
from ...ports.faults import NotConfigured, Unavailable
from ...ports.reporting import ReportedEntry, ReportedKind, ReportedState, ReportingBank
from .bank.kit import OPERATION, REFUND, paid
from .bank_harness import BankHarness
from .charges import CHARGE, charger, debit
from .expectations import must_raise
from .mandates import binder, binding, bound
from .operation_ids import binding_id, operation_id
from .remittances import AMOUNT, remitter, to
from .remittances import OPERATION as REMITTANCE

HOUR = timedelta(hours=1)
_SPELT = "an entry must spell the reference as the adapter returned it"
_PAGES = 100
"""More pages than any test creates, so that an endless list fails."""


def reporter(harness: BankHarness) -> ReportingBank:
    """Return the bank. Skips if it does not list its entries."""
    if not isinstance(harness.bank, ReportingBank):
        pytest.skip("the bank gives no list of what it booked (ReportingBank): reconciliation passes it over")
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
            pytest.fail("a list must end: `next_cursor` is None on its last page")
    assert all(begin <= each.moment < end for each in found), "an entry must be of the time that was asked for"
    return found


def only(found: Sequence[ReportedEntry], kind: ReportedKind, operation: str) -> ReportedEntry:
    """Return the single entry of an operation."""
    named = [each for each in found if (each.kind, each.operation) == (kind, operation)]
    assert len(named) == 1, f"an operation must be listed once, and {operation} is {len(named)} times: {found}"
    return named[0]


def _assert_done(entry: ReportedEntry, kopecks: int) -> None:
    assert entry.state is ReportedState.DONE, "an operation that is done must be listed as done"
    assert entry.amount_kopecks == kopecks, "an entry must have the whole amount, whatever was sent back since"


class TestReporting:
    """Every movement of money is listed once, in its current state, at the moment when it began."""

    async def test_a_paid_invoice_is_listed_with_its_operation_and_amount(self, bank_harness: BankHarness) -> None:
        bank = reporter(bank_harness)
        invoice = await paid(bank_harness)
        entry = only(await listed(bank_harness), ReportedKind.PAYMENT, OPERATION)
        _assert_done(entry, 100_00)
        assert entry.reference in (None, invoice.reference), _SPELT
        assert bank.owner_of(invoice.reference) in bank.owners(), "the owner of an invoice must be one of `owners`"
        [transfer] = (await bank.invoice_state(invoice.reference)).transfers
        fees = (entry.fee_kopecks, transfer.fee_kopecks)
        assert None in fees or len(set(fees)) == 1, f"the list and the transfer must state the same fee: {fees}"

    async def test_unpaid_invoice_is_not_done(self, bank_harness: BankHarness) -> None:
        reporter(bank_harness)
        await bank_harness.bank.create_invoice(bank_harness.request(OPERATION))
        done = [each for each in await listed(bank_harness) if each.state is ReportedState.DONE]
        assert done == [], "an invoice that nobody paid must not be listed as done"

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
        state = only(found, ReportedKind.PAYMENT, OPERATION).state
        assert state is ReportedState.DONE, "a payment must be listed in its present state"
        later = await listed(bank_harness, began + timedelta(minutes=5))
        assert later == [], "an entry must keep the moment when it began, also when it ends later"

    async def test_it_is_listed_though_our_notes_are_lost(self, bank_harness: BankHarness) -> None:
        reporter(bank_harness)
        await paid(bank_harness)
        await bank_harness.forget()
        only(await listed(bank_harness), ReportedKind.PAYMENT, OPERATION)

    async def test_each_of_many_is_listed_once(self, bank_harness: BankHarness) -> None:
        reporter(bank_harness)
        names = [operation_id("pay", number) for number in range(1, 2 * bank_harness.page + 2)]
        for name in names:
            await paid(bank_harness, name)
        found = await listed(bank_harness)
        assert sorted(each.operation or "" for each in found) == names, "each payment must be listed once, on all pages"
        assert len({each.id for each in found}) == len(names), "each entry must have an id of its own"

    async def test_no_entry_falls_between_two_stretches(self, bank_harness: BankHarness) -> None:
        """`since` is inclusive and `until` exclusive, to the microsecond."""
        reporter(bank_harness)
        await paid(bank_harness)
        moment = only(await listed(bank_harness), ReportedKind.PAYMENT, OPERATION).moment
        step = timedelta(microseconds=1)
        stretches = (
            (moment, moment + step, 1),
            (moment - HOUR, moment, 0),
            (moment + step, moment + HOUR, 0),
            (moment - HOUR, moment + step, 1),
        )
        for since, until, count in stretches:
            found = await listed(bank_harness, since, until)
            assert len(found) == count, (
                "a period has the entries from `since` on and before `until`, to the microsecond"
            )

    async def test_a_refund_is_listed_as_it_ends(self, bank_harness: BankHarness) -> None:
        bank = reporter(bank_harness)
        if not bank.capabilities.refunds:
            pytest.skip("the bank does not refund (`capabilities.refunds`)")
        invoice = await paid(bank_harness)
        await bank.refund(RefundRequest(operation=REFUND, reference=invoice.reference, amount_kopecks=40_00))
        begun = only(await listed(bank_harness), ReportedKind.REFUND, REFUND)
        assert begun.state is not ReportedState.FAILED, "a refund under way must not be listed as failed"
        await bank_harness.finish_refunds()
        found = await listed(bank_harness)
        entry = only(found, ReportedKind.REFUND, REFUND)
        assert entry.id == begun.id, "an entry must keep its id"
        _assert_done(entry, 40_00)
        _assert_done(only(found, ReportedKind.PAYMENT, OPERATION), 100_00)

    async def test_a_refund_that_failed_is_not_done(self, bank_harness: BankHarness) -> None:
        bank = reporter(bank_harness)
        if not bank.capabilities.refunds:
            pytest.skip("the bank does not refund (`capabilities.refunds`)")
        invoice = await paid(bank_harness)
        await bank_harness.fail_next_refund()
        await bank.refund(RefundRequest(operation=REFUND, reference=invoice.reference, amount_kopecks=40_00))
        await bank_harness.finish_refunds()
        state = only(await listed(bank_harness), ReportedKind.REFUND, REFUND).state
        assert state is ReportedState.FAILED, "a refund that failed must be listed as failed"

    async def test_the_first_charge_of_a_binding_is_listed(self, bank_harness: BankHarness) -> None:
        reporter(bank_harness)
        made = await binder(bank_harness).bind(binding(bank_harness, 250_00))
        await bank_harness.confirm(binding_id())
        entry = only(await listed(bank_harness), ReportedKind.PAYMENT, binding_id())
        _assert_done(entry, 250_00)
        assert entry.reference in (None, made.reference), _SPELT

    async def test_a_charge_is_listed(self, bank_harness: BankHarness) -> None:
        reporter(bank_harness)
        bank, mandate = charger(bank_harness), await bound(bank_harness)
        made = await bank.charge(debit(mandate))
        await bank_harness.finish_charges()
        entry = only(await listed(bank_harness), ReportedKind.PAYMENT, CHARGE)
        _assert_done(entry, 250_00)
        assert entry.reference in (None, made.reference), _SPELT

    async def test_money_to_a_person_is_listed(self, bank_harness: BankHarness) -> None:
        bank = reporter(bank_harness)
        await remitter(bank_harness).remit(to(bank_harness))
        await bank_harness.finish_remittances()
        assert "" in bank.owners(), "payouts go by the installation's own credentials"
        entry = only(await listed(bank_harness, whose=""), ReportedKind.PAYOUT, REMITTANCE)
        _assert_done(entry, AMOUNT)

    async def test_a_bank_that_is_away_gives_no_list(self, bank_harness: BankHarness) -> None:
        """An empty list would mean that nothing was booked."""
        reporter(bank_harness)
        await paid(bank_harness)
        await bank_harness.be_away()
        with must_raise("a list that cannot be read is Unavailable, and not empty", Unavailable):
            await listed(bank_harness)

    async def test_credentials_that_are_refused_give_no_list(self, bank_harness: BankHarness) -> None:
        reporter(bank_harness)
        await bank_harness.refuse_credentials()
        with must_raise("a list whose credentials are refused must not be empty", NotConfigured, Unavailable):
            await listed(bank_harness)

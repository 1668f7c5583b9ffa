"""Money goes back once, though T-Bank knows no key of ours: lost answers, two at once, a process that dies, a database
of last week (docs/providers/tbank.md "Refunds")."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from cambist.adapters.bank.tbank.refund_book import QUIET, Book
from cambist.adapters.bank.tbank.refunds import Refunds
from cambist.frontends.conformance.operation_ids import operation_id
from cambist.ports import Invoice, ProviderNote
from cambist.ports.bank import RefundRequest, RefundState, RefundStatus
from cambist.ports.faults import NotConfigured, OutcomeUnknown, Refused, Unavailable
from cambist.testing import ProviderFault, ProviderRequest
from tests.providers.tbank.harness import TBankHarness, open_harness

PAY = operation_id("pay")
A, B = operation_id("ref", 1), operation_id("ref", 2)


def is_cancel(request: ProviderRequest) -> bool:
    return request.path == "/v2/Cancel"


@pytest.fixture
async def harness() -> AsyncIterator[TBankHarness]:
    async with open_harness() as opened:
        yield opened


@pytest.fixture
async def invoice(harness: TBankHarness) -> Invoice:
    """Create an invoice of 100 RUB and pay it."""
    made = await harness.tbank.create_invoice(harness.request(PAY))
    await harness.pay(PAY, made, 100_00)
    return made


def back(invoice: Invoice, kopecks: int = 60_00, operation: str = A, **more: Any) -> RefundRequest:
    return RefundRequest(operation=operation, reference=invoice.reference, amount_kopecks=kopecks, **more)


async def look(harness: TBankHarness, request: RefundRequest) -> RefundState | None:
    return await harness.another().search_refund(request, harness.clock.now())


async def notes(harness: TBankHarness) -> list[ProviderNote]:
    async with harness.storage.unit() as unit:
        return await unit[ProviderNote].find()


async def restore(harness: TBankHarness, kept: list[ProviderNote]) -> None:
    """The database is as it was when these were its notes."""
    await harness.forget()
    async with harness.storage.unit() as unit:
        for note in kept:
            unit[ProviderNote].add(note)
        await unit.commit()


def gone(harness: TBankHarness) -> list[int]:
    return [kopecks for _, kopecks in harness.books.sent_back]


class TestUnderWay:
    """ASYNC_REFUNDING, as refunds by SBP are at first."""

    @pytest.fixture(autouse=True)
    def later(self, harness: TBankHarness) -> None:
        harness.books.refunds_later = True

    async def test_refund_under_way_ends_when_the_payment_shows_it(
        self, harness: TBankHarness, invoice: Invoice
    ) -> None:
        assert (await harness.tbank.refund(back(invoice))).status is RefundStatus.PROCESSING
        await harness.finish_refunds()
        state = await look(harness, back(invoice))
        assert state is not None
        assert state.status is RefundStatus.DONE

    async def test_refund_rejected_by_the_payers_bank_failed_and_may_be_repeated(
        self, harness: TBankHarness, invoice: Invoice
    ) -> None:
        harness.books.fails_refunds.append("I05043")
        await harness.tbank.refund(back(invoice))
        await harness.finish_refunds()
        assert await look(harness, back(invoice)) == RefundState(status=RefundStatus.FAILED, failure="I05043")
        await harness.tbank.refund(back(invoice, operation=B))
        await harness.finish_refunds()
        assert gone(harness) == [60_00]

    async def test_another_one_of_its_payment_waits_and_goes_after_it(
        self, harness: TBankHarness, invoice: Invoice
    ) -> None:
        await harness.tbank.refund(back(invoice, 30_00))
        for state in (
            await harness.tbank.refund(back(invoice, 30_00, B)),
            await look(harness, back(invoice, 30_00, B)),
        ):
            assert state is not None
            assert (state.status, state.check_after) == (RefundStatus.PROCESSING, 60)
        await harness.finish_refunds()
        assert await look(harness, back(invoice, 30_00, B)) is None, "it was never sent"
        await harness.tbank.refund(back(invoice, 30_00, B))
        await harness.finish_refunds()
        assert gone(harness) == [30_00, 30_00]

    async def test_a_restored_database_waits_for_one_that_it_forgot(
        self, harness: TBankHarness, invoice: Invoice
    ) -> None:
        await harness.tbank.refund(back(invoice))
        await harness.forget()
        for call in (harness.tbank.refund(back(invoice)), look(harness, back(invoice))):
            with pytest.raises(Unavailable):
                await call
        await harness.finish_refunds()
        state = await look(harness, back(invoice))
        assert state is not None
        assert gone(harness) == [60_00]


class TestParts:
    async def test_a_second_part_is_done_once_the_payment_shows_it(
        self, harness: TBankHarness, invoice: Invoice
    ) -> None:
        """Its status was PARTIAL_REFUNDED before, so the answer's says nothing."""
        assert (await harness.tbank.refund(back(invoice, 30_00))).status is RefundStatus.DONE
        assert (await harness.tbank.refund(back(invoice, 20_00, B))).status is RefundStatus.PROCESSING
        assert await look(harness, back(invoice, 20_00, B)) == RefundState(status=RefundStatus.DONE)
        last = operation_id("ref", 3)
        assert (await harness.tbank.refund(back(invoice, 50_00, last))).status is RefundStatus.DONE
        assert gone(harness) == [30_00, 20_00, 50_00]


class TestTwoAtOnce:
    async def test_only_one_of_two_processes_sends(self, harness: TBankHarness, invoice: Invoice) -> None:
        """Two different refunds of one payment: the other one waits."""
        banks = (harness.tbank, harness.another())
        answers = await asyncio.gather(
            *(bank.refund(back(invoice, 60_00, each)) for bank, each in zip(banks, (A, B), strict=True)),
            return_exceptions=True,
        )
        kinds = sorted(type(answer).__name__ for answer in answers)
        assert kinds in (["RefundState", "Refused"], ["RefundState", "RefundState"])
        assert gone(harness) == [60_00]
        for operation in (A, B):
            with suppress(Refused):
                await harness.tbank.refund(back(invoice, 60_00, operation))
        assert gone(harness) == [60_00]

    async def test_one_operation_by_many_goes_once(self, harness: TBankHarness, invoice: Invoice) -> None:
        banks = [harness.another() for _ in range(4)]
        await asyncio.gather(*(bank.refund(back(invoice)) for bank in banks), return_exceptions=True)
        assert gone(harness) == [60_00]

    async def test_a_look_beside_the_first_answer_ends_nothing(self, harness: TBankHarness, invoice: Invoice) -> None:
        held = harness.fake.hold_next(matching=is_cancel, done=False)
        sending = asyncio.ensure_future(harness.tbank.refund(back(invoice)))
        await held.arrived()
        state = await look(harness, back(invoice))
        assert state is not None
        assert state.status is RefundStatus.PROCESSING
        await held.release()
        assert (await sending).status is RefundStatus.DONE
        assert gone(harness) == [60_00]


class TestLostAnswers:
    async def test_refund_that_never_arrived_is_sent_once_that_is_certain(
        self, harness: TBankHarness, invoice: Invoice
    ) -> None:
        harness.fake.next(ProviderFault.LOST_BEFORE, matching=is_cancel)
        with pytest.raises(OutcomeUnknown):
            await harness.tbank.refund(back(invoice))
        for _ in range(3):
            assert (await harness.tbank.refund(back(invoice))).status is RefundStatus.PROCESSING
        assert gone(harness) == []
        await harness.pass_time(QUIET)
        assert await look(harness, back(invoice)) is None
        await harness.tbank.refund(back(invoice))
        assert gone(harness) == [60_00]

    async def test_refund_that_arrives_late_is_seen_and_not_sent_again(
        self, harness: TBankHarness, invoice: Invoice
    ) -> None:
        """The call was given up, and carried out afterwards."""
        held = harness.fake.hold_next(matching=is_cancel, done=False)
        sending = asyncio.ensure_future(harness.tbank.refund(back(invoice)))
        await held.arrived()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        assert (await harness.another().refund(back(invoice))).status is RefundStatus.PROCESSING
        await held.release()
        await harness.pass_time(QUIET)
        assert (await harness.another().refund(back(invoice))).status is RefundStatus.DONE
        assert gone(harness) == [60_00]

    async def test_a_clock_set_forward_makes_nothing_older(
        self, harness: TBankHarness, invoice: Invoice, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        harness.fake.next(ProviderFault.LOST_BEFORE, matching=is_cancel)
        with pytest.raises(OutcomeUnknown):
            await harness.tbank.refund(back(invoice))
        tomorrow = harness.clock.now() + timedelta(days=1)
        monkeypatch.setattr(harness.virtual, "now", lambda: tomorrow)
        assert (await harness.tbank.refund(back(invoice))).status is RefundStatus.PROCESSING
        assert gone(harness) == []

    @pytest.mark.parametrize("fault", [ProviderFault.LOST_AFTER, ProviderFault.CUT_IN_BODY, ProviderFault.BAD_GATEWAY])
    async def test_a_second_part_whose_amount_does_not_show_is_an_operator_s(
        self, harness: TBankHarness, invoice: Invoice, fault: ProviderFault
    ) -> None:
        """If T-Bank does not lower the amount, two partial refunds of the same amount cannot be distinguished."""
        harness.books.lowers_amount = False
        await harness.tbank.refund(back(invoice, 30_00))
        with pytest.raises(OutcomeUnknown):
            await harness.tbank.refund(back(invoice, 30_00, B))
        await harness.pass_time(timedelta(days=3))
        with pytest.raises(Unavailable):
            await look(harness, back(invoice, 30_00, B))
        assert gone(harness) == [30_00]


class TestCrashes:
    async def test_dying_between_note_and_cancel_sends_it_later(
        self, harness: TBankHarness, invoice: Invoice, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def die(*_: Any) -> RefundState:
            raise asyncio.CancelledError

        with monkeypatch.context() as patch:
            patch.setattr(Refunds, "_send", die)
            with pytest.raises(asyncio.CancelledError):
                await harness.tbank.refund(back(invoice))
        assert (await harness.another().refund(back(invoice))).status is RefundStatus.PROCESSING
        await harness.pass_time(QUIET)
        await harness.another().refund(back(invoice))
        assert gone(harness) == [60_00]

    async def test_dying_between_cancel_and_note_sends_nothing_more(
        self, harness: TBankHarness, invoice: Invoice
    ) -> None:
        held = harness.fake.hold_next(matching=is_cancel, done=True)
        sending = asyncio.ensure_future(harness.tbank.refund(back(invoice)))
        await held.arrived()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await held.release()
        state = await look(harness, back(invoice))
        assert state is not None
        assert state.status is RefundStatus.DONE
        await harness.another().refund(back(invoice))
        assert gone(harness) == [60_00]

    async def test_a_storage_that_fails_after_cancel_loses_nothing(
        self, harness: TBankHarness, invoice: Invoice, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def away(*_: Any) -> Book:
            raise Unavailable("the storage is away")

        monkeypatch.setattr(harness.tbank._refunds._books, "change", away)
        assert (await harness.tbank.refund(back(invoice))).status is RefundStatus.DONE
        await harness.pass_time(QUIET)
        await harness.another().refund(back(invoice))
        assert gone(harness) == [60_00]

    async def test_a_process_that_stood_still_sends_nothing(
        self, harness: TBankHarness, invoice: Invoice, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Between its entry and Cancel hours passed: another process has sent it."""
        keep = Refunds._keep

        async def stand_still(self: Refunds, *given: Any) -> bool:
            kept = await keep(self, *given)
            await harness.pass_time(QUIET)
            with monkeypatch.context() as patch:
                patch.setattr(Refunds, "_keep", keep)
                await harness.another().refund(back(invoice))
            return kept

        with monkeypatch.context() as patch:
            patch.setattr(Refunds, "_keep", stand_still)
            with pytest.raises(Unavailable):
                await harness.tbank.refund(back(invoice))
        assert gone(harness) == [60_00]


class TestRestoredNotes:
    async def test_refunds_sent_since_the_copy_are_adopted_and_the_rest_may_go(
        self, harness: TBankHarness, invoice: Invoice
    ) -> None:
        await harness.tbank.refund(back(invoice, 30_00))
        kept = await notes(harness)
        await harness.tbank.refund(back(invoice, 20_00, B))
        await restore(harness, kept)
        with pytest.raises(OutcomeUnknown):
            await harness.tbank.refund(back(invoice, 20_00, B))
        assert await look(harness, back(invoice, 20_00, B)) == RefundState(status=RefundStatus.DONE)
        await harness.tbank.refund(back(invoice, 50_00, operation_id("ref", 3)))
        assert gone(harness) == [30_00, 20_00, 50_00]

    async def test_two_that_went_since_are_an_operator_s(self, harness: TBankHarness, invoice: Invoice) -> None:
        kept = await notes(harness)
        await harness.tbank.refund(back(invoice, 30_00))
        await harness.tbank.refund(back(invoice, 20_00, B))
        await restore(harness, kept)
        for request in (back(invoice, 30_00), back(invoice, 20_00, B)):
            with pytest.raises(Unavailable):
                await look(harness, request)
            with pytest.raises(OutcomeUnknown):
                await harness.tbank.refund(request)
        assert gone(harness) == [30_00, 20_00]

    async def test_one_by_hand_in_the_cabinet_stops_what_has_another_amount(
        self, harness: TBankHarness, invoice: Invoice
    ) -> None:
        harness.books.cancel(harness.payment(PAY), 10_00)
        with pytest.raises(OutcomeUnknown):
            await harness.tbank.refund(back(invoice, 20_00))
        assert gone(harness) == [10_00]


class TestCertainRefusals:
    @pytest.mark.parametrize(
        ("code", "fault"),
        [
            ("3028", Refused),
            ("3002", Unavailable),
            ("3030", Unavailable),
            ("3038", Unavailable),
            ("204", NotConfigured),
            ("8", Refused),
        ],
    )
    async def test_refund_certainly_not_executed_leaves_no_trace(
        self, harness: TBankHarness, invoice: Invoice, code: str, fault: type[Exception]
    ) -> None:
        harness.books.refuses_refunds.append(code)
        with pytest.raises(fault):
            await harness.tbank.refund(back(invoice))
        assert await look(harness, back(invoice)) is None
        await harness.pass_time(timedelta(days=1))
        await harness.tbank.refund(back(invoice))
        assert gone(harness) == [60_00]

    async def test_a_limit_of_a_day_is_not_asked_again_before(self, harness: TBankHarness, invoice: Invoice) -> None:
        harness.books.refuses_refunds.append("3030")
        with pytest.raises(Unavailable):
            await harness.tbank.refund(back(invoice))
        with pytest.raises(Unavailable) as wait:
            await harness.tbank.refund(back(invoice))
        assert wait.value.retry_after == 86400
        assert sum(map(is_cancel, harness.fake.requests)) == 1

    async def test_no_connection_is_none_of_the_refund_s_doing(self, harness: TBankHarness, invoice: Invoice) -> None:
        other = harness.another()
        refund = asyncio.ensure_future(other.refund(back(invoice)))
        harness.fake.be_away()
        with pytest.raises(Unavailable):
            await refund
        await harness.fake.come_back()
        await harness.tbank.refund(back(invoice))
        assert gone(harness) == [60_00]

    async def test_a_transfer_that_is_none_of_the_payment_s_is_refused(
        self, harness: TBankHarness, invoice: Invoice
    ) -> None:
        with pytest.raises(Refused) as refused:
            await harness.tbank.refund(back(invoice, transfer="77"))
        assert refused.value.reason == "not_found"
        [transfer] = (await harness.tbank.invoice_state(invoice.reference)).transfers
        await harness.tbank.refund(back(invoice, transfer=transfer.id))

    async def test_less_than_a_rouble_is_t_bank_s_no(self, harness: TBankHarness, invoice: Invoice) -> None:
        with pytest.raises(Refused) as refused:
            await harness.tbank.refund(back(invoice, 99))
        assert refused.value.reason == "amount"

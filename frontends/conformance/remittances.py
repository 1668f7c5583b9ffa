"""Contract of a bank that sends RUB to people (ports/remittances.py). Your conftest.py provides a fixture
`bank_harness`, a BankHarness. A bank that does not remit is skipped."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from ...ports.faults import NotSupported, OutcomeUnknown, Refused, Unavailable
from ...ports.remittances import RemittanceBank, RemittanceRequest, RemittanceState, RemittanceStatus
from .bank.kit import DAY, asked_of, assert_amount, kept, last_repeat
from .bank_harness import BankHarness
from .expectations import may_raise, must_answer, must_raise
from .harnesses import check_hidden
from .operation_ids import part_id
from .problem import CancelRules, Reading, ReadRules, TwoProcessRules, Work, WriteRules

OPERATION = part_id()
AMOUNT = 1000_00
ONCE = "a person must get the money of one operation once"
_DONE = "a remittance whose money arrived must be DONE"
_UNDER_WAY = {RemittanceStatus.PROCESSING, RemittanceStatus.DONE}


def remitter(harness: BankHarness) -> RemittanceBank:
    """Return the bank. Skips if it does not remit."""
    if not harness.bank.capabilities.remittances:
        pytest.skip("the bank sends no money to people (`capabilities.remittances`)")
    assert isinstance(harness.bank, RemittanceBank), "it says that it remits, and lacks methods of RemittanceBank"
    return harness.bank


def to(harness: BankHarness, **more: Any) -> RemittanceRequest:
    """Return a request to send 1000 RUB to a person."""
    fields: dict[str, Any] = {
        "operation": OPERATION,
        "phone": harness.phone,
        "bank_id": harness.bank_id,
        "amount_kopecks": AMOUNT,
    }
    return RemittanceRequest(**{**fields, **more})


async def ended(harness: BankHarness, operation: str = OPERATION) -> RemittanceState:
    """Complete all remittances in processing, and return the state of this operation's remittance."""
    await harness.finish_remittances()
    found = await remitter(harness).find_remittance(operation)
    assert found is not None, "a remittance must be found by its operation id alone"
    return found


class TestRemittances:
    """A person gets the money once, whatever fails on the way."""

    async def test_a_remittance_can_be_found_by_its_operation_and_ends(self, bank_harness: BankHarness) -> None:
        bank = remitter(bank_harness)
        assert await bank.find_remittance(OPERATION) is None, "the bank never saw it"
        begun = await bank.remit(to(bank_harness))
        assert begun.status in _UNDER_WAY, "a remittance that was taken is under way"
        assert (await ended(bank_harness)).status is RemittanceStatus.DONE, _DONE

    async def test_provider_is_asked_for_the_amount_to_the_kopeck(self, bank_harness: BankHarness) -> None:
        await remitter(bank_harness).remit(to(bank_harness, amount_kopecks=490_05))
        assert_amount(await asked_of(bank_harness, OPERATION), 490_05)

    @pytest.mark.parametrize("field", ["phone", "bank_id"])
    async def test_provider_is_told_the_person(self, bank_harness: BankHarness, field: str) -> None:
        """Money that went to somebody else does not come back."""
        await remitter(bank_harness).remit(to(bank_harness))
        sent, meant = kept(getattr(await asked_of(bank_harness, OPERATION), field), field), getattr(bank_harness, field)
        assert sent == meant, f"the provider must get the {field} of the request: {meant!r}, and got {sent!r}"

    async def test_remittance_in_processing_is_not_called_done(self, bank_harness: BankHarness) -> None:
        bank = remitter(bank_harness)
        await bank_harness.hold_next_remittance()
        states = [await bank.remit(to(bank_harness)), await bank.find_remittance(OPERATION)]
        statuses = [each and each.status for each in states]
        assert statuses == [RemittanceStatus.PROCESSING] * 2, "a remittance is PROCESSING until the person has it"
        assert (await ended(bank_harness)).status is RemittanceStatus.DONE, _DONE

    async def test_remittance_that_failed_is_called_failed(self, bank_harness: BankHarness) -> None:
        bank = remitter(bank_harness)
        await bank_harness.fail_next_remittance()
        await bank.remit(to(bank_harness))
        state = await ended(bank_harness)
        assert state.status is RemittanceStatus.FAILED, "a remittance whose money did not go must be FAILED"
        assert await bank_harness.remitted() == 0, "a remittance that failed must move no money"

    async def test_status_that_nobody_knows_decides_nothing(self, bank_harness: BankHarness) -> None:
        bank = remitter(bank_harness)
        await bank_harness.hold_next_remittance()
        await bank.remit(to(bank_harness))
        await bank_harness.say_unknown_status(OPERATION)
        rule = (
            "a status that the adapter does not know must leave the remittance PROCESSING, or make the read Unavailable"
        )
        with may_raise(rule, Unavailable):
            state = await bank.find_remittance(OPERATION)
            assert (state and state.status) is RemittanceStatus.PROCESSING, rule

    async def test_a_day_later_it_is_still_found(self, bank_harness: BankHarness) -> None:
        await remitter(bank_harness).remit(to(bank_harness))
        await bank_harness.pass_time(DAY)
        assert (await ended(bank_harness)).status is RemittanceStatus.DONE, _DONE

    async def test_as_long_as_it_says_a_repeat_moves_no_second_money(self, bank_harness: BankHarness) -> None:
        """Repeats are safe within `repeat_window`; without one, for ever."""
        bank = remitter(bank_harness)
        await bank.remit(to(bank_harness))
        await bank_harness.pass_time(last_repeat(bank))
        await bank.remit(to(bank_harness))
        assert await bank_harness.remitted() == AMOUNT, ONCE

    async def test_a_repeat_answers_with_the_present_state(self, bank_harness: BankHarness) -> None:
        bank = remitter(bank_harness)
        for _ in range(3):
            await bank.remit(to(bank_harness))
        done = await ended(bank_harness)
        assert (await bank.remit(to(bank_harness))).status is done.status, "a repeat must return the present state"

    async def test_a_repeat_moves_no_second_money(self, bank_harness: BankHarness) -> None:
        for _ in range(3):
            await remitter(bank_harness).remit(to(bank_harness))
        await bank_harness.finish_remittances()
        await remitter(bank_harness).remit(to(bank_harness))
        assert await bank_harness.remitted() == AMOUNT, ONCE

    async def test_forgotten_remittance_is_found_and_a_repeat_moves_no_money(self, bank_harness: BankHarness) -> None:
        """The operation id alone must be enough: a restored database has lost the notes written since the backup."""
        await remitter(bank_harness).remit(to(bank_harness))
        await bank_harness.forget()
        assert (await ended(bank_harness)).status is RemittanceStatus.DONE, _DONE
        await remitter(bank_harness).remit(to(bank_harness))
        assert await bank_harness.remitted() == AMOUNT, ONCE

    async def test_repeats_at_once_are_one_remittance(self, bank_harness: BankHarness) -> None:
        bank, request = remitter(bank_harness), to(bank_harness)
        answers = await asyncio.gather(*(bank.remit(request) for _ in range(5)))
        assert {answer.status for answer in answers} <= _UNDER_WAY, "a remittance that was taken is under way"
        assert (await ended(bank_harness)).status is RemittanceStatus.DONE, _DONE
        assert await bank_harness.remitted() == AMOUNT, ONCE

    @pytest.mark.parametrize("other", [{"amount_kopecks": AMOUNT + 1}, {"phone": "+79990000002"}], ids=str)
    async def test_a_repeat_for_something_else_is_refused(
        self, bank_harness: BankHarness, other: dict[str, Any]
    ) -> None:
        """A different request under the same operation means that two payouts were mixed up."""
        bank = remitter(bank_harness)
        await bank.remit(to(bank_harness))
        rule = "a repeat with another amount or person must be refused"
        with must_raise(rule, Refused, reason="operation"):
            await bank.remit(to(bank_harness, **other))

    @pytest.mark.parametrize("kopecks", [0, -1])
    async def test_nothing_and_less_is_refused_and_leaves_nothing(
        self, bank_harness: BankHarness, kopecks: int
    ) -> None:
        await self._refused(bank_harness, to(bank_harness, amount_kopecks=kopecks), "amount")

    async def test_more_than_the_bound_is_refused_and_the_bound_itself_is_sent(self, bank_harness: BankHarness) -> None:
        """The service splits an amount above the cap into several payouts, so the bank must state its cap
        (docs/exchanges.md "Rules")."""
        most = remitter(bank_harness).capabilities.remittance_max_kopecks
        if most is None:
            pytest.skip("the bank has no bound (`capabilities.remittance_max_kopecks`)")
        await self._refused(bank_harness, to(bank_harness, amount_kopecks=most + 1), "amount")
        with must_answer("a remittance of `capabilities.remittance_max_kopecks` must be taken"):
            await remitter(bank_harness).remit(to(bank_harness, amount_kopecks=most))

    @pytest.mark.parametrize(
        "wrong", [{"phone": ""}, {"phone": "79990000001"}, {"bank_id": ""}, {"bank_id": "x"}], ids=str
    )
    async def test_unknown_recipient_is_refused_and_gets_nothing(
        self, bank_harness: BankHarness, wrong: dict[str, Any]
    ) -> None:
        await self._refused(bank_harness, to(bank_harness, **wrong), "recipient")

    async def _refused(self, harness: BankHarness, request: RemittanceRequest, reason: str) -> None:
        bank = remitter(harness)
        with must_raise(f"a remittance with a wrong {reason} must be refused", Refused, reason=reason):
            await bank.remit(request)
        assert await bank.find_remittance(OPERATION) is None, "a remittance that was refused must not be found"


class TestFailures:
    """A call has one of three outcomes: done, refused or unknown."""

    @pytest.mark.parametrize("done", [True, False])
    async def test_a_lost_answer_is_an_unknown_outcome_and_the_operation_settles_it(
        self, bank_harness: BankHarness, done: bool
    ) -> None:
        bank, request = remitter(bank_harness), to(bank_harness)
        await bank_harness.lose_next_answer(done=done)
        with must_raise("a writing call whose answer is lost has an unknown outcome", OutcomeUnknown):
            await bank.remit(request)
        is_found = await bank.find_remittance(OPERATION) is not None
        assert is_found is done, "after a lost answer the operation id must show whether the money was sent"
        await bank.remit(request)
        assert (await ended(bank_harness)).status is RemittanceStatus.DONE, _DONE
        assert await bank_harness.remitted() == AMOUNT, ONCE

    async def test_a_bank_that_is_away_was_certainly_not_asked(self, bank_harness: BankHarness) -> None:
        bank, request = remitter(bank_harness), to(bank_harness)
        await bank_harness.be_away()
        with must_raise("without a connection no money was sent", Unavailable):
            await bank.remit(request)
        with must_raise("a search without a connection says nothing about the remittance", Unavailable):
            await bank.find_remittance(OPERATION)


class TestWhatItSays:
    """The bank describes itself correctly and does not leak the recipient."""

    async def test_it_is_no_invoice(self, bank_harness: BankHarness) -> None:
        bank = remitter(bank_harness)
        await bank.remit(to(bank_harness))
        assert await bank.find_invoice(OPERATION) is None, "a remittance must not be found as an invoice"

    async def test_no_phone_shows(self, bank_harness: BankHarness) -> None:
        """Neither the repr nor a fault contains a phone number."""
        bank = remitter(bank_harness)
        with must_raise("a remittance of nothing must be refused", Refused) as refused:
            await bank.remit(to(bank_harness, amount_kopecks=0))
        check_hidden((*bank_harness.secrets, bank_harness.phone.lstrip("+")), bank, refused.value)

    async def test_a_bank_that_does_not_remit_says_so(self, bank_harness: BankHarness) -> None:
        bank = bank_harness.bank
        if bank.capabilities.remittances or not isinstance(bank, RemittanceBank):
            pytest.skip("the bank remits (`capabilities.remittances`), or is no RemittanceBank")
        with must_raise("`remit` of a bank without `capabilities.remittances`", NotSupported):
            await bank.remit(to(bank_harness))


async def _remitting(harness: BankHarness) -> Work:
    bank, request = remitter(harness), to(harness)

    async def is_there() -> bool:
        return await bank.find_remittance(OPERATION) is not None

    async def once() -> None:
        assert (await ended(harness)).status is RemittanceStatus.DONE, _DONE
        assert await harness.remitted() == AMOUNT, ONCE

    def beside() -> Awaitable[RemittanceState]:
        other = harness.beside()
        assert isinstance(other, RemittanceBank), "every adapter of this name must be a RemittanceBank"
        return other.remit(request)

    return Work(
        harness=harness,
        adapter=bank,
        write=lambda: bank.remit(request),
        is_there=is_there,
        once=once,
        beside=beside,
        hidden=(harness.phone.lstrip("+"),),
        in_one_call=harness.remits_in_one_call,
    )


class _OfRemittances:
    @pytest.fixture
    async def work(self, bank_harness: BankHarness) -> Work:
        return await _remitting(bank_harness)


class TestRemittancesAtFaults(_OfRemittances, WriteRules, ReadRules):
    """Remittances while the provider fails."""

    @pytest.fixture
    async def read(self, bank_harness: BankHarness) -> Reading:
        bank = remitter(bank_harness)
        await bank.remit(to(bank_harness))
        return Reading(harness=bank_harness, adapter=bank, finds=(lambda: bank.find_remittance(OPERATION),))


class TestCancelledRemittances(_OfRemittances, CancelRules):
    """Remittances when the caller cancels the call."""


class TestTwoRemit(_OfRemittances, TwoProcessRules):
    """Two processes send one remittance."""

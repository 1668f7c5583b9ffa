"""Contract of a bank that charges mandates (ports/mandates.py). Your conftest.py provides a fixture `bank_harness`, a
BankHarness. A bank that does not charge is only tested for saying so."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from ...ports.bank import RefundRequest
from ...ports.faults import NotConfigured, OutcomeUnknown, Refused, Unavailable
from ...ports.mandates import (
    MANDATE_REVOKED,
    ChargeRequest,
    ChargeState,
    ChargeStatus,
    MandateBank,
    MandateState,
)
from .bank.kit import asked_of, assert_amount, assert_purpose, last_repeat
from .bank_harness import BankHarness
from .expectations import may_raise, must_answer, must_raise
from .harnesses import check_hidden
from .mandates import OTHER, binder, binding, bound, has_debited
from .operation_ids import binding_id, operation_id
from .problem import CancelRules, Reading, ReadRules, TwoProcessRules, Work, WriteRules

CHARGE = operation_id("pay", 7)
SAME = "a repeat of a charge must return its present state, and never debit again"
_ANOTHER = "after a charge that failed, the charge of another operation must be debited"


def charger(harness: BankHarness) -> MandateBank:
    """Return the bank. Skips if it does not charge mandates."""
    bank = binder(harness)
    if not bank.capabilities.mandate_charges:
        pytest.skip("the bank does not charge mandates at present (`capabilities.mandate_charges`)")
    return bank


def debit(mandate: MandateState, kopecks: int = 250_00, operation: str = CHARGE, **more: Any) -> ChargeRequest:
    """Return a request to charge this mandate 250 RUB."""
    fields: dict[str, Any] = {"reference": mandate.reference, "token": mandate.token, **more}
    return ChargeRequest(operation=operation, amount_kopecks=kopecks, purpose="Coffee club", **fields)


async def charge_of(harness: BankHarness, operation: str = CHARGE) -> ChargeState:
    """Complete all charges in processing, and return the state of this operation's charge."""
    await harness.finish_charges()
    found = await charger(harness).find_charge(operation)
    assert found is not None, "a charge must be found by its operation id alone, or it would be debited again"
    return found


class TestCharges:
    """One operation debits the payer once, and never on a guess."""

    async def test_as_long_as_it_says_a_repeat_debits_nothing(self, bank_harness: BankHarness) -> None:
        """Repeats are safe within `BankCapabilities.repeat_window`; without one, for ever."""
        bank, mandate = charger(bank_harness), await bound(bank_harness)
        await bank.charge(debit(mandate))
        await bank_harness.pass_time(last_repeat(bank))
        await bank.charge(debit(mandate))
        await has_debited(bank_harness, (await charge_of(bank_harness)).reference, 250_00)

    async def test_it_is_paid_and_can_be_found_by_its_operation(self, bank_harness: BankHarness) -> None:
        bank, mandate = charger(bank_harness), await bound(bank_harness)
        assert await bank.find_charge(CHARGE) is None, "the bank never saw it"
        begun = await bank.charge(debit(mandate))
        assert begun.reference, "a charge must have the provider's reference"
        assert begun.status in (ChargeStatus.PROCESSING, ChargeStatus.PAID), "a charge that was taken is under way"
        paid = await charge_of(bank_harness)
        assert (paid.reference, paid.status, paid.failure) == (begun.reference, ChargeStatus.PAID, None), (
            "a charge that was debited must be PAID, without a failure, and keep its reference"
        )
        assert paid.transfer is not None, "with PAID there is a transfer"
        assert paid.transfer.amount_kopecks == 250_00, "the transfer of a charge must have the debited amount"
        assert paid.transfer.at.utcoffset() is not None, "a transfer's moment has a time zone"
        await has_debited(bank_harness, paid.reference, 250_00)

    async def test_provider_is_asked_for_the_amount_to_the_kopeck(self, bank_harness: BankHarness) -> None:
        bank, mandate = charger(bank_harness), await bound(bank_harness)
        await bank.charge(debit(mandate, 490_05))
        asked = await asked_of(bank_harness, CHARGE)
        assert_amount(asked, 490_05)
        assert_purpose(asked, "Coffee club")

    async def test_charge_in_processing_is_not_called_paid(self, bank_harness: BankHarness) -> None:
        bank, mandate = charger(bank_harness), await bound(bank_harness)
        await bank_harness.hold_next_charge()
        states = [await bank.charge(debit(mandate)), await bank.find_charge(CHARGE)]
        statuses = [each and each.status for each in states]
        assert statuses == [ChargeStatus.PROCESSING] * 2, "a charge is PROCESSING until the payer's bank has decided"
        assert (await charge_of(bank_harness)).status is ChargeStatus.PAID, "a charge that was debited must be PAID"

    async def test_status_that_nobody_knows_decides_nothing(self, bank_harness: BankHarness) -> None:
        bank, mandate = charger(bank_harness), await bound(bank_harness)
        await bank_harness.hold_next_charge()
        await bank.charge(debit(mandate))
        await bank_harness.say_unknown_status(CHARGE)
        rule = "a status that the adapter does not know must leave the charge PROCESSING, or make the read Unavailable"
        with may_raise(rule, Unavailable):
            state = await bank.find_charge(CHARGE)
            assert (state and state.status) is ChargeStatus.PROCESSING, rule

    async def test_forgotten_charge_is_found_and_a_repeat_never_debits_again(self, bank_harness: BankHarness) -> None:
        """The operation id alone must be enough: a restored database has lost the notes written since the backup."""
        bank, mandate = charger(bank_harness), await bound(bank_harness)
        await bank.charge(debit(mandate))
        await bank_harness.forget()
        paid = await charge_of(bank_harness)
        assert (await bank.charge(debit(mandate))).reference == paid.reference, SAME
        await has_debited(bank_harness, paid.reference, 250_00)

    async def test_a_repeat_never_debits_again_whatever_it_says(self, bank_harness: BankHarness) -> None:
        bank, mandate = charger(bank_harness), await bound(bank_harness)
        await bank.charge(debit(mandate))
        paid = await charge_of(bank_harness)
        other = await bound(bank_harness, OTHER)
        repeats = (
            debit(mandate),
            debit(mandate, 5_000_00),
            debit(mandate, 0),
            debit(mandate, token="another"),  # noqa: S106 - of nobody
            debit(mandate, reference="no-such-reference"),
            debit(other),
        )
        for repeat in repeats:
            with must_answer(SAME):
                again = await bank.charge(repeat)
            assert (again.reference, again.status, again.transfer) == (paid.reference, paid.status, paid.transfer), SAME
        await has_debited(bank_harness, paid.reference, 250_00)

    async def test_one_operation_at_once_debits_once(self, bank_harness: BankHarness) -> None:
        bank, mandate = charger(bank_harness), await bound(bank_harness)
        answers = await asyncio.gather(*(bank.charge(debit(mandate)) for _ in range(5)))
        assert len({answer.reference for answer in answers}) == 1, SAME
        await bank_harness.finish_charges()
        await has_debited(bank_harness, answers[0].reference, 250_00)

    async def test_operations_at_once_are_each_debited(self, bank_harness: BankHarness) -> None:
        bank, mandate = charger(bank_harness), await bound(bank_harness)
        operations = [operation_id("pay", number) for number in range(4)]
        await asyncio.gather(*(bank.charge(debit(mandate, operation=operation)) for operation in operations))
        transfers = [(await charge_of(bank_harness, operation)).transfer for operation in operations]
        ids = {transfer.id for transfer in transfers if transfer is not None}
        assert len(ids) == 4, f"each of four charges must be debited, with a transfer of its own: {transfers}"

    @pytest.mark.parametrize("done", [True, False])
    async def test_a_lost_answer_is_an_unknown_outcome_and_a_repeat_debits_once(
        self, bank_harness: BankHarness, done: bool
    ) -> None:
        bank, mandate = charger(bank_harness), await bound(bank_harness)
        await bank_harness.lose_next_answer(done=done)
        with must_raise("a writing call whose answer is lost has an unknown outcome", OutcomeUnknown):
            await bank.charge(debit(mandate))
        is_found = await bank.find_charge(CHARGE) is not None
        assert is_found is done, "after a lost answer the operation id must show whether the payer was charged"
        await bank.charge(debit(mandate))
        paid = await charge_of(bank_harness)
        assert paid.status is ChargeStatus.PAID, "a charge that was debited must be PAID"
        await has_debited(bank_harness, paid.reference, 250_00)

    async def test_a_failed_one_stays_failed_and_another_operation_may_succeed(self, bank_harness: BankHarness) -> None:
        bank, mandate = charger(bank_harness), await bound(bank_harness)
        await bank_harness.fail_next_charge()
        await bank.charge(debit(mandate))
        failed = await charge_of(bank_harness)
        assert (failed.status, failed.transfer) == (ChargeStatus.FAILED, None), (
            "a charge that the payer's bank declined must be FAILED, without a transfer"
        )
        assert failed.failure == "insufficient_funds", "with FAILED, `failure` must be a reason of docs/payments.md"
        if bank.capabilities.refunds:
            with must_raise("a refund of a charge that failed must be refused", Refused, reason="not_paid"):
                await bank.refund(RefundRequest(operation="ref_1", reference=failed.reference, amount_kopecks=1))
        assert (await bank.charge(debit(mandate))).status is ChargeStatus.FAILED, SAME
        await bank.charge(debit(mandate, operation=operation_id("pay", 8)))
        assert (await charge_of(bank_harness, operation_id("pay", 8))).status is ChargeStatus.PAID, _ANOTHER

    async def test_refused_charge_leaves_no_charge(self, bank_harness: BankHarness) -> None:
        bank, mandate = charger(bank_harness), await bound(bank_harness)
        unconfirmed = await bank.bind(binding(bank_harness, operation=OTHER))
        rows = (
            (debit(mandate, 0), "amount"),
            (debit(mandate, -1), "amount"),
            (debit(mandate, token="another"), "not_found"),  # noqa: S106 - of nobody
            (debit(mandate, reference="no-such-reference"), "not_found"),
            (debit(mandate, reference=unconfirmed.reference), "not_found"),
        )
        for request, reason in rows:
            with must_raise(f"{request} must be refused", Refused, reason=reason):
                await bank.charge(request)
            assert await bank.find_charge(CHARGE) is None, "a charge that was refused must not be found"

    async def test_a_bank_that_is_away_was_certainly_not_asked(self, bank_harness: BankHarness) -> None:
        bank, mandate = charger(bank_harness), await bound(bank_harness)
        await bank_harness.be_away()
        with must_raise("without a connection nobody was charged", Unavailable):
            await bank.charge(debit(mandate))
        with must_raise("a search without a connection says nothing about the charge", Unavailable):
            await bank.find_charge(CHARGE)


class TestMandatesThatAreOver:
    """Charges of an ended mandate fail for good with `mandate_revoked` (docs/subscriptions.md "When a charge is
    refused")."""

    async def test_a_mandate_that_is_lost_fails_and_is_charged_again_when_it_is_back(
        self, bank_harness: BankHarness
    ) -> None:
        bank, mandate = charger(bank_harness), await bound(bank_harness)
        await bank_harness.lose_mandate(binding_id(1))
        await self._is_revoked(bank_harness, mandate)
        await bank_harness.restore_mandate(binding_id(1))
        assert (await bank.charge(debit(mandate))).status is ChargeStatus.FAILED, SAME
        await bank.charge(debit(mandate, operation=operation_id("pay", 8)))
        assert (await charge_of(bank_harness, operation_id("pay", 8))).status is ChargeStatus.PAID, _ANOTHER

    async def test_a_mandate_that_we_revoked_fails(self, bank_harness: BankHarness) -> None:
        mandate = await bound(bank_harness)
        await charger(bank_harness).revoke(mandate.reference)
        await self._is_revoked(bank_harness, mandate)

    async def test_a_charge_under_way_does_not_end_with_its_mandate(self, bank_harness: BankHarness) -> None:
        """A success may still arrive after cancelling (docs/subscriptions.md "Changing and ending")."""
        bank, mandate = charger(bank_harness), await bound(bank_harness)
        await bank.charge(debit(mandate))
        await bank.revoke(mandate.reference)
        state = await charge_of(bank_harness)
        assert state.status is ChargeStatus.PAID, "a charge under way must go on when its mandate ends"

    async def _is_revoked(self, harness: BankHarness, mandate: MandateState) -> None:
        failed = await charger(harness).charge(debit(mandate))
        assert (failed.status, failed.failure, failed.transfer) == (ChargeStatus.FAILED, MANDATE_REVOKED, None), (
            "a charge of a mandate that is lost or ended must be FAILED with `mandate_revoked`"
        )


class TestWhatItSays:
    """The bank describes itself and its charges correctly."""

    async def test_a_bank_that_charges_no_mandates_binds_all_the_same(self, bank_harness: BankHarness) -> None:
        """PROVIDER_NOT_CONFIGURED (docs/subscriptions.md "When a charge is refused"): no charge is created."""
        bank = binder(bank_harness)
        if bank.capabilities.mandate_charges:
            pytest.skip("the bank charges mandates (`capabilities.mandate_charges`)")
        mandate = await bound(bank_harness)
        with must_raise("`charge` of a bank without `capabilities.mandate_charges`", NotConfigured):
            await bank.charge(debit(mandate))
        assert await bank.find_charge(CHARGE) is None, "a charge that was not sent must not be found"

    async def test_charges_are_no_invoices_and_no_bindings(self, bank_harness: BankHarness) -> None:
        bank, mandate = charger(bank_harness), await bound(bank_harness)
        await bank.charge(debit(mandate))
        found = (await bank.find_invoice(CHARGE), await bank.find_binding(CHARGE))
        assert found == (None, None), "a charge must not be found as an invoice or a binding"

    async def test_no_token_shows(self, bank_harness: BankHarness) -> None:
        """The token is enough to charge the payer."""
        bank, mandate = charger(bank_harness), await bound(bank_harness)
        await bank.charge(debit(mandate))
        with must_raise("a charge of nothing must be refused", Refused) as refused:
            await bank.charge(debit(mandate, 0, operation_id("pay", 8)))
        assert mandate.token, "an active mandate must have a token"
        check_hidden((mandate.token,), bank, debit(mandate), await charge_of(bank_harness), refused.value)


async def _charging(harness: BankHarness) -> Work:
    bank, mandate = charger(harness), await bound(harness)
    request = debit(mandate)

    async def is_there() -> bool:
        return await bank.find_charge(CHARGE) is not None

    async def once() -> None:
        await has_debited(harness, (await charge_of(harness)).reference, 250_00)

    def beside() -> Awaitable[ChargeState]:
        other = harness.beside()
        assert isinstance(other, MandateBank), "every adapter of this name must be a MandateBank"
        return other.charge(request)

    return Work(
        harness=harness,
        adapter=bank,
        write=lambda: bank.charge(request),
        is_there=is_there,
        once=once,
        beside=beside,
        hidden=(mandate.token or "",) if mandate.token else (),
        in_one_call=harness.charges_in_one_call,
    )


class _OfCharges:
    @pytest.fixture
    async def work(self, bank_harness: BankHarness) -> Work:
        return await _charging(bank_harness)


class TestChargesAtFaults(_OfCharges, WriteRules, ReadRules):
    """Charges while the provider fails."""

    @pytest.fixture
    async def read(self, bank_harness: BankHarness) -> Reading:
        bank, mandate = charger(bank_harness), await bound(bank_harness)
        await bank.charge(debit(mandate))
        return Reading(harness=bank_harness, adapter=bank, finds=(lambda: bank.find_charge(CHARGE),))


class TestCancelledCharges(_OfCharges, CancelRules):
    """Charges when the caller cancels the call."""


class TestTwoCharge(_OfCharges, TwoProcessRules):
    """Two processes make one debit."""

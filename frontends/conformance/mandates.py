"""Contract of a bank with mandates (ports/mandates.py). Your conftest.py provides a fixture `bank_harness`, a
BankHarness. A bank without mandates is skipped. charges.py tests charges."""

import asyncio
from collections.abc import Awaitable

import pytest

from ...ports.bank import InvoiceKind, RefundRequest
from ...ports.faults import NotSupported, OutcomeUnknown, Refused, Unavailable
from ...ports.mandates import Binding, BindingRequest, ChargeRequest, MandateBank, MandateState, MandateStatus
from .bank.kit import asked_of, assert_amount, assert_purpose
from .bank_harness import BankHarness
from .expectations import must_answer, must_raise
from .harnesses import check_hidden
from .operation_ids import binding_id, operation_id
from .problem import CancelRules, Reading, ReadRules, TwoProcessRules, Work, WriteRules

BINDING = binding_id(1)
OTHER = binding_id(2)
FIRST = 100_00
SAME = "a repeat of a binding must return the binding of its first call"
FOUND = "a binding must be found by its operation id alone"
_LOST = "a writing call whose answer is lost has an unknown outcome"
_ENDED = "a mandate that was revoked must be ENDED"


def binder(harness: BankHarness) -> MandateBank:
    """Return the bank. Skips if payers cannot bind there."""
    if not harness.bank.capabilities.mandates:
        pytest.skip("payers cannot bind at this bank (`capabilities.mandates`)")
    assert isinstance(harness.bank, MandateBank), "it says that payers can bind, and lacks methods of MandateBank"
    return harness.bank


def binding(harness: BankHarness, first: int | None = FIRST, operation: str = BINDING) -> BindingRequest:
    """Return a request for a mandate, with a first charge of 100 RUB."""
    return BindingRequest(
        operation=operation,
        first_charge_kopecks=first,
        purpose="Coffee club",
        expires_at=harness.clock.now() + harness.LIFETIME,
    )


async def state_of(bank: MandateBank, operation: str = BINDING) -> MandateState:
    found = await bank.find_binding(operation)
    assert found is not None, FOUND
    return await bank.mandate_state(found.reference)


async def bound(harness: BankHarness, operation: str = BINDING, first: int | None = FIRST) -> MandateState:
    """Return a mandate that a payer has just confirmed."""
    bank = binder(harness)
    await bank.bind(binding(harness, first, operation))
    await harness.confirm(operation)
    state = await state_of(bank, operation)
    assert state.status is MandateStatus.ACTIVE, "a mandate that its payer confirmed must be ACTIVE"
    return state


async def has_debited(harness: BankHarness, reference: str, kopecks: int) -> None:
    """Assert that the bank debited exactly this amount: it refunds this much, and refuses a kopeck more."""
    if not harness.bank.capabilities.refunds:
        return
    request = RefundRequest(operation=f"ref_{kopecks}_more", reference=reference, amount_kopecks=kopecks + 1)
    rule = f"exactly {kopecks} kopecks must have been debited, and can be refunded"
    with must_raise(rule, Refused):
        await harness.bank.refund(request)
    request = RefundRequest(operation=f"ref_{kopecks}", reference=reference, amount_kopecks=kopecks)
    with must_answer(rule):
        await harness.bank.refund(request)


class TestBinding:
    """One operation creates one binding, whatever fails on the way."""

    async def test_it_is_open_and_can_be_found_by_its_operation(self, bank_harness: BankHarness) -> None:
        bank = binder(bank_harness)
        assert await bank.find_binding(BINDING) is None, "the bank never saw it"
        made = await bank.bind(binding(bank_harness))
        found = await bank.find_binding(BINDING)
        assert found is not None, FOUND
        assert _same(found, made), "find_binding must return the binding as bind returned it"
        state = await bank.mandate_state(made.reference)
        assert (state.status, state.token, state.transfers) == (MandateStatus.OPEN, None, ()), (
            "a binding that nobody confirmed must be OPEN, without a token and transfers"
        )
        for each in (made, state):
            is_drawn = each.link is not None and each.kind is InvoiceKind.QR
            assert (each.payload is not None) is is_drawn, "a link that is a QR has a payload, nothing else has"
        if not bank.capabilities.mandate_links_later:
            assert made.link, "there is no link, and the bank does not say that it comes later"
            shown = (state.link, state.payload, state.kind)
            assert shown == (made.link, made.payload, made.kind), "a state must have the link of its binding"

    async def test_provider_is_asked_for_the_first_charge_to_the_kopeck(self, bank_harness: BankHarness) -> None:
        bank = binder(bank_harness)
        await bank.bind(binding(bank_harness, 490_05))
        asked = await asked_of(bank_harness, BINDING)
        assert_amount(asked, 490_05)
        assert_purpose(asked, "Coffee club")

    async def test_a_repeat_is_the_same_operation(self, bank_harness: BankHarness) -> None:
        bank = binder(bank_harness)
        first = await bank.bind(binding(bank_harness))
        with must_answer(SAME):
            again = await bank.bind(binding(bank_harness))
        assert _same(again, first), SAME

    async def test_repeats_at_once_make_one_binding(self, bank_harness: BankHarness) -> None:
        bank = binder(bank_harness)
        request = binding(bank_harness)
        made = await asyncio.gather(*(bank.bind(request) for _ in range(5)))
        assert len({each.reference for each in made}) == 1, SAME

    async def test_two_operations_are_two_mandates(self, bank_harness: BankHarness) -> None:
        first, second = await bound(bank_harness), await bound(bank_harness, OTHER)
        assert first.reference != second.reference, "two operations must be two bindings: is the operation id cut?"
        assert first.token != second.token, "two mandates must have two tokens"
        bank = binder(bank_harness)
        await bank.revoke(first.reference)
        state = await state_of(bank, OTHER)
        assert state.status is MandateStatus.ACTIVE, "revoking one mandate must not end another"

    @pytest.mark.parametrize("kopecks", [0, -1])
    async def test_a_first_charge_of_nothing_is_refused(self, bank_harness: BankHarness, kopecks: int) -> None:
        bank = binder(bank_harness)
        with must_raise(f"a first charge of {kopecks} kopecks must be refused", Refused, reason="amount"):
            await bank.bind(binding(bank_harness, kopecks))
        assert await bank.find_binding(BINDING) is None, "a binding that was refused must not exist"

    @pytest.mark.parametrize("done", [True, False])
    async def test_a_lost_answer_is_an_unknown_outcome_and_a_repeat_is_one_binding(
        self, bank_harness: BankHarness, done: bool
    ) -> None:
        bank, request = binder(bank_harness), binding(bank_harness)
        await bank_harness.lose_next_answer(done=done)
        with must_raise(_LOST, OutcomeUnknown):
            await bank.bind(request)
        found = await bank.find_binding(BINDING)
        assert (found is not None) is done, "after a lost answer the operation id must show whether it was made"
        again = await bank.bind(request)
        assert found is None or _same(again, found), SAME

    async def test_a_bank_that_is_away_was_certainly_not_asked(self, bank_harness: BankHarness) -> None:
        bank, request = binder(bank_harness), binding(bank_harness)
        made = await bank.bind(binding(bank_harness, operation=OTHER))
        await bank_harness.be_away()
        for call in (bank.bind(request), bank.find_binding(BINDING), bank.mandate_state(made.reference)):
            with must_raise("a call without a connection was certainly not executed", Unavailable):
                await call

    async def test_a_reference_of_no_binding_is_refused(self, bank_harness: BankHarness) -> None:
        bank = binder(bank_harness)
        invoice = await bank.create_invoice(bank_harness.request(operation_id("pay", 1)))
        for reference in ("no-such-reference", invoice.reference):
            with must_raise("mandate_state must refuse a reference of no binding", Refused):
                await bank.mandate_state(reference)
            with must_raise("revoke must refuse a reference of no binding", Refused):
                await bank.revoke(reference)

    async def test_bindings_are_no_invoices(self, bank_harness: BankHarness) -> None:
        bank = binder(bank_harness)
        await bank.bind(binding(bank_harness))
        await bank.create_invoice(bank_harness.request(operation_id("pay", 1)))
        assert await bank.find_invoice(BINDING) is None, "a binding must not be found as an invoice"
        assert await bank.find_binding(operation_id("pay", 1)) is None, "an invoice must not be found as a binding"


class TestConfirmation:
    """A payer confirms and pays the first charge, if there is one, or refuses."""

    async def test_the_first_charge_is_paid_and_the_mandate_given(self, bank_harness: BankHarness) -> None:
        """The payer confirms, and the binding payment becomes paid (docs/subscriptions.md "How the payer binds")."""
        state = await bound(bank_harness)
        assert state.token, "a mandate is charged by its token"
        assert (state.failure, state.overdue) == (None, False), "an active mandate has no failure and is not overdue"
        came = [transfer.amount_kopecks for transfer in state.transfers]
        assert came == [FIRST], "the first charge must be one transfer of its exact amount"
        [transfer] = state.transfers
        assert transfer.id, "a transfer must have an id"
        assert transfer.at.utcoffset() is not None, "a transfer's moment has a time zone"
        assert await state_of(binder(bank_harness)) == state, "a mandate must be the same in every report"
        await has_debited(bank_harness, state.reference, FIRST)

    async def test_without_a_first_charge_nothing_is_debited(self, bank_harness: BankHarness) -> None:
        """With `binding_charge` `none` the QR shows a symbolic 1 RUB, which the bank does not debit
        (docs/subscriptions.md "How the payer binds")."""
        state = await bound(bank_harness, first=None)
        assert state.transfers == (), "a binding without a first charge must have no transfer"
        assert state.token, "a mandate is charged by its token"

    async def test_a_payer_may_refuse(self, bank_harness: BankHarness) -> None:
        bank = binder(bank_harness)
        await bank.bind(binding(bank_harness))
        await bank_harness.refuse(BINDING)
        state = await state_of(bank)
        assert (state.status, state.token, state.transfers) == (MandateStatus.REFUSED, None, ()), (
            "a binding that its payer refused must be REFUSED, without a token and transfers"
        )
        assert state.failure, "with REFUSED there is a reason"

    async def test_a_mandate_may_be_lost_and_come_back(self, bank_harness: BankHarness) -> None:
        """A paused mandate becomes active when the bank reports the token valid again (docs/subscriptions.md "When the
        mandate is lost")."""
        await bound(bank_harness)
        await bank_harness.lose_mandate(BINDING)
        state = await state_of(binder(bank_harness))
        assert state.status is MandateStatus.LOST, "a mandate that the payer's bank rejects must be LOST"
        await bank_harness.restore_mandate(BINDING)
        state = await state_of(binder(bank_harness))
        assert state.status is MandateStatus.ACTIVE, "a mandate that the payer's bank accepts again must be ACTIVE"


class TestRevoke:
    """Revoking ends a mandate for good, and can be repeated."""

    async def test_it_ends_the_mandate_and_a_repeat_changes_nothing(self, bank_harness: BankHarness) -> None:
        mandate, bank = await bound(bank_harness), binder(bank_harness)
        for _ in range(3):
            with must_answer("a mandate can be revoked, and revoking it again changes nothing"):
                await bank.revoke(mandate.reference)
            assert (await state_of(bank)).status is MandateStatus.ENDED, _ENDED

    async def test_a_binding_that_is_open_is_closed(self, bank_harness: BankHarness) -> None:
        bank = binder(bank_harness)
        made = await bank.bind(binding(bank_harness))
        await bank.revoke(made.reference)
        state = await bank.mandate_state(made.reference)
        assert (state.status, state.token) == (MandateStatus.CLOSED, None), (
            "a binding that was revoked before its payer confirmed must be CLOSED, without a token"
        )

    @pytest.mark.parametrize("done", [True, False])
    async def test_after_a_lost_answer_a_repeat_ends_it(self, bank_harness: BankHarness, done: bool) -> None:
        if not bank_harness.asks_to_revoke:
            pytest.skip("the provider is not asked to end a mandate (`asks_to_revoke`)")
        mandate, bank = await bound(bank_harness), binder(bank_harness)
        await bank_harness.lose_next_answer(done=done)
        with must_raise(_LOST, OutcomeUnknown):
            await bank.revoke(mandate.reference)
        await bank.revoke(mandate.reference)
        assert (await state_of(bank)).status is MandateStatus.ENDED, _ENDED


class TestWhatItSays:
    """The bank describes itself correctly and leaks no token."""

    async def test_a_bank_without_mandates_says_so(self, bank_harness: BankHarness) -> None:
        bank = bank_harness.bank
        if bank.capabilities.mandates or not isinstance(bank, MandateBank):
            pytest.skip("payers can bind (`capabilities.mandates`), or the bank is no MandateBank")
        charge = ChargeRequest(operation="pay_1", reference="x", token="x", amount_kopecks=1, purpose="")  # noqa: S106
        for call in (
            bank.bind(binding(bank_harness)),
            bank.find_binding(BINDING),
            bank.mandate_state("x"),
            bank.charge(charge),
            bank.find_charge("pay_1"),
            bank.revoke("x"),
        ):
            with must_raise("a call of a bank without `capabilities.mandates`", NotSupported):
                await call

    async def test_no_token_shows(self, bank_harness: BankHarness) -> None:
        """The token is enough to charge the payer."""
        state = await bound(bank_harness)
        assert state.token, "an active mandate must have a token"
        bank = binder(bank_harness)
        with must_raise("mandate_state must refuse a reference of no binding", Refused) as refused:
            await bank.mandate_state("no-such-reference")
        check_hidden((*bank_harness.secrets, state.token), bank, state, refused.value)


def _same(one: Binding, other: Binding) -> bool:
    """Compare two bindings without `check_after`, which decreases with time."""
    return (one.reference, one.link, one.payload) == (other.reference, other.link, other.payload)


async def _binding(harness: BankHarness) -> Work:
    bank, request = binder(harness), binding(harness)

    async def is_there() -> bool:
        return await bank.find_binding(BINDING) is not None

    async def once() -> None:
        found = await bank.find_binding(BINDING)
        assert found is not None, FOUND
        assert (await bank.bind(request)).reference == found.reference, SAME

    def beside() -> Awaitable[Binding]:
        other = harness.beside()
        assert isinstance(other, MandateBank), "every adapter of this name must be a MandateBank"
        return other.bind(request)

    return Work(
        harness=harness,
        adapter=bank,
        write=lambda: bank.bind(request),
        is_there=is_there,
        once=once,
        beside=beside,
        in_one_call=harness.binds_in_one_call,
    )


class _OfBindings:
    @pytest.fixture
    async def work(self, bank_harness: BankHarness) -> Work:
        return await _binding(bank_harness)


class TestBindingAtFaults(_OfBindings, WriteRules, ReadRules):
    """Bindings while the provider fails."""

    @pytest.fixture
    async def read(self, bank_harness: BankHarness) -> Reading:
        bank, state = binder(bank_harness), await bound(bank_harness)
        reads, finds = (lambda: bank.mandate_state(state.reference),), (lambda: bank.find_binding(BINDING),)
        return Reading(harness=bank_harness, adapter=bank, reads=reads, finds=finds)


class TestCancelledBinding(_OfBindings, CancelRules):
    """Bindings when the caller cancels the call."""


class TestTwoBind(_OfBindings, TwoProcessRules):
    """Two processes create one binding."""

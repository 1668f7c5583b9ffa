"""Contract of a bank at the bounds: rare amounts and texts, and the end of the adapter's life."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from ....ports.bank import Invoice, InvoiceStatus
from ....ports.faults import Fault, OutcomeUnknown, Unavailable
from ..bank_harness import BankHarness
from ..expectations import may_raise, must_answer, must_raise
from ..harnesses import check_hidden
from .kit import OPERATION, OTHER, paid, state_of

_LIMIT = 20
"""Seconds after which the service cancels a call."""
_PATIENCE = 5
"""Seconds that an adapter without a limit costs this test."""
_STEP = 0.02
"""Seconds in which the loop's clock goes forward by one."""


class TestExtremes:
    """Rare but valid values pass unchanged."""

    @pytest.mark.parametrize("kopecks", [1, 99, 100_07, 4_35, 2**31 - 1, 2**31 + 1, 9_999_999_999_99])
    async def test_an_amount_is_told_to_the_kopeck(self, bank_harness: BankHarness, kopecks: int) -> None:
        """Includes amounts beyond 32 bits, and 4.35 RUB, which a binary fraction would round to another kopeck."""
        can = bank_harness.bank.capabilities
        if not can.min_kopecks <= kopecks <= (can.max_kopecks or kopecks):
            pytest.skip("the bank takes no such amount (`capabilities.min_kopecks`, `max_kopecks`)")
        await paid(bank_harness, kopecks=kopecks)
        state = await state_of(bank_harness.bank, OPERATION)
        came = [transfer.amount_kopecks for transfer in state.transfers]
        assert came == [kopecks], "an amount must come back to the kopeck: is it a float or of 32 bits on its way?"

    @pytest.mark.parametrize("bound", ["min_kopecks", "max_kopecks"])
    async def test_bounds_that_it_states_are_taken(self, bank_harness: BankHarness, bound: str) -> None:
        """The service sends the bank every amount within `capabilities.min_kopecks` and `max_kopecks`."""
        kopecks = getattr(bank_harness.bank.capabilities, bound)
        if kopecks is None:
            pytest.skip(f"the bank states no bound (`capabilities.{bound}`)")
        with must_answer(f"the provider must take an invoice of `capabilities.{bound}`, {kopecks} kopecks"):
            await bank_harness.bank.create_invoice(bank_harness.request(OPERATION, kopecks))

    @pytest.mark.parametrize("purpose", ["Ж" * 255, "«Ёлка» №\u202f7 \U0001f384 " * 17, '"<&>\\ %s {}'])
    async def test_a_purpose_that_is_long_or_strange_makes_an_invoice(
        self, bank_harness: BankHarness, purpose: str
    ) -> None:
        """255 characters may be 510 bytes. The adapter shortens the text for a provider with a lower limit."""
        request = msgspec.structs.replace(bank_harness.request(OPERATION), purpose=purpose)
        with must_answer("a purpose of up to 255 characters makes an invoice: the adapter shortens or replaces them"):
            invoice = await bank_harness.bank.create_invoice(request)
        state = await bank_harness.bank.invoice_state(invoice.reference)
        assert state.status is InvoiceStatus.OPEN, "an invoice that nobody paid must be OPEN"
        again = await bank_harness.bank.create_invoice(request)
        assert again.reference == invoice.reference, "a repeat must send the same shortened purpose"


class TestLimit:
    """A call without an answer ends by a limit of the adapter, which knows what had been sent."""

    async def test_call_without_an_answer_ends_within_20_seconds(
        self, bank_harness: BankHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The event loop's clock goes forward second by second, so the test does not wait for them."""
        if not bank_harness.limits_calls:
            pytest.skip("the adapter leaves the limit to the service (`limits_calls`)")
        held = await bank_harness.hold_next_write(done=True)
        call = asyncio.ensure_future(bank_harness.bank.create_invoice(bank_harness.request(OPERATION)))
        await held.arrived()
        now = asyncio.get_running_loop().time
        done: set[asyncio.Task[Invoice]] = set()
        with monkeypatch.context() as patch:
            for seconds in range(1, _LIMIT + 1):
                _go_ahead(patch, now, seconds)
                done, _ = await asyncio.wait({call}, timeout=_STEP if seconds < _LIMIT else _PATIENCE)
        call.cancel()
        await held.release()
        rule = "a writing call must end by a timeout of the adapter within 20 s, with an unknown outcome"
        assert done, f"{rule}; set `limits_calls = False` if its timer is not the event loop's"
        with may_raise(rule, OutcomeUnknown):  # an adapter that repeats the call by itself may have an answer
            await call


def _go_ahead(patch: pytest.MonkeyPatch, now: Callable[[], float], seconds: int) -> None:
    """Move the clock of the event loop ahead of the machine's. Skips if this loop's clock cannot be moved."""
    try:
        patch.setattr(asyncio.get_running_loop(), "time", lambda: now() + seconds)
    except AttributeError:
        pytest.skip("the clock of this event loop cannot be moved")


class TestClosed:
    """An adapter with `close` is closed at shutdown, perhaps while calls are still running."""

    async def test_it_is_closed_twice_and_then_has_faults_alone(self, bank_harness: BankHarness) -> None:
        close = getattr(bank_harness.bank, "close", None)
        if close is None:
            pytest.skip("the adapter has nothing to close: it has no `close`")
        invoice = await bank_harness.bank.create_invoice(bank_harness.request(OPERATION))
        with must_answer("`close` may be called twice"):
            await close()
            await close()
        with must_raise("a call after `close` must raise a fault of cambist.ports", Fault) as raised:
            await bank_harness.bank.create_invoice(bank_harness.request(OTHER))
        check_hidden(bank_harness.secrets, bank_harness.bank, raised.value)
        with must_raise("a read after `close` must be Unavailable", Unavailable):
            await bank_harness.bank.invoice_state(invoice.reference)

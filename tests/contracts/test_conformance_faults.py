"""An adapter that takes its provider's faults wrongly fails the shipped test of that rule
(frontends/conformance/problem.py, bank/faults.py)."""

import logging
from collections.abc import Awaitable, Callable
from inspect import signature
from typing import Any

import msgspec
import pytest

import cambist
from cambist.frontends.conformance import problem
from cambist.frontends.conformance.bank import extremes
from cambist.frontends.conformance.bank import faults as suite
from cambist.ports import Fault, OutcomeUnknown, Unavailable
from cambist.testing import ProviderFault
from examples.own_bank.conftest import TOKEN, ExampleHarness
from examples.own_bank.provider import Provider
from tests.contracts.test_conformance_bites import fresh, mistaking

Call = Callable[..., Awaitable[Any]]

not_done = mistaking(OutcomeUnknown, for_=Unavailable)
hurried = mistaking(Unavailable, for_=Unavailable)  # when to come back is lost


def absent(call: Call) -> Call:
    """Report a failed read as an absence."""

    async def broken(*given: Any) -> Any:
        try:
            return await call(*given)
        except Unavailable:
            return None

    return broken


def logged(call: Call) -> Call:
    """Log a failed call with its credentials, which is a fault."""

    async def broken(*given: Any) -> Any:
        try:
            return await call(*given)
        except Fault:
            logging.getLogger("adapter").debug("failed with %s", TOKEN)
            raise

    return broken


def narrow(call: Call) -> Call:
    """Amounts have 31 bits."""

    async def broken(*given: Any) -> Any:
        state = await call(*given)
        came = [msgspec.structs.replace(each, amount_kopecks=each.amount_kopecks % 2**31) for each in state.transfers]
        return msgspec.structs.replace(state, transfers=tuple(came))

    return broken


def brittle(call: Call) -> Call:
    """It is closed once."""
    calls: list[int] = []

    async def broken() -> None:
        calls.append(1)
        assert len(calls) == 1, "it is closed already"
        await call()

    return broken


async def _subject(of: Any, rule: Call, harness: ExampleHarness) -> Any:
    """Return the argument of the rule: the harness, or the value that the fixture of its suite makes of it."""
    if of is None:
        return harness
    fixture = of.read if "read" in signature(rule).parameters else of.work
    return await fixture.__wrapped__(None, harness)


_CUT = {"fault": ProviderFault.CUT_IN_BODY}
_UNCLEAR = problem.WriteRules.test_a_write_without_a_clear_answer_is_unknown_and_once
_BUSY = problem.WriteRules.test_a_limit_of_the_provider_was_certainly_not_executed
_HIDDEN = problem.WriteRules.test_no_credential_shows_in_faults_and_logs
_READS = problem.ReadRules
_CANCELLED = problem.CancelRules.test_a_call_that_was_cancelled_is_done_once
_TOGETHER = problem.TwoProcessRules.test_both_at_once_do_it_once
_ABSENCE = _READS.test_a_read_that_fails_is_unavailable_and_no_absence
_LIMITED = _READS.test_a_limit_on_reads_says_nothing_about_what_is_read
_HIDDEN_READ = _READS.test_no_credential_shows_in_faults_and_logs_of_reads
_EXACT = extremes.TestExtremes.test_an_amount_is_told_to_the_kopeck


@pytest.mark.parametrize(
    ("breaker", "method", "of", "rule", "more"),
    [
        (not_done, "create_invoice", suite.TestFaults, _UNCLEAR, _CUT),
        (not_done, "refund", suite.TestRefundsAtFaults, _UNCLEAR, _CUT),
        (absent, "find_invoice", suite.TestFaults, _ABSENCE, _CUT),
        (absent, "find_refund", suite.TestRefundsAtFaults, _LIMITED, {}),
        (hurried, "create_invoice", suite.TestFaults, _BUSY, {}),
        (logged, "create_invoice", suite.TestFaults, _HIDDEN, _CUT),
        (logged, "find_invoice", suite.TestFaults, _HIDDEN_READ, _CUT),
        (fresh, "create_invoice", suite.TestCancelledCalls, _CANCELLED, {"done": True}),
        (fresh, "refund", suite.TestCancelledRefunds, _CANCELLED, {"done": False}),
        (fresh, "refund", suite.TestTwoRefund, _TOGETHER, {}),
        (narrow, "invoice_state", None, _EXACT, {"kopecks": 2**31 + 1}),
        (brittle, "close", None, extremes.TestClosed.test_it_is_closed_twice_and_then_has_faults_alone, {}),
    ],
)  # fmt: skip
async def test_a_broken_rule_fails_its_test(
    breaker: Callable[[Call], Call],
    method: str,
    of: Any,
    rule: Call,
    more: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = {**more, **({"caplog": caplog} if breaker is logged else {})}
    for is_broken in (False, True):
        async with cambist.open() as service, Provider() as books:
            harness = ExampleHarness(service.tools(), books)
            close = harness.made.close
            if is_broken:
                monkeypatch.setattr(harness.made, method, breaker(getattr(harness.made, method)))
                with pytest.raises((AssertionError, Fault, pytest.fail.Exception)):
                    await rule(None, await _subject(of, rule, harness), **given)
            else:
                await rule(None, await _subject(of, rule, harness), **given)
            await close()
            for bank in harness.banks[1:]:
                await bank.close()

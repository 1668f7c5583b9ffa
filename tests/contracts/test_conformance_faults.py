"""An adapter that takes its provider's faults wrongly fails the shipped test of that rule
(frontends/conformance/bank/faults.py)."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

import cambist
from cambist.frontends.conformance.bank import faults as suite
from cambist.ports import Fault, OutcomeUnknown, Unavailable
from cambist.testing import ProviderFault
from examples.own_bank.conftest import TOKEN, ExampleBench
from examples.own_bank.provider import Provider
from tests.contracts.test_conformance_bites import fresh, mistaking

Call = Callable[..., Awaitable[Any]]

not_done = mistaking(OutcomeUnknown, for_=Unavailable)
hurried = mistaking(Unavailable, for_=Unavailable)  # when to come back is lost


def absent(call: Call) -> Call:
    """A read that failed is told as an absence."""

    async def broken(*given: Any) -> Any:
        try:
            return await call(*given)
        except Unavailable:
            return None

    return broken


def logged(call: Call) -> Call:
    """What failed is logged with its credentials."""

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


_CANCELLED = suite.TestCancelledCalls
_CUT = {"fault": ProviderFault.CUT_IN_BODY}


@pytest.mark.parametrize(
    ("breaker", "method", "rule", "more"),
    [
        (not_done, "create_invoice", suite.TestFaults.test_a_write_without_a_clear_answer_is_unknown_and_once, _CUT),
        (not_done, "refund", suite.TestFaults.test_a_refund_without_a_clear_answer_is_unknown_and_goes_once, _CUT),
        (absent, "find_invoice", suite.TestFaults.test_a_read_that_fails_is_unavailable_and_no_absence, _CUT),
        (hurried, "create_invoice", suite.TestFaults.test_a_limit_of_the_provider_was_certainly_not_executed, {}),
        (logged, "create_invoice", suite.TestFaults.test_no_credential_shows_in_faults_and_logs, _CUT),
        (fresh, "create_invoice", _CANCELLED.test_an_invoice_is_found_and_a_repeat_is_the_same, {"done": True}),
        (fresh, "refund", _CANCELLED.test_a_refund_is_found_and_goes_once, {"done": False}),
        (fresh, "refund", suite.TestTwoOfOneName.test_both_at_once_send_one_refund, {}),
        (narrow, "invoice_state", suite.TestExtremes.test_an_amount_is_told_to_the_kopeck, {"kopecks": 2**31 + 1}),
        (brittle, "close", suite.TestClosed.test_it_is_closed_twice_and_then_has_faults_alone, {}),
    ],
)  # fmt: skip
async def test_a_broken_rule_fails_its_test(
    breaker: Callable[[Call], Call],
    method: str,
    rule: Call,
    more: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = {**more, **({"caplog": caplog} if breaker is logged else {})}
    for is_broken in (False, True):
        async with cambist.open() as service, Provider() as books:
            bench = ExampleBench(service.tools(), books)
            close = bench.made.close
            if is_broken:
                monkeypatch.setattr(bench.made, method, breaker(getattr(bench.made, method)))
                with pytest.raises((AssertionError, Fault, pytest.fail.Exception)):
                    await rule(None, bench, **given)
            else:
                await rule(None, bench, **given)
            await close()
            for bank in bench.banks[1:]:
                await bank.close()

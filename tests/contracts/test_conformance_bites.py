"""An adapter that breaks a rule fails the shipped test of that rule: one row for each (frontends/conformance)."""

import ast
import inspect
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

import cambist
from cambist.frontends.conformance import (
    charges,
    mandates,
    problem,
    remittances,
    reporting,
)
from cambist.frontends.conformance.bank import bank, extremes
from cambist.frontends.conformance.bank_harness import BankHarness
from cambist.frontends.conformance.receipts import receipt
from cambist.ports.bank import BankCapabilities, RefundStatus
from cambist.ports.faults import Fault, OutcomeUnknown, Refused, Unavailable
from cambist.ports.mandates import BindingRequest, ChargeStatus, MandateStatus
from cambist.ports.remittances import RemittanceStatus
from cambist.ports.reporting import ReportedPage
from tests.contracts.harnesses import (
    SimulatedHarness,
)
from tests.contracts.planted_bugs import OWN, REVIEWED, Bug
from tests.contracts.sunrise import Sunrise, SunriseBank, SunriseHarness
from tests.tables import table

Call = Callable[..., Awaitable[Any]]
Breaker = Callable[[Call], Call]


def fresh(call: Call) -> Call:
    """Every call is an operation of its own: the provider is given no idempotency key."""
    calls: list[int] = []

    async def broken(request: Any) -> Any:
        calls.append(1)
        return await call(msgspec.structs.replace(request, operation=f"{request.operation}_{len(calls)}"))

    return broken


def turned(**fields: Any) -> Breaker:
    """Return a breaker that changes these fields of the answer."""

    def breaker(call: Call) -> Call:
        async def broken(*given: Any) -> Any:
            return msgspec.structs.replace(await call(*given), **fields)

        return broken

    return breaker


def answering(value: Any) -> Breaker:
    """Return this for every call, instead of faults as well."""

    def breaker(call: Call) -> Call:
        async def broken(*given: Any) -> Any:
            return value

        return broken

    return breaker


def mistaking(fault: type[Fault], for_: type[Fault]) -> Breaker:
    """One end of a call is taken for another."""

    def breaker(call: Call) -> Call:
        async def broken(*given: Any) -> Any:
            try:
                return await call(*given)
            except fault as raised:
                raise for_("mistaken") from raised

        return broken

    return breaker


def ignoring(fault: type[Fault]) -> Breaker:
    """Return a breaker that takes this fault for a good answer."""

    def breaker(call: Call) -> Call:
        async def broken(*given: Any) -> Any:
            try:
                return await call(*given)
            except fault:
                return None

        return broken

    return breaker


def cutting(call: Call) -> Call:
    """The operation id is cut to what some providers take."""

    async def broken(request: Any) -> Any:
        return await call(msgspec.structs.replace(request, operation=request.operation[:36]))

    return broken


def sending(**fields: Any) -> Breaker:
    """Return a breaker that changes these fields of the request."""

    def breaker(call: Call) -> Call:
        async def broken(request: Any) -> Any:
            return await call(msgspec.structs.replace(request, **fields))

        return broken

    return breaker


def a_hundredfold(call: Call) -> Call:
    """Kopecks are sent where roubles are expected."""

    async def broken(request: Any) -> Any:
        field = "first_charge_kopecks" if isinstance(request, BindingRequest) else "amount_kopecks"
        return await sending(**{field: getattr(request, field) * 100})(call)(request)

    return broken


def paging(call: Call) -> Call:
    """Only the first page is read."""
    asked: set[str] = set()

    async def broken(operation: str) -> Any:
        asked.add(operation)
        return await call(operation) if len(asked) <= BankHarness.page else None

    return broken


def lacking(call: Call) -> Call:
    """The list ends with its first page."""

    async def broken(*given: Any) -> Any:
        return msgspec.structs.replace(await call(*given), next_cursor=None)

    return broken


def doubling(call: Call) -> Call:
    """The list names everything twice."""

    async def broken(*given: Any) -> Any:
        page = await call(*given)
        return msgspec.structs.replace(page, entries=page.entries * 2)

    return broken


def late(call: Call) -> Call:
    """Request the time truncated to the second."""

    async def broken(owner: str, since: datetime, until: datetime, cursor: str | None) -> Any:
        return await call(owner, since.replace(microsecond=0) + timedelta(seconds=1), until, cursor)

    return broken


def whole(call: Call) -> Call:
    """A part that goes back has the payment's receipt."""

    async def broken(request: Any) -> Any:
        return await call(msgspec.structs.replace(request, receipt=receipt(100_00)))

    return broken


class ClosingHarness(SimulatedHarness):
    """A bank that closes invoices."""

    def __init__(self) -> None:
        super().__init__(BankCapabilities(simulated=True, cancels_invoices=True))


UNSURE = mistaking(OutcomeUnknown, Unavailable)
"""Reports an operation with an unknown outcome as not done. The service would try another route, and money could move
twice."""
HASTY = mistaking(Unavailable, OutcomeUnknown)
BOUND = turned(status=MandateStatus.ACTIVE)
CHARGED = turned(status=ChargeStatus.PAID)
ARRIVED = turned(status=RemittanceStatus.DONE)
NOTHING = ReportedPage(entries=())
ENDLESS = ReportedPage(entries=(), next_cursor="1")
_LOST = "has an unknown outcome"
_MIXED = "are kopecks and roubles mixed up"

BANK: tuple[tuple[str, Breaker, type, str, tuple[Any, ...], str], ...] = (
    ("create_invoice", fresh, bank.TestInvoices, "test_a_repeat_is_the_same_operation", (), "a repeat of an operation"),
    ("create_invoice", UNSURE, bank.TestInvoices, "test_a_lost_answer", (True,), _LOST),
    ("create_invoice", HASTY, bank.TestInvoices, "test_a_bank_that_is_away", (), "nothing was sent"),
    ("create_invoice", a_hundredfold, bank.TestRequests, "test_provider_is_asked_for_the_amount", (490_05,), _MIXED),
    ("find_refund", turned(status=RefundStatus.DONE), bank.TestRefunds, "test_refund_in_processing", (), "PROCESSING"),
    ("find_refund", turned(status=RefundStatus.DONE), bank.TestRefunds, "test_refund_that_failed", (), "FAILED"),
    ("refund", whole, bank.TestReceipts, "test_each_part_that_goes_back_has_its_own", (), "the receipt of that part"),
    ("refund", fresh, bank.TestRefunds, "test_a_repeat_moves_no_second_money", (), "no second money"),
    ("refund", ignoring(OutcomeUnknown), bank.TestRefunds, "test_lost_answer", (True,), _LOST),
    ("bind", fresh, mandates.TestBinding, "test_a_repeat_is_the_same_operation", (), "a repeat of a binding"),
    ("bind", UNSURE, mandates.TestBinding, "test_a_lost_answer", (True,), _LOST),
    ("bind", a_hundredfold, mandates.TestBinding, "test_provider_is_asked_for_the_first", (), _MIXED),
    ("bind", sending(purpose=""), mandates.TestBinding, "test_provider_is_asked_for_the_first", (), "the purpose"),
    ("mandate_state", turned(token=None), mandates.TestConfirmation, "test_the_first_charge_is_paid", (), "its token"),
    ("mandate_state", BOUND, mandates.TestRevoke, "test_it_ends_the_mandate", (), "must be ENDED"),
    ("mandate_state", BOUND, mandates.TestConfirmation, "test_a_mandate_may_be_lost", (), "must be LOST"),
    ("mandate_state", BOUND, mandates.TestConfirmation, "test_a_payer_may_refuse", (), "must be REFUSED"),
    ("mandate_state", turned(transfers=()), mandates.TestConfirmation, "test_the_first_charge_is_paid", (), "transfer"),
    ("revoke", answering(None), mandates.TestRevoke, "test_it_ends_the_mandate", (), "must be ENDED"),
    ("charge", fresh, charges.TestCharges, "test_a_repeat_never_debits_again", (), "found by its operation id"),
    ("charge", UNSURE, charges.TestCharges, "test_a_lost_answer", (True,), _LOST),
    ("charge", a_hundredfold, charges.TestCharges, "test_provider_is_asked_for", (), _MIXED),
    ("charge", sending(purpose=""), charges.TestCharges, "test_provider_is_asked_for", (), "the purpose"),
    ("find_charge", CHARGED, charges.TestCharges, "test_a_failed_one_stays_failed", (), "declined must be FAILED"),
    ("find_charge", CHARGED, charges.TestCharges, "test_charge_in_processing", (), "a charge is PROCESSING"),
    ("charge", turned(failure="unknown"), charges.TestMandatesThatAreOver, "test_a_mandate_that_we", (), "_revoked"),
    ("remit", fresh, remittances.TestRemittances, "test_a_repeat_moves_no_second_money", (), "of one operation once"),
    ("remit", UNSURE, remittances.TestFailures, "test_a_lost_answer", (True,), _LOST),
    ("remit", a_hundredfold, remittances.TestRemittances, "test_provider_is_asked_for", (), _MIXED),
    ("remit", sending(bank_id="bank2"), remittances.TestRemittances, "test_provider_is_told", ("bank_id",), "bank_id"),
    ("find_remittance", ARRIVED, remittances.TestRemittances, "test_remittance_in_processing", (), "is PROCESSING"),
    ("find_remittance", ARRIVED, remittances.TestRemittances, "test_remittance_that_failed", (), "must be FAILED"),
    ("find_remittance", answering(None), remittances.TestRemittances, "test_a_remittance_can_be_found", (), "found by"),
    ("find_refund", answering(None), bank.TestRefunds, "test_forgotten_refund", (), "found by its operation id"),
    ("refunds_since", answering([]), bank.TestRefunds, "test_refunds_sent_since", (), "each refund that was sent"),
    ("entries", answering(NOTHING), reporting.TestReporting, "test_a_paid_invoice", (), "must be listed once"),
    ("entries", lacking, reporting.TestReporting, "test_each_of_many", (), "on all pages"),
    ("entries", doubling, reporting.TestReporting, "test_each_of_many", (), "listed once"),
    ("entries", late, reporting.TestReporting, "test_no_entry_falls_between", (), "to the microsecond"),
    ("entries", answering(NOTHING), reporting.TestReporting, "test_a_bank_that_is_away", (), "and not empty"),
    ("entries", answering(ENDLESS), reporting.TestReporting, "test_each_of", (), "a list must end"),
    ("find_charge", answering(None), charges.TestCharges, "test_forgotten_charge", (), "found by its operation id"),
    ("remit", fresh, remittances.TestRemittances, "test_forgotten_remittance", (), "found by its operation id"),
    ("refund", cutting, bank.TestRefunds, "test_attempts_whose_ids", ("suspense",), "is the operation id cut"),
    ("find_refund", paging, bank.TestRefunds, "test_each_of_many", (), "the later pages"),
    ("find_invoice", paging, bank.TestInvoices, "test_each_of_many", (), "the later pages"),
    ("find_refund", answering(None), bank.TestRefunds, "test_a_day_later", (), "found by its operation id"),
    ("refund", fresh, bank.TestRefunds, "test_as_long_as_it_says", (), "no second money"),
    ("charge", fresh, charges.TestCharges, "test_as_long_as_it_says", (), "found by its operation id"),
    ("remit", fresh, remittances.TestRemittances, "test_as_long_as_it_says", (), "of one operation once"),
    ("find_remittance", answering(None), remittances.TestRemittances, "test_a_day_later", (), "found by its operation"),
)


CLOSING: tuple[tuple[str, Breaker, type, str, tuple[Any, ...], str], ...] = (
    ("cancel_invoice", answering(None), bank.TestClosing, "test_a_closed_invoice", (), "was closed must be over"),
    ("cancel_invoice", ignoring(Refused), bank.TestClosing, "test_paid_invoice", (), "is paid cannot be closed"),
    ("cancel_invoice", ignoring(Refused), bank.TestClosing, "test_unknown_invoice", (), "does not exist cannot be"),
    ("cancel_invoice", UNSURE, bank.TestClosing, "test_a_lost_answer", (True,), _LOST),
)
"""Of a bank that closes invoices."""

ROWS = (
    *((SimulatedHarness, "bank", *row) for row in BANK),
    *((ClosingHarness, "bank", *row) for row in CLOSING),
)


@table(
    ("harness_type", "adapter", "call", "breaker", "suite", "named", "given", "rule"),
    ROWS,
    ids=[f"{row[1]}.{row[2]}-{row[5]}" for row in ROWS],
)
async def test_a_broken_adapter_fails(
    harness_type: type[Any],
    adapter: str,
    call: str,
    breaker: Breaker,
    suite: type,
    named: str,
    given: tuple[Any, ...],
    rule: str,
) -> None:
    [test] = [getattr(suite(), name) for name in dir(suite) if name.startswith(named)]
    if suite is bank.TestClosing:
        test = partial(_closing, test)
    await test(harness_type(), *given)  # the unbroken adapter passes
    harness = harness_type()
    broken = getattr(harness, adapter)
    setattr(broken, call, breaker(getattr(broken, call)))
    with pytest.raises((AssertionError, Fault, pytest.fail.Exception)) as failed:
        await test(harness, *given)
    assert rule in str(failed.value)


async def _closing(test: Call, harness: BankHarness, *given: Any) -> None:
    """Run a test of TestClosing with the arguments that it wants, among them its fixture's."""
    wanted = inspect.signature(test).parameters
    values = dict(zip([each for each in wanted if each not in ("bank_harness", "closing")], given, strict=True))
    values |= {"bank_harness": harness, "closing": harness.bank}
    await test(**{each: values[each] for each in wanted})


@pytest.mark.parametrize("bug", [*REVIEWED, *OWN], ids=lambda bug: bug.adapter.__name__)
async def test_planted_bug_fails_with_its_rule(
    bug: Bug, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The same test passes for the adapter without the bug."""
    monkeypatch.setattr(extremes, "_PATIENCE", 0.2)
    fixtures = {"monkeypatch": monkeypatch, "caplog": caplog}
    await run_rule(bug, SunriseBank, fixtures)
    caplog.clear()
    with pytest.raises((AssertionError, pytest.fail.Exception)) as failed:
        await run_rule(bug, bug.adapter, fixtures)
    assert bug.rule in str(failed.value)


async def run_rule(bug: Bug, adapter: type[SunriseBank], fixtures: dict[str, Any]) -> None:
    """Run the shipped test of this bug, with the fixtures of its suite."""
    names = [each for each in dir(bug.suite) if each.startswith(bug.test)]
    test = getattr(bug.suite(), min(names, key=len))
    async with cambist.open() as service, Sunrise() as provider:
        harness = SunriseHarness(service.tools(), provider, adapter)
        given = {**fixtures, **bug.given, "bank_harness": harness}
        try:
            for each in inspect.signature(test).parameters.keys() - given.keys():
                given[each] = await getattr(bug.suite, each).__wrapped__(None, harness)
            await test(**{each: given[each] for each in inspect.signature(test).parameters})
        finally:
            for bank in harness.banks:
                await bank.http.aclose()


_AT_FAULTS = (problem.WriteRules, problem.ReadRules, problem.CancelRules, problem.TwoProcessRules)


def test_plain_rules_run_before_tables_of_faults() -> None:
    """The first failure of `pytest -x` then shows the cause, and not what follows from it."""
    shipped = [each for name, each in vars(bank).items() if name.startswith("Test")]
    faults = [each for each in shipped if issubclass(each, _AT_FAULTS)]
    assert len(faults) == 6
    assert shipped[-len(faults) :] == faults
    assert shipped.index(bank.TestRequests) < shipped.index(bank.TestRefunds)


_HOOKS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    **dict.fromkeys(("another", "forget", "hold_next_refund", "fail_next_refund", "hold_next_charge"), ((), {})),
    **dict.fromkeys(("fail_next_charge", "hold_next_remittance", "fail_next_remittance", "remitted"), ((), {})),
    **dict.fromkeys(("be_away", "refuse_credentials", "recover"), ((), {})),
    **dict.fromkeys(("asked", "notification", "confirm", "refuse", "say_unknown_status"), (("pay_1",), {})),
    "reverse_refund": (("ref_1",), {}),
    **dict.fromkeys(("lose_mandate", "restore_mandate", "pass_time", "skew", "spoil_write"), ((None,), {})),
    **dict.fromkeys(("decline", "lapse", "take_back"), (("pay_1", None), {})),
    **dict.fromkeys(("lose_next_answer", "hold_next_write"), ((), {"done": True})),
    "pay": (("pay_1", None, 1), {}),
}
"""All that a BankHarness may play, with arguments."""
_SUITES = (
    *("bank/*", "charges", "expectations", "hearing", "mandates", "problem", "remittances", "reporting"),
    *("alarms", "chain", "deposits", "files", "kyc", "notifier", "payout_faults", "payouts", "rates", "storage/*"),
)


def test_each_check_of_a_suite_says_its_rule() -> None:
    """A bare assert would say `assert None is not None`, and pytest.raises `DID NOT RAISE`."""
    kit = Path(problem.__file__).parent
    silent = []
    for path in (path for name in _SUITES for path in kit.glob(f"{name}.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            is_bare = isinstance(node, ast.Assert) and node.msg is None
            is_raises = isinstance(node, ast.Call) and ast.unparse(node).startswith("pytest.raises(")
            if is_bare or (is_raises and "CancelledError" not in ast.unparse(node)):
                silent.append(f"{path.name}: {ast.unparse(node)}")
    assert silent == []


@table("name", [*_HOOKS])
async def test_skip_of_a_harness_names_the_method_to_override(name: str) -> None:
    with pytest.raises(pytest.skip.Exception, match=f"override .*`{name}`"):
        await _played(name)


async def _played(name: str) -> None:
    given, more = _HOOKS[name]
    answer = getattr(BankHarness(), name)(*given, **more)
    if inspect.isawaitable(answer):
        await answer

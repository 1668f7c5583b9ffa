"""A process that dies at any commit of the adapter's notes, or at any call of T-Bank, loses nothing and does nothing
twice: the story is run once for each, killed after it, and taken up by a new process as the core takes it up."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from cambist.adapters.bank.tbank.adapter import TBank
from cambist.adapters.bank.tbank.terminals import Terminal
from cambist.frontends.conformance.operation_ids import binding_id, operation_id
from cambist.ports.bank import InvoiceStatus, RefundRequest, RefundStatus
from cambist.ports.faults import Unavailable
from cambist.ports.mandates import BindingRequest, ChargeRequest, ChargeStatus
from tests.crash_points import CrashingStorage, CrashPoint, Killed
from tests.providers.tbank.fake import PASSWORD, TERMINAL
from tests.providers.tbank.harness import TBankHarness, open_harness, tools_of

PAY, BIND, CHARGE = operation_id("pay", 1), binding_id(), operation_id("pay", 7)
BACK = {operation_id("ref", 1): 40_00, operation_id("ref", 2): 60_00}
POINTS = 46
"""Commits and calls of the story; a test compares it with the actual number."""


def dying(harness: TBankHarness, fuse: CrashPoint) -> TBank:
    """The adapter of a process that dies at a commit or a call."""
    tools = tools_of(CrashingStorage(harness.storage, fuse), harness.virtual)
    terminal = Terminal(key=TERMINAL, password=PASSWORD)
    bank = TBank(tools, terminal=terminal, base_url=harness.fake.url, mandates=True)
    harness.banks.append(bank)
    say = bank._calls.say

    async def called(*given: Any, **named: Any) -> Any:
        said = await say(*given, **named)
        fuse.commits += 1
        if fuse.commits == fuse.at:
            raise Killed
        return said

    bank._calls.say = called  # type: ignore[method-assign]
    return bank


async def ended(
    harness: TBankHarness,
    find: Callable[[], Awaitable[Any]],
    send: Callable[[], Awaitable[Any]],
    is_over: Callable[[Any], bool],
) -> Any:
    """Query the operation, send it if the bank never saw it, and repeat, as the core does."""
    for _ in range(12):
        with suppress(Unavailable):
            state = await find()
            state = await send() if state is None else state
            if is_over(state):
                return state
        await harness.finish_refunds()
        await harness.finish_charges()
        await harness.pass_time(timedelta(minutes=30))
    raise AssertionError("it has no end")


async def story(harness: TBankHarness, bank: TBank) -> None:
    """Pay, refund in two parts, bind, charge. Each step finds earlier work instead of repeating it."""
    now = harness.clock.now
    order, plan = (
        harness.request(PAY),
        BindingRequest(
            operation=BIND, first_charge_kopecks=None, purpose="Coffee club", expires_at=now() + timedelta(hours=1)
        ),
    )
    invoice = await bank.search_invoice(order, now()) or await bank.create_invoice(order)
    if harness.payment(PAY).status == "FORM_SHOWED":
        await harness.pay(PAY, invoice, 100_00)
    assert (await bank.invoice_state(invoice.reference)).status is InvoiceStatus.PAID
    for operation, kopecks in BACK.items():
        back = RefundRequest(operation=operation, reference=invoice.reference, amount_kopecks=kopecks)
        await ended(
            harness,
            lambda back=back: bank.search_refund(back, now()),  # type: ignore[misc]
            lambda back=back: bank.refund(back),  # type: ignore[misc]
            lambda state: state.status is RefundStatus.DONE,
        )
    bound = await bank.search_binding(plan, now()) or await bank.bind(plan)
    harness.books.confirm(int(bound.reference.rpartition("/")[2]))
    token = (await bank.mandate_state(bound.reference)).token
    assert token
    debit = ChargeRequest(
        operation=CHARGE, reference=bound.reference, token=token, amount_kopecks=250_00, purpose="Coffee club"
    )
    await ended(
        harness,
        lambda: bank.search_charge(debit, now()),
        lambda: bank.charge(debit),
        lambda state: state.status is ChargeStatus.PAID,
    )


async def run_with_crash(at: int, *, is_later: bool) -> int:
    """Run the story with a crash at this point, and again by a new process; how many points were seen."""
    async with open_harness() as harness:
        harness.books.refunds_later = is_later
        fuse = CrashPoint(at, after=True)
        with suppress(Killed):
            await story(harness, dying(harness, fuse))
        await story(harness, harness.another())
        paid = harness.payment(PAY)
        assert sorted(harness.books.sent_back) == [(paid.id, 40_00), (paid.id, 60_00)]
        assert [kopecks for _, kopecks in harness.books.debited] == [250_00]
        return fuse.commits


async def test_the_story_has_as_many_points_as_are_swept() -> None:
    assert await run_with_crash(0, is_later=True) == POINTS


@pytest.mark.parametrize("at", range(1, POINTS + 1))
async def test_a_crash_at_any_point_loses_nothing_and_does_nothing_twice(at: int) -> None:
    await run_with_crash(at, is_later=bool(at % 2))

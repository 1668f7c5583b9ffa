"""A bank that remembers an operation's id for a day only moves no money twice, and an operation without a known outcome
waits for an operator (docs/adapters.md "Finding and repeating"; docs/operations.md "What needs a person")."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.operators.audit import OperatorAction
from cambist.core.domain.operators.guarded import decisions
from cambist.core.domain.payments.orders import PaymentOrder
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.payments.suspense import RETURNED_ANEW, Suspense
from cambist.core.domain.refunds.refunds import Refund
from cambist.core.domain.subscriptions.periods import Interval
from cambist.core.usecases.actions.audit import acting, list_audit
from cambist.core.usecases.exchanges.returns import return_money
from cambist.core.usecases.operations.engine import is_too_old_to_repeat
from cambist.core.usecases.operations.repeating import may_repeat
from cambist.core.usecases.operators.action_items import read_action_items
from cambist.core.usecases.operators.unanswered import Unanswered, end_unanswered, list_unanswered
from cambist.core.usecases.payments.payments import create_payment
from cambist.core.usecases.refunds.suspense_return import return_suspense
from cambist.ports.bank import Invoice, InvoiceRequest, RefundState, RefundStatus
from cambist.ports.bundle import Ports
from cambist.ports.clock import Clock
from cambist.ports.faults import OutcomeUnknown
from cambist.ports.remittances import RemittanceState, RemittanceStatus
from tests.apps import TestApp, open_test_app
from tests.charge_app import open_charge_app
from tests.crash_points import CrashPoint, Killed, fused
from tests.errands import ID, ErrandApp
from tests.exchange_app import open_exchange_app
from tests.invariants import everything
from tests.providers_kit import inside
from tests.refund_app import open_refund_app
from tests.subscription_app import choose_calendar, subscribe
from tests.tables import table
from tests.usecases.exchanges.test_exchange_return import late_rub
from tests.usecases.refunds.test_suspense_return import second_transfer

FORGETS = timedelta(hours=25)
WINDOW = timedelta(hours=24)
HOUR = 3600


TICK = timedelta(microseconds=1)


async def test_repeat_is_allowed_exactly_until_the_bank_forgets() -> None:
    async with open_test_app() as app:
        ports, now, bank = app.ports, app.clock.now(), app.ports.banks.named("simulator-test")
        assert may_repeat(ports, bank.name, now - 1000 * WINDOW), "one that knows it for ever"
        inside(bank)._capabilities = msgspec.structs.replace(bank.capabilities, repeat_window=WINDOW)
        assert may_repeat(ports, bank.name, now - WINDOW + TICK)
        assert not may_repeat(ports, bank.name, now - WINDOW)
        for until, is_too_old in ((None, False), (now + TICK, False), (now, True), (now - TICK, True)):
            row: Any = type("Row", (), {"repeats_until": lambda *_, until=until: until})()
            assert is_too_old_to_repeat(row, ports, None) is is_too_old


class Forgetful:
    """A bank that does everything, answers nothing, and forgets an operation 25 hours after it was first sent."""

    def __init__(self, bank: Any, clock: Clock, window: timedelta | None, *, draws: bool = False) -> None:
        self._clock = clock
        self._sent: dict[str, datetime] = {}
        self.moved: Counter[str] = Counter()
        """How often each operation was really done."""
        self.invoices = 0
        """Number of requested invoices."""
        self.says: Any = None
        """Its answer for any operation that it is polled for."""
        bank = inside(bank)
        bank._capabilities = msgspec.structs.replace(bank.capabilities, repeat_window=window)
        for name in ("refund", "remit", "charge", "bind"):
            setattr(bank, name, self._send)
        if draws:
            bank.create_invoice, bank.find_invoice = self._draw, self._find
        for name in ("find_refund", "find_remittance", "find_charge", "find_binding"):
            setattr(bank, name, self._find)

    async def _send(self, request: Any) -> Any:
        now = self._clock.now()
        if now >= self._sent.get(request.operation, datetime.min.replace(tzinfo=now.tzinfo)) + FORGETS:
            self._sent[request.operation] = now
            self.moved[request.operation] += 1
        raise OutcomeUnknown("no answer")

    async def _draw(self, request: InvoiceRequest) -> Invoice:
        self.invoices += 1
        return Invoice(reference=request.operation, payload="qr", link="https://qr.example/1")

    async def _find(self, _operation: str) -> Any:
        # A list that lags, or lost entries: the worst answer that a bank can give.
        return self.says


class Story:
    """An app in which one operation was sent, and its bank."""

    def __init__(self, app: TestApp, bank: Forgetful) -> None:
        self.app = app
        self.ports: Ports = app.ports
        self.bank = bank

    async def pass_days(self, days: int) -> None:
        for _ in range(days * 2):
            await self.app.work(12 * HOUR)

    async def waiting(self) -> Unanswered:
        [one] = await list_unanswered(self.ports)
        return one


async def refund(stack: AsyncExitStack, window: timedelta | None) -> Story:
    refunds = await stack.enter_async_context(open_refund_app(receiver=False))
    story = Story(refunds.app, Forgetful(refunds.bank(), refunds.app.clock, window))
    await refunds.apply(await refunds.paid())
    return story


async def suspense(stack: AsyncExitStack, window: timedelta | None) -> Story:
    refunds = await stack.enter_async_context(open_refund_app(receiver=False))
    story = Story(refunds.app, Forgetful(refunds.bank(), refunds.app.clock, window))
    _, money = await second_transfer(refunds)
    await refunds.app.clock.advance(2 * WINDOW.total_seconds())  # the time of sending counts
    await return_suspense(refunds.ports, money.id)
    return story


async def rub_return(stack: AsyncExitStack, window: timedelta | None) -> Story:
    app = await stack.enter_async_context(open_exchange_app(receiver=False))
    story = Story(app.app, Forgetful(app.bank(), app.app.clock, window))
    await return_money(app.ports, await late_rub(app))
    return story


async def payout(stack: AsyncExitStack, window: timedelta | None) -> Story:
    app = await stack.enter_async_context(open_exchange_app(receiver=False))
    story = Story(app.app, Forgetful(app.bank(), app.app.clock, window))
    await app.send((await app.made()).id)
    return story


async def charge(stack: AsyncExitStack, window: timedelta | None) -> Story:
    charges = await stack.enter_async_context(open_charge_app(receiver=False))
    subscription_id = await charges.subscribed(Interval.DAY, 3)
    await charges.open_next(subscription_id)
    story = Story(charges.app, Forgetful(charges.bank(), charges.clock, window))
    with suppress(Refusal):
        await charges.charge(subscription_id)
    return story


async def binding(stack: AsyncExitStack, window: timedelta | None) -> Story:
    """A link of the payment system's, which is waited for over a day."""
    app = await stack.enter_async_context(open_test_app(receiver=False))
    story = Story(app, Forgetful(app.ports.banks.named("simulator-test"), app.clock, window))
    await choose_calendar(app)
    await subscribe(app)
    return story


Begin = Callable[[AsyncExitStack, "timedelta | None"], Awaitable[Story]]


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as opened:
        yield opened


@pytest.mark.parametrize("begin", [refund, suspense, rub_return, payout, charge, binding])
async def test_no_money_moves_twice_at_a_bank_that_forgets(stack: AsyncExitStack, begin: Begin) -> None:
    story = await begin(stack, WINDOW)
    await story.pass_days(3)
    assert list(story.bank.moved.values()) == [1]


@pytest.mark.parametrize("begin", [refund, suspense, rub_return, payout])
async def test_operation_is_done_twice_without_the_window(stack: AsyncExitStack, begin: Begin) -> None:
    """The window is necessary: operations are repeated for ever at a bank that claims to remember them for ever."""
    story = await begin(stack, None)
    await story.pass_days(3)
    assert max(story.bank.moved.values()) > 1
    assert await list_unanswered(story.ports) == []


_DONE = {"refund": RefundState(status=RefundStatus.DONE), "exchange": RemittanceState(status=RemittanceStatus.DONE)}
OPERATED = pytest.mark.parametrize(
    ("begin", "of"), [(refund, "refund"), (suspense, "suspense"), (rub_return, "suspense"), (payout, "exchange")]
)


@OPERATED
async def test_operation_that_stays_unknown_waits_for_an_operator_to_end_it(
    stack: AsyncExitStack, begin: Begin, of: str
) -> None:
    story = await begin(stack, WINDOW)
    await story.app.work(20 * HOUR)
    [operation] = story.bank.moved
    with pytest.raises(Refusal) as early:
        await end_unanswered(story.ports, operation, "done")
    assert (early.value.code, await list_unanswered(story.ports)) == ("INVALID_STATE", [])
    await story.app.work(12 * HOUR)
    waiting = await story.waiting()
    assert (waiting.operation, waiting.of) == (operation, of)
    items = [item for item in (await read_action_items(story.ports)).found if item.kind == "unanswered"]
    assert [(item.of, item.object_id, item.since) for item in items] == [(of, waiting.object_id, waiting.until)]
    assert timedelta(0) < story.app.clock.now() - waiting.until < timedelta(hours=12)
    assert await end_unanswered(story.ports, operation, "done") == waiting
    assert await list_unanswered(story.ports) == []
    with pytest.raises(Refusal):
        await end_unanswered(story.ports, operation, "failed")
    await story.pass_days(2)
    assert list(story.bank.moved.values()) == [1]


@OPERATED
async def test_a_bank_that_speaks_at_last_counts_for_more_than_the_operator(
    stack: AsyncExitStack, begin: Begin, of: str
) -> None:
    story = await begin(stack, WINDOW)
    await story.app.work(32 * HOUR)
    waiting = await story.waiting()
    story.bank.says = _DONE.get(of, _DONE["refund"])
    with pytest.raises(Refusal) as refused:
        await end_unanswered(story.ports, waiting.operation, "failed")
    assert refused.value.code == "INVALID_STATE"
    assert await list_unanswered(story.ports) == [], "what the bank said took effect"


async def test_beside_a_bank_that_forgets_later_it_waits_as_soon(stack: AsyncExitStack) -> None:
    story = await refund(stack, WINDOW)
    [later] = [bank for name, bank in story.ports.banks.banks.items() if name == "simulator-live"]
    inside(later)._capabilities = msgspec.structs.replace(later.capabilities, repeat_window=30 * WINDOW)
    await story.app.work(32 * HOUR)
    assert (await story.waiting()).of == "refund"


async def test_a_refund_that_never_went_can_be_asked_for_anew(stack: AsyncExitStack) -> None:
    story = await refund(stack, WINDOW)
    await story.app.work(32 * HOUR)
    await end_unanswered(story.ports, (await story.waiting()).operation, "failed")
    [one] = await everything(story.ports, Refund)
    assert one.status == "failed"


async def test_the_word_stands_in_the_audit_log_and_waits_for_no_second_operator(stack: AsyncExitStack) -> None:
    """Marking an attempt as failed sends nothing; sending it anew waits for the second operator (docs/operations.md
    "Two pairs of eyes")."""
    story = await suspense(stack, WINDOW)
    await story.app.work(32 * HOUR)
    waiting = await story.waiting()
    ports = acting(story.ports, OperatorAction(operator="olga", name="operation.end", object_id=waiting.operation))
    await end_unanswered(ports, waiting.operation, "failed")
    [row] = await list_audit(story.ports, limit=10)
    assert (row.operator, row.action, row.object_id) == ("olga", "operation.end", waiting.operation)
    [money] = await everything(story.ports, Suspense)
    failed = msgspec.structs.replace(money, mode=Mode.LIVE)
    sending = msgspec.structs.replace(failed, reason="excess")
    assert (failed.reason, decisions(sending, failed)) == ("return_failed", ())
    anew = msgspec.structs.replace(failed, reason=RETURNED_ANEW, attempt=2, sending_since=None)
    assert decisions(failed, anew)


async def test_ending_an_operation_that_does_not_exist_is_refused(stack: AsyncExitStack) -> None:
    story = await refund(stack, WINDOW)
    for operation in ("ref_0", "sus_none", "exch_/1", f"exch_{UUID(int=7)}/1", "\x00", ""):
        with pytest.raises(Refusal) as refused:
            await end_unanswered(story.ports, operation, "done")
        assert refused.value.code == "NOT_FOUND"
    with pytest.raises(Refusal) as odd:
        await end_unanswered(story.ports, "ref_0", "perhaps")
    assert odd.value.code == "VALIDATION_ERROR"


@table(("window", "sent"), [(timedelta(seconds=30), 1), (None, 2)])
async def test_invoice_of_a_dead_process_is_repeated_only_within_the_window(
    window: timedelta | None, sent: int
) -> None:
    """Past it the payment is taken back at its deadline, when its bank still knows of no invoice."""
    async with open_refund_app(receiver=False) as refunds:
        bank = Forgetful(refunds.bank(), refunds.app.clock, window, draws=True)
        dying = fused(refunds.ports, CrashPoint(2, after=False))
        with suppress(Killed):
            await create_payment(dying, await refunds.caller(), str(uuid4()), lambda: PaymentOrder(amount_rub="404.04"))
        await refunds.app.clock.advance(60)
        await refunds.app.work(60)
        [payment] = await everything(refunds.ports, Payment)
        assert (bank.invoices, payment.bank_reference is None) == (sent, sent == 1)
        if sent == 1:
            await refunds.app.work(3 * HOUR)
            assert await everything(refunds.ports, Payment) == []


async def test_past_its_window_an_operation_is_asked_for_and_not_sent() -> None:
    """The engine ensures it for every subject."""
    async with open_test_app(receiver=False) as app:
        errands = ErrandApp(app)
        errands.row.window = timedelta(seconds=15)
        errands.carrier.sends = [(OutcomeUnknown, False)] * 9
        await errands.planned()
        for _ in range(4):
            await errands.run()
        assert errands.asked() == ["send", "find", "send", "find", "find"]
        errands.carrier.knows[f"{ID}#1"] = "done"
        await errands.run_out()
        assert (await errands.page()).status == "done"

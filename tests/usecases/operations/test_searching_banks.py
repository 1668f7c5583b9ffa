"""A bank without a query by our id gets the sent data and the start time of the search, wherever its answer is needed
(docs/adapters.md "Finding and repeating")."""

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from datetime import datetime
from typing import Any

import pytest

from cambist.core.domain.errors import Refusal
from cambist.core.domain.subscriptions.periods import Interval
from cambist.core.usecases.exchanges.returns import return_money
from cambist.core.usecases.notifications import on_notification
from cambist.core.usecases.refunds.suspense_return import return_suspense
from cambist.ports.bank import Invoice, Notification, RefundState, RefundStatus
from cambist.ports.clock import Clock
from cambist.ports.faults import NotSupported, OutcomeUnknown, Refused
from cambist.ports.mandates import Binding, ChargeState, ChargeStatus
from cambist.ports.remittances import RemittanceState, RemittanceStatus
from tests.apps import TestApp, open_test_app
from tests.charge_app import open_charge_app
from tests.exchange_app import open_exchange_app
from tests.providers_kit import inside
from tests.refund_app import open_refund_app
from tests.subscription_app import choose_calendar, subscribe
from tests.usecases.exchanges.test_exchange_return import late_rub
from tests.usecases.refunds.test_suspense_return import second_transfer

REFUND = RefundState(status=RefundStatus.PROCESSING)
_WAYS: dict[str, tuple[str, Any]] = {
    "create_invoice": ("invoice", Invoice(reference="inv_1", payload="qr", link="https://qr.example/1")),
    "refund": ("refund", REFUND),
    "bind": ("binding", Binding(reference="bind_1", link="https://qr.example/1", payload="qr")),
    "charge": ("charge", ChargeState(reference="ch_1", status=ChargeStatus.PROCESSING)),
    "remit": ("remittance", RemittanceState(status=RemittanceStatus.PROCESSING)),
}


class Searching:
    """A bank whose answers to writes are lost, and which finds an operation only by all its search terms."""

    def __init__(self, app: TestApp, bank: Any) -> None:
        self.app = app
        self.sent: dict[str, list[tuple[Any, datetime]]] = defaultdict(list)
        self.searched: list[str] = []
        adapter = inside(bank)
        for send, (noun, answer) in _WAYS.items():
            setattr(adapter, send, self._sending(app.clock))
            setattr(adapter, f"find_{noun}", self._find)
            for each in (adapter, bank):  # the layers around it were made for an adapter that does not search
                setattr(each, f"search_{noun}", self._searching(answer))

    def _sending(self, clock: Clock) -> Any:
        async def send(request: Any) -> Any:
            self.sent[request.operation].append((request, clock.now()))
            raise OutcomeUnknown("no answer")

        return send

    def _searching(self, answer: Any) -> Any:
        async def search(request: Any, since: datetime) -> Any:
            self.searched.append(request.operation)
            if request.operation not in self.sent:
                return None
            first, at = self.sent[request.operation][0]
            assert (request, since <= at) == (first, True)
            return answer

        return search

    async def _find(self, _operation: str) -> Any:
        raise NotSupported("nothing is known here by the caller's ids")


async def invoice(stack: AsyncExitStack) -> Searching:
    app = await stack.enter_async_context(open_test_app(receiver=False))
    bank = Searching(app, app.ports.banks.named("simulator-test"))
    await app.create({"amount_rub": "404.04"})
    return bank


async def refund(stack: AsyncExitStack) -> Searching:
    refunds = await stack.enter_async_context(open_refund_app(receiver=False))
    payment_id = await refunds.paid()
    bank = Searching(refunds.app, refunds.bank())
    await refunds.apply(payment_id)
    return bank


async def suspense(stack: AsyncExitStack) -> Searching:
    refunds = await stack.enter_async_context(open_refund_app(receiver=False))
    _, money = await second_transfer(refunds)
    bank = Searching(refunds.app, refunds.bank())
    await return_suspense(refunds.ports, money.id)
    return bank


async def rub_return(stack: AsyncExitStack) -> Searching:
    app = await stack.enter_async_context(open_exchange_app(receiver=False))
    exchange_id = await late_rub(app)
    bank = Searching(app.app, app.bank())
    await return_money(app.ports, exchange_id)
    return bank


async def payout(stack: AsyncExitStack) -> Searching:
    app = await stack.enter_async_context(open_exchange_app(receiver=False))
    bank = Searching(app.app, app.bank())
    await app.send((await app.made()).id)
    return bank


async def charge(stack: AsyncExitStack) -> Searching:
    charges = await stack.enter_async_context(open_charge_app(receiver=False))
    subscription_id = await charges.subscribed(Interval.DAY, 3)
    await charges.open_next(subscription_id)
    bank = Searching(charges.app, charges.bank())
    with suppress(Refusal):
        await charges.charge(subscription_id)
    return bank


async def binding(stack: AsyncExitStack) -> Searching:
    app = await stack.enter_async_context(open_test_app(receiver=False))
    bank = Searching(app, app.ports.banks.named("simulator-test"))
    await choose_calendar(app)
    await subscribe(app)
    return bank


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as opened:
        yield opened


Begin = Callable[[AsyncExitStack], Awaitable[Searching]]


@pytest.mark.parametrize("begin", [invoice, refund, suspense, rub_return, payout, charge])
async def test_the_watch_searches_by_what_was_sent(stack: AsyncExitStack, begin: Begin) -> None:
    """It adopts the operation that it finds, and sends nothing again."""
    bank = await begin(stack)
    await bank.app.work(60)
    assert {operation: len(sent) for operation, sent in bank.sent.items()} == dict.fromkeys(bank.searched, 1)


@pytest.mark.parametrize("begin", [refund, suspense, rub_return, charge, binding])
async def test_a_notification_searches_by_what_was_sent(stack: AsyncExitStack, begin: Begin) -> None:
    bank = await begin(stack)
    await bank.app.work(3)
    [operation] = bank.sent
    before = len(bank.searched)
    with suppress(Refused):  # the simulator does not know the operation that was found
        await on_notification(bank.app.ports, Notification(operation=operation))
    assert bank.searched[before:] == [operation]

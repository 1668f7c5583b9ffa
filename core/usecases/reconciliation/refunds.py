"""Refunds, and returns of money in suspense, as a bank's list should show them."""

from collections.abc import AsyncIterator, Collection, Mapping
from datetime import datetime, timedelta

from ....ports.bundle import Ports
from ....ports.storage import Between, Unit
from ...domain import ids
from ...domain.accounts.accounts import Mode
from ...domain.payments.payments import Payment
from ...domain.payments.suspense import RETURN_FAILED, RETURN_REVERSED, SUSPENSE, Suspense
from ...domain.reconciliation.comparing import Counted, Standing, Subject
from ...domain.refunds.refunds import WAITS_FOR_MONEY, Refund, RefundStatus
from ...domain.refunds.suspense_returns import present_operation
from ..refunds.suspense_progress import suspense_of
from .scope import Scope, by_id, live, paged, with_payments

_STANDINGS: Mapping[RefundStatus, Standing] = {
    RefundStatus.PROCESSING: Standing.OPEN,
    RefundStatus.COMPLETED: Standing.DONE,
    RefundStatus.REVERSED: Standing.UNDONE,
}
"""In all other statuses no money moves."""
_WAIT = WAITS_FOR_MONEY + timedelta(days=31)
"""Greatest age of a refund whose money is being sent; a month of it is for its approval."""


async def refunds_between(ports: Ports, scope: Scope, begin: datetime, end: datetime) -> AsyncIterator[Counted]:
    asked = {**live(scope), "executing_since": Between(begin, end)}
    for status in (RefundStatus.COMPLETED, RefundStatus.REVERSED):
        applied = paged(ports, Refund, "created_at", begin - _WAIT, end, status=status, **asked)
        for refund, payment in await with_payments(ports, [each async for each in applied]):
            if scope.has(payment.bank, payment.mode, payment.bank_reference):
                yield _of_refund(refund, payment, scope)


async def returns_between(ports: Ports, scope: Scope, begin: datetime, end: datetime) -> AsyncIterator[Counted]:
    asked = {**live(scope), "sending_since": Between(begin, end)}
    over = paged(ports, Suspense, "resolved_at", begin, None, **asked)
    for money, payment in await with_payments(ports, [each async for each in over]):
        if scope.has(payment.bank, payment.mode, payment.bank_reference):
            yield _of_suspense(money, present_operation(money), money.attempt, payment, scope)


async def known_refunds(unit: Unit, scope: Scope, operations: Collection[str]) -> dict[str, Counted]:
    refunds = await by_id(unit, Refund, {each for each in operations if ids.is_prefixed(ids.REFUND, each)})
    payments = await by_id(unit, Payment, {each.payment_id for each in refunds.values()})
    return {
        refund.id: _of_refund(refund, payments[refund.payment_id], scope)
        for refund in refunds.values()
        if refund.payment_id in payments and payments[refund.payment_id].bank == scope.bank.name
    }


async def known_suspense(unit: Unit, scope: Scope, operations: Collection[str]) -> dict[str, Counted]:
    found = {}
    for operation in (each for each in operations if each.startswith(SUSPENSE)):
        money, attempt = await suspense_of(unit, operation) or (None, 0)
        payment = None if money is None else await unit[Payment].get(money.payment_id)
        if money is not None and payment is not None and attempt <= money.attempt and payment.bank == scope.bank.name:
            found[operation] = _of_suspense(money, operation, attempt, payment, scope)
    return found


def _of_refund(refund: Refund, payment: Payment, scope: Scope) -> Counted:
    is_both = refund.contradicted_at is not None
    return Counted(
        operation=refund.id,
        subject=Subject.REFUND,
        standing=Standing.UNDONE if is_both else _STANDINGS.get(refund.status, Standing.FAILED),
        is_compared=refund.mode is Mode.LIVE,
        began=refund.executing_since or refund.created_at,
        ended=refund.completed_at,
        kopecks=refund.amount.kopecks,
        owner=scope.owner_of(payment.bank_reference),
        of="refund",
        object_id=refund.id,
        account_id=refund.account_id,
    )


def _of_suspense(money: Suspense, operation: str, attempt: int, payment: Payment, scope: Scope) -> Counted:
    standing = Standing.FAILED
    if attempt < money.attempt or money.reason == RETURN_REVERSED:
        # An attempt that was followed by another one failed, or was reversed.
        standing = Standing.UNDONE
    elif money.resolved_at is not None:
        standing = Standing.DONE
    elif money.sending_since is not None and money.reason != RETURN_FAILED:
        standing = Standing.OPEN
    return Counted(
        operation=operation,
        subject=Subject.REFUND,
        standing=standing,
        is_compared=money.mode is Mode.LIVE,
        began=money.sending_since or money.received_at,
        ended=money.resolved_at,
        kopecks=money.amount.kopecks,
        owner=scope.owner_of(payment.bank_reference),
        of="suspense",
        object_id=money.id,
        account_id=money.account_id,
    )

"""Payments as a bank's list should show them, by time span or by operation."""

from collections.abc import AsyncIterator, Collection, Iterable
from datetime import datetime

from ....ports.bundle import Ports
from ....ports.storage import Between, OneOf, Unit
from ...domain import ids
from ...domain.accounts.accounts import Mode
from ...domain.payments.payments import BindingCharge, Payment, PaymentStatus
from ...domain.payments.suspense import Suspense
from ...domain.reconciliation.comparing import Counted, Standing, Subject
from ..payments.recurring import binding_operation, bound_by
from .scope import Scope, by_id, live, paged, with_payments

_MONEY = (PaymentStatus.AMOUNT_MISMATCH, PaymentStatus.PAID, PaymentStatus.SETTLED, PaymentStatus.REFUNDED)
"""In the order of the moves, so that a payment which moves during the read is read twice rather than missed."""
_WAITING = (PaymentStatus.PENDING, PaymentStatus.PROCESSING)
_MOST_UNAPPLIED = 100_000
"""Most unapplied transfers read for the payments of one lookup."""


async def payments_between(ports: Ports, scope: Scope, begin: datetime, end: datetime) -> AsyncIterator[Counted]:
    """Iterate over the payments with money that were created in this time span, including charges and bindings."""
    asked = {**live(scope), "bank": scope.bank.name}
    for status in _MONEY:
        async for payment in paged(ports, Payment, "created_at", begin, end, status=status, **asked):
            if scope.has(payment.bank, payment.mode, payment.bank_reference):
                yield _of_payment(payment, scope, None)


async def money_between(ports: Ports, scope: Scope, begin: datetime, end: datetime) -> int:
    """Return how many payments of this time span have money, whichever of this bank's credentials they used."""
    asked = {**live(scope), "bank": scope.bank.name, "created_at": Between(begin, end)}
    async with ports.storage.unit() as unit:
        return sum([await unit[Payment].total(status=status, **asked) for status in _MONEY])


async def unapplied_payments_between(
    ports: Ports, scope: Scope, begin: datetime, end: datetime
) -> AsyncIterator[Counted]:
    """Iterate over payments that ended without money but received some anyway; all of it is in suspense."""
    waiting = paged(ports, Suspense, "received_at", begin, None, resolved_at=None, **live(scope))
    gone = paged(ports, Suspense, "resolved_at", begin, None, received_at=Between(begin, None), **live(scope))
    found = [*[each async for each in waiting], *[each async for each in gone]]
    unapplied: dict[str, dict[str, Suspense]] = {}
    payments: dict[str, Payment] = {}
    for money, payment in await with_payments(ports, found):
        if payment.status not in _MONEY and begin <= payment.created_at < end:
            unapplied.setdefault(payment.id, {})[money.id] = money
            payments[payment.id] = payment
    for payment in payments.values():
        if scope.has(payment.bank, payment.mode, payment.bank_reference):
            yield _of_payment(payment, scope, unapplied[payment.id].values())


async def known_payments(unit: Unit, scope: Scope, operations: Collection[str]) -> dict[str, Counted]:
    named = {each: bound_by(each) or each for each in operations}
    payments = await by_id(unit, Payment, {name for name in named.values() if ids.is_prefixed(ids.PAYMENT, name)})
    unapplied: dict[str, list[Suspense]] = {}
    if payments:
        of = OneOf(tuple(payments))
        for each in await unit[Suspense].find(payment_id=of, order="received_at", limit=_MOST_UNAPPLIED):
            unapplied.setdefault(each.payment_id, []).append(each)
    return {
        operation: _of_payment(payments[name], scope, unapplied.get(name, []))
        for operation, name in named.items()
        if name in payments and payments[name].bank == scope.bank.name
    }


def _of_payment(payment: Payment, scope: Scope, unapplied: Iterable[Suspense] | None) -> Counted:
    """Return a payment as the list should show it. `unapplied` is its money in suspense, including money sent back;
    None if not read, which gives a smaller sum than the bank's where such money exists.
    """
    came = {} if _is_symbolic(payment) else {payment.transfer_id: payment.actual_amount}
    if payment.status not in _MONEY:
        came = {}
    for each in unapplied or ():
        came[each.transfer_id] = each.amount
    standing = Standing.DONE if came else Standing.OPEN if payment.status in _WAITING else Standing.FAILED
    sums = [amount.kopecks for amount in came.values() if amount is not None]
    is_bound = payment.binding is not None
    return Counted(
        operation=binding_operation(payment.id) if is_bound else payment.id,
        subject=Subject.PAYMENT,
        standing=standing,
        is_compared=payment.mode is Mode.LIVE,
        began=payment.created_at,
        ended=payment.paid_at,
        kopecks=sum(sums) if len(sums) == len(came) else None,
        fee=payment.provider_fee.kopecks if payment.provider_fee is not None and len(came) == 1 else None,
        reference=payment.bank_reference,
        owner=scope.owner_of(payment.bank_reference),
        of="payment",
        object_id=payment.id,
        account_id=payment.account_id,
    )


def _is_symbolic(payment: Payment) -> bool:
    """Return whether the payment binds without taking money."""
    return payment.binding is BindingCharge.NONE and payment.transfer_id is None

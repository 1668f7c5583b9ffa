"""What we count at a bank: read by stretches of time for a comparison, or by the ids of operations
(docs/reconciliation.md "What is compared")."""

from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from ....ports.bundle import Ports
from ....ports.reporting import ReportingBank
from ....ports.storage import Between, OneOf, Record, Unit
from ...domain import ids
from ...domain.accounts.accounts import Account, Mode, Shop
from ...domain.accounts.terminals import Terminal
from ...domain.exchanges.exchanges import Direction, Exchange, invoice_operation, operation_exchange
from ...domain.exchanges.funds import ExchangeTransfer, transfer_ids
from ...domain.exchanges.payouts import PartStatus, read_part
from ...domain.exchanges.returns import (
    ReturnStatus,
    former_return,
    returned_transfer,
    returning_exchange,
    rub_return_operation,
)
from ...domain.ledger import Currency
from ...domain.payments.payments import (
    RETURN_FAILED,
    RETURN_REVERSED,
    SUSPENSE,
    BindingCharge,
    Payment,
    PaymentStatus,
    Suspense,
    suspended_transfer,
)
from ...domain.reconciliation.comparing import Counted, Standing, Subject
from ...domain.refunds.refunds import WAITS_FOR_MONEY, Refund, RefundStatus
from ...domain.refunds.suspense_returns import present_operation
from ..accounts.accounts import storable
from ..payments.recurring import binding_operation, bound_by
from ..refunds.suspense_progress import suspense_of

K = TypeVar("K", bound=Record)

_D, _O, _F, _U = Standing.DONE, Standing.OPEN, Standing.FAILED, Standing.UNDONE

_MONEY = (PaymentStatus.AMOUNT_MISMATCH, PaymentStatus.PAID, PaymentStatus.SETTLED, PaymentStatus.REFUNDED)
"""In the order of the moves, so that one that moves while they are read is read twice, and not missed."""
_WAITING = (PaymentStatus.PENDING, PaymentStatus.PROCESSING)
_REFUNDS: Mapping[RefundStatus, Standing] = {
    RefundStatus.PROCESSING: _O,
    RefundStatus.COMPLETED: _D,
    RefundStatus.REVERSED: _U,
}
"""In all other statuses no money moves."""
_PARTS: Mapping[PartStatus, Standing] = {PartStatus.SENT: _O, PartStatus.DONE: _D}
_RETURNS: Mapping[ReturnStatus, Standing] = {
    ReturnStatus.SENDING: _O,
    ReturnStatus.RETURNED: _D,
    ReturnStatus.REVERSED: _U,
}

_REFUNDS_WAIT = WAITS_FOR_MONEY + timedelta(days=31)
"""So old may an application be whose money goes now, at most: the month is for its approval."""
_PAYOUTS_WAIT = timedelta(days=7)
"""So old may an exchange be of which a part goes now."""
_BATCH = 1000
_MOST_STRAYS = 100_000
"""Sums in suspense of the payments of one look-up."""
_LONGEST = 600
"""Characters of an operation of ours."""


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Whose list is compared."""

    bank: ReportingBank
    owner: str
    account_id: str | None
    """The merchant whose credentials they are; None: of no merchant that we know."""

    def has(self, bank: str | None, mode: Mode, reference: str | None) -> bool:
        """Whether an object of ours should be in it."""
        return mode is Mode.LIVE and bank == self.bank.name and self.owner == self.owner_of(reference)

    def owner_of(self, reference: str | None) -> str:
        return "" if reference is None else self.bank.owner_of(reference)


async def scope_of(ports: Ports, bank: ReportingBank, owner: str) -> Scope:
    """The scope of an owner of credentials: an account, a shop or a terminal of one."""
    account_id = None
    if owner and storable(owner):
        async with ports.storage.unit() as unit:
            found = await unit[Shop].get(owner) or await unit[Terminal].get(owner)
            if found is not None:
                account_id = found.account_id
            elif await unit[Account].get(owner) is not None:
                account_id = owner
    return Scope(bank=bank, owner=owner, account_id=account_id)


async def payments_between(ports: Ports, scope: Scope, begin: datetime, end: datetime) -> AsyncIterator[Counted]:
    """The payments with money that were made in this time, charges and bindings included."""
    asked = {**_live(scope), "bank": scope.bank.name}
    for status in _MONEY:
        async for payment in _paged(ports, Payment, "created_at", begin, end, status=status, **asked):
            if scope.has(payment.bank, payment.mode, payment.bank_reference):
                yield _of_payment(payment, scope, None)


async def others_between(ports: Ports, scope: Scope, begin: datetime, end: datetime) -> AsyncIterator[Counted]:
    """What else the bank may have been asked for in this time and must have: refunds, money sent back from suspense,
    exchanges' invoices and payouts. Few beside the payments: read at once for a day."""
    for read in (
        _stray_payments_between,
        _refunds_between,
        _returns_between,
        _exchanges_between,
        _payouts_between,
        _exchange_returns_between,
    ):
        async for each in read(ports, scope, begin, end):
            yield each


def _live(scope: Scope) -> dict[str, Any]:
    return {"mode": Mode.LIVE} if scope.account_id is None else {"mode": Mode.LIVE, "account_id": scope.account_id}


async def _stray_payments_between(ports: Ports, scope: Scope, begin: datetime, end: datetime) -> AsyncIterator[Counted]:
    """Payments that are over without money, and to which some came all the same: all of it is suspense."""
    waiting = _paged(ports, Suspense, "received_at", begin, None, resolved_at=None, **_live(scope))
    gone = _paged(ports, Suspense, "resolved_at", begin, None, received_at=Between(begin, None), **_live(scope))
    found = [*[each async for each in waiting], *[each async for each in gone]]
    strays: dict[str, dict[str, Suspense]] = {}
    payments: dict[str, Payment] = {}
    for money, payment in await _with_payments(ports, found):
        if payment.status not in _MONEY and begin <= payment.created_at < end:
            strays.setdefault(payment.id, {})[money.id] = money
            payments[payment.id] = payment
    for payment in payments.values():
        if scope.has(payment.bank, payment.mode, payment.bank_reference):
            yield _of_payment(payment, scope, strays[payment.id].values())


async def _refunds_between(ports: Ports, scope: Scope, begin: datetime, end: datetime) -> AsyncIterator[Counted]:
    asked = {**_live(scope), "executing_since": Between(begin, end)}
    for status in (RefundStatus.COMPLETED, RefundStatus.REVERSED):
        applied = _paged(ports, Refund, "created_at", begin - _REFUNDS_WAIT, end, status=status, **asked)
        for refund, payment in await _with_payments(ports, [each async for each in applied]):
            if scope.has(payment.bank, payment.mode, payment.bank_reference):
                yield _of_refund(refund, payment, scope)


async def _returns_between(ports: Ports, scope: Scope, begin: datetime, end: datetime) -> AsyncIterator[Counted]:
    asked = {**_live(scope), "sending_since": Between(begin, end)}
    over = _paged(ports, Suspense, "resolved_at", begin, None, **asked)
    for money, payment in await _with_payments(ports, [each async for each in over]):
        if scope.has(payment.bank, payment.mode, payment.bank_reference):
            yield _of_suspense(money, present_operation(money), money.attempt, payment, scope)


async def _exchanges_between(ports: Ports, scope: Scope, begin: datetime, end: datetime) -> AsyncIterator[Counted]:
    asked = {**_live(scope), "direction": Direction.RUB_TO_USDT, "bank": scope.bank.name}
    made = [
        exchange
        async for exchange in _paged(ports, Exchange, "created_at", begin, end, **asked)
        if scope.has(exchange.bank, exchange.mode, exchange.invoice_reference)
    ]
    came: dict[str, list[ExchangeTransfer]] = {exchange.id: [] for exchange in made}
    if made:
        # Ids rise with time, so those of a day are a range; what lies between them is passed over.
        span = Between(transfer_ids(min(came))[0], transfer_ids(max(came))[1])
        async for batch in ports.storage.scan(ExchangeTransfer, id=span):
            for each in batch:
                came.get(each.exchange_id, []).append(each)
    for exchange in made:
        if came[exchange.id]:
            yield _of_exchange(exchange, came[exchange.id], scope)


async def _payouts_between(ports: Ports, scope: Scope, begin: datetime, end: datetime) -> AsyncIterator[Counted]:
    asked = {**_live(scope), "direction": Direction.USDT_TO_RUB, "bank": scope.bank.name}
    async for exchange in _paged(ports, Exchange, "created_at", begin - _PAYOUTS_WAIT, end, **asked):
        if scope.has(exchange.bank, exchange.mode, None):
            for part in _of_parts(exchange):
                if begin <= part.began < end:
                    yield part


async def _exchange_returns_between(
    ports: Ports, scope: Scope, begin: datetime, end: datetime
) -> AsyncIterator[Counted]:
    asked = {**_live(scope), "currency": Currency.RUB}
    async for transfer in _paged(ports, ExchangeTransfer, "resolved_at", begin, None, **asked):
        back, exchange = transfer.sent_back, await ports.storage.get(Exchange, transfer.exchange_id)
        if back is None or exchange is None or not begin <= (back.sent_at or back.created_at) < end:
            continue
        if scope.has(exchange.bank, exchange.mode, exchange.invoice_reference):
            yield _of_return(transfer, back.number, exchange, scope)


async def known(ports: Ports, scope: Scope, operations: Collection[str]) -> dict[str, Counted]:
    """What we know of these operations of the scope's bank, whatever became of them, all their money counted: by the
    names that were asked for, which may be those of an earlier version."""
    wanted = [each for each in operations if each.isascii() and each.isprintable() and len(each) <= _LONGEST]
    found: dict[str, Counted] = {}
    async with ports.storage.unit() as unit:
        for read in (_known_payments, _known_refunds, _known_suspense, _known_exchanges, _known_returns):
            found |= await read(unit, scope, wanted)
    return found


async def _known_payments(unit: Unit, scope: Scope, operations: Collection[str]) -> dict[str, Counted]:
    named = {each: bound_by(each) or each for each in operations}
    payments = await _by_id(unit, Payment, {name for name in named.values() if ids.is_prefixed(ids.PAYMENT, name)})
    strays: dict[str, list[Suspense]] = {}
    if payments:
        of = OneOf(tuple(payments))
        for each in await unit[Suspense].find(payment_id=of, order="received_at", limit=_MOST_STRAYS):
            strays.setdefault(each.payment_id, []).append(each)
    return {
        operation: _of_payment(payments[name], scope, strays.get(name, []))
        for operation, name in named.items()
        if name in payments and payments[name].bank == scope.bank.name
    }


async def _known_refunds(unit: Unit, scope: Scope, operations: Collection[str]) -> dict[str, Counted]:
    refunds = await _by_id(unit, Refund, {each for each in operations if ids.is_prefixed(ids.REFUND, each)})
    payments = await _by_id(unit, Payment, {each.payment_id for each in refunds.values()})
    return {
        refund.id: _of_refund(refund, payments[refund.payment_id], scope)
        for refund in refunds.values()
        if refund.payment_id in payments and payments[refund.payment_id].bank == scope.bank.name
    }


async def _known_suspense(unit: Unit, scope: Scope, operations: Collection[str]) -> dict[str, Counted]:
    found = {}
    for operation in (each for each in operations if each.startswith(SUSPENSE)):
        money, attempt = await suspense_of(unit, operation) or (None, 0)
        payment = None if money is None else await unit[Payment].get(money.payment_id)
        if money is not None and payment is not None and attempt <= money.attempt and payment.bank == scope.bank.name:
            # The bank may know the present attempt by the name that an earlier version gave it.
            named = present_operation(money) if attempt == money.attempt else operation
            found[operation] = _of_suspense(money, named, attempt, payment, scope)
    return found


async def _known_exchanges(unit: Unit, scope: Scope, operations: Collection[str]) -> dict[str, Counted]:
    """Invoices, and parts of payouts."""
    named = {each: of for each in operations if (of := operation_exchange(each)) is not None}
    exchanges = await _by_id(unit, Exchange, set(named.values()))
    found: dict[str, Counted] = {}
    for operation, exchange_id in named.items():
        exchange = exchanges.get(exchange_id)
        if exchange is None or exchange.bank != scope.bank.name:
            continue
        part = read_part(operation)
        if part is not None:
            sent = next((each for each in _of_parts(exchange) if read_part(each.operation) == part), None)
            found |= {} if sent is None else {operation: sent}
        elif not exchange.takes_usdt:
            came = await unit[ExchangeTransfer].find(id=Between(*transfer_ids(exchange.id)))
            found[operation] = _of_exchange(exchange, came, scope)
    return found


async def _known_returns(unit: Unit, scope: Scope, operations: Collection[str]) -> dict[str, Counted]:
    """RUB of exchanges that go back."""
    found = {}
    for operation in operations:
        transfer = await _returned_by(unit, operation)
        exchange = None if transfer is None else await unit[Exchange].get(transfer.exchange_id)
        if transfer is None or exchange is None or transfer.currency is not Currency.RUB:
            continue
        number = _return_number(transfer, operation)
        if exchange.bank == scope.bank.name and number is not None:
            found[operation] = _of_return(transfer, number, exchange, scope)
    return found


async def _returned_by(unit: Unit, operation: str) -> ExchangeTransfer | None:
    """The transfer that an operation sends back, at whichever attempt."""
    exchange_id = returning_exchange(operation)
    if exchange_id is None:
        former = returned_transfer(operation)
        return None if former is None else await unit[ExchangeTransfer].get(former)
    found = await unit[ExchangeTransfer].find(id=Between(*transfer_ids(exchange_id)))
    return next((each for each in found if former_return(each.id, operation) is not None), None)


def _return_number(transfer: ExchangeTransfer, operation: str) -> int | None:
    """Which attempt it is; None for one that was never made."""
    number = int((former_return(transfer.id, operation) or operation).rpartition("#")[2])
    return number if transfer.sent_back is not None and 1 <= number <= transfer.sent_back.number else None


def _of_payment(payment: Payment, scope: Scope, strays: Iterable[Suspense] | None) -> Counted:
    """`strays`: its money in suspense, also what went back; None: not read, which says less than the bank where there
    is some."""
    came = {} if _is_symbolic(payment) else {payment.transfer_id: payment.actual_amount}
    if payment.status not in _MONEY:
        came = {}
    for each in strays or ():
        came[suspended_transfer(each, payment)] = each.amount
    standing = _D if came else _O if payment.status in _WAITING else _F
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
    """It binds without taking money."""
    return payment.binding is BindingCharge.NONE and payment.transfer_id is None


def _of_refund(refund: Refund, payment: Payment, scope: Scope) -> Counted:
    is_both = refund.contradicted_at is not None
    return Counted(
        operation=refund.id,
        subject=Subject.REFUND,
        standing=_U if is_both else _REFUNDS.get(refund.status, _F),
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
    standing = _F
    if attempt < money.attempt or money.reason == RETURN_REVERSED:
        # An attempt that is followed by another one failed, or came back.
        standing = _U
    elif money.resolved_at is not None:
        standing = _D
    elif money.sending_since is not None and money.reason != RETURN_FAILED:
        standing = _O
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


def _of_exchange(exchange: Exchange, came: Iterable[ExchangeTransfer], scope: Scope) -> Counted:
    """Its invoice, with all that came for it, also what came late."""
    kopecks = sum(each.amount - each.taken_back for each in came)
    return Counted(
        operation=invoice_operation(exchange.id),
        subject=Subject.PAYMENT,
        standing=_F if exchange.is_final and not kopecks else _D if kopecks else _O,
        is_compared=exchange.mode is Mode.LIVE,
        began=exchange.created_at,
        kopecks=kopecks,
        reference=exchange.invoice_reference,
        owner=scope.owner_of(exchange.invoice_reference),
        of="exchange",
        object_id=exchange.id,
        account_id=exchange.account_id,
    )


def _of_parts(exchange: Exchange) -> list[Counted]:
    return [
        Counted(
            operation=part.operation,
            subject=Subject.PAYOUT,
            standing=_PARTS.get(part.status, _F),
            is_compared=exchange.mode is Mode.LIVE,
            began=part.sent_at or exchange.created_at,
            ended=exchange.completed_at,
            kopecks=part.amount.kopecks,
            of="exchange",
            object_id=exchange.id,
            account_id=exchange.account_id,
        )
        for part in exchange.parts
    ]


def _of_return(transfer: ExchangeTransfer, number: int, exchange: Exchange, scope: Scope) -> Counted:
    back = transfer.sent_back
    if back is None:
        raise ValueError(f"{transfer.id} was never sent back")
    standing = _RETURNS.get(back.status, _F) if number == back.number else _U
    return Counted(
        operation=back.operation if number == back.number else rub_return_operation(transfer.id, number),
        subject=Subject.REFUND,
        standing=standing,
        is_compared=transfer.mode is Mode.LIVE,
        began=back.sent_at or back.created_at,
        ended=transfer.resolved_at,
        kopecks=back.amount,
        owner=scope.owner_of(exchange.invoice_reference),
        of="suspense",
        object_id=transfer.id,
        account_id=transfer.account_id,
    )


async def _with_payments(ports: Ports, found: list[Any]) -> list[tuple[Any, Payment]]:
    """Each with its payment."""
    paired = []
    async with ports.storage.unit() as unit:
        for start in range(0, len(found), _BATCH):
            part = found[start : start + _BATCH]
            payments = await _by_id(unit, Payment, {each.payment_id for each in part})
            paired += [(each, payments[each.payment_id]) for each in part if each.payment_id in payments]
    return paired


async def _by_id(unit: Unit, kind: type[K], wanted: Collection[str]) -> dict[str, K]:
    if not wanted:
        return {}
    found = await unit[kind].find(id=OneOf(tuple(sorted(wanted))), limit=len(wanted))
    return {each.id: each for each in found}


async def _paged(
    ports: Ports, kind: type[K], by: str, begin: datetime, end: datetime | None, **criteria: Any
) -> AsyncIterator[K]:
    """All of a kind whose moment `by` lies in this time, in its order, which an index follows, some at a time. What
    leaves the criteria meanwhile shifts nothing."""
    seen: set[str] = set()
    size = _BATCH
    while True:
        async with ports.storage.unit() as unit:
            found = await unit[kind].find(order=by, limit=size, **{**criteria, by: Between(begin, end)})
        fresh = [each for each in found if each.id not in seen]
        for each in fresh:
            yield each
        if len(found) < size:
            return
        begin = getattr(found[-1], by)
        seen = {each.id for each in found if getattr(each, by) == begin}
        if not fresh:
            # A whole batch of one moment.
            size *= 2

"""Invoices, payouts and returns of exchanges as a bank's list should show them."""

from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from datetime import datetime, timedelta

from ....ports.bundle import Ports
from ....ports.storage import Between, Unit
from ...domain.accounts.accounts import Mode
from ...domain.exchanges.exchanges import Direction, Exchange, invoice_operation, operation_exchange
from ...domain.exchanges.funds import ExchangeTransfer, transfer_ids
from ...domain.exchanges.payouts import PartStatus, read_part
from ...domain.exchanges.returns import ReturnStatus, return_number, rub_return_operation
from ...domain.ledger import Currency
from ...domain.reconciliation.comparing import Counted, Standing, Subject
from ..exchanges.rub_return import returned_by
from ..exchanges.steps import transfers_of
from .scope import Scope, by_id, live, paged

_PARTS: Mapping[PartStatus, Standing] = {PartStatus.SENT: Standing.OPEN, PartStatus.DONE: Standing.DONE}
_RETURNS: Mapping[ReturnStatus, Standing] = {
    ReturnStatus.SENDING: Standing.OPEN,
    ReturnStatus.RETURNED: Standing.DONE,
    ReturnStatus.REVERSED: Standing.UNDONE,
}
_WAIT = timedelta(days=7)
"""Greatest age of an exchange whose payout is being sent."""


async def exchanges_between(ports: Ports, scope: Scope, begin: datetime, end: datetime) -> AsyncIterator[Counted]:
    asked = {**live(scope), "direction": Direction.RUB_TO_USDT, "bank": scope.bank.name}
    made = [
        exchange
        async for exchange in paged(ports, Exchange, "created_at", begin, end, **asked)
        if scope.has(exchange.bank, exchange.mode, exchange.invoice_reference)
    ]
    came: dict[str, list[ExchangeTransfer]] = {exchange.id: [] for exchange in made}
    if made:
        # Ids rise with time, so those of a day form a range; records of other exchanges in it are skipped.
        span = Between(transfer_ids(min(came))[0], transfer_ids(max(came))[1])
        async for batch in ports.storage.scan(ExchangeTransfer, id=span):
            for each in batch:
                came.get(each.exchange_id, []).append(each)
    for exchange in made:
        if came[exchange.id]:
            yield _of_exchange(exchange, came[exchange.id], scope)


async def payouts_between(ports: Ports, scope: Scope, begin: datetime, end: datetime) -> AsyncIterator[Counted]:
    asked = {**live(scope), "direction": Direction.USDT_TO_RUB, "bank": scope.bank.name}
    async for exchange in paged(ports, Exchange, "created_at", begin - _WAIT, end, **asked):
        if scope.has(exchange.bank, exchange.mode, None):
            for part in _of_parts(exchange):
                if begin <= part.began < end:
                    yield part


async def exchange_returns_between(
    ports: Ports, scope: Scope, begin: datetime, end: datetime
) -> AsyncIterator[Counted]:
    asked = {**live(scope), "currency": Currency.RUB}
    async for transfer in paged(ports, ExchangeTransfer, "resolved_at", begin, None, **asked):
        back, exchange = transfer.sent_back, await ports.storage.get(Exchange, transfer.exchange_id)
        if back is None or exchange is None or not begin <= (back.sent_at or back.created_at) < end:
            continue
        if scope.has(exchange.bank, exchange.mode, exchange.invoice_reference):
            yield _of_return(transfer, back.number, exchange, scope)


async def known_exchanges(unit: Unit, scope: Scope, operations: Collection[str]) -> dict[str, Counted]:
    """Return the invoices and payout parts of these operations."""
    named = {each: of for each in operations if (of := operation_exchange(each)) is not None}
    exchanges = await by_id(unit, Exchange, set(named.values()))
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
            came = await transfers_of(unit, exchange.id)
            found[operation] = _of_exchange(exchange, came, scope)
    return found


async def known_returns(unit: Unit, scope: Scope, operations: Collection[str]) -> dict[str, Counted]:
    """Return the returns of exchanges' RUB of these operations."""
    found = {}
    for operation in operations:
        transfer = await returned_by(unit, operation)
        exchange = None if transfer is None else await unit[Exchange].get(transfer.exchange_id)
        if transfer is None or exchange is None or transfer.currency is not Currency.RUB:
            continue
        number = _return_number(transfer, operation)
        if exchange.bank == scope.bank.name and number is not None:
            found[operation] = _of_return(transfer, number, exchange, scope)
    return found


def _return_number(transfer: ExchangeTransfer, operation: str) -> int | None:
    """Return the number of the return attempt; None for an attempt that was never made."""
    number = return_number(transfer.id, operation)
    if number is None or transfer.sent_back is None:
        return None
    return number if 1 <= number <= transfer.sent_back.number else None


def _of_exchange(exchange: Exchange, came: Iterable[ExchangeTransfer], scope: Scope) -> Counted:
    """Return the invoice with all its money, including late transfers."""
    kopecks = sum(each.amount - each.taken_back for each in came)
    return Counted(
        operation=invoice_operation(exchange.id),
        subject=Subject.PAYMENT,
        standing=Standing.FAILED if exchange.is_final and not kopecks else Standing.DONE if kopecks else Standing.OPEN,
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
            standing=_PARTS.get(part.status, Standing.FAILED),
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
    standing = _RETURNS.get(back.status, Standing.FAILED) if number == back.number else Standing.UNDONE
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

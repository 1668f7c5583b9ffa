"""Handlers of banks' notifications: they find the operation and poll its state at the bank."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

from ...ports.bank import Notification
from ...ports.bundle import Ports
from ...ports.storage import Unit
from ..domain import ids
from ..domain.accounts.accounts import Owned
from ..domain.exchanges.exchanges import Exchange, operation_exchange
from ..domain.payments.payments import Payment
from .exchanges.progress import on_exchange_notification
from .operation_kinds import OPERATION_KINDS
from .operations.engine import receive
from .operations.operation import Operation
from .payments.opening import find_at_bank
from .payments.progress import look
from .payments.recurring import bound_by
from .receipts.progress import hurry_receipts
from .subscriptions.binding_progress import on_binding_notification
from .subscriptions.charge_progress import CHARGES


class Handler(NamedTuple):
    """Handler of notifications about one kind of operation."""

    owns: Callable[[str], bool]
    """Returns whether the id has the form of this kind. No two kinds share a form."""
    receive: Callable[[Ports, str], Awaitable[Payment | None]]
    owner: Callable[[Unit, str], Awaitable[Owned | None]]
    """Returns the record that the operation belongs to; see `Operation.owner`."""


async def _hear(row: Operation[Any, Any, Any], ports: Ports, operation: str) -> None:
    await receive(row, ports, operation)


async def _handle_payment(ports: Ports, operation: str) -> Payment | None:
    """Handle a notification of a payment or a charge. The record shows which of them it is."""
    payment = await ports.storage.get(Payment, operation)
    if payment is None:
        return None
    if payment.is_charge:
        heard = (await receive(CHARGES, ports, operation)).subject
        if payment.receipt is not None:
            await hurry_receipts(ports, payment)
        return payment if heard is None else heard.payment
    if payment.bank_reference is None:
        payment = await find_at_bank(ports, payment) or payment
    payment = await look(ports, payment)
    if payment.receipt is not None:
        await hurry_receipts(ports, payment)
    return payment


async def _payment_of(unit: Unit, operation: str) -> Payment | None:
    return await unit[Payment].get(bound_by(operation) or operation)


async def _exchange_of(unit: Unit, operation: str) -> Exchange | None:
    return await unit[Exchange].get(operation_exchange(operation) or "")


HANDLERS = (
    *(Handler(row.owns, partial(_hear, row), row.owner) for row in OPERATION_KINDS),
    Handler(lambda operation: bound_by(operation) is not None, on_binding_notification, _payment_of),
    Handler(lambda operation: operation_exchange(operation) is not None, on_exchange_notification, _exchange_of),
    Handler(lambda operation: ids.is_prefixed(ids.PAYMENT, operation), _handle_payment, _payment_of),
)


def _handler_of(operation: str) -> Handler | None:
    return next((each for each in HANDLERS if each.owns(operation)), None)


async def owner_of(unit: Unit, operation: str) -> Owned | None:
    """Return the record that a bank's operation belongs to. None also for a check, because checks exist only in live
    mode."""
    handler = _handler_of(operation)
    return None if handler is None else await handler.owner(unit, operation)


async def on_notification(ports: Ports, notification: Notification) -> Payment | None:
    """Handle a bank's notification. It is only a hint, because the state comes from a poll of the bank.

    Return the payment it is about, or None for any other operation. Raises: exceptions of the bank port.
    """
    handler = _handler_of(notification.operation)
    return None if handler is None else await handler.receive(ports, notification.operation)

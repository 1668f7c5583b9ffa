"""What a bank tells us unasked: whose operation it is about, and who asks the bank for its state."""

from ...ports.bank import Notice
from ...ports.bundle import Ports
from ..domain.exchanges.exchanges import operation_exchange
from ..domain.payments.payments import Payment
from .exchanges.progress import on_exchange_notice
from .operation_kinds import OPERATION_KINDS
from .operations import engine
from .payments import progress as payment_progress
from .payments.opening import find_at_bank
from .payments.recurring import is_binding_operation
from .subscriptions import binding_progress
from .subscriptions.charge_progress import CHARGES


async def on_notice(ports: Ports, notice: Notice) -> Payment | None:
    """The bank says that something happened. Only a hint: what counts is what the bank answers when asked.

    Returns the payment that it is about; None for a refund, a binding, an exchange, or money in suspense that
    is being sent back.
    """
    for row in OPERATION_KINDS:
        if row.owns(notice.operation):
            await engine.hear(row, ports, notice.operation)
            return None
    if is_binding_operation(notice.operation):
        await binding_progress.on_notice(ports, notice.operation)
        return None
    exchange_id = operation_exchange(notice.operation)
    if exchange_id is not None:
        await on_exchange_notice(ports, exchange_id)
        return None
    payment = await ports.storage.get(Payment, notice.operation)
    if payment is None:
        return None
    if payment.is_charge:
        heard = (await engine.hear(CHARGES, ports, payment.id)).subject
        return payment if heard is None else heard.payment
    if payment.bank_reference is None:
        payment = await find_at_bank(ports, payment) or payment
    return await payment_progress.look(ports, payment)

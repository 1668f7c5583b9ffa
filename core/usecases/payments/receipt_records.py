"""Records of receipts, each written in the unit that moves its money (docs/receipts.md "State"). How they proceed is in
core/usecases/receipts."""

from datetime import datetime
from typing import Any, NamedTuple

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.receipts import ReceiptFinder, ReceiptNeed
from ....ports.storage import Unit
from ...domain.accounts.accounts import Mode
from ...domain.money import Rub
from ...domain.payments.payments import BindingCharge, Payment, PaymentMove
from ...domain.receipts.receipts import SHIFT, FiscalReceipt, ReceiptKind, ReceiptWriter, receipt_id
from ..common.schedule import FollowUp

RECEIPT = FollowUp("receipt.follow")


class Writing(NamedTuple):
    """Writer of a payment's receipts."""

    writer: ReceiptWriter
    provider: str
    tells: bool
    """Whether the provider tells the state of receipts."""


def has_register(ports: Ports, mode: Mode) -> bool:
    """Return whether a cash register writes the receipts of payments whose bank writes none."""
    return ports.register is not None and mode is Mode.LIVE


def writing_of(ports: Ports, payment: Payment) -> Writing | None:
    """Return who writes the payment's receipts: its bank, else the register; None if it has none."""
    if payment.receipt is None or payment.binding is BindingCharge.NONE:
        return None
    bank = ports.banks.banks.get(payment.bank or "")
    if bank is not None and bank.capabilities.receipts is not ReceiptNeed.NONE:
        writer = ReceiptWriter.BANK_APART if bank.capabilities.receipts_apart else ReceiptWriter.BANK
        return Writing(writer, bank.name, isinstance(bank, ReceiptFinder))
    if ports.register is not None and payment.mode is Mode.LIVE:
        return Writing(ReceiptWriter.REGISTER, ports.register.name, tells=True)
    return None


def add_receipt(
    ports: Ports,
    unit: Unit,
    payment: Payment,
    writing: Writing,
    *,
    kind: ReceiptKind,
    cause: str,
    amount: Rub,
    moved_at: datetime,
    **more: Any,
) -> FiscalReceipt:
    """Write the record of a new receipt with its job. `cause`: id that has one receipt of this kind. `moved_at`: time
    of its money."""
    now = ports.clock.now()
    found = receipt_id(kind, cause)
    if writing.tells:
        unit[Job].add(RECEIPT.first(found, now, now))
    receipt = FiscalReceipt(
        id=found,
        account_id=payment.account_id,
        mode=payment.mode,
        shop_id=payment.shop_id,
        payment_id=payment.id,
        kind=kind,
        amount=amount,
        writer=writing.writer,
        provider=writing.provider,
        attempt_at=now,
        created_at=now,
        changed_at=now,
        due_at=moved_at + SHIFT if writing.tells else None,
        **more,
    )
    return unit[FiscalReceipt].add(receipt)


async def plan_sale(ports: Ports, unit: Unit, move: PaymentMove) -> None:
    """Plan the receipt of a payment that this unit makes paid for the first time."""
    before, after = move.before, move.after
    if before.paid_at is not None or after.paid_at is None:
        return
    writing = writing_of(ports, after)
    if writing is not None:
        add_receipt(
            ports,
            unit,
            after,
            writing,
            kind=ReceiptKind.SALE,
            cause=after.id,
            amount=after.actual_amount or after.amount,
            moved_at=after.paid_at,
        )

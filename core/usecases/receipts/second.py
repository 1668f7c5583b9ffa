"""Second receipts by merchants, at delivery after a prepayment, and corrections by operators (docs/receipts.md "Second
receipt" and "Corrections")."""

from collections.abc import Callable

import msgspec

from ....ports.bundle import Ports
from ....ports.receipts import ReceiptBank
from ....ports.storage import Unit
from ...domain import ids
from ...domain.accounts.accounts import Caller, Mode
from ...domain.accounts.idempotency import IdempotencyKey
from ...domain.accounts.receipts import PaymentMode, ReceiptTerms
from ...domain.errors import Refusal, shape_error, value_error
from ...domain.money import Rub
from ...domain.payments.payments import Payment, PaymentStatus
from ...domain.receipts.carts import Cart, part_of
from ...domain.receipts.orders import Contact, cart_of
from ...domain.receipts.receipts import CORRECTIONS, FiscalReceipt, ReceiptKind, ReceiptWriter, receipt_id
from ...domain.receipts.second import PREPAID, SecondReceiptOrder, delivered, modes_of
from ...domain.receipts.texts import printed
from ...domain.refunds.refunds import came_of, remainder
from ..common.account_time import in_test_time
from ..common.encrypted import receipt_aad, true_settings
from ..common.idempotency import Lock, Made, once, yield_to_maker
from ..common.units import retrying
from ..payments.receipt_records import Writing, add_receipt, writing_of
from ..payments.receipts import contact_of, receipt_content
from ..refunds.steps import refunds_of

KIND = "receipt"
_PAID = (PaymentStatus.PAID, PaymentStatus.SETTLED)
_RACES = ("receipts_id", "jobs_id")
"""Rules that the same receipt breaks when another unit made it first; the storage may report either."""


async def create_second_receipt(
    ports: Ports, caller: Caller, key: str | None, read_order: Callable[[], SecondReceiptOrder]
) -> Made[FiscalReceipt]:
    """Create the second receipt of a payment, once per key and once per payment.

    Raises: Refusal PAYMENT_NOT_FOUND; INVALID_STATUS unless the payment is paid or settled; INVALID_STATE if it has no
    receipts, was no prepayment, has its second receipt, or nobody can write one; VALIDATION_ERROR for its items.
    """

    async def make(lock: Lock) -> FiscalReceipt:
        order = read_order()
        found = receipt_id(ReceiptKind.SECOND, order.payment_id)

        async def work(unit: Unit) -> FiscalReceipt:
            key_record = lock(found)
            try:
                receipt = await _ordered(ports, unit, caller, order, key_record.id)
            except Refusal:
                await yield_to_maker(unit, lock)
                raise
            unit[IdempotencyKey].add(key_record)
            return receipt

        return await retrying(ports.storage, work, again_on=_RACES)

    async def recall(receipt_id: str) -> FiscalReceipt | None:
        return await ports.storage.get(FiscalReceipt, receipt_id)

    return await once(ports, caller, key, KIND, make=make, recall=recall, id_rule="receipts_id")


async def _ordered(
    ports: Ports, unit: Unit, caller: Caller, order: SecondReceiptOrder, key_record: str
) -> FiscalReceipt:
    payment = await unit[Payment].get(order.payment_id) if ids.is_prefixed(ids.PAYMENT, order.payment_id) else None
    if payment is None or (payment.account_id, payment.mode) != (caller.account_id, caller.mode):
        raise _no_payment()
    if not caller.sees_shop(payment.shop_id):
        raise _no_payment()
    if payment.status not in _PAID:
        raise Refusal("INVALID_STATUS", f"The payment is {payment.status}, not paid or settled")
    amount = remainder(payment, await refunds_of(unit, payment.id))
    writing, terms = _writer(ports, payment), payment.receipt
    if writing is None or terms is None:
        raise Refusal("INVALID_STATE", "Nobody can write a second receipt of this payment")
    sent = contact_of(ports, payment)
    modes = modes_of(terms, sent.receipt)
    if not modes & PREPAID:
        raise Refusal("INVALID_STATE", "The payment's receipt has no prepayment")
    if await unit[FiscalReceipt].get(receipt_id(ReceiptKind.SECOND, payment.id)) is not None:
        raise Refusal("INVALID_STATE", "The payment has its second receipt")
    if amount.kopecks <= 0:
        raise Refusal("INVALID_STATE", "Nothing is left of the payment")
    whole = _cart(ports, payment, terms)
    if order.receipt is not None:
        settings = true_settings(ports.vault, caller.account)
        settings = msgspec.structs.replace(settings, receipt_tax_system=terms.tax_system)
        cart = cart_of(order.receipt, amount, settings, Contact(email=whole.email, phone=whole.phone))
    elif PaymentMode.ADVANCE in modes:
        raise value_error("receipt", "is required after an advance: the service does not know the goods")
    else:
        cart = delivered(part_of(whole, amount.kopecks))
    return _add(ports, unit, payment, writing, ReceiptKind.SECOND, payment.id, cart, key_id=key_record)


def _writer(ports: Ports, payment: Payment) -> Writing | None:
    """Return who writes a second receipt: the bank if it writes receipts apart from money, else the register."""
    writing = writing_of(ports, payment)
    if writing is None or writing.writer is ReceiptWriter.REGISTER:
        return writing
    if isinstance(ports.banks.banks.get(writing.provider), ReceiptBank):
        return writing
    return _register(ports, payment)


def _register(ports: Ports, payment: Payment) -> Writing | None:
    if ports.register is None or payment.mode is not Mode.LIVE:
        return None
    return Writing(ReceiptWriter.REGISTER, ports.register.name, tells=True)


def _cart(ports: Ports, payment: Payment, terms: ReceiptTerms) -> Cart:
    """Return the items of the payment's first receipt."""
    whole = receipt_content(ports, payment, terms, came_of(payment).kopecks)
    return msgspec.convert(msgspec.to_builtins(whole), type=Cart)


def _add(
    ports: Ports,
    unit: Unit,
    payment: Payment,
    writing: Writing,
    kind: ReceiptKind,
    cause: str,
    cart: Cart,
    **more: str | None,
) -> FiscalReceipt:
    private = ports.vault.encrypt(msgspec.json.encode(cart), receipt_aad(receipt_id(kind, cause)))
    return add_receipt(
        ports,
        unit,
        payment,
        writing,
        kind=kind,
        cause=cause,
        amount=Rub(cart.kopecks),
        moved_at=ports.clock.now(),
        private=private,
        **more,
    )


def _no_payment() -> Refusal:
    return Refusal("PAYMENT_NOT_FOUND", "No payment of this id")


@in_test_time(Payment)
async def correct_receipt(ports: Ports, payment_id: str, kind: str, *, order: str | None = None) -> FiscalReceipt:
    """Write a correction of a payment's receipt, as an operator, with the items of the payment. `order`: number of the
    tax authority's order; without it the seller corrects on its own.

    Raises: Refusal PAYMENT_NOT_FOUND; VALIDATION_ERROR; INVALID_STATE if the payment has no receipts, or no register is
    connected that writes corrections.
    """
    if kind not in CORRECTIONS:
        raise shape_error("kind", f"must be one of: {', '.join(CORRECTIONS)}")
    number = None if order is None else printed("order", order, 32)

    async def work(unit: Unit) -> FiscalReceipt:
        payment = await unit[Payment].get(payment_id) if ids.is_prefixed(ids.PAYMENT, payment_id) else None
        if payment is None:
            raise _no_payment()
        writing, terms = _register(ports, payment), payment.receipt
        if writing is None or terms is None or payment.paid_at is None:
            raise Refusal("INVALID_STATE", "Corrections need a paid live payment with receipts, and a register")
        cart, word = _cart(ports, payment, terms), ReceiptKind(kind)
        before = await unit[FiscalReceipt].find(payment_id=payment.id, order="created_at")
        cause = f"{payment.id}:{sum(each.kind is word for each in before)}"
        return _add(ports, unit, payment, writing, word, cause, cart, correction_order=number)

    return await retrying(ports.storage, work, again_on=_RACES)

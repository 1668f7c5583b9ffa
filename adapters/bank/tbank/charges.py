"""Charges by a mandate (docs/providers/tbank.md "Subscriptions").

A charge is a payment of its own. Its PaymentId is noted before the charge, because T-Bank charges a PaymentId only
once.
"""

from ....ports.bank import InvoiceStatus
from ....ports.faults import Refused, Unavailable
from ....ports.mandates import MANDATE_REVOKED, ChargeRequest, ChargeState, ChargeStatus
from .errors import FAILURES, failure_of
from .mandates import RECURRENT, Mandates, confirmed, read_mandate
from .orders import CHARGE, Order, Orders, described
from .receipts import receipt_fields
from .references import find_reference

_SOON = 15.0
"""Seconds until the next poll of a charge in processing."""


class Charges:
    """Charge bound payers."""

    def __init__(self, orders: Orders, mandates: Mandates) -> None:
        self._orders = orders
        self._calls = orders.calls
        self._mandates = mandates

    async def charge(self, request: ChargeRequest) -> ChargeState:
        """Implement ports/mandates.py: MandateBank.charge."""
        orders = self._orders
        order = await orders.notes.read(request.operation)
        if order is None or (order.payment_id is None and order.failure is None):
            order = await self._begin(request, order)
        state = await self._present(order)
        return await self._debit(request, order) if state is None else state

    async def search_charge(self, request: ChargeRequest) -> ChargeState | None:
        """Implement ports/searching.py. A payment that was opened but not charged does not count as a charge."""
        orders = self._orders
        order = await orders.notes.read(request.operation)
        if order is not None and order.kind != CHARGE:
            return None
        if order is None or (order.payment_id is None and order.failure is None):
            reference = find_reference(request.reference)
            if reference is None:
                return None
            payment = await orders.find(self._calls.terminals.of_key(reference.terminal), request.operation)
            if payment is None or payment.status == "NEW":
                return None
            fresh = Order(kind=CHARGE, terminal=reference.terminal, kopecks=request.amount_kopecks)
            order, _ = await orders.begin(request.operation, fresh)
            order = await orders.change(request.operation, order, payment_id=payment.id)
        return await self._present(order)

    async def _begin(self, request: ChargeRequest, order: Order | None) -> Order:
        """Note the charge and open its payment. T-Bank may never have seen it. Raises: Refused when the mandate does
        not exist."""
        if request.amount_kopecks <= 0:
            raise Refused("tbank: a charge of nothing", reason="amount")
        reference, key = read_mandate(request.reference)
        fresh = Order(kind=CHARGE, terminal=reference.terminal, kopecks=request.amount_kopecks)
        if not await self._mandates.may_charge(reference, key, request.token):
            order, _ = await self._orders.begin(request.operation, fresh)
            return await self._orders.change(request.operation, order, failure=MANDATE_REVOKED)
        order, _ = await self._orders.begin(request.operation, fresh)
        # Always look for an existing payment first: a second payment for the same order would be a second debit.
        receipt = receipt_fields(request.receipt, request.amount_kopecks, self._orders.calls.receipts)
        fields = {"Description": described(request.purpose), **receipt, **RECURRENT}
        return await self._orders.open(request.operation, order, fields, may_exist=True)

    async def _debit(self, request: ChargeRequest, order: Order) -> ChargeState:
        """Charge the noted payment."""
        terminal = self._calls.terminals.of_key(order.terminal)
        fields = {"PaymentId": order.payment_id, "AccountToken": request.token}
        said = await self._calls.say(terminal, "ChargeQr", fields, writes=True)
        if not said.is_done and said.code in FAILURES:
            noted = await self._orders.change(request.operation, order, failure=FAILURES[said.code])
            return _failed(noted)
        if not said.is_done and said.code != "3037":  # 3037: charged before, so read its state
            raise self._calls.fault(terminal, said, writes=True)
        try:
            state = await self._present(order)
        except Unavailable:
            state = None
        return state or ChargeState(reference=str(order.reference()), status=ChargeStatus.PROCESSING, check_after=_SOON)

    async def _present(self, order: Order) -> ChargeState | None:
        """Return the charge's state, or None if its payment is not charged yet."""
        if order.failure is not None:
            return _failed(order)
        reference, name = order.reference(), str(order.reference())
        status, word, order_name, amount = await self._orders.status(reference)
        if word == "NEW":
            return None
        if status is InvoiceStatus.PAID:
            transfer = await self._orders.transfer(reference, order_name, confirmed(word, amount))
            return ChargeState(reference=name, status=ChargeStatus.PAID, transfer=transfer)
        if status in (InvoiceStatus.OPEN, InvoiceStatus.PROCESSING):
            return ChargeState(reference=name, status=ChargeStatus.PROCESSING, check_after=_SOON)
        failure = failure_of(await self._orders.error(reference, order_name))
        if status is InvoiceStatus.EXPIRED:
            failure = "expired"
        return ChargeState(reference=name, status=ChargeStatus.FAILED, failure=failure)


def _failed(order: Order) -> ChargeState:
    return ChargeState(reference=str(order.reference()), status=ChargeStatus.FAILED, failure=order.failure)

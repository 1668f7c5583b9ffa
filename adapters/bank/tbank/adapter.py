"""T-Bank as a bank: payments, refunds and mandates by SBP (docs/providers/tbank.md)."""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from ....ports.bank import (
    BankCapabilities,
    Invoice,
    InvoiceRequest,
    InvoiceState,
    InvoiceStatus,
    RefundRequest,
    RefundState,
)
from ....ports.faults import NotSupported, Refused
from ....ports.mandates import Binding, BindingRequest, ChargeRequest, ChargeState, MandateState
from ....ports.notifications import InboundNotification, Received
from ....ports.receipts import ReceiptNeed, ReceiptRequest, ReceiptState
from ....ports.tools import Tools
from .calls import Calls
from .charges import Charges
from .errors import failure_of
from .mandates import Mandates
from .notifications import NETWORKS, receive
from .orders import INVOICE, NAME, Order, Orders, deadline, described, invoice
from .receipts import ReceiptFormat, receipt_fields
from .references import read_reference
from .refund_book import Book
from .refunds import Refunds
from .settings import PRODUCTION
from .terminals import Terminal, Terminals
from .till import Till

_CAN = BankCapabilities(
    own_lifetime=True,
    min_kopecks=10_00,
    max_kopecks=1_000_000_00,
    sends_notifications=True,
    polls_per_minute=300,
    repeat_window=timedelta(hours=48),
)
"""T-Bank has no idempotency keys, so this adapter itself prevents double execution, without a time limit. After the
repeat window an operation without an outcome is left to an operator (docs/providers/tbank.md "Refunds")."""

_NOBODY = "00000000-0000-0000-0000-000000000000"


class TBank:
    """Implement ports/bank.py: Bank, ports/mandates.py: MandateBank and ports/receipts.py: ReceiptBank. Every operation
    is searched by its request."""

    def __init__(
        self,
        tools: Tools,
        *,
        terminal: Terminal | None,
        by_owner: Mapping[str, Terminal] | None = None,
        base_url: str = PRODUCTION,
        mandates: bool = False,
        receipts: ReceiptNeed = ReceiptNeed.NONE,
        receipt_format: ReceiptFormat = ReceiptFormat.V1_2,
    ) -> None:
        """`by_owner`: terminals of merchants, by our ids of their accounts, shops or terminals. `mandates`: whether
        payers may be bound and charged by these terminals. `receipts`: whether a cash register is connected to them; if
        so, T-Bank accepts nothing without a receipt. `receipt_format`: the format of that register.

        Raises: NotConfigured.
        """
        self._can = msgspec.structs.replace(_CAN, receipts=receipts, mandates=mandates, mandate_charges=mandates)
        self._terminals = Terminals(terminal, by_owner)
        self._calls = Calls(base_url, self._terminals, tools.clock, receipt_format)
        self._orders = Orders(self._calls, tools)
        self._refunds = Refunds(self._calls, tools.operation_log(NAME, Book), tools.clock)
        self._till = Till(self._calls, NAME, tools)
        self._mandates = Mandates(self._orders, tools)
        self._charges = Charges(self._orders, self._mandates)

    def __repr__(self) -> str:
        return f"<TBank, {self._terminals!r}>"

    @property
    def name(self) -> str:
        return NAME

    @property
    def capabilities(self) -> BankCapabilities:
        return self._can

    @property
    def notification_networks(self) -> tuple[str, ...]:
        return NETWORKS

    @property
    def clock_skew(self) -> float | None:
        return self._calls.http.clock_skew

    async def receive(self, notification: InboundNotification) -> Received:
        return await receive(notification, self._terminals, self._orders, self._refunds, self._till)

    async def find_receipt(self, request: ReceiptRequest) -> ReceiptState | None:
        return await self._till.find(request)

    async def write_receipt(self, request: ReceiptRequest) -> ReceiptState:
        return await self._till.close_prepayment(request)

    async def create_invoice(self, request: InvoiceRequest) -> Invoice:
        if request.amount_kopecks <= 0:
            raise Refused("tbank: an invoice for nothing", reason="amount")
        orders, operation = self._orders, request.operation
        receipt = receipt_fields(request.receipt, request.amount_kopecks, self._calls.receipts)
        terminal = self._terminals.of_request(request)
        due, text = deadline(request.expires_at, orders.clock.now())
        fresh = Order(kind=INVOICE, terminal=terminal.key, kopecks=request.amount_kopecks, expires_at=due)
        order, is_new = await orders.begin(operation, fresh)
        if order.kind != INVOICE:
            raise Refused("tbank: the operation is something else", reason="operation")
        if order.link is not None:
            return invoice(order)
        fields = {"Description": described(request.purpose), "RedirectDueDate": text, **receipt}
        if request.return_url is not None:
            fields |= {"SuccessURL": request.return_url, "FailURL": request.return_url}
        opened = await orders.open(operation, order, fields, may_exist=not is_new)
        return invoice(await orders.show(operation, opened, writes=True))

    async def search_invoice(self, request: InvoiceRequest, since: datetime) -> Invoice | None:  # noqa: ARG002
        """T-Bank finds our OrderId without a time limit, so `since` is not needed."""
        orders, operation = self._orders, request.operation
        order = await orders.notes.read(operation)
        if order is not None and (order.link is not None or order.kind != INVOICE):
            return invoice(order) if order.kind == INVOICE else None
        terminal = self._terminals.of_request(request) if order is None else self._terminals.of_key(order.terminal)
        payment = await orders.find(terminal, operation)
        if payment is None:
            return None
        if order is None:
            fresh = Order(kind=INVOICE, terminal=terminal.key, kopecks=request.amount_kopecks)
            order, _ = await orders.begin(operation, fresh)
        order = await orders.change(operation, order, payment_id=payment.id)
        status, _, _, _ = await orders.status(order.reference())
        if status is not InvoiceStatus.OPEN:
            return invoice(order)
        return invoice(await orders.show(operation, order, writes=False))

    async def invoice_state(self, reference: str) -> InvoiceState:
        known = read_reference(reference)
        status, word, order, amount = await self._orders.status(known)
        if status is InvoiceStatus.PAID:
            confirmed = amount if word == "CONFIRMED" else None
            transfer = await self._orders.transfer(known, order, confirmed)
            return InvoiceState(reference=reference, status=status, transfers=(transfer,))
        if status is not InvoiceStatus.FAILED:
            return InvoiceState(reference=reference, status=status)
        if await self._orders.is_payable(order):
            return InvoiceState(reference=reference, status=InvoiceStatus.OPEN)
        failure = failure_of(await self._orders.error(known, order))
        return InvoiceState(reference=reference, status=status, failure=failure)

    async def refund(self, request: RefundRequest) -> RefundState:
        return await self._refunds.refund(request)

    async def search_refund(self, request: RefundRequest, since: datetime) -> RefundState | None:  # noqa: ARG002
        """T-Bank shows the payment's current state, so `since` is not needed."""
        return await self._refunds.search(request)

    async def bind(self, request: BindingRequest) -> Binding:
        return await self._binding().bind(request)

    async def search_binding(self, request: BindingRequest, since: datetime) -> Binding | None:  # noqa: ARG002
        return await self._binding().search_binding(request)

    async def mandate_state(self, reference: str) -> MandateState:
        return await self._binding().mandate_state(reference)

    async def charge(self, request: ChargeRequest) -> ChargeState:
        return await self._charging().charge(request)

    async def search_charge(self, request: ChargeRequest, since: datetime) -> ChargeState | None:  # noqa: ARG002
        return await self._charging().search_charge(request)

    async def revoke(self, reference: str) -> None:
        await self._binding().revoke(reference)

    def _binding(self) -> Mandates:
        if not self._can.mandates:
            raise NotSupported("tbank: the terminals bind nobody")
        return self._mandates

    def _charging(self) -> Charges:
        if not self._can.mandates:
            raise NotSupported("tbank: the terminals bind nobody")
        return self._charges

    async def find_invoice(self, operation: str) -> Invoice | None:
        raise NotSupported(f"{operation}: {_SEARCHED}")

    async def find_refund(self, operation: str) -> RefundState | None:
        raise NotSupported(f"{operation}: {_SEARCHED}")

    async def find_binding(self, operation: str) -> Binding | None:
        raise NotSupported(f"{operation}: {_SEARCHED}")

    async def find_charge(self, operation: str) -> ChargeState | None:
        raise NotSupported(f"{operation}: {_SEARCHED}")

    async def check(self) -> None:
        """Ask for a non-existent order with each terminal."""
        await asyncio.gather(*(self._calls.order(terminal, _NOBODY) for terminal in self._terminals.all()))

    async def close(self) -> None:
        await self._calls.close()


_SEARCHED = "T-Bank finds an operation by what was asked for (ports/searching.py)"

"""Orders at T-Bank and their notes: a payment is created by Init, its QR by GetQr, and CheckOrder finds it again
(docs/providers/tbank.md "How it works")."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import msgspec

from ....ports.bank import Invoice, InvoiceKind, InvoiceStatus, Transfer
from ....ports.clock import Clock
from ....ports.faults import OutcomeUnknown, Refused, Unavailable
from ....ports.operation_log import OperationLog
from ....ports.tools import Tools
from .calls import Calls
from .errors import DUPLICATE
from .references import Reference, order_id
from .terminals import Terminal
from .wire import OrderPayment, kopecks_of, status_of

NAME = "tbank"

_MOSCOW = timezone(timedelta(hours=3))
_SHORTEST = timedelta(seconds=90)
_LONGEST = timedelta(days=89)
"""T-Bank accepts deadlines from one minute to 90 days ahead, by its own clock."""
_PURPOSE = 140
NO_LINK = "https://qr.nspk.ru/"
"""Replaces the lost link of a payment that can no longer be paid."""

INVOICE, BINDING, CHARGE = "invoice", "binding", "charge"


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """Note of an operation that T-Bank knows by an OrderId or by a binding's RequestKey."""

    kind: str
    terminal: str
    kopecks: int
    payment_id: str | None = None
    """Written once, before anything is done with the payment. If Init created two payments of one order, only this one
    counts."""
    link: str | None = None
    request_key: str | None = None
    expires_at: datetime | None = None
    failure: str | None = None
    """Reason of a definitely refused charge. It is final, whatever T-Bank would answer to a repeat."""

    def reference(self) -> Reference:
        return Reference(
            terminal=self.terminal,
            payment_id=self.payment_id or "0",
            kopecks=self.kopecks,
            request_key=self.request_key if self.kind == BINDING else None,
        )


class Paid(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a payment's money, written once, because T-Bank does not report the time of payment."""

    at: datetime
    kopecks: int
    sbp_id: str | None = None


class Orders:
    """Open payments and read their state."""

    def __init__(self, calls: Calls, tools: Tools) -> None:
        self.calls = calls
        self.clock: Clock = tools.clock
        self.notes: OperationLog[Order] = tools.operation_log(NAME, Order)
        self._facts: OperationLog[Paid] = tools.operation_log(NAME, Paid)
        self._names: OperationLog[str] = tools.operation_log(NAME, str)

    async def begin(self, operation: str, order: Order) -> tuple[Order, bool]:
        """Note the order before T-Bank gets it, together with the index entry of its OrderId. Return True if the order
        was not noted before."""
        back = self._names.note(f"={order_id(operation)}", operation)
        return await self.notes.start(operation, order, back)

    async def name(self, reference: str, operation: str) -> None:
        """Index a reference of T-Bank by our operation, unless it is indexed already."""
        await self._names.start(f"={reference}", operation)

    async def whose(self, reference: str) -> str | None:
        """Return the operation of an OrderId or another indexed reference."""
        return await self._names.read(f"={reference}")

    async def change(self, operation: str, order: Order, **values: Any) -> Order:
        """Set fields of the note that are still empty. Fields that another call wrote first stay; return the resulting
        note."""

        def filled(present: Order) -> Order:
            new = {name: value for name, value in values.items() if getattr(present, name) is None}
            return msgspec.structs.replace(present, **new)

        changed = await self.notes.change(operation, filled)
        return filled(order) if changed is None else changed

    async def open(self, operation: str, order: Order, fields: Mapping[str, Any], *, may_exist: bool) -> Order:
        """Open the payment of an order and note its PaymentId. `may_exist`: look for an existing payment before
        creating one.

        Raises: Refused, OutcomeUnknown, Unavailable, NotConfigured.
        """
        if order.payment_id is not None:
            return order
        terminal = self.calls.terminals.of_key(order.terminal)
        found = await self.find(terminal, operation) if may_exist else None
        payment_id = found.id if found is not None else await self._init(terminal, operation, order, fields)
        return await self.change(operation, order, payment_id=payment_id)

    async def show(self, operation: str, order: Order, *, writes: bool) -> Order:
        """Read the link of an open payment by GetQr, and for a binding also its RequestKey.

        Raises: the same as `open`.
        """
        terminal = self.calls.terminals.of_key(order.terminal)
        fields = {"PaymentId": order.payment_id, "DataType": "PAYLOAD"}
        said = await self.calls.do(terminal, "GetQr", fields, writes=writes)
        if not said.data:
            raise (OutcomeUnknown if writes else Unavailable)("tbank: a QR without its link")
        if order.kind != BINDING:
            return await self.change(operation, order, link=said.data)
        if said.request_key is None:
            raise Refused("tbank: the terminal binds no accounts by SBP", reason="binding")
        shown = await self.change(operation, order, link=said.data, request_key=str(said.request_key))
        await self.name(f"{order.terminal}/{shown.request_key}", operation)
        return shown

    async def find(self, terminal: Terminal, operation: str) -> OrderPayment | None:
        """Return the payment of an operation, the most advanced one if there are several. Raises: Unavailable,
        NotConfigured."""
        payments = await self.calls.order(terminal, order_id(operation))
        return min(payments, key=_rank, default=None)

    async def _init(self, terminal: Terminal, operation: str, order: Order, fields: Mapping[str, Any]) -> str:
        sent = {"Amount": order.kopecks, "OrderId": order_id(operation), **fields}
        said = await self.calls.say(terminal, "Init", sent, writes=True)
        if said.is_done:
            if said.payment_id is None:
                raise OutcomeUnknown("tbank: a payment without its id")
            return str(said.payment_id)
        if said.code in DUPLICATE:
            try:
                found = await self.find(terminal, operation)
            except Unavailable as fault:
                raise OutcomeUnknown("tbank: the order is there, and is not shown now") from fault
            if found is None:
                raise OutcomeUnknown("tbank: the order is there, and is not found")
            return found.id
        raise self.calls.fault(terminal, said, writes=True)

    async def status(self, reference: Reference) -> tuple[InvoiceStatus, str, str | None, int | None]:
        """Return the payment's status for the port, T-Bank's own status, the OrderId and the amount. Raises: Refused
        `not_found`; Unavailable; NotConfigured."""
        said = await self.calls.state(reference)
        return status_of(said.status), said.status or "", said.order_id, kopecks_of(said.amount)

    async def transfer(self, reference: Reference, order: str | None, confirmed: int | None) -> Transfer:
        """Return the transfer of a paid payment, always with the same values. `confirmed`: the amount that T-Bank shows
        while nothing has been refunded."""
        noted = await self._facts.read(_paid(reference))
        if noted is None:
            shown = await self._shown(reference, order)
            first = Paid(
                at=await self._came(order),
                kopecks=reference.kopecks if confirmed is None else confirmed,
                sbp_id=None if shown is None else shown.sbp_payment_id,
            )
            noted, _ = await self._facts.start(_paid(reference), first)
        return Transfer(
            id=reference.payment_id, amount_kopecks=noted.kopecks, at=noted.at, sbp_operation_id=noted.sbp_id
        )

    async def _came(self, order: str | None) -> datetime:
        """Return the payment time of money that is seen for the first time. T-Bank does not report it, but it was not
        after the link's deadline."""
        now, ends_at = self.clock.now(), await self._deadline(order)
        return now if ends_at is None else min(now, ends_at)

    async def is_payable(self, order: str | None) -> bool:
        """Report whether the order's QR is still valid. T-Bank does not say whether a payer may try again after
        REJECTED, so the payment stays open until the deadline."""
        ends_at = await self._deadline(order)
        return ends_at is not None and self.clock.now() < ends_at

    async def _deadline(self, order: str | None) -> datetime | None:
        operation = None if order is None else await self.whose(order)
        noted = None if operation is None else await self.notes.read(operation)
        return None if noted is None else noted.expires_at

    async def error(self, reference: Reference, order: str | None) -> str | None:
        """Return the error code of a failed payment from CheckOrder."""
        shown = await self._shown(reference, order)
        return None if shown is None or shown.error_code is None else str(shown.error_code)

    async def _shown(self, reference: Reference, order: str | None) -> OrderPayment | None:
        if order is None:
            return None
        terminal = self.calls.terminals.of_key(reference.terminal)
        payments = await self.calls.order(terminal, order)
        return next((each for each in payments if each.id == reference.payment_id), None)


def deadline(expires_at: datetime, now: datetime) -> tuple[datetime, str]:
    """Return the accepted deadline nearest to the requested one, and its text for T-Bank."""
    at = min(max(expires_at, now + _SHORTEST), now + _LONGEST).replace(microsecond=0)
    return at, at.astimezone(_MOSCOW).isoformat()


def described(purpose: str) -> str:
    """Return a description of at most 140 characters that can be encoded in UTF-8."""
    return purpose.encode("utf-8", "replace").decode()[:_PURPOSE]


def invoice(order: Order) -> Invoice:
    """Build the invoice that payers see."""
    reference = str(order.reference())
    if order.link is None:
        return Invoice(reference=reference, link=NO_LINK, kind=InvoiceKind.PAGE, expires_at=order.expires_at)
    return Invoice(reference=reference, payload=order.link, link=order.link, expires_at=order.expires_at)


def _paid(reference: Reference) -> str:
    return f"paid/{reference.payment}"


_FURTHEST: Sequence[InvoiceStatus] = (
    InvoiceStatus.PAID,
    InvoiceStatus.PROCESSING,
    InvoiceStatus.OPEN,
    InvoiceStatus.FAILED,
    InvoiceStatus.CANCELLED,
    InvoiceStatus.EXPIRED,
)


def _rank(payment: OrderPayment) -> tuple[int, bool, int, str]:
    """Sort key: paid payments first, then payments that a payer may have seen, then older payments."""
    return (
        _FURTHEST.index(status_of(payment.status)),
        payment.status == "NEW",
        len(payment.id),
        payment.id,
    )

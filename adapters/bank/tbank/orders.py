"""Orders at T-Bank: a payment by Init, its QR by GetQr, found again by CheckOrder; and what is noted of each
(docs/providers/tbank.md "How it works")."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import msgspec

from ....ports.bank import Invoice, InvoiceKind, InvoiceStatus, Transfer
from ....ports.clock import Clock
from ....ports.faults import OutcomeUnknown, Refused, Unavailable
from ....ports.notebook import Notebook
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
"""T-Bank takes deadlines from a minute to 90 days ahead, by its own clock."""
_PURPOSE = 140
NO_LINK = "https://qr.nspk.ru/"
"""Stands for the link of a payment that nobody can pay any more, where it was forgotten."""

INVOICE, BINDING, CHARGE = "invoice", "binding", "charge"


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What is noted of an operation that T-Bank knows by an OrderId, or a binding's RequestKey."""

    kind: str
    terminal: str
    kopecks: int
    payment_id: str | None = None
    """Written once, before anything is done with the payment: of two that Init made of one order, this one counts."""
    link: str | None = None
    request_key: str | None = None
    expires_at: datetime | None = None
    failure: str | None = None
    """Of a charge that was refused for good: it stays so, whatever T-Bank would say to a repeat."""

    def reference(self) -> Reference:
        return Reference(
            terminal=self.terminal,
            payment_id=self.payment_id or "0",
            kopecks=self.kopecks,
            request_key=self.request_key if self.kind == BINDING else None,
        )


class Paid(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a payment's money, written once: T-Bank tells no moment."""

    at: datetime
    kopecks: int
    sbp_id: str | None = None


class Orders:
    """Opens payments and reads how they stand."""

    def __init__(self, calls: Calls, tools: Tools) -> None:
        self.calls = calls
        self.clock: Clock = tools.clock
        self.notes: Notebook[Order] = tools.notebook(NAME, Order)
        self._facts: Notebook[Paid] = tools.notebook(NAME, Paid)
        self._names: Notebook[str] = tools.notebook(NAME, str)

    async def begin(self, operation: str, order: Order) -> tuple[Order, bool]:
        """Write down that T-Bank may get it, with the way back from its OrderId; True when nobody had."""
        back = self._names.note(f"={order_id(operation)}", operation)
        return await self.notes.start(operation, order, back)

    async def name(self, reference: str, operation: str) -> None:
        """Write down whose a reference of T-Bank's is, where nobody did."""
        await self._names.start(f"={reference}", operation)

    async def whose(self, reference: str) -> str | None:
        """The operation that has an OrderId, or another reference."""
        return await self._names.read(f"={reference}")

    async def change(self, operation: str, order: Order, **values: Any) -> Order:
        """Note what is not noted yet; what somebody else wrote first stays, and is returned."""

        def filled(present: Order) -> Order:
            new = {name: value for name, value in values.items() if getattr(present, name) is None}
            return msgspec.structs.replace(present, **new)

        changed = await self.notes.change(operation, filled)
        return filled(order) if changed is None else changed

    async def open(self, operation: str, order: Order, fields: Mapping[str, Any], *, may_exist: bool) -> Order:
        """Have the payment of an order, and its PaymentId noted. `may_exist`: it is asked for before it is made.

        Raises: Refused, OutcomeUnknown, Unavailable, NotConfigured.
        """
        if order.payment_id is not None:
            return order
        terminal = self.calls.terminals.of_key(order.terminal)
        found = await self.find(terminal, operation) if may_exist else None
        payment_id = found.id if found is not None else await self._init(terminal, operation, order, fields)
        return await self.change(operation, order, payment_id=payment_id)

    async def show(self, operation: str, order: Order, *, writes: bool) -> Order:
        """Have the link of a payment that is open, by GetQr; of a binding also its RequestKey.

        Raises: as `open`.
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
        """The payment of an operation: of several the one that is furthest. Raises: Unavailable, NotConfigured."""
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
        """How the payment stands: in the port's word and T-Bank's, with its OrderId and amount. Raises: Refused
        `not_found`; Unavailable; NotConfigured."""
        said = await self.calls.state(reference)
        return status_of(said.status), said.status or "", said.order_id, kopecks_of(said.amount)

    async def transfer(self, reference: Reference, order: str | None, confirmed: int | None) -> Transfer:
        """The money of a payment that is paid, each time the same. `confirmed`: T-Bank's own amount of it, as long as
        nothing went back."""
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
        """Return when money came that is seen for the first time. T-Bank tells no moment, but it was not after the
        deadline of its link."""
        now, ends_at = self.clock.now(), await self._deadline(order)
        return now if ends_at is None else min(now, ends_at)

    async def is_payable(self, order: str | None) -> bool:
        """Whether the QR of an order lives still. T-Bank does not say whether a payer may try again after REJECTED, so
        until then nothing is over."""
        ends_at = await self._deadline(order)
        return ends_at is not None and self.clock.now() < ends_at

    async def _deadline(self, order: str | None) -> datetime | None:
        operation = None if order is None else await self.whose(order)
        noted = None if operation is None else await self.notes.read(operation)
        return None if noted is None else noted.expires_at

    async def error(self, reference: Reference, order: str | None) -> str | None:
        """Why a payment failed: CheckOrder's code."""
        shown = await self._shown(reference, order)
        return None if shown is None or shown.error_code is None else str(shown.error_code)

    async def _shown(self, reference: Reference, order: str | None) -> OrderPayment | None:
        if order is None:
            return None
        terminal = self.calls.terminals.of_key(reference.terminal)
        payments = await self.calls.order(terminal, order)
        return next((each for each in payments if each.id == reference.payment_id), None)


def deadline(expires_at: datetime, now: datetime) -> tuple[datetime, str]:
    """The deadline that T-Bank takes, nearest to the wish; and as it is written."""
    at = min(max(expires_at, now + _SHORTEST), now + _LONGEST).replace(microsecond=0)
    return at, at.astimezone(_MOSCOW).isoformat()


def described(purpose: str) -> str:
    """A description of at most 140 characters, that fits into UTF-8."""
    return purpose.encode("utf-8", "replace").decode()[:_PURPOSE]


def invoice(order: Order) -> Invoice:
    """What payers are shown."""
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
    """Money first, then what a payer may have seen, then the one that was made first."""
    return (
        _FURTHEST.index(status_of(payment.status)),
        payment.status == "NEW",
        len(payment.id),
        payment.id,
    )

"""Bindings of payers' accounts, each identified by its RequestKey (docs/providers/tbank.md "Subscriptions")."""

import hashlib
import hmac
from typing import Any

import msgspec

from ....ports.bank import InvoiceStatus, Transfer
from ....ports.faults import OutcomeUnknown, Refused, Unavailable
from ....ports.mandates import (
    Binding,
    BindingRequest,
    MandateState,
    MandateStatus,
)
from ....ports.operation_log import OperationLog
from ....ports.tools import Tools
from .errors import NOT_FOUND, failure_of
from .orders import BINDING, NAME, Order, Orders, deadline, described
from .receipts import receipt_fields
from .references import NO_PAYMENT, Reference, order_id, read_reference
from .wire import Said

_M = MandateStatus
_SOON = 15.0
"""Seconds until the next poll of a charge in processing."""
RECURRENT = {"Recurrent": "Y", "DATA": {"QR": "true"}}


class Mandate(msgspec.Struct, frozen=True, kw_only=True):
    """Note of a mandate. It stores only a digest of the token."""

    was_active: bool = False
    digest: str | None = None
    is_revoked: bool = False
    """Set when we ended the mandate, because T-Bank has no call for it."""


class Mandates:
    """Bind payers and answer for their mandates."""

    def __init__(self, orders: Orders, tools: Tools) -> None:
        self._orders = orders
        self._calls = orders.calls
        self._notes: OperationLog[Mandate] = tools.operation_log(NAME, Mandate)

    async def bind(self, request: BindingRequest) -> Binding:
        """Implement ports/mandates.py: MandateBank.bind."""
        first = request.first_charge_kopecks
        if first is not None and first <= 0:
            raise Refused("tbank: a first charge of nothing", reason="amount")
        orders = self._orders
        terminal = self._calls.terminals.of_request(request)
        due, text = deadline(request.expires_at, orders.clock.now())
        order, is_new = await orders.begin(
            request.operation, Order(kind=BINDING, terminal=terminal.key, kopecks=first or 0, expires_at=due)
        )
        if order.request_key is not None:
            return _binding(order)
        receipt = receipt_fields(request.receipt, first or 0, self._calls.receipts)
        fields: dict[str, Any] = {"Description": described(request.purpose), "RedirectDueDate": text}
        if first is None:
            return _binding(await self._link(request.operation, order, fields))
        customer = {"CustomerKey": order_id(request.operation)}
        fields |= {**customer, **receipt, **RECURRENT}
        opened = await orders.open(request.operation, order, fields, may_exist=not is_new)
        return _binding(await orders.show(request.operation, opened, writes=True))

    async def search_binding(self, request: BindingRequest) -> Binding | None:
        """Implement ports/searching.py. A binding without a first charge is found by our note alone; without the note
        nobody has its link."""
        orders = self._orders
        order = await orders.notes.read(request.operation)
        if order is not None and order.request_key is not None:
            return _binding(order)
        if request.first_charge_kopecks is None or (order is not None and order.kind != BINDING):
            return None
        terminal = self._calls.terminals.of_request(request)
        payment = await orders.find(terminal, request.operation)
        if payment is None:
            return None
        if order is None:
            found = Order(kind=BINDING, terminal=terminal.key, kopecks=request.first_charge_kopecks)
            order, _ = await orders.begin(request.operation, found)
        order = await orders.change(request.operation, order, payment_id=payment.id)
        return _binding(await orders.show(request.operation, order, writes=False))

    async def mandate_state(self, text: str) -> MandateState:
        """Implement ports/mandates.py: MandateBank.mandate_state."""
        reference, key = read_mandate(text)
        said = await self._account(reference, key)
        note = await self._noted(reference, said)
        order = await self._order(reference)
        status = _status(said, note)
        failure: str | None = None
        transfers: tuple[Transfer, ...] = ()
        if reference.payment_id != NO_PAYMENT:
            status, failure, transfers = await self._first_charge(reference, status)
        if status is _M.REFUSED and failure is None:
            failure = "declined_by_bank"
        is_shown = status is _M.OPEN and order is not None
        return MandateState(
            reference=text,
            status=status,
            link=order.link if is_shown and order else None,
            payload=order.link if is_shown and order else None,
            token=said.account_token if status in (_M.ACTIVE, _M.LOST) else None,
            transfers=transfers,
            failure=failure,
        )

    async def revoke(self, text: str) -> None:
        """Implement ports/mandates.py: MandateBank.revoke. The end is noted here; T-Bank is only asked whether the
        binding exists."""
        reference, key = read_mandate(text)
        await self._account(reference, key)
        await self._note(reference, is_revoked=True)

    async def may_charge(self, reference: Reference, key: str, token: str) -> bool:
        """Report whether the mandate may be charged; False if it has ended. T-Bank is asked only if the token's digest
        was never noted.

        Raises: Refused `not_found` when the mandate does not exist or has another token.
        """
        note = await self._notes.read(_key(reference))
        if note is None or note.digest is None:
            said = await self._account(reference, key)
            note = await self._noted(reference, said)
            if _status(said, note) not in (_M.ACTIVE, _M.LOST, _M.ENDED):
                raise Refused("tbank: nobody confirmed the binding", reason="not_found")
        if note.digest is not None and not hmac.compare_digest(note.digest, _digest(token)):
            raise Refused("tbank: the mandate has another token", reason="not_found")
        return not note.is_revoked

    async def _link(self, operation: str, order: Order, fields: dict[str, Any]) -> Order:
        """Create the QR of a binding without a first charge. Two concurrent calls create two QRs; the first one noted
        is shown."""
        terminal = self._calls.terminals.of_key(order.terminal)
        said = await self._calls.do(terminal, "AddAccountQr", {**fields, "DataType": "PAYLOAD"}, writes=True)
        if not said.data or said.request_key is None:
            raise OutcomeUnknown("tbank: a binding without its link")
        shown = await self._orders.change(operation, order, link=said.data, request_key=str(said.request_key))
        await self._orders.name(f"{order.terminal}/{shown.request_key}", operation)
        return shown

    async def _first_charge(
        self, reference: Reference, status: MandateStatus
    ) -> tuple[MandateStatus, str | None, tuple[Transfer, ...]]:
        """Combine the mandate's status with the outcome of its first charge."""
        paid, word, order, amount = await self._orders.status(reference)
        if paid is InvoiceStatus.PAID:
            return status, None, (await self._orders.transfer(reference, order, confirmed(word, amount)),)
        if status is not _M.OPEN:
            return status, None, ()
        if paid is InvoiceStatus.FAILED and not await self._orders.is_payable(order):
            return _M.REFUSED, failure_of(await self._orders.error(reference, order)), ()
        if paid in (InvoiceStatus.EXPIRED, InvoiceStatus.CANCELLED):
            return _M.CLOSED, None, ()
        return status, None, ()

    async def _account(self, reference: Reference, key: str) -> Said:
        """Read the binding's state at T-Bank. Raises: Refused `not_found`; Unavailable; NotConfigured."""
        terminal = self._calls.terminals.of_key(reference.terminal)
        fields = {"RequestKey": int(key) if key.isdigit() else key}
        said = await self._calls.say(terminal, "GetAddAccountQrState", fields, writes=False)
        if said.is_done and said.status is not None:
            return said
        if not said.is_done and (said.code in NOT_FOUND or said.code in ("3012", "5031")):
            raise Refused("tbank: no such binding", reason="not_found")
        if said.is_done:
            raise Unavailable("tbank: a binding without its status")
        raise self._calls.fault(terminal, said, writes=False)

    async def _noted(self, reference: Reference, said: Said) -> Mandate:
        """Update the note from T-Bank's answer and return it."""
        if said.status == "ACTIVE" and said.account_token:
            return await self._note(reference, was_active=True, digest=_digest(said.account_token))
        return await self._notes.read(_key(reference)) or Mandate()

    async def _note(self, reference: Reference, **values: Any) -> Mandate:
        key = _key(reference)
        note, is_new = await self._notes.start(key, Mandate(**values))
        if is_new:
            return note
        return await self._notes.change(key, lambda page: msgspec.structs.replace(page, **values)) or note

    async def _order(self, reference: Reference) -> Order | None:
        operation = await self._orders.whose(f"{reference.terminal}/{reference.request_key}")
        return None if operation is None else await self._orders.notes.read(operation)


def read_mandate(text: str) -> tuple[Reference, str]:
    """Return a binding's reference and RequestKey. Raises: Refused `not_found`."""
    reference = read_reference(text)
    if reference.request_key is None:
        raise Refused("tbank: no such binding", reason="not_found")
    return reference, reference.request_key


def _status(said: Said, note: Mandate) -> MandateStatus:
    """Derive the mandate's status. T-Bank shows INACTIVE both for a refused binding and for a mandate that was switched
    off."""
    if said.status == "ACTIVE":
        return _M.ENDED if note.is_revoked else _M.ACTIVE
    if said.status == "INACTIVE":
        if note.was_active or said.account_token:
            return _M.ENDED if note.is_revoked else _M.LOST
        return _M.CLOSED if note.is_revoked else _M.REFUSED
    return _M.CLOSED if note.is_revoked else _M.OPEN


def _binding(order: Order) -> Binding:
    return Binding(reference=str(order.reference()), link=order.link, payload=order.link)


def confirmed(word: str, amount: int | None) -> int | None:
    return amount if word == "CONFIRMED" else None


def _key(reference: Reference) -> str:
    return f"mandate/{reference.terminal}/{reference.request_key}"


def _digest(token: str) -> str:
    return hashlib.sha256(f"tbank account token\0{token}".encode()).hexdigest()

"""Bindings and mandates: a payment that saves its method, or a method that is saved without a payment."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

import msgspec

from ....ports.bank import InvoiceKind
from ....ports.faults import NotSupported, Refused, Unavailable
from ....ports.mandates import Binding, BindingRequest, MandateState, MandateStatus
from .bodies import BINDING, confirmation, key_of, marks
from .core import FIRST, METHOD, Note, mandate_key
from .invoices import PAYMENTS, Invoices
from .shops import Shop
from .wire import Confirmation, Method, Payment, SavedMethod, failure_of, reason_of, transfers_of

_METHODS = "/payment_methods"
_OPEN_CHECK = 30.0
"""Seconds. No notification is sent when a payer refuses a binding without a payment."""
_REFUSED = "declined_by_bank"
"""YooKassa does not say why a method was not saved."""
_OVER = {
    MandateStatus.OPEN: MandateStatus.CLOSED,
    MandateStatus.ACTIVE: MandateStatus.ENDED,
    MandateStatus.LOST: MandateStatus.ENDED,
}
"""Status of a mandate after we ended it."""


class Mandates(Invoices):
    """Implement the binding methods of the ports MandateBank and SearchesBindings."""

    async def bind(self, request: BindingRequest) -> Binding:
        """Create a first charge that saves its method, or only the saved method."""
        self._check_mandates()
        shop, operation = self._shops.of_request(request), request.operation
        metadata = marks(BINDING, operation)
        if request.first_charge_kopecks is not None:
            body = self._sbp(request, request.first_charge_kopecks, metadata, save_payment_method=True)
            write = self._calls.write(shop, PAYMENTS, key_of(operation), body, Payment)
            return self._first(shop, await self._saving(write))
        asked = {
            "type": "sbp",
            "confirmation": confirmation(request.return_url, page=self._page),
            "metadata": metadata,
        }
        made = await self._saving(self._calls.write(shop, _METHODS, key_of(operation), asked, SavedMethod))
        reference = shop.reference(f"{METHOD}.{made.id}")
        link = (made.confirmation or Confirmation()).link
        with suppress(Unavailable):  # a lost note is harmless: the repeat saves the method again, and no money moves
            await self._notes.remember(operation, Note(kind=BINDING, reference=reference, link=link), reference=made.id)
        return self._binding(reference, link)

    async def find_binding(self, operation: str) -> Binding | None:
        """Raises: NotSupported, because bindings are searched by request."""
        raise NotSupported(f"yookassa finds {operation} in a list alone")

    async def search_binding(self, request: BindingRequest, since: datetime) -> Binding | None:
        """Find the binding in the list of payments. Methods have no list, so a method that was saved without a payment
        is found by its note."""
        self._check_mandates()
        note = await self._notes.read(request.operation)
        if note is not None and note.kind == BINDING:
            return self._binding(note.reference, note.link)
        if request.first_charge_kopecks is None:
            return None
        shop = self._shops.of_request(request)
        found = await self._calls.search(shop, PAYMENTS, BINDING, request.operation, since, Payment)
        return self._first(shop, found[0]) if found else None

    async def mandate_state(self, reference: str) -> MandateState:
        """Derive the mandate's state from the payment, the method and our notes of both."""
        self._check_mandates()
        shop, theirs = self._shops.of_reference(reference)
        kind, _, bound = theirs.partition(".")
        note = await self._notes.read(mandate_key(reference)) or Note()
        if kind == FIRST:
            state = await self._of_payment(shop, bound, reference, note)
        elif kind == METHOD:
            state = await self._of_method(shop, bound, reference, note)
        else:
            await self._calls.find(shop, f"{_METHODS}/{theirs}", SavedMethod)
            state = None
        if state is None:
            raise Refused("yookassa knows no such binding of ours", reason="not_found")
        if note.is_ended:
            return msgspec.structs.replace(state, status=_OVER.get(state.status, state.status), token=None)
        if state.status is MandateStatus.ACTIVE and not note.was_active:
            with suppress(Unavailable):
                await self._mark(reference, lambda note: msgspec.structs.replace(note, was_active=True))
        return state

    async def revoke(self, reference: str) -> None:
        """Note that the mandate must not be charged any more. YooKassa has no call that ends a mandate."""
        await self.mandate_state(reference)
        await self._mark(reference, lambda note: msgspec.structs.replace(note, is_ended=True))

    def _first(self, shop: Shop, made: Payment) -> Binding:
        return self._binding(shop.reference(f"{FIRST}.{made.id}"), (made.confirmation or Confirmation()).link)

    def _binding(self, reference: str, link: str | None) -> Binding:
        payload, kind = self._led(link)
        return Binding(reference=reference, link=link, payload=payload, kind=kind)

    def _led(self, link: str | None) -> tuple[str | None, InvoiceKind]:
        """Return the QR's content and the kind of the link."""
        return (link, InvoiceKind.QR) if self._page is None else (None, InvoiceKind.PAGE)

    async def _mark(self, reference: str, turn: Callable[[Note], Note]) -> None:
        key = mandate_key(reference)
        _, is_new = await self._notes.start(key, turn(Note(kind=BINDING)))
        if not is_new:
            await self._notes.change(key, turn)

    async def _of_payment(self, shop: Shop, bound: str, reference: str, note: Note) -> MandateState | None:
        made = await self._calls.find(shop, f"{PAYMENTS}/{bound}", Payment)
        if made is None:
            return None
        if made.status == "canceled":
            if reason_of(made.cancellation_details) == "expired_on_confirmation":
                return MandateState(reference=reference, status=MandateStatus.CLOSED)
            return MandateState(reference=reference, status=MandateStatus.REFUSED, failure=failure_of(made))
        if made.status != "succeeded":
            link = (made.confirmation or Confirmation()).link
            payload, kind = self._led(link)
            return MandateState(reference=reference, status=MandateStatus.OPEN, link=link, payload=payload, kind=kind)
        method, transfers = made.payment_method or Method(), transfers_of(made)
        present = None if method.id is None else await self._calls.find(shop, f"{_METHODS}/{method.id}", SavedMethod)
        if present is not None:
            method = Method(id=present.id, saved=present.saved, status=present.status)
        state = _saved(reference, method, bound, was_active=note.was_active)
        return msgspec.structs.replace(state, transfers=transfers)

    async def _of_method(self, shop: Shop, bound: str, reference: str, note: Note) -> MandateState | None:
        present = await self._calls.find(shop, f"{_METHODS}/{bound}", SavedMethod)
        if present is None:
            return None
        method = Method(id=present.id, saved=present.saved, status=present.status)
        state = _saved(reference, method, bound, was_active=note.was_active)
        if state.status is not MandateStatus.OPEN:
            return state
        link = (present.confirmation or Confirmation()).link
        payload, kind = self._led(link)
        return msgspec.structs.replace(state, link=link, payload=payload, kind=kind, check_after=_OPEN_CHECK)


def _saved(reference: str, method: Method, bound: str, *, was_active: bool) -> MandateState:
    """Derive the mandate's state from its method. `bound` is YooKassa's id of the binding. It is part of the token, so
    that the token of one mandate is not accepted for another."""
    if method.saved and method.status in ("active", None):
        return MandateState(reference=reference, status=MandateStatus.ACTIVE, token=f"{bound}.{method.id}")
    if was_active:
        return MandateState(reference=reference, status=MandateStatus.LOST)
    if method.status == "pending":
        return MandateState(reference=reference, status=MandateStatus.OPEN)
    return MandateState(reference=reference, status=MandateStatus.REFUSED, failure=_REFUSED)

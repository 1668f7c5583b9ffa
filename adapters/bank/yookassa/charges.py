"""Charges by mandate: payments by a saved method, without the payer."""

from contextlib import suppress
from datetime import datetime

from ....ports.faults import NotSupported, Refused, Unavailable
from ....ports.mandates import MANDATE_REVOKED, ChargeRequest, ChargeState, ChargeStatus
from .bodies import CHARGE, key_of, marks, payment
from .core import FIRST, METHOD, Core, Note, mandate_key
from .invoices import PAYMENTS
from .wire import Payment, charge_state


class Charges(Core):
    """Implement the charge methods of the ports MandateBank and SearchesCharges."""

    async def charge(self, request: ChargeRequest) -> ChargeState:
        """Charge the mandate. Return the noted state for a repeat, and refuse a mandate that we have ended, because
        YooKassa itself ends none."""
        self._check_mandates()
        noted = await self._noted(request.operation)
        if noted is not None:
            return noted
        shop, theirs = self._shops.of_reference(request.reference)
        kind, _, bound = theirs.partition(".")
        whose, _, method = request.token.partition(".")
        if kind not in (FIRST, METHOD) or not bound or whose != bound or not method:
            raise Refused("yookassa: no such mandate, or not its token", reason="not_found")
        metadata = marks(CHARGE, request.operation)
        body = payment(request.amount_kopecks, request.purpose, metadata, request.receipt, payment_method_id=method)
        if await self._is_ended(request.reference):
            refused = Note(kind=CHARGE, reference=f"none.{key_of(request.operation)}", failure=MANDATE_REVOKED)
            await self._notes.remember(request.operation, refused)
            return _never_sent(refused)
        made = await self._saving(self._calls.write(shop, PAYMENTS, key_of(request.operation), body, Payment))
        reference = shop.reference(made.id)
        with suppress(Unavailable):  # a search finds it without the note, only more slowly
            await self._notes.remember(request.operation, Note(kind=CHARGE, reference=reference))
        return charge_state(reference, made)

    async def find_charge(self, operation: str) -> ChargeState | None:
        """Raises: NotSupported, because charges are searched by request."""
        raise NotSupported(f"yookassa finds {operation} in a list alone")

    async def search_charge(self, request: ChargeRequest, since: datetime) -> ChargeState | None:
        """Find a charge by its note, else in the list of payments."""
        self._check_mandates()
        noted = await self._noted(request.operation)
        if noted is not None:
            return noted
        shop, _ = self._shops.of_reference(request.reference)
        found = await self._calls.search(shop, PAYMENTS, CHARGE, request.operation, since, Payment)
        return charge_state(shop.reference(found[0].id), found[0]) if found else None

    async def _noted(self, operation: str) -> ChargeState | None:
        note = await self._notes.read(operation)
        if note is None or note.kind != CHARGE:
            return None
        if note.failure is not None:
            return _never_sent(note)
        shop, theirs = self._shops.of_reference(note.reference)
        made = await self._calls.find(shop, f"{PAYMENTS}/{theirs}", Payment)
        return None if made is None else charge_state(note.reference, made)

    async def _is_ended(self, reference: str) -> bool:
        note = await self._notes.read(mandate_key(reference))
        return note is not None and note.is_ended


def _never_sent(note: Note) -> ChargeState:
    return ChargeState(reference=note.reference, status=ChargeStatus.FAILED, failure=note.failure)

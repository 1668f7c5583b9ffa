"""Full and partial refunds."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from ....ports.bank import RefundRequest, RefundState, SentRefund
from ....ports.faults import NO_ANSWER, NotSupported, Refused
from .bodies import REFUND, comment, is_of, key_of, marks, operation_of
from .calls import since_moment
from .core import FIRST, Core
from .invoices import PAYMENTS
from .receipts import receipt_of
from .shops import Shop
from .wire import Payment, Refund, refund_state, roubles

REFUNDS = "/refunds"


class Refunds(Core):
    """Implement the refund methods of the ports Bank, SearchesRefunds and ListingBank."""

    async def refund(self, request: RefundRequest) -> RefundState:
        """Send back money of an invoice, a binding or a charge."""
        shop, theirs = self._payment_of(request.reference)
        amount = roubles(request.amount_kopecks)
        if request.transfer not in (None, theirs):
            raise Refused("yookassa: another payment's transfer", reason="not_found")
        body = {
            "payment_id": theirs,
            "amount": amount,
            "description": comment(request.operation),
            "metadata": marks(REFUND, request.operation, reference=request.reference),
            **receipt_of(request.receipt),
        }
        try:
            sent = await self._calls.write(shop, REFUNDS, key_of(request.operation), body, Refund)
        except Refused as refused:
            raise await self._told(shop, theirs, refused) from None
        return refund_state(sent)

    async def find_refund(self, operation: str) -> RefundState | None:
        """Raises: NotSupported, because refunds are searched by request."""
        raise NotSupported(f"yookassa finds {operation} in a list alone")

    async def search_refund(self, request: RefundRequest, since: datetime) -> RefundState | None:  # noqa: ARG002
        """Find the refund among the few refunds of its payment, so `since` is not needed."""
        shop, theirs = self._payment_of(request.reference)
        async for seen, raw in self._calls.listed(shop, REFUNDS, {"payment_id": theirs}):
            if is_of(seen, REFUND, request.operation):
                return refund_state(msgspec.json.decode(raw, type=Refund))
        return None

    async def refunds_since(self, moment: datetime) -> Sequence[SentRefund]:
        """Return the refunds of all shops since this moment. Refunds made in YooKassa's cabinet are not our operations
        and are left out."""
        sent: list[SentRefund] = []
        for shop in self._shops.all():
            async for seen, raw in self._calls.listed(shop, REFUNDS, since_moment(moment)):
                refund, operation = msgspec.json.decode(raw, type=Refund), operation_of(seen)
                if operation is None or refund.status == "canceled":
                    continue
                reference = seen.metadata.get("reference") or shop.reference(refund.payment_id)
                sent.append(SentRefund(operation=operation, reference=reference, amount_kopecks=refund.amount.kopecks))
        return sent

    def _payment_of(self, reference: str) -> tuple[Shop, str]:
        """Return the payment to refund. For a binding it is the first payment."""
        shop, theirs = self._shops.of_reference(reference)
        return shop, theirs.removeprefix(f"{FIRST}.")

    async def _told(self, shop: Shop, theirs: str, refused: Refused) -> Refused:
        """Find the reason of a refusal by reading the payment, because YooKassa uses one code for all reasons."""
        try:
            paid = await self._calls.find(shop, f"{PAYMENTS}/{theirs}", Payment)
        except NO_ANSWER:
            return refused
        if paid is None:
            return Refused(str(refused), reason="not_found")
        if paid.status != "succeeded":
            return Refused(str(refused), reason="not_paid")
        return refused if refused.reason not in _VAGUE else Refused(str(refused), reason="amount")


_VAGUE = ("invalid_request", "not_found")
"""Reasons that say nothing about an existing, paid payment. For such a payment they mean that too little money is
left."""

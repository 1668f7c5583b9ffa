"""Invoices: SBP payments by a QR that we show or a page of YooKassa."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ....ports.bank import Invoice, InvoiceKind, InvoiceRequest, InvoiceState
from ....ports.faults import NotSupported, Refused
from ....ports.mandates import BindingRequest
from .bodies import INVOICE, confirmation, key_of, marks, payment
from .core import Core
from .shops import Shop
from .wire import LIFETIME, Confirmation, Payment, invoice_state

PAYMENTS = "/payments"
_OVER = "https://yoomoney.ru/checkout/payments/v2/contract?orderId="
"""Page of YooKassa about a payment. It replaces the link of a payment that no longer waits for a payer."""


class Invoices(Core):
    """Implement the invoice methods of the ports Bank and SearchesInvoices."""

    async def create_invoice(self, request: InvoiceRequest) -> Invoice:
        """Create the payment in one call and without a note, because its metadata contains our operation."""
        shop = self._shops.of_request(request)
        body = self._sbp(request, request.amount_kopecks, marks(INVOICE, request.operation))
        made = await self._calls.write(shop, PAYMENTS, key_of(request.operation), body, Payment)
        return _invoice(shop, made)

    async def find_invoice(self, operation: str) -> Invoice | None:
        """Raises: NotSupported, because invoices are searched by request."""
        raise NotSupported(f"yookassa finds {operation} in a list alone")

    async def search_invoice(self, request: InvoiceRequest, since: datetime) -> Invoice | None:
        """Find the invoice in the list of payments."""
        shop = self._shops.of_request(request)
        found = await self._calls.search(shop, PAYMENTS, INVOICE, request.operation, since, Payment)
        return _invoice(shop, found[0]) if found else None

    async def invoice_state(self, reference: str) -> InvoiceState:
        """Read the invoice's state in one call."""
        shop, theirs = self._shops.of_reference(reference)
        found = await self._calls.find(shop, f"{PAYMENTS}/{theirs}", Payment)
        if found is None:
            raise Refused("yookassa knows no such payment", reason="not_found")
        return invoice_state(reference, found)

    def _sbp(
        self, request: InvoiceRequest | BindingRequest, kopecks: int, metadata: Mapping[str, str], **more: Any
    ) -> dict[str, Any]:
        """Build the body of a payment that its payer confirms."""
        return payment(
            kopecks,
            request.purpose,
            metadata,
            request.receipt,
            payment_method_data={"type": "sbp"},
            confirmation=confirmation(request.return_url, page=self._page),
            **more,
        )


def _invoice(shop: Shop, made: Payment) -> Invoice:
    shown = made.confirmation or Confirmation()
    return Invoice(
        reference=shop.reference(made.id),
        kind=InvoiceKind.PAGE if shown.confirmation_data is None else InvoiceKind.QR,
        payload=shown.confirmation_data,
        link=shown.link or f"{_OVER}{made.id}",
        expires_at=made.created_at + LIFETIME,
    )

"""Raiffeisenbank as the port Bank: invoices by dynamic QR, their cancellation, and refunds."""

from contextlib import suppress
from datetime import datetime

import msgspec

from ....ports.bank import (
    BankCapabilities,
    Invoice,
    InvoiceRequest,
    InvoiceState,
    InvoiceStatus,
    RefundRequest,
    RefundState,
    RefundStatus,
)
from ....ports.faults import NotSupported, OutcomeUnknown, Refused, Unavailable
from ....ports.receipts import ReceiptNeed
from .charges import RaiffeisenCharges
from .core import Page
from .errors import ALREADY_PAID, WRONG_STATUS, BankRefused
from .merchants import NAME, Pair, Reference
from .notifications import RaiffeisenNotifications
from .payouts import PAYOUT_MOST, RaiffeisenPayouts
from .wire import (
    INFO_MOST,
    STATEMENT_MOST,
    Order,
    Qr,
    QrState,
    RefundInfo,
    number_of,
    refund_status,
    roubles,
    settled_by_payment,
    settled_by_qr,
    spelled,
    wire_moment,
)


class RaiffeisenBank(RaiffeisenCharges, RaiffeisenPayouts, RaiffeisenNotifications):
    """Implement Bank, CancellingBank, MandateBank, RemittanceBank, ReceiptBank, Notifications and Checkable.

    Invoices, refunds, bindings and charges are searched by their request, because each may belong to another merchant
    (ports/searching.py).
    """

    @property
    def capabilities(self) -> BankCapabilities:
        """Return the capabilities. The bank sends no notifications of expired or declined payments, so deadlines are
        polled."""
        return BankCapabilities(
            own_lifetime=True,
            cancels_invoices=True,
            receipts=self._till.need,
            receipts_apart=self._till.need is not ReceiptNeed.NONE,
            rewrites_receipts=True,
            mandates=self._subscriptions,
            mandate_charges=self._subscriptions,
            remittances=self._payouts is not None,
            remittance_max_kopecks=PAYOUT_MOST,
            sends_notifications=True,
        )

    async def create_invoice(self, request: InvoiceRequest) -> Invoice:
        """Register a dynamic QR.

        The bank registers a second QR for an unpaid order. So only the first QR noted for an order is ever handed out.
        """
        if request.amount_kopecks <= 0:
            raise Refused(f"{NAME}: an invoice is of more than nothing", reason="amount")
        self._check_receipt(request.receipt, request.amount_kopecks)
        owner, pair = self._pair_of(request.account, request.shop, request.terminal)
        order = number_of(request.operation)
        page, is_new = await self._notes.start(order, Page(request.operation), durable=False)
        if page.qr_id is not None:
            return _invoice(owner, order, page)
        found = None if is_new else await self._registered(pair, order)
        return await self._handed_out(owner, order, found or await self._register(pair, order, request))

    async def search_invoice(self, request: InvoiceRequest, since: datetime) -> Invoice | None:  # noqa: ARG002 - by id
        """Read the invoice from our note, or ask the bank by the order's number."""
        owner, pair = self._pair_of(request.account, request.shop, request.terminal)
        order = number_of(request.operation)
        page = await self._notes.read(order)
        if page is None or page.qr_id is None:
            page = await self._registered(pair, order)
        return None if page is None else _invoice(owner, order, page)

    async def find_invoice(self, operation: str) -> Invoice | None:
        raise NotSupported(f"{NAME}: {operation} is searched by its request")

    async def invoice_state(self, reference: str) -> InvoiceState:
        """Read the invoice's state: one request if the payment decides it, otherwise two."""
        qr = Reference.read(reference)
        who = self._whose(qr)
        info = await self._payment(who, qr.first)
        if info is None:
            raise Refused(f"{NAME}: no such QR", reason="not_found")
        status = settled_by_payment(info.payment_status)
        if status is None:
            qr_status = "EXPIRED" if self._is_over(info) else await self._qr_status(who, qr.first)
            status = settled_by_qr(info.payment_status, qr_status)
        return InvoiceState(
            reference=reference,
            status=status,
            transfers=(self._transfer(info),) if status is InvoiceStatus.PAID else (),
            failure="declined_by_bank" if status is InvoiceStatus.FAILED else None,
        )

    async def _qr_status(self, who: Pair, qr_id: str) -> str:
        shown = await self._api.ask(who, QrState, "sbp", "v2", "qrs", qr_id)
        if shown is None:
            raise Refused(f"{NAME}: no such QR", reason="not_found")
        return shown.qr_status

    async def cancel_invoice(self, reference: str) -> None:
        """Close an unpaid QR."""
        qr = Reference.read(reference)
        who = self._whose(qr)
        try:
            await self._api.delete(who, "sbp", "v2", "qrs", qr.first)
        except BankRefused as refusal:
            if refusal.code != WRONG_STATUS:
                raise
            shown = await self._api.ask(who, QrState, "sbp", "v2", "qrs", qr.first)
            if shown is None or shown.qr_status not in ("CANCELLED", "EXPIRED"):
                raise

    async def refund(self, request: RefundRequest) -> RefundState:
        """Send money back.

        The bank does not document its answer to a repeated refund id. So ask for the refund by our id before sending
        it, and again after a refusal.
        """
        paid = Reference.read(request.reference)
        found = await self._refunded(paid, request.operation)
        if found is not None:
            return found
        if request.amount_kopecks <= 0:
            raise Refused(f"{NAME}: a refund is of more than nothing", reason="amount")
        if request.receipt is not None:
            self._check_receipt(request.receipt, request.amount_kopecks)
        if not paid.order or request.transfer not in (None, paid.order):
            raise Refused(f"{NAME}: no such payment", reason="not_found")
        body = {
            "refundId": number_of(request.operation),
            "order": paid.order,
            "amount": roubles(request.amount_kopecks),
        }
        try:
            return _refund(await self._api.send(self._whose(paid), RefundInfo, body, "sbp", "v1", "refund"))
        except BankRefused as refusal:
            found = await self._after_refusal(paid, request.operation)
            if found is not None:
                return found
            raise await self._why_not(paid, refusal) from None

    async def search_refund(self, request: RefundRequest, since: datetime) -> RefundState | None:  # noqa: ARG002 - by id
        return await self._refunded(Reference.read(request.reference), request.operation)

    async def find_refund(self, operation: str) -> RefundState | None:
        raise NotSupported(f"{NAME}: {operation} is searched by its request")

    async def _refunded(self, paid: Reference, operation: str) -> RefundState | None:
        found = await self._api.ask(self._whose(paid), RefundInfo, "sbp", "v1", "refund", number_of(operation))
        return None if found is None else _refund(found)

    async def _after_refusal(self, paid: Reference, operation: str) -> RefundState | None:
        """Find out whether the bank refused a repeat. Raises: OutcomeUnknown if the bank does not answer."""
        try:
            return await self._refunded(paid, operation)
        except Unavailable:
            raise OutcomeUnknown(f"{NAME}: a refund was refused, and may be a repeat") from None

    async def _why_not(self, paid: Reference, refusal: BankRefused) -> Refused:
        """Turn a refusal into the port's reason. The bank's code does not show whether the payment is unpaid, so ask
        for it."""
        if refusal.reason == "amount":
            return refusal
        with suppress(Unavailable):
            if not await self._is_paid(paid):
                return Refused(str(refusal), reason="not_paid")
        return refusal

    async def _is_paid(self, paid: Reference) -> bool:
        if paid.kind == "order":
            charge = await self._charged(paid)
            return charge is not None and charge.payment_status == "SUCCESS"
        info = await self._payment(self._whose(paid), paid.first if paid.kind == "qr" else paid.second)
        return info is not None and info.payment_status == "SUCCESS"

    async def _register(self, pair: Pair, order: str, request: InvoiceRequest) -> Page:
        back = request.return_url
        body = {
            "qrType": "QRDynamic",
            "sbpMerchantId": pair.merchant_id,
            "order": order,
            "amount": roubles(request.amount_kopecks),
            "currency": "RUB",
            "qrExpirationDate": wire_moment(request.expires_at),
            "additionalInfo": spelled(request.purpose, INFO_MOST),
            "paymentDetails": spelled(request.purpose, STATEMENT_MOST),
            "redirectUrl": back if back is not None and back.startswith("https://") else None,
        }
        try:
            qr = await self._api.send(pair, Qr, body, "sbp", "v2", "qrs")
        except BankRefused as refusal:
            if refusal.code != ALREADY_PAID:
                raise
            found = await self._registered(pair, order)
            if found is None:
                raise OutcomeUnknown(f"{NAME}: the order is paid, and its QR is not found") from None
            return found
        return Page(request.operation, qr.qr_id, qr.payload)

    async def _registered(self, pair: Pair, order: str) -> Page | None:
        """Find the QR of an order at the bank, by our number."""
        known = await self._api.ask(pair, Order, "payment", "v1", "orders", order)
        if known is None:
            return None
        qr = await self._api.ask(pair, QrState, "sbp", "v2", "qrs", known.qr.id)
        return None if qr is None else Page("", qr.qr_id, qr.payload)

    async def _handed_out(self, owner: str, order: str, made: Page) -> Invoice:
        """Note the QR unless another one was noted for this order, and return the noted one."""

        def keep_first(page: Page) -> Page:
            if page.qr_id is not None:
                return page
            return msgspec.structs.replace(page, qr_id=made.qr_id, payload=made.payload)

        page = None
        with suppress(Unavailable):  # the QR can also be found at the bank, by the order
            page = await self._notes.change(order, keep_first)
        return _invoice(owner, order, page or made)


def _invoice(owner: str, order: str, page: Page) -> Invoice:
    reference = Reference("qr", owner, page.qr_id or "", order)
    return Invoice(reference=reference.text, payload=page.payload, link=page.payload or "")


def _refund(said: RefundInfo) -> RefundState:
    status = refund_status(said.refund_status)
    return RefundState(status=status, failure="declined_by_bank" if status is RefundStatus.FAILED else None)

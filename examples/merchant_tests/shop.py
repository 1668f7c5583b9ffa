"""A small shop that takes payments: the code that a merchant writes around the client."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from uuid import NAMESPACE_URL, uuid5

from cambist.client import (
    Client,
    NotVerified,
    PaymentStatus,
    PaymentStatusChanged,
    RefundChanged,
    verify_webhook,
)


class Shop:
    """Orders and their states. A real shop stores all of this in its database."""

    def __init__(self, client: Client, webhook_secrets: Sequence[str]) -> None:
        self.orders: dict[str, str] = {}
        self._client = client
        self._secrets = webhook_secrets
        self._seen: set[str] = set()

    def checkout(self, order_id: str, amount_rub: Decimal) -> str:
        """Return the payment page of an order. The idempotency key is derived from the order, so repeated calls create
        only one payment."""
        key = uuid5(NAMESPACE_URL, f"https://shop.example/orders/{order_id}")
        payment = self._client.payments.create(amount_rub=amount_rub, external_id=order_id, idempotency_key=key)
        self.orders.setdefault(order_id, "unpaid")
        return payment.payment_url

    def give_back(self, order_id: str) -> None:
        """Refund the whole order."""
        [payment] = self._client.payments.list(external_id=order_id).data
        self._client.refunds.create(payment_id=payment.id, external_id=order_id)

    def on_webhook(self, headers: Mapping[str, str], body: bytes) -> int:
        """Receive a webhook, and return the HTTP status to answer."""
        try:
            webhook = verify_webhook(headers, body, self._secrets)
        except NotVerified:
            return 400
        if webhook.id not in self._seen:
            match webhook.event:
                case PaymentStatusChanged(external_id=str(order), status=PaymentStatus.PAID):
                    self.orders[order] = "paid"
                case PaymentStatusChanged(external_id=str(order), status=PaymentStatus.EXPIRED):
                    self.orders[order] = "expired"
                case RefundChanged(external_id=str(order), event="refund.completed"):
                    self.orders[order] = "given back"
            self._seen.add(webhook.id)
        return 200

"""Models of the app: a mixin for orders, and the events that were handled."""

import uuid
from decimal import Decimal
from typing import Any, Self

from django.db import models, transaction

from ...core.domain.payments.payments import PaymentStatus

PAID = (PaymentStatus.PAID.value, PaymentStatus.SETTLED.value)
ENDED = (PaymentStatus.FAILED.value, PaymentStatus.EXPIRED.value, PaymentStatus.CANCELLED.value)


class Event(models.Model):
    """An event that was handled, so that a repeat is recognised by its id."""

    id = models.CharField(primary_key=True, max_length=64)
    type = models.CharField(max_length=64)
    object_id = models.CharField(max_length=64, db_index=True)
    sequence = models.BigIntegerField()
    received_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        app_label = "cambist"
        ordering = ("-received_at",)

    def __str__(self) -> str:
        return f"{self.type} of {self.object_id}"


class PayableMixin(models.Model):
    """An order that a payer pays. Inherit from it, write `cambist_amount`, and make a migration of your own app."""

    payment_key = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    """Idempotency key of the payment. It is stored before the first call, so a repeat finds the same payment."""
    payment_id = models.CharField(max_length=64, blank=True, default="", db_index=True, editable=False)
    payment_url = models.URLField(max_length=500, blank=True, default="", editable=False)
    payment_status = models.CharField(max_length=32, blank=True, default="", editable=False)
    payment_sequence = models.BigIntegerField(default=0, editable=False)
    """Sequence of the last event. An older event does not change the status."""

    class Meta:
        abstract = True

    def cambist_amount(self) -> Decimal | int | str:
        """Return the price in roubles."""
        raise NotImplementedError(f"{type(self).__name__} needs a method cambist_amount")

    def cambist_fields(self) -> dict[str, Any]:
        """Return further fields of the payment, such as `description` and `client_email`. The order's number is the
        default `external_id`."""
        return {"external_id": str(self.pk)}

    @property
    def is_paid(self) -> bool:
        """Whether the payer's money has arrived."""
        return self.payment_status in PAID

    def pay(self) -> str:
        """Create the payment, or find the one of an earlier call, and return the payer's page.

        After a payment that failed, expired or was cancelled, create another. The order must be saved.
        Raises: `cambist.client.ApiError`, or `cambist.Refusal` with an embedded service.
        """
        from .gateway import gateway

        self._locked(lambda order: order._renew_key())
        payment_id, url, status = gateway().create(self)

        def keep(order: Self) -> None:
            # An event may have been quicker than the answer, or money may have come for a former payment.
            if order.payment_id in ("", payment_id):
                order.payment_status = order.payment_status or status
                order.payment_id, order.payment_url = payment_id, url

        self._locked(keep)
        return url

    def refund(self, amount: Decimal | int | str | None = None, *, key: uuid.UUID | None = None) -> str:
        """Refund the rest of the payment, or a part of it, and return the refund's id. A repeat with the same key
        returns the same refund. Raises: as `pay`."""
        from .gateway import gateway

        return gateway().refund(self.payment_id, amount, key or uuid.uuid4())

    def refresh_payment(self) -> str:
        """Read the payment's state from the service, for an event that was missed, and return its status. Signals are
        sent as for an event. Raises: as `pay`."""
        from .events import apply_state
        from .gateway import gateway

        if self.payment_id:
            apply_state(self, gateway().status(self.payment_id))
        return self.payment_status

    def _renew_key(self) -> None:
        if self.payment_status in ENDED:
            self.payment_key, self.payment_sequence = uuid.uuid4(), 0
            self.payment_id = self.payment_url = self.payment_status = ""

    def _locked(self, change: Any) -> None:
        """Change the stored row under its lock, and this object with it."""
        with transaction.atomic():
            order = type(self)._default_manager.select_for_update().get(pk=self.pk)
            change(order)
            order.save(update_fields=FIELDS)
        for name in FIELDS:
            setattr(self, name, getattr(order, name))


FIELDS = ("payment_key", "payment_id", "payment_url", "payment_status", "payment_sequence")
"""Fields of the mixin. Only the app writes them."""

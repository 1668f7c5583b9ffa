"""Handling of events: once each, and in the order of their object."""

from typing import Any

from django.apps import apps
from django.db import transaction

from .models import ENDED, PAID, Event, PayableMixin
from .signals import payment_changed, payment_failed, payment_paid, refund_changed


def handle(event_id: str, sequence: int, event_type: str, payload: Any) -> bool:
    """Handle an event and return whether it was new. All that it changes, and what receivers of its signals change in
    the same database, is committed together. Raises: exceptions of receivers; then nothing is stored."""
    payment_id = getattr(payload, "payment_id", None)
    about = getattr(payload, "refund_id", None) or payment_id or ""
    with transaction.atomic():
        _, is_new = Event.objects.get_or_create(
            id=event_id, defaults={"type": event_type, "object_id": about, "sequence": sequence}
        )
        if not is_new or payment_id is None:
            return is_new
        order = _order_of(payment_id, getattr(payload, "metadata", None))
        if order is None:
            return True
        if event_type.startswith("refund."):
            refund_changed.send(sender=type(order), instance=order, event=payload)
        elif event_type == "payment.status_changed" and sequence > order.payment_sequence:
            order.payment_id, order.payment_sequence = payment_id, sequence
            _move(order, str(payload.status), payload)
    return True


def apply_state(order: PayableMixin, status: str) -> None:
    """Give an order the status that the service reports, and send the signals if it is another one."""
    with transaction.atomic():
        present = type(order)._default_manager.select_for_update().get(pk=order.pk)
        if status != present.payment_status:
            _move(present, status, None)
    order.payment_status = status


def _move(order: PayableMixin, status: str, payload: Any) -> None:
    was_paid, order.payment_status = order.is_paid, status
    order.save(update_fields=("payment_id", "payment_status", "payment_sequence"))
    payment_changed.send(sender=type(order), instance=order, event=payload)
    if order.is_paid and not was_paid:
        payment_paid.send(sender=type(order), instance=order, event=payload)
    elif status in ENDED:
        payment_failed.send(sender=type(order), instance=order, event=payload)


def _order_of(payment_id: str, metadata: Any) -> PayableMixin | None:
    """Return the order of a payment, locked. The event may be quicker than the answer to the call that made the
    payment; then its metadata name the order."""
    for model in apps.get_models():
        if issubclass(model, PayableMixin):
            rows = model._default_manager.select_for_update()
            order = rows.filter(payment_id=payment_id).first()
            if order is None and isinstance(metadata, dict):
                label, _, key = str(metadata.get("django", "")).partition(":")
                if label == model._meta.label_lower and key:
                    order = rows.filter(pk=key, payment_id="").first()
            if order is not None:
                found: PayableMixin = order
                return found
    return None


__all__ = ["PAID", "apply_state", "handle"]

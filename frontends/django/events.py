"""Handling of events: once each, and in the order of their object."""

import logging
from typing import Any

from django.apps import apps
from django.db import transaction

from ...core.domain.payments.payments import PaymentStatus
from .models import ENDED, FIELDS, PAID, Event, PayableMixin
from .signals import payment_changed, payment_failed, payment_paid, refund_changed

log = logging.getLogger("cambist.django")


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
        if event_type.startswith("refund."):
            order = _order_of(payment_id)
            if order is not None:
                refund_changed.send(sender=type(order), instance=order, event=payload)
        elif event_type == "payment.status_changed":
            order = _order_of(payment_id) or _order_named_by(payload)
            if order is not None and sequence > order.payment_sequence:
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
    """Change the status and send the signals. A payment whose refund came back was paid before."""
    before, order.payment_status = order.payment_status, status
    order.save(update_fields=FIELDS)
    payment_changed.send(sender=type(order), instance=order, event=payload)
    if order.is_paid and before not in (*PAID, PaymentStatus.REFUNDED.value):
        payment_paid.send(sender=type(order), instance=order, event=payload)
    elif status in ENDED and before not in ENDED:
        payment_failed.send(sender=type(order), instance=order, event=payload)


def _order_of(payment_id: str) -> PayableMixin | None:
    """Return the order whose present payment this is, locked."""
    for model in _models():
        order: PayableMixin | None = model._default_manager.select_for_update().filter(payment_id=payment_id).first()
        if order is not None:
            return order
    return None


def _order_named_by(payload: Any) -> PayableMixin | None:
    """Return the order that the metadata of an unknown payment name, locked, if the event is for it.

    The event may be quicker than the answer to the call that made the payment. Or a payer paid a payment that had
    expired, after another took its place: then the order is paid by the former one.
    """
    label, _, rest = str((payload.metadata or {}).get("django", "")).partition(":")
    pk, _, key = rest.rpartition(":")
    model = next((each for each in _models() if each._meta.label_lower == label), None)
    order: PayableMixin | None = None
    if model is not None and pk:
        order = model._default_manager.select_for_update().filter(pk=pk).first()
    if order is None:
        return None
    if not order.payment_id and str(order.payment_key) == key:
        return order
    if str(payload.status) not in PAID:
        return None
    if order.is_paid:
        log.error("%s is paid twice, by %s and %s: refund one", order, order.payment_id, payload.payment_id)
        return None
    order.payment_key, order.payment_url, order.payment_sequence = key, "", 0
    return order


def _models() -> list[type[PayableMixin]]:
    return [model for model in apps.get_models() if issubclass(model, PayableMixin)]

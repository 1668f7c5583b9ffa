"""Receivers of signals: they ship paid orders, and note refunds."""

from typing import Any

from django.dispatch import receiver

from cambist.django import payment_paid, refund_changed

from .models import Order


@receiver(payment_paid, sender=Order)
def ship(instance: Order, **_: Any) -> None:
    """Ship a paid order."""
    Order.objects.filter(pk=instance.pk).update(shipped=True)


@receiver(refund_changed, sender=Order)
def take_back(instance: Order, event: Any, **_: Any) -> None:
    """Note a completed refund."""
    Order.objects.filter(pk=instance.pk).update(refunded=event.event == "refund.completed")

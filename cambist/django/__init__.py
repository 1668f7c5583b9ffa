"""Django app for shops (docs/django.md). Needs the extra `django`. Its models are in `cambist.django.models`."""

from cambist.frontends.django.signals import payment_changed, payment_failed, payment_paid, refund_changed

__all__ = ["payment_changed", "payment_failed", "payment_paid", "refund_changed"]

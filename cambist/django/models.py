"""The mixin of orders, and the events."""

from cambist.frontends.django.models import Event, PayableMixin

__all__ = ["Event", "PayableMixin"]

"""The mixin of orders, and the events."""

from cambist.frontends.django.models import Event, PayableMixin

__all__ = ["Event", "PayableMixin"]

PayableMixin.__module__ = __name__  # tracebacks and reprs name the public place

"""The admin of orders."""

from cambist.frontends.django.admin import PayableAdmin

__all__ = ["PayableAdmin"]

PayableAdmin.__module__ = __name__  # tracebacks and reprs name the public place

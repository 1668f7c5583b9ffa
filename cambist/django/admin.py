"""The admin of orders."""

from cambist.frontends.django.admin import PayableAdmin

__all__ = ["PayableAdmin"]

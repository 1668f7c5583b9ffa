"""The shop's people see orders, and refund them."""

from django.contrib import admin

from cambist.django.admin import PayableAdmin

from .models import Order


@admin.register(Order)
class OrderAdmin(PayableAdmin):
    """Orders with their payments."""

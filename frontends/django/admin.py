"""Admin of orders: their payment, refunds and a refresh of the state."""

import uuid
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from .models import FIELDS, Event


class RefundForm(forms.Form):
    """A refund of one or several orders."""

    amount = forms.DecimalField(
        min_value=Decimal("0.01"), decimal_places=2, required=False, help_text="RUB; empty: the whole rest"
    )
    key = forms.UUIDField(widget=forms.HiddenInput)


class PayableAdmin(admin.ModelAdmin):
    """Admin of a model with PayableMixin: `class OrderAdmin(PayableAdmin)`."""

    actions = ("refund_payments", "refresh_payments")
    readonly_fields = FIELDS
    list_display = ("__str__", "payment_status", "payment_id")
    list_filter = ("payment_status",)
    search_fields = ("payment_id",)

    @admin.action(description="Refund the payment…", permissions=["change"])
    def refund_payments(self, request: HttpRequest, orders: "QuerySet[Any]") -> HttpResponse | None:
        """Ask for the amount, then refund each order. The key in the form makes a second click the same refund."""
        form = RefundForm(request.POST if "key" in request.POST else None, initial={"key": uuid.uuid4()})
        if not form.is_valid():
            context = {**self.admin_site.each_context(request), "form": form, "orders": orders, "opts": self.opts}
            return TemplateResponse(request, "cambist/refund.html", context)
        for order in orders:
            key = uuid.uuid5(form.cleaned_data["key"], str(order.pk))
            self._told(request, order, lambda order=order, key=key: order.refund(form.cleaned_data["amount"], key=key))
        return None

    @admin.action(description="Read the payment's state again", permissions=["change"])
    def refresh_payments(self, request: HttpRequest, orders: "QuerySet[Any]") -> None:
        """Read the state of each order's payment from the service."""
        for order in orders:
            self._told(request, order, order.refresh_payment)

    def _told(self, request: HttpRequest, order: Any, call: Any) -> None:
        from ...core.domain.errors import Refusal
        from ..client.errors import CambistError

        try:
            done = call()
        except (CambistError, Refusal) as refused:
            self.message_user(request, f"{order}: {refused}", messages.ERROR)
        else:
            self.message_user(request, f"{order}: {done}", messages.SUCCESS)


@admin.register(Event)
class EventAdmin(admin.ModelAdmin):
    """The events that were handled, to read."""

    list_display = ("id", "type", "object_id", "sequence", "received_at")
    search_fields = ("id", "object_id")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False: only the service makes events."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: an event is a fact."""
        return False

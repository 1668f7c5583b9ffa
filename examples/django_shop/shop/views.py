"""Pages of the shop."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from .models import Order


@require_POST
def buy(_: HttpRequest) -> HttpResponse:
    """Order some tea, and send the payer to the payment window."""
    return redirect(Order.objects.create(price="490.00").pay())

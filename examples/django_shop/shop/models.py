"""The order of the shop."""

from decimal import Decimal

from django.db import models

from cambist.django.models import PayableMixin


class Order(PayableMixin):
    """An order of some tea."""

    price = models.DecimalField(max_digits=12, decimal_places=2)
    shipped = models.BooleanField(default=False)
    refunded = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"order {self.pk}"

    def cambist_amount(self) -> Decimal:
        return self.price

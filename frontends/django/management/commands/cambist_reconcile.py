"""Reads the state of payments whose events may have been missed."""

from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand

from ...models import ENDED, PayableMixin

FINAL = ("settled", *ENDED)


class Command(BaseCommand):
    """Look up every payment that has not ended, and send the signals of what changed."""

    help = "Look up the payments that have not ended, for events that were missed"

    def handle(self, *_: Any, **__: Any) -> None:
        """Look them up, oldest first, and print each change."""
        for model in apps.get_models():
            if issubclass(model, PayableMixin):
                rows = model._default_manager.exclude(payment_id="").exclude(payment_status__in=FINAL)
                for order in rows.order_by("pk").iterator(chunk_size=500):
                    before = order.payment_status
                    if order.refresh_payment() != before:
                        self.stdout.write(f"{order}: {before} -> {order.payment_status}")

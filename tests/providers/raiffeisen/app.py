"""An app whose live bank is Raiffeisenbank (tests/providers/bank_app.py)."""

from contextlib import AbstractAsyncContextManager
from typing import Any

from tests.apps import TestApp
from tests.providers.bank_app import Cabinet, open_bank_app, read_settings
from tests.providers.raiffeisen.fake import Raiffeisen
from tests.providers.raiffeisen.fake_rules import MERCHANT, SECRET

PEER = "193.28.44.23"
"""Where the bank posts from."""

RECEIPTS = {"receipts": "required", "receipt_email": "receipts@shop.example"}
TERMS = {
    "receipt_tax_system": "usn_income",
    "receipt_vat": "none",
    "receipt_subject": "service",
    "receipt_mode": "full_payment",
    "receipt_email": "shop@shop.example",
}
"""Settings of an account whose receipts the app writes."""


def settings_of(bank: Raiffeisen, **more: str) -> dict[str, Any]:
    """Read an operator's settings as the app reads them."""
    own = {"merchant_id": MERCHANT, "secret_key": SECRET}
    return read_settings("raiffeisen", {**own, "subscriptions": "true", "url": f"{bank.url}/api", **more})


def open_raiffeisen_app(
    own: dict[str, str] | None = None, **more: Any
) -> AbstractAsyncContextManager[tuple[TestApp, Raiffeisen, Cabinet]]:
    """`own`: further settings of the bank."""
    return open_bank_app(
        "raiffeisen",
        PEER,
        lambda clock: Raiffeisen(clock.now),
        lambda bank: settings_of(bank, **(own or {})),
        **more,
    )

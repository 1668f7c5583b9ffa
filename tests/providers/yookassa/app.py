"""An app whose live bank is YooKassa (tests/providers/bank_app.py)."""

from contextlib import AbstractAsyncContextManager
from typing import Any

from tests.apps import TestApp
from tests.providers.bank_app import Cabinet, open_bank_app, read_settings

from .fake import GATEWAY, KEY, PAYOUT_KEY, SHOP, YooKassaFake

PEER = "185.71.76.1"
"""An address of YooKassa."""


def settings_of(fake: YooKassaFake, **more: str) -> dict[str, Any]:
    """Read an operator's settings as the app reads them."""
    own = {"shop_id": SHOP, "secret_key": KEY, "payout_id": GATEWAY, "payout_key": PAYOUT_KEY}
    return read_settings("yookassa", {**own, "mandates": "true", "url": fake.api, **more})


def open_yookassa_app(**more: Any) -> AbstractAsyncContextManager[tuple[TestApp, YooKassaFake, Cabinet]]:
    return open_bank_app("yookassa", PEER, lambda clock: YooKassaFake(clock.now), settings_of, **more)

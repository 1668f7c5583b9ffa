"""An app whose live bank is T-Bank (tests/providers/bank_app.py)."""

from contextlib import AbstractAsyncContextManager
from typing import Any

from tests.apps import TestApp
from tests.providers.bank_app import Cabinet, open_bank_app, read_settings
from tests.providers.tbank.fake import PASSWORD, TERMINAL, TBankFake

PEER = "91.194.226.12"
"""An address of T-Bank."""


def settings_of(url: str, **more: str) -> dict[str, Any]:
    """Read an operator's settings as the app reads them."""
    own = {"terminal_key": TERMINAL, "password": PASSWORD}
    return read_settings("tbank", {**own, "mandates": "true", "url": url, **more})


def open_tbank_app(**more: Any) -> AbstractAsyncContextManager[tuple[TestApp, TBankFake, Cabinet]]:
    return open_bank_app("tbank", PEER, TBankFake, lambda fake: settings_of(fake.url), **more)

"""A house whose live bank is T-Bank (tests/providers/bank_house.py)."""

from contextlib import AbstractAsyncContextManager
from typing import Any

from tests.houses import TestHouse
from tests.providers.bank_house import Cabinet, open_bank_house, read_settings
from tests.providers.tbank.fake import PASSWORD, TERMINAL, TBankFake

PEER = "91.194.226.12"
"""An address of T-Bank."""


def settings_of(url: str, **more: str) -> dict[str, Any]:
    """Read an operator's settings as the app reads them."""
    own = {"terminal_key": TERMINAL, "password": PASSWORD}
    return read_settings("tbank", {**own, "mandates": "true", "url": url, **more})


def open_tbank_house(**more: Any) -> AbstractAsyncContextManager[tuple[TestHouse, TBankFake, Cabinet]]:
    return open_bank_house("tbank", PEER, TBankFake, lambda fake: settings_of(fake.url), **more)

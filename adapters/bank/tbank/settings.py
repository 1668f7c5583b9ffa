"""Settings of T-Bank (docs/providers/tbank.md)."""

from pathlib import Path
from typing import Annotated

from ....ports.receipts import ReceiptNeed
from ....ports.settings import (
    AdapterSettings,
    read_address,
    read_boolean,
    read_choice,
    read_credential,
    read_path,
    read_provider_key,
    setting,
)
from .receipts import ReceiptFormat

PRODUCTION = "https://securepay.tinkoff.ru"


class TBankSettings(AdapterSettings, frozen=True, kw_only=True):
    """Settings of T-Bank. The terminal's key and password may be absent when merchants have terminals of their own."""

    terminal_key: Annotated[
        str | None, setting("the terminal's key, as the bank's dashboard shows it", read_provider_key)
    ] = None
    password: Annotated[str | None, setting("the terminal's password", read_credential, secret=True)] = None
    merchants_file: Annotated[
        Path | None,
        setting("TOML file with the terminals of merchants who have their own, one table for each owner", read_path),
    ] = None
    mandates: Annotated[bool, setting("whether the terminals may bind accounts and charge them", read_boolean)] = False
    receipts: Annotated[
        ReceiptNeed,
        setting("whether a cash register is connected that issues receipts under 54-FZ", read_choice(*ReceiptNeed)),
    ] = ReceiptNeed.NONE
    receipt_format: Annotated[
        ReceiptFormat,
        setting("format of receipts of the terminal and its cash register", read_choice(*ReceiptFormat)),
    ] = ReceiptFormat.V1_2
    url: Annotated[str, setting("address of the API", read_address)] = PRODUCTION

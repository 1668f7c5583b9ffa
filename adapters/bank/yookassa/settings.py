"""Settings of YooKassa (docs/providers/yookassa.md)."""

from decimal import Decimal
from pathlib import Path
from typing import Annotated

from ....ports.receipts import ReceiptNeed
from ....ports.settings import (
    AdapterSettings,
    read_address,
    read_boolean,
    read_choice,
    read_path,
    read_provider_key,
    read_rub,
    setting,
)

BASE = "https://api.yookassa.ru/v3"


class YooKassaSettings(AdapterSettings, frozen=True, kw_only=True):
    """Settings of YooKassa. The shop's id and key may be left out when merchants have shops of their own."""

    shop_id: Annotated[str | None, setting("the shop's id, as YooKassa's dashboard shows it", read_provider_key)] = None
    secret_key: Annotated[str | None, setting("the shop's secret key", read_provider_key, secret=True)] = None
    merchants_file: Annotated[
        Path | None, setting("TOML file with the shops of merchants who have their own", read_path)
    ] = None
    payout_id: Annotated[str | None, setting("id of the payout gateway; none: no payouts", read_provider_key)] = None
    payout_key: Annotated[str | None, setting("secret key of the payout gateway", read_provider_key, secret=True)] = (
        None
    )
    confirmation: Annotated[
        str,
        setting("how payers confirm: with our QR code, or on YooKassa's page", read_choice("qr", "redirect")),
    ] = "qr"
    mandates: Annotated[bool, setting("whether the shop may save payment methods and charge them", read_boolean)] = (
        False
    )
    receipts: Annotated[
        ReceiptNeed,
        setting(
            "whether its cash register issues receipts under 54-FZ, and whether payments need one",
            read_choice(*ReceiptNeed),
        ),
    ] = ReceiptNeed.NONE
    max_rub: Annotated[Decimal, setting("largest amount of one payment, in RUB", read_rub)] = Decimal("700000.00")
    """YooKassa raises the limit of a shop on request."""
    url: Annotated[str, setting("address of the API", read_address)] = BASE

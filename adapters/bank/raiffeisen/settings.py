"""Settings of Raiffeisenbank (docs/providers/raiffeisen.md)."""

from pathlib import Path
from typing import Annotated

from ....ports.receipts import ReceiptNeed
from ....ports.settings import (
    AdapterSettings,
    read_address,
    read_boolean,
    read_choice,
    read_credential,
    read_label,
    read_path,
    read_provider_key,
    setting,
)

PRODUCTION = "https://pay.raif.ru/api"


class RaiffeisenSettings(AdapterSettings, frozen=True, kw_only=True):
    """Settings of Raiffeisenbank. The merchant's id and key may be left out when merchants have ids of their own."""

    merchant_id: Annotated[
        str | None, setting("the merchant's id in SBP, as the bank's dashboard shows it", read_provider_key)
    ] = None
    secret_key: Annotated[str | None, setting("the merchant's secret key", read_credential, secret=True)] = None
    merchants_file: Annotated[
        Path | None, setting("TOML file with the ids of merchants who have their own", read_path)
    ] = None
    subscriptions: Annotated[bool, setting("whether the bank has enabled subscriptions", read_boolean)] = False
    payout_account: Annotated[
        str | None, setting("account for payouts, 20 digits; none: no payouts", read_provider_key)
    ] = None
    payout_secret_key: Annotated[str | None, setting("secret key for payouts", read_credential, secret=True)] = None
    banks_file: Annotated[Path | None, setting("TOML file with the bank's aliases of receiving banks", read_path)] = (
        None
    )
    receipts: Annotated[
        ReceiptNeed,
        setting(
            "whether the bank has connected a cash register that issues receipts under 54-FZ",
            read_choice(*ReceiptNeed),
        ),
    ] = ReceiptNeed.NONE
    receipt_email: Annotated[str | None, setting("e-mail for receipts of payers who gave none", read_label)] = None
    receipt_words: Annotated[
        str,
        setting(
            "terms that the cash register accepts: of its SDK of 2025, or of its documentation of 2021",
            read_choice("2025", "2021"),
        ),
    ] = "2025"
    url: Annotated[str, setting("address of the API", read_address)] = PRODUCTION

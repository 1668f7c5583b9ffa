"""The settings of an account as an operator writes them: `NAME=TEXT`, one row per name, each with its reader.

`webhook_secret` is among the names but not among the fields of `Settings`: it is kept sealed, in the account itself.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Any

import msgspec

from .accounts.accounts import Account, KycDemand, KycFlow, RefundApproval, Scheme, Settings
from .errors import FieldFault, Refusal
from .money import Rub, Usdt
from .payments.payments import MINIMUM
from .tron import is_tron_address
from .web_addresses import web_address

WEBHOOK_SECRET = "webhook_secret"  # noqa: S105  (the name of a setting, not a secret)

_SECRET = re.compile(r"[!-~]{16,256}\Z")
_INTEGER = re.compile(r"[0-9]{1,9}\Z")
_PERCENT = re.compile(r"(?:0|[1-9][0-9]?)(?:\.[0-9]{1,4})?\Z")


def _secret(text: str) -> str:
    if not _SECRET.match(text):
        raise ValueError("must be 16 to 256 printable ASCII characters without spaces")
    return text


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("must be true or false")
    return text == "true"


def _integer(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not _INTEGER.match(text) or not low <= int(text) <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return int(text)

    return read


def _largest_amount(text: str) -> Rub:
    amount = Rub.parse(text)
    if amount < MINIMUM:
        raise ValueError(f"must be at least {MINIMUM}")
    return amount


def _overdraft(text: str) -> Usdt:
    amount = Usdt.parse(text)
    if amount < Usdt(0):
        raise ValueError("must not be below zero")
    return amount


def _percent(highest: int) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not _PERCENT.match(text) or Decimal(text) > highest:
            raise ValueError(f"must be a number from 0 to {highest} with up to 4 decimals")
        return text

    return read


def _wallet(text: str) -> str:
    if not is_tron_address(text):
        raise ValueError("must be a TRON address: 34 letters and digits that begin with T, with the right checksum")
    return text


def _one_of(kind: type[StrEnum]) -> Callable[[str], StrEnum]:
    def read(text: str) -> StrEnum:
        if text not in tuple(kind):
            raise ValueError(f"must be one of: {', '.join(kind)}")
        return kind(text)

    return read


class Setting(msgspec.Struct, frozen=True):
    """One name. `read` raises ValueError saying what is wrong, never quoting the text: it may be a secret."""

    read: Callable[[str], Any]
    clearable: bool
    """An empty text sets it to null."""


ACCOUNT_SETTINGS: Mapping[str, Setting] = {
    "acceptance": Setting(_boolean, clearable=False),
    "amount_rub_max": Setting(_largest_amount, clearable=False),
    "auto_return": Setting(_boolean, clearable=False),
    "direct_links": Setting(_boolean, clearable=False),
    "exchange": Setting(_boolean, clearable=False),
    "exchange_markup_percent": Setting(_percent(50), clearable=False),
    "kyc": Setting(_one_of(KycDemand), clearable=False),
    "kyc_flow": Setting(_one_of(KycFlow), clearable=False),
    "payout_wallet": Setting(_wallet, clearable=True),
    "proof_reminders": Setting(_boolean, clearable=False),
    "recurring": Setting(_boolean, clearable=False),
    "refund_approval": Setting(_one_of(RefundApproval), clearable=True),
    "refund_overdraft_usdt": Setting(_overdraft, clearable=False),
    "refund_reserve": Setting(_boolean, clearable=False),
    "refunds": Setting(_boolean, clearable=False),
    "return_url": Setting(web_address, clearable=True),
    "subscription_scheme": Setting(_one_of(Scheme), clearable=False),
    "terminals": Setting(_boolean, clearable=False),
    "ttl_minutes_max": Setting(_integer(1, 1440), clearable=False),
    WEBHOOK_SECRET: Setting(_secret, clearable=True),
    "webhook_url": Setting(web_address, clearable=True),
}


def read_settings(texts: Mapping[str, str], known: Mapping[str, Setting] = ACCOUNT_SETTINGS) -> dict[str, Any]:
    """The values, by name. Raises: Refusal VALIDATION_ERROR that names every fault at once."""
    faults: list[FieldFault] = []
    values: dict[str, Any] = {}
    for name, text in texts.items():
        setting = known.get(name)
        if setting is None:
            faults.append(FieldFault(ascii(name), f"is no setting; there are: {', '.join(sorted(known))}"))
        elif not text and setting.clearable:
            values[name] = None
        else:
            try:
                values[name] = setting.read(text)
            except ValueError as error:
                faults.append(FieldFault(name, str(error)))
    if not texts:
        faults.append(FieldFault("settings", f"name at least one of: {', '.join(sorted(known))}"))
    if faults:
        message = "; ".join(f"{fault.path} {fault.message}" for fault in faults)
        raise Refusal("VALIDATION_ERROR", message, details=faults)
    return values


def shown_settings(account: Account) -> dict[str, Any]:
    """Every setting as an operator may see it: plain values, and of the secret only whether there is one."""
    shown: dict[str, Any] = {}
    for name in Settings.__struct_fields__:
        value = getattr(account.settings, name)
        shown[name] = str(value) if isinstance(value, (Rub, Usdt)) else value
    shown["webhook_secret_set"] = account.webhook_secret is not None
    return dict(sorted(shown.items()))

"""Readers of an account's settings from text (account_settings.py). Each raises ValueError with the cause, and never
quotes the text: it may be a misplaced secret."""

import re
from collections.abc import Callable
from decimal import Decimal
from enum import StrEnum

from .accounts.receipts import is_email
from .money import Rub, Usdt
from .payments.payments import MINIMUM
from .shapes import has_control, is_mail_address
from .wallets import NOBODYS, is_nobodys, is_wallet
from .webhooks.wanted import read_wanted

_SECRET = re.compile(r"[!-~]{16,256}\Z")
_INTEGER = re.compile(r"[0-9]{1,9}\Z")
_PERCENT = re.compile(r"(?:0|[1-9][0-9]?)(?:\.[0-9]{1,4})?\Z")


def secret(text: str) -> str:
    if not _SECRET.match(text):
        raise ValueError("must be 16 to 256 printable ASCII characters without spaces")
    return text


BOOLEAN = "true, false"


def boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("must be true or false")
    return text == "true"


def integer(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not _INTEGER.match(text) or not low <= int(text) <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return int(text)

    return read


def largest_amount(text: str) -> Rub:
    amount = Rub.parse(text)
    if amount < MINIMUM:
        raise ValueError(f"must be at least {MINIMUM}")
    return amount


def overdraft(text: str) -> Usdt:
    amount = Usdt.parse(text)
    if amount < Usdt(0):
        raise ValueError("must not be below zero")
    return amount


def percent(highest: int) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not _PERCENT.match(text) or Decimal(text) > highest:
            raise ValueError(f"must be a number from 0 to {highest} with up to 4 decimals")
        return text

    return read


def line(longest: int) -> Callable[[str], str]:
    def read(text: str) -> str:
        text = text.strip()
        if not 1 <= len(text) <= longest or has_control(text):
            raise ValueError(f"must have 1 to {longest} characters, none of them a control character")
        return text

    return read


def wallet(text: str) -> str:
    if not is_wallet(text):
        raise ValueError(
            "must be an address of TRON, 34 letters and digits that begin with T, or of Ethereum and BNB Smart Chain, "
            "0x and 40 hex digits, with the right checksum"
        )
    if is_nobodys(text):
        raise ValueError(NOBODYS)
    return text


def email(text: str) -> str:
    if not is_email(text):
        raise ValueError("must be an e-mail address")
    return text


def mail_address(text: str) -> str:
    if not is_mail_address(text):
        raise ValueError("must be an e-mail address in ASCII")
    return text


def one_of(kind: type[StrEnum]) -> Callable[[str], StrEnum]:
    def read(text: str) -> StrEnum:
        if text not in tuple(kind):
            raise ValueError(f"must be one of: {', '.join(kind)}")
        return kind(text)

    return read


def words(kind: type[StrEnum]) -> str:
    return ", ".join(kind)


def wanted_events(text: str) -> tuple[str, ...]:
    return read_wanted([each.strip() for each in text.split(",")])

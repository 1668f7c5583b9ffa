"""Settings of ATOL Online (docs/providers/atol.md "Settings")."""

import re
from pathlib import Path
from typing import Annotated, Any

from ....ports.settings import (
    AdapterSettings,
    read_address,
    read_choice,
    read_credential,
    read_integer,
    read_label,
    read_path,
    read_provider_key,
    setting,
)

PRODUCTION = "https://online.atol.ru/possystem"
_CALLBACK = re.compile(r"https://[A-Za-z0-9](?:[-.A-Za-z0-9]*[A-Za-z0-9])?/[A-Za-z0-9\-./_]+\Z")
_CALLBACK_MAX = 256


def read_callback(raw: Any) -> str:
    """Read an address that ATOL posts to: its pattern allows no port."""
    if not isinstance(raw, str) or not _CALLBACK.match(raw) or len(raw) > _CALLBACK_MAX:
        raise ValueError("must be an https URL without port and query, 256 characters at most")
    return raw


class AtolSettings(AdapterSettings, frozen=True, kw_only=True):
    """Settings of ATOL Online. Login and password, group, INN, e-mail and site may be left out when all merchants have
    registers of their own."""

    login: Annotated[str | None, setting("login from the file of settings for integrations", read_provider_key)] = None
    password: Annotated[str | None, setting("password that belongs to the login", read_credential, secret=True)] = None
    group: Annotated[str | None, setting("code of the group of registers", read_provider_key)] = None
    inn: Annotated[str | None, setting("seller's INN, 10 or 12 digits", read_provider_key)] = None
    email: Annotated[str | None, setting("seller's e-mail, the sender of receipts", read_label)] = None
    site: Annotated[str | None, setting("address of the shop's site, as registered with the registers", read_label)] = (
        None
    )
    format: Annotated[
        str, setting("format of fiscal documents of the registers: 1.2 or 1.05", read_choice("1.2", "1.05"))
    ] = "1.2"
    registers: Annotated[
        int, setting("registers in the group: each answers one state of a receipt a second", read_integer(1, 1000))
    ] = 1
    callback_url: Annotated[
        str | None,
        setting("address for ATOL's notifications, as `cambist doctor` shows it", read_callback, secret=True),
    ] = None
    merchants_file: Annotated[
        Path | None, setting("TOML file with the registers of merchants who have their own", read_path)
    ] = None
    url: Annotated[str, setting("address of the API, without its version", read_address)] = PRODUCTION

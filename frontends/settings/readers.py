"""Readers of the installation's own settings, one function for each kind of value. Readers that adapters use, too, are
in ports/settings.py, with the rules of a reader."""

import re
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any
from urllib.parse import urlsplit

from ...adapters.alarms.settings import read_telegram_token as read_telegram_token
from ...core.domain.cells import CELL_NAME
from ...core.domain.masked import Masked
from ...core.domain.money import Rub
from ...core.domain.operators.guarded import Guarded
from ...core.domain.operators.operators import read_key
from ...core.domain.web_addresses import is_web_address
from ...ports import settings as common
from ...ports.alarms import QuietHours
from ...ports.database_urls import is_postgres_url, read_postgres_url, split_url, sqlite_path
from ...ports.redis_urls import read_redis_url
from ...ports.settings import read_text
from .plugins import KINDS, PluginError, found

_NUMBER = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,3})?\Z")
_VAULT_KEY = re.compile(r"(?:([0-9]{1,3}):)?([0-9a-fA-F]{64})\Z")
_PEPPER = re.compile(r"(?:[0-9a-fA-F]{2}){32,128}\Z")
_TIME = "([01][0-9]|2[0-3]):([0-5][0-9])"
_QUIET = re.compile(rf"{_TIME}-{_TIME}(?:([+-])(0[0-9]|1[0-4]):([0-5][0-9]))?\Z")


class VaultKey(Masked, frozen=True):
    """One encryption key. Its repr hides it."""

    _shown = ("number",)

    number: int
    key: bytes


_ISSUER_LONGEST = 500


def read_cell(raw: Any) -> str:
    text = read_text(raw)
    if not CELL_NAME.match(text):
        raise ValueError("must be a name of 1 to 16 lower-case letters and digits")
    return text


def read_seconds(raw: Any) -> float:
    if isinstance(raw, str) and _NUMBER.match(raw):
        raw = float(raw)
    if not isinstance(raw, int | float) or isinstance(raw, bool) or not 0 <= raw <= 3600:
        raise ValueError("must be a number of seconds from 0 to 3600")
    return float(raw)


def read_database(raw: Any) -> str:
    refusal = ValueError(
        "must be postgresql://user:password@host:port/name, sqlite:///path or memory:// (further ones come with "
        "packages that have an entry point in cambist.storages)"
    )
    try:
        text = read_text(raw)
        parts = urlsplit(text)
    except ValueError:
        raise refusal from None
    if text == "memory://":
        return text
    if sqlite_path(text) is not None:
        if "?" in text or "#" in text:
            raise ValueError(
                "must be sqlite:///path without ? and #: SQLite takes no options here (a folder of such a name is "
                "given by CAMBIST_DATA_DIR)"
            )
        return text
    if not text.startswith(f"{parts.scheme}://") or not parts.scheme:
        raise refusal
    if is_postgres_url(text):
        read_postgres_url(text)
        return f"postgresql{text[len(parts.scheme) :]}"
    try:
        others = found("storage")
    except PluginError as error:
        raise ValueError(str(error)) from None
    if parts.scheme not in others or parts.scheme in KINDS["storage"].built_in:
        raise refusal
    return text


def read_direct_database(raw: Any) -> str:
    if not is_postgres_url(read_text(raw)):
        raise ValueError("must be postgresql://user:password@host:port/name")
    return read_database(raw)


def read_redis(raw: Any) -> str:
    text = read_text(raw)
    read_redis_url(text)
    return text


def masked_url(url: str) -> str:
    """Return a server's address without its password. The whole query is left out, because it may contain one too."""
    user, place, path, query = split_url(url)
    at = "@" if user else ""
    if ":" in user:
        user = f"{user.partition(':')[0]}:***"
    return f"{url.partition('://')[0]}://{user}{at}{place}{path.partition('#')[0]}{'?***' if query else ''}"


def read_networks(raw: Any) -> tuple[IPv4Network | IPv6Network, ...]:
    texts = re.split(r"[\s,]+", raw.strip()) if isinstance(raw, str) else raw
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError("must be a list of networks such as 10.0.0.0/8, separated by commas")
    try:
        return tuple(ip_network(text) for text in texts if text)
    except ValueError:
        raise ValueError("must be networks such as 10.0.0.0/8 or single addresses, separated by commas") from None


def read_vault_keys(raw: Any) -> tuple[VaultKey, ...]:
    refusal = ValueError(
        "must be 64 hex characters, or several such keys as 2:HEX,1:HEX with ids from 0 to 255, "
        "of which the first seals and all open"
    )
    keys: dict[int, VaultKey] = {}
    for part in read_text(raw).split(","):
        match = _VAULT_KEY.match(part.strip())
        number = 1 if match is None or match[1] is None else int(match[1])
        if match is None or number > 255 or number in keys:
            raise refusal
        keys[number] = VaultKey(number, bytes.fromhex(match[2]))
    return tuple(keys.values())


def read_pepper(raw: Any) -> bytes:
    text = read_text(raw)
    if not _PEPPER.match(text):
        raise ValueError("must be at least 64 hex characters")
    return bytes.fromhex(text)


def read_operator_key(raw: Any) -> str:
    """Read an operator's key: `olga:<64 hex digits>`."""
    key = read_key(read_text(raw))
    if key is None:
        raise ValueError("must be a name, a colon and 64 hex digits, as `cambist operator create` prints it")
    return key.text


def read_guarded(raw: Any) -> tuple[str, ...]:
    """Read the operator actions that need two operators: `payout_wallet,refunds`, or `all`."""
    names = re.split(r"[\s,]+", raw.strip()) if isinstance(raw, str) else raw
    if names == ["all"]:
        return tuple(Guarded)
    if not isinstance(names, list) or not all(isinstance(name, str) and name in tuple(Guarded) for name in names):
        raise ValueError(f"must be all, or some of {', '.join(Guarded)}, separated by commas")
    return tuple(name for name in Guarded if name in names)


def read_address(raw: Any) -> str:
    """Read a public address of the service, which browsers and receivers must interpret as we do."""
    text = common.read_address(raw)
    if not is_web_address(text):
        raise ValueError("must be an http or https URL without user, query and fragment")
    return text


def read_issuer(raw: Any) -> str:
    """Read one line of text."""
    if not isinstance(raw, str) or len(raw) > _ISSUER_LONGEST or not raw.isprintable():
        raise ValueError(f"must be one line of at most {_ISSUER_LONGEST} characters")
    return raw.strip()


def read_rub(raw: Any) -> Rub:
    return Rub.parse(str(common.read_rub(raw)))


def read_quiet_hours(raw: Any) -> QuietHours:
    """Read `22:00-08:00+03:00`; without an offset UTC."""
    match = _QUIET.match(raw) if isinstance(raw, str) else None
    if match is None:
        raise ValueError("must be two times of day and the offset from UTC, such as 22:00-08:00+03:00")
    start, end = int(match[1]) * 60 + int(match[2]), int(match[3]) * 60 + int(match[4])
    if start == end:
        raise ValueError("must begin and end at different times")
    offset = 0 if match[5] is None else (int(match[6]) * 60 + int(match[7])) * (-1 if match[5] == "-" else 1)
    return QuietHours(start=start, end=end, offset=offset)

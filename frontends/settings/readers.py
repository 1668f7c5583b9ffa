"""Readers of setting values, one function for each kind of value.

A reader takes text (environment, flags) or a TOML value, and raises ValueError with the expected form. It never quotes
the value.
"""

import re
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ...core.domain.masked import Masked
from ...core.domain.money import Rub
from ...core.domain.operators.guarded import Guarded
from ...core.domain.operators.operators import read_key
from ...core.domain.web_addresses import is_web_address
from ...ports.database_urls import is_postgres_url, read_postgres_url, sqlite_path
from .plugins import KINDS, PluginError, found

_DIGITS = re.compile(r"[0-9]{1,9}\Z")
_NUMBER = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,3})?\Z")
_VAULT_KEY = re.compile(r"(?:([0-9]{1,3}):)?([0-9a-fA-F]{64})\Z")
_PRIVATE_KEY = re.compile(r"(?:0x)?[0-9a-fA-F]{64}\Z")
_PEPPER = re.compile(r"(?:[0-9a-fA-F]{2}){32,128}\Z")
_PROVIDER_KEY = re.compile(r"[A-Za-z0-9._-]{1,200}\Z")
_SECRET = re.compile(r"[!-~]{1,1024}\Z")
_COUNTRY = re.compile(r"[A-Z]{3}\Z")
_EXTENDED_KEY = re.compile(r"[a-z]p(?:ub|rv)[1-9A-HJ-NP-Za-km-z]{90,120}\Z")
_HOST = re.compile(r"[A-Za-z0-9._:-]{1,255}\Z")
_REDIS = ("redis", "rediss", "unix")


class VaultKey(Masked, frozen=True):
    """One encryption key. Its repr hides it."""

    _shown = ("number",)

    number: int
    key: bytes


def read_text(raw: Any) -> str:
    if not isinstance(raw, str) or not raw:
        raise ValueError("must be text")
    return raw


def read_path(raw: Any) -> Path:
    text = raw if isinstance(raw, str) else str(raw) if isinstance(raw, Path) else ""
    if not text or "\0" in text:
        raise ValueError("must be a path")
    return Path(text).expanduser()


def read_host(raw: Any) -> str:
    if not _HOST.match(read_text(raw)):
        raise ValueError("must be a host name or an IP address, without port")
    return str(raw)


def read_integer(low: int, high: int) -> Callable[[Any], int]:
    def read(raw: Any) -> int:
        if isinstance(raw, str) and _DIGITS.match(raw):
            raw = int(raw)
        # In Python a boolean is an int, but `port = true` is a mistake.
        if not isinstance(raw, int) or isinstance(raw, bool) or not low <= raw <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return raw

    return read


def read_seconds(raw: Any) -> float:
    if isinstance(raw, str) and _NUMBER.match(raw):
        raw = float(raw)
    if not isinstance(raw, int | float) or isinstance(raw, bool) or not 0 <= raw <= 3600:
        raise ValueError("must be a number of seconds from 0 to 3600")
    return float(raw)


def read_boolean(raw: Any) -> bool:
    if isinstance(raw, bool):
        return raw
    if not isinstance(raw, str) or raw.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return raw.lower() == "true"


def read_choice(*allowed: str) -> Callable[[Any], str]:
    def read(raw: Any) -> str:
        if not isinstance(raw, str) or raw.lower() not in allowed:
            raise ValueError(f"must be one of: {', '.join(allowed)}")
        return raw.lower()

    return read


def read_address(raw: Any) -> str:
    """Read a public address of the service, and remove a final slash."""
    refusal = ValueError("must be an http or https URL without user, query and fragment")
    text = read_text(raw)
    if not is_web_address(text) or any(char in text for char in "@?#"):
        raise refusal
    return text.rstrip("/")


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


def read_redis(raw: Any) -> str:
    refusal = ValueError("must be redis://:password@host:port/number, rediss://… or unix:///path")
    try:
        text = read_text(raw)
        parts = urlsplit(text)
        fits = parts.scheme in _REDIS and text.startswith(f"{parts.scheme}://") and parts.port != 0
    except ValueError:
        raise refusal from None
    if not fits or not text.isprintable() or not (parts.path.strip("/") if parts.scheme == "unix" else parts.hostname):
        raise refusal
    if parts.scheme != "unix" and not re.fullmatch(r"/?|/[0-9]{1,4}", parts.path):
        raise refusal
    return text


def masked_url(url: str) -> str:
    """Return a server's address without its password. The whole query is left out, because it may contain one too."""
    parts = urlsplit(url)
    user, at, place = parts.netloc.rpartition("@")
    if ":" in user:
        user = f"{user.partition(':')[0]}:***"
    return f"{parts.scheme}://{user}{at}{place}{parts.path}{'?***' if parts.query else ''}"


def read_networks(raw: Any) -> tuple[IPv4Network | IPv6Network, ...]:
    texts = re.split(r"[\s,]+", raw.strip()) if isinstance(raw, str) else raw
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError("must be a list of networks such as 10.0.0.0/8, separated by commas")
    try:
        return tuple(ip_network(text) for text in texts if text)
    except ValueError:
        raise ValueError("must be networks such as 10.0.0.0/8 or single addresses, separated by commas") from None


def notification_key(adapter: str) -> str:
    """Return an adapter's name as used in its network setting: `own-bank` is `own_bank`, as in
    CAMBIST_OWN_BANK_NOTIFICATION_NETWORKS."""
    return re.sub(r"[^a-z0-9]", "_", adapter.lower())


def read_provider_key(raw: Any) -> str:
    if not _PROVIDER_KEY.match(read_text(raw)):
        raise ValueError("must be a key as the provider shows it: letters, digits, dots, hyphens and underscores")
    return str(raw)


def read_nodes(raw: Any) -> tuple[str, ...]:
    """Read addresses of nodes, in the order of use. The adapter reports what is wrong with one."""
    texts = re.split(r"[\s,]+", raw.strip()) if isinstance(raw, str) else raw
    nodes = tuple(texts) if isinstance(texts, list) and all(isinstance(text, str) for text in texts) else ()
    if not nodes or len(set(nodes)) < len(nodes) or not all(is_node(text) for text in nodes):
        raise ValueError("must be https:// addresses (http:// of this machine), each once, separated by commas")
    return nodes


def is_node(text: str) -> bool:
    """Return whether the text has the form of a node's address."""
    return text.isascii() and text.isprintable() and re.match(r"https?://[^/]", text) is not None


def read_credential(raw: Any) -> str:
    """Read a secret of any form, on one line."""
    if not _SECRET.match(read_text(raw)):
        raise ValueError("must be 1 to 1024 printable ASCII characters without spaces")
    return str(raw)


def read_label(raw: Any) -> str:
    """Read a name as the provider's dashboard shows it."""
    text = read_text(raw)
    if len(text) > 100 or not text.isprintable() or text != text.strip():
        raise ValueError("must be a name of printable characters, 100 at most")
    return text


def read_country(raw: Any) -> str:
    """Read a country by ISO 3166-1 alpha-3."""
    if not _COUNTRY.match(read_text(raw)):
        raise ValueError("must be a country in three capital letters, such as RUS")
    return str(raw)


def read_extended_key(raw: Any) -> str:
    """Read an extended public key. The adapter checks whether it is the right one."""
    if not _EXTENDED_KEY.match(read_text(raw)):
        raise ValueError("must be an extended public key: xpub and some hundred letters and digits")
    return str(raw)


def read_private_key(raw: Any) -> str:
    """Read a wallet's private key."""
    if not _PRIVATE_KEY.match(read_text(raw).strip()):
        raise ValueError("must be 64 hex digits")
    return str(raw).strip()


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


def read_rub(raw: Any) -> Rub:
    try:
        amount = Rub.parse(str(raw) if isinstance(raw, int) and not isinstance(raw, bool) else read_text(raw))
    except ValueError:
        amount = Rub(-1)
    if amount < Rub(0):
        raise ValueError("must be an amount in RUB, such as 50000 or 50000.00")
    return amount

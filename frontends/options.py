"""The options of an installation, one row each: how its text is read, whether it is a secret, what it means.

A reader takes text (environment, flags) or a TOML value, and raises ValueError that says what is expected; it never
quotes what it got.
"""

import re
from collections.abc import Callable, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ..core.domain.masked import Masked
from ..core.domain.money import Rub
from ..core.domain.operators.pending_acts import Guarded
from ..core.domain.web_addresses import is_web_address
from .operator import Names
from .plugins import KINDS, PluginError, found, reads_name, reads_names

_DIGITS = re.compile(r"[0-9]{1,9}\Z")
_NUMBER = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,3})?\Z")
_VAULT_KEY = re.compile(r"(?:([0-9]{1,3}):)?([0-9a-fA-F]{64})\Z")
_PEPPER = re.compile(r"(?:[0-9a-fA-F]{2}){32,128}\Z")
_PROVIDER_KEY = re.compile(r"[A-Za-z0-9._-]{1,200}\Z")
_HOST = re.compile(r"[A-Za-z0-9._:-]{1,255}\Z")

_POSTGRES = ("postgresql", "postgres", "postgresql+asyncpg")
_REDIS = ("redis", "rediss", "unix")


class VaultKey(Masked, frozen=True):
    """One sealing key. Its repr hides it."""

    _shown = ("number",)

    number: int
    key: bytes


def _text(raw: Any) -> str:
    if not isinstance(raw, str) or not raw:
        raise ValueError("must be text")
    return raw


def _path(raw: Any) -> Path:
    text = raw if isinstance(raw, str) else str(raw) if isinstance(raw, Path) else ""
    if not text or "\0" in text:
        raise ValueError("must be a path")
    return Path(text).expanduser()


def _host(raw: Any) -> str:
    if not _HOST.match(_text(raw)):
        raise ValueError("must be a host name or an IP address, without port")
    return str(raw)


def _integer(low: int, high: int) -> Callable[[Any], int]:
    def read(raw: Any) -> int:
        if isinstance(raw, str) and _DIGITS.match(raw):
            raw = int(raw)
        # In Python a boolean is an int, and `port = true` is nobody's port.
        if not isinstance(raw, int) or isinstance(raw, bool) or not low <= raw <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return raw

    return read


def _seconds(raw: Any) -> float:
    if isinstance(raw, str) and _NUMBER.match(raw):
        raw = float(raw)
    if not isinstance(raw, int | float) or isinstance(raw, bool) or not 0 <= raw <= 3600:
        raise ValueError("must be a number of seconds from 0 to 3600")
    return float(raw)


def _boolean(raw: Any) -> bool:
    if isinstance(raw, bool):
        return raw
    if not isinstance(raw, str) or raw.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return raw.lower() == "true"


def _choice(*allowed: str) -> Callable[[Any], str]:
    def read(raw: Any) -> str:
        if not isinstance(raw, str) or raw.lower() not in allowed:
            raise ValueError(f"must be one of: {', '.join(allowed)}")
        return raw.lower()

    return read


def _address(raw: Any) -> str:
    """Where the service is reached from outside; kept without a slash at the end."""
    refusal = ValueError("must be an http or https URL without user, query and fragment")
    text = _text(raw)
    if not is_web_address(text) or any(char in text for char in "@?#"):
        raise refusal
    return text.rstrip("/")


def _database(raw: Any) -> str:
    refusal = ValueError(
        "must be postgresql://user:password@host:port/name, sqlite:///path or memory:// (further ones come with "
        "packages that have an entry point in cambist.storages)"
    )
    try:
        text = _text(raw)
        parts = urlsplit(text)
        parts.port  # noqa: B018  (reading it checks it)
    except ValueError:
        raise refusal from None
    if text == "memory://" or (text.startswith("sqlite:///") and len(text) > len("sqlite:///")):
        return text
    if not text.startswith(f"{parts.scheme}://") or not parts.scheme:
        raise refusal
    if parts.scheme in _POSTGRES:
        return f"postgresql{text[len(parts.scheme) :]}"
    try:
        others = found("storage")
    except PluginError as error:
        raise ValueError(str(error)) from None
    if parts.scheme not in others or parts.scheme in KINDS["storage"].built_in:
        raise refusal
    return text


def _redis(raw: Any) -> str:
    refusal = ValueError("must be redis://:password@host:port/number, rediss://… or unix:///path")
    try:
        text = _text(raw)
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
    """A server's address without its password; a query is left out whole, for it may hold one too."""
    parts = urlsplit(url)
    user, at, place = parts.netloc.rpartition("@")
    if ":" in user:
        user = f"{user.partition(':')[0]}:***"
    return f"{parts.scheme}://{user}{at}{place}{parts.path}{'?***' if parts.query else ''}"


def _networks(raw: Any) -> tuple[IPv4Network | IPv6Network, ...]:
    texts = re.split(r"[\s,]+", raw.strip()) if isinstance(raw, str) else raw
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError("must be a list of networks such as 10.0.0.0/8, separated by commas")
    try:
        return tuple(ip_network(text) for text in texts if text)
    except ValueError:
        raise ValueError("must be networks such as 10.0.0.0/8 or single addresses, separated by commas") from None


def _provider_key(raw: Any) -> str:
    if not _PROVIDER_KEY.match(_text(raw)):
        raise ValueError("must be a key as the provider shows it: letters, digits, dots, hyphens and underscores")
    return str(raw)


def _vault_keys(raw: Any) -> tuple[VaultKey, ...]:
    refusal = ValueError(
        "must be 64 hex characters, or several such keys as 2:HEX,1:HEX with ids from 0 to 255, "
        "of which the first seals and all open"
    )
    keys: dict[int, VaultKey] = {}
    for part in _text(raw).split(","):
        match = _VAULT_KEY.match(part.strip())
        number = 1 if match is None or match[1] is None else int(match[1])
        if match is None or number > 255 or number in keys:
            raise refusal
        keys[number] = VaultKey(number, bytes.fromhex(match[2]))
    return tuple(keys.values())


def _pepper(raw: Any) -> bytes:
    text = _text(raw)
    if not _PEPPER.match(text):
        raise ValueError("must be at least 64 hex characters")
    return bytes.fromhex(text)


def _guarded(raw: Any) -> tuple[str, ...]:
    """Which acts need two operators: `payout_wallet,refunds`."""
    names = re.split(r"[\s,]+", raw.strip()) if isinstance(raw, str) else raw
    if not isinstance(names, list) or not all(isinstance(name, str) and name in tuple(Guarded) for name in names):
        raise ValueError(f"must be some of {', '.join(Guarded)}, separated by commas")
    return tuple(name for name in Guarded if name in names)


def _rub(raw: Any) -> Rub:
    try:
        amount = Rub.parse(str(raw) if isinstance(raw, int) and not isinstance(raw, bool) else _text(raw))
    except ValueError:
        amount = Rub(-1)
    if amount < Rub(0):
        raise ValueError("must be an amount in RUB, such as 50000 or 50000.00")
    return amount


def _as_it_is(value: Any) -> Any:
    return value


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One option."""

    name: str
    read: Callable[[Any], Any]
    meaning: str
    secret: bool = False
    """May also come from a file named by `CAMBIST_…_FILE`."""
    shown: Callable[[Any], Any] | None = _as_it_is
    """How its value may be shown; None: never, only whether it is set."""


_ROWS = (
    Option(name="data_dir", read=_path, shown=str, meaning="the folder of the SQLite database and the key file"),
    Option(
        name="database_url",
        read=_database,
        meaning="postgresql://…, sqlite:///path, memory:// or a package's own; none: SQLite in data_dir",
        secret=True,
        shown=lambda url: None if url is None else masked_url(url),
    ),
    Option(
        name="redis_url",
        read=_redis,
        meaning="redis://…: limits and wake-ups that several processes share; none: in this process's memory",
        secret=True,
        shown=lambda url: None if url is None else masked_url(url),
    ),
    Option(name="host", read=_host, meaning="the address to listen on"),
    Option(name="port", read=_integer(0, 65535), meaning="the port to listen on; 0: any free one"),
    Option(name="workers", read=_integer(1, 1024), meaning="how many jobs run side by side"),
    Option(name="base_url", read=_address, meaning="where merchants reach the API"),
    Option(name="pay_url", read=_address, meaning="where payers reach the payment window"),
    Option(name="app_url", read=_address, meaning="where hosted pages are reached"),
    Option(
        name="trusted_proxies",
        read=_networks,
        shown=lambda networks: [str(network) for network in networks],
        meaning="networks whose X-Forwarded-For is believed",
    ),
    Option(
        name="pages_per_minute",
        read=_integer(60, 1_000_000),
        meaning="requests of hosted pages (/p, /s, /kyc) that one client address may make in a minute",
    ),
    Option(
        name="connections_per_address",
        read=_integer(1, 65536),
        meaning="how many connections one address may have open; trusted proxies: any number",
    ),
    Option(
        name="vault_key",
        read=_vault_keys,
        secret=True,
        shown=None,
        meaning="seals what must not be readable in the database; none: the key file in data_dir",
    ),
    Option(
        name="vault_pepper",
        read=_pepper,
        secret=True,
        shown=None,
        meaning="keys the digests of API secrets; none: the key file in data_dir",
    ),
    Option(
        name="rate_sources",
        read=reads_names("rates"),
        shown=list,
        meaning="where live mode asks for the rate of USDT, in this order; test mode has its simulator",
    ),
    Option(
        name="coingecko_key",
        read=_provider_key,
        secret=True,
        shown=None,
        meaning="a demo key of CoinGecko; none: asked without one",
    ),
    Option(name="banks", read=reads_names("bank"), shown=list, meaning="the banks of live mode, the first tried first"),
    Option(name="test_banks", read=reads_names("bank"), shown=list, meaning="the banks of test mode"),
    Option(name="kyc", read=reads_name("kyc"), meaning="who verifies clients"),
    Option(name="chain", read=reads_name("chain"), meaning="who looks for delivery proofs on the chains"),
    Option(name="deposits", read=reads_name("deposits"), meaning="who takes USDT in, in live mode"),
    Option(name="payouts", read=reads_name("payouts"), meaning="who sends USDT, in live mode"),
    Option(name="notifier", read=reads_name("notifier"), meaning="who posts webhooks"),
    Option(
        name="allow_live_simulators",
        read=_boolean,
        meaning="whether live mode may work on simulators; by itself only where base_, pay_ and app_url are loopback",
    ),
    Option(
        name="allow_loopback_webhooks",
        read=_boolean,
        meaning="whether webhooks of test mode may go to this machine itself; by itself only there, too",
    ),
    Option(name="shutdown_seconds", read=_seconds, meaning="how long the process may take to end on SIGTERM"),
    Option(
        name="lame_duck_seconds",
        read=_seconds,
        meaning="how much of it `api` serves on while /readyz says 503, before it closes the door",
    ),
    Option(name="log_level", read=_choice("debug", "info", "warning", "error"), meaning="the least level logged"),
    Option(
        name="log_format",
        read=_choice("auto", "text", "json"),
        meaning="how log lines are written; auto: as text on a terminal, else as JSON",
    ),
    Option(
        name="access_log",
        read=_choice("off", "errors", "all"),
        meaning="which requests get a line: none, those answered 5xx or not at all, or every one",
    ),
    Option(name="metrics_host", read=_host, meaning="the address at which metrics are served"),
    Option(
        name="metrics_port",
        read=_integer(0, 65535),
        meaning="the port at which this process serves its metrics; 0: any free one; none: it serves none",
    ),
    Option(
        name="four_eyes",
        read=_guarded,
        shown=list,
        meaning=f"which acts wait for a second operator: {', '.join(Guarded)}; none: one is enough",
    ),
    Option(
        name="four_eyes_refund_above",
        read=_rub,
        shown=str,
        meaning="with refunds in four_eyes: from which sum of a payment's refunds on, in RUB; 0: each",
    ),
    Option(
        name="operator_names",
        read=_choice(*Names),
        meaning="whose word an operator's name is: given (CAMBIST_OPERATOR, --operator), or login (who logged in)",
    ),
    Option(name="four_eyes_days", read=_integer(1, 90), meaning="how many days an act waits for the second operator"),
    Option(name="tracing", read=_boolean, meaning="whether to trace with OpenTelemetry, as the OTEL_* variables say"),
)

OPTIONS: Mapping[str, Option] = {row.name: row for row in _ROWS}
"""All options in the order in which `cambist config check` explains them."""

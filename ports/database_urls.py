"""URLs of the databases that this program supports itself. Every adapter and front end parses them here."""

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode

import msgspec

_SQLITE = "sqlite:///"
_SCHEMES = ("postgresql", "postgres", "postgresql+asyncpg")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:/]*)(?::([0-9]{1,5}))?\Z")
_PORT = 5432
_TLS = ("require", "verify-ca", "verify-full")

_DRIVER = frozenset(
    (
        *("host", "port", "dbname", "user", "password", "passfile", "service", "options", "target_session_attrs"),
        *("sslmode", "sslcert", "sslkey", "sslpassword", "sslrootcert", "sslcrl", "sslnegotiation"),
        *("ssl_min_protocol_version", "ssl_max_protocol_version", "krbsrvname", "gsslib"),
    )
)
"""Parameters of libpq that the driver accepts unchanged."""

_OURS = frozenset(("application_name", "connect_timeout"))
"""Parameters that the adapters implement themselves."""

_WITHOUT_EFFECT: Mapping[str, frozenset[str] | None] = {
    # The stall detector finds a silent server within seconds.
    "keepalives": None,
    "keepalives_idle": None,
    "keepalives_interval": None,
    "keepalives_count": None,
    "tcp_user_timeout": None,
    "fallback_application_name": None,
    "sslcompression": frozenset("0"),
    "sslsni": frozenset("1"),
    "sslcertmode": frozenset(("allow",)),
    "gssencmode": frozenset(("disable", "prefer")),
    "gssdelegation": frozenset("0"),
    "load_balance_hosts": frozenset(("disable",)),
    "client_encoding": frozenset(("auto", "utf8", "UTF8", "utf-8", "UTF-8")),
    "channel_binding": frozenset(("disable", "prefer", "require")),
}
"""Parameters of libpq that have no effect here, with the values for which that is true. None: any value."""


class PostgresUrl(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed Postgres URL. Its repr hides it: it may contain a password."""

    dsn: str
    """The URL as asyncpg understands it."""
    hosts: tuple[str, ...]
    """Names, addresses or socket folders; empty: the environment or the driver decides."""
    application_name: str | None
    connect_timeout: float | None
    """Limit for opening a connection, in seconds; None: the operator set no limit."""
    parameters: Mapping[str, str]
    """All parameters, by libpq's names."""

    def __repr__(self) -> str:
        return "<Postgres URL>"

    @property
    def verifies_server(self) -> bool:
        """Whether TLS with a checked certificate is required."""
        return self.parameters.get("sslmode") in ("verify-ca", "verify-full")


def sqlite_path(url: str) -> Path | None:
    """Return the file of a SQLite URL; None for another database."""
    return Path(url.removeprefix(_SQLITE)) if url.startswith(_SQLITE) and url != _SQLITE else None


def sqlite_url(path: Path | str) -> str:
    """Return the URL of a SQLite file."""
    return f"{_SQLITE}{path}"


def is_postgres_url(url: str) -> bool:
    """Return whether the scheme is one of Postgres."""
    return url.partition("://")[0] in _SCHEMES and "://" in url


def read_postgres_url(url: str) -> PostgresUrl:
    """Parse a Postgres URL. Raises: ValueError, which names a wrong parameter and never quotes a value."""
    if not is_postgres_url(url):
        raise ValueError("must begin with postgresql://")
    if "#" in url:
        raise ValueError("must not have a part after #; a # in the password is written %23")
    user, place, path, query = split_url(url)
    at = "@" if user else ""
    hosts = [_host(each) for each in place.split(",")] if place else []
    given = _parameters(query)
    if "host" in given:
        hosts = [each if each.startswith("/") else _host(each) for each in given["host"].split(",")]
    elif "[" in place and "," in place:
        # The driver's parser refuses several hosts with one in brackets from Python 3.14 on.
        given = {
            **given,
            "host": ",".join(hosts),
            "port": ",".join(str(host_and_port(each, _PORT)[1]) for each in place.split(",")),
        }
        place = ""
    _check(given)
    passed = {name: value for name, value in given.items() if name in _DRIVER}
    # The driver ends the password at the first @.
    netloc = f"{user.replace('@', '%40')}{at}{place}"
    return PostgresUrl(
        # Built by hand: `urlunsplit` omits the slashes when the host is empty.
        dsn=f"postgresql://{netloc}{path}{'?' if passed else ''}{urlencode(passed)}",
        hosts=tuple(each for each in hosts if each),
        application_name=given.get("application_name"),
        connect_timeout=_seconds(given.get("connect_timeout")),
        parameters=given,
    )


def split_url(url: str) -> tuple[str, str, str, str]:
    """Return user with password, hosts, path and query of a URL. The standard library refuses several hosts with one in
    brackets."""
    rest, _, query = url.partition("://")[2].partition("?")
    place, slash, path = rest.partition("/")
    user, _, hosts = place.rpartition("@")
    return user, hosts, f"{slash}{path}", query


def host_and_port(text: str, default: int) -> tuple[str, int]:
    """Parse `host:port` or `host`; an IPv6 address stands in brackets. Raises: ValueError."""
    match = _HOST.match(text)
    if match is None or (match[2] is not None and not 0 < int(match[2]) < 65536):
        raise ValueError("must be a URL with hosts written host:port, several with commas between")
    return unquote(match[1].strip("[]")), int(match[2] or default)


def _host(text: str) -> str:
    return host_and_port(text, _PORT)[0]


def _parameters(query: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        raise ValueError("must have its parameters as name=value, with & between") from None
    given: dict[str, str] = {}
    for name, value in pairs:
        name = "dbname" if name == "database" else name
        if name not in _DRIVER and name not in _OURS and name not in _WITHOUT_EFFECT:
            raise ValueError(
                f"has the parameter {name if name.isprintable() else '?'}, which is not understood: take it out; "
                'docs/operations.md "Postgres" lists those that are'
            )
        if not value:
            raise ValueError(f"has the parameter {name} without a value")
        given[name] = value
    return given


def _check(given: Mapping[str, str]) -> None:
    """Raises: ValueError for a value whose effect is not supported here."""
    for name, value in given.items():
        allowed = _WITHOUT_EFFECT.get(name)
        if allowed is not None and value not in allowed:
            raise ValueError(f"has a value of {name} that is not supported; supported: {', '.join(sorted(allowed))}")
    mode = given.get("sslmode")
    if given.get("channel_binding") == "require" and mode not in _TLS:
        raise ValueError("has channel_binding=require, which needs TLS: add sslmode=verify-full")
    if given.get("sslrootcert") == "system" and mode != "verify-full":
        raise ValueError("has sslrootcert=system, which needs sslmode=verify-full")
    ports = given.get("port", "1").split(",")
    if not all(each.isascii() and each.isdigit() and 0 < int(each) < 65536 for each in ports):
        raise ValueError("has a parameter port that is no port, nor several with commas between")


def _seconds(text: str | None) -> float | None:
    """Parse as libpq does: zero and negative numbers mean no limit."""
    if text is None:
        return None
    if not re.fullmatch(r"-?[0-9]{1,6}", text):
        raise ValueError("has a parameter connect_timeout that is no whole number of seconds")
    return float(text) if int(text) > 0 else None

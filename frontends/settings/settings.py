"""Settings of an installation, a field each with its meaning and its reader (docs/cli.md "Settings"); `sources.py`
reads them."""

import os
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address
from pathlib import Path
from typing import Annotated, Any, get_type_hints
from urllib.parse import urlsplit

import msgspec

from ...core.domain.accounts.written_bytes import DailyBytes
from ...core.domain.masked import Masked
from ...core.domain.money import Rub
from ...core.domain.operators.guarded import Guarded
from ...ports.alarms import QuietHours
from ...ports.database_urls import is_postgres_url, read_postgres_url, split_url, sqlite_path, sqlite_url
from ...ports.redis_urls import is_watched, read_redis_url
from ...ports.settings import Option, option_of, read_boolean, read_choice, read_host, read_integer, read_path, setting
from .operator import Names
from .plugins import reads_name, reads_names
from .readers import (
    masked_url,
    read_address,
    read_cell,
    read_database,
    read_direct_database,
    read_guarded,
    read_issuer,
    read_networks,
    read_operator_key,
    read_pepper,
    read_quiet_hours,
    read_redis,
    read_rub,
    read_seconds,
    read_telegram_token,
    read_vault_keys,
)

PREFIX = "CAMBIST_"


_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  (a name for each, not an address to bind)


class VaultKeys(Masked, frozen=True, kw_only=True):
    """The vault's keys by id, the id of the encrypting key, and the pepper of fingerprints. Its repr hides them."""

    keys: Mapping[int, bytes]
    current: int
    pepper: bytes


def _own_address(host: str, port: int) -> str:
    host = _ANYWHERE.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_near(url: str) -> bool:
    """Return whether a server is on this machine, judged by its address: a loopback address or name, or none. If the
    URL names several servers, all of them must be."""
    if is_postgres_url(url):
        return all(map(_is_near, read_postgres_url(url).hosts))
    if is_watched(url):
        return all(map(_is_near, read_redis_url(url).hosts))
    return _is_near(urlsplit(url).hostname or "")


def _is_near(host: str) -> bool:
    if not host or host.startswith("/") or host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _masked(url: str | None) -> str | None:
    return None if url is None else masked_url(url)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of an installation; `cambist config check` explains each. Empty addresses are derived from the others,
    and two permissions from the addresses."""

    data_dir: Annotated[Path, setting("folder of the SQLite database and the key file", read_path)] = Path(
        "cambist-data"
    )
    database_url: Annotated[
        str | None,
        setting(
            "postgresql://…, sqlite:///path, memory:// or a package's own; none: SQLite in data_dir",
            read_database,
            secret=True,
            shown=_masked,
        ),
    ] = None
    """`postgresql://…`, `sqlite:///path`, `memory://` or a URL of another package; None: SQLite in `data_dir`. May
    contain a password."""
    database_direct_url: Annotated[
        str | None,
        setting(
            "postgresql://… past a pooler by transaction, to which CAMBIST_DATABASE_URL leads; none: there is no such "
            "pooler",
            read_direct_database,
            secret=True,
            shown=_masked,
        ),
    ] = None
    database_plans: Annotated[
        str,
        setting(
            "plans of Postgres' statements: generic, made once; custom, made for the values each time, for Citus",
            read_choice("generic", "custom"),
        ),
    ] = "generic"
    database_clock: Annotated[
        str,
        setting(
            "how Postgres' clock decides about jobs: inline, in the statement that claims them; apart, read before it, "
            "for Citus",
            read_choice("inline", "apart"),
        ),
    ] = "inline"
    redis_url: Annotated[
        str | None,
        setting(
            "redis://… or redis+sentinel://… for limits and wake-ups that processes share; none: this process's memory",
            read_redis,
            secret=True,
            shown=_masked,
        ),
    ] = None
    cell: Annotated[
        str | None,
        setting("name of this installation among several, in API keys and maps; none: it is the only one", read_cell),
    ] = None
    host: Annotated[str, setting("address to listen on", read_host)] = "127.0.0.1"
    port: Annotated[int, setting("port to listen on; 0: any free port", read_integer(0, 65535))] = 8080
    workers: Annotated[int, setting("number of concurrent jobs", read_integer(1, 1024))] = 64
    base_url: Annotated[str, setting("public address of the API for merchants", read_address)] = ""
    pay_url: Annotated[str, setting("public address of the payment window for payers", read_address)] = ""
    app_url: Annotated[str, setting("public address of hosted pages", read_address)] = ""
    issuer: Annotated[
        str, setting("name and details of the operator in acts and agents' reports of merchants", read_issuer)
    ] = ""
    trusted_proxies: Annotated[
        tuple[IPv4Network | IPv6Network, ...],
        setting(
            "networks whose X-Forwarded-For is trusted; none: the header is ignored",
            read_networks,
            shown=lambda networks: [str(network) for network in networks],
        ),
    ] = ()
    pages_per_minute: Annotated[
        int,
        setting(
            "requests of hosted pages (/p, /s, /kyc) allowed per minute and client address", read_integer(60, 1_000_000)
        ),
    ] = 600
    notifications_per_minute: Annotated[
        int, setting("provider notifications allowed per minute and client address", read_integer(60, 1_000_000))
    ] = 3000
    daily_mb_live: Annotated[
        int,
        setting(
            "megabytes that one account may write per UTC day in live mode; above it 429", read_integer(1, 1_000_000)
        ),
    ] = 2048
    daily_mb_test: Annotated[
        int,
        setting(
            "megabytes that one account may write per UTC day in test mode; above it 429", read_integer(1, 1_000_000)
        ),
    ] = 200
    test_data_days: Annotated[
        int, setting("days after which test data is deleted automatically; 0: never", read_integer(0, 3650))
    ] = 90
    connections_per_address: Annotated[
        int, setting("connections that one address may have open; no limit for trusted proxies", read_integer(1, 65536))
    ] = 512
    rate_sources: Annotated[
        tuple[str, ...],
        setting(
            "sources of the USDT rate in live mode, in order of use; test mode has its simulator", reads_names("rates")
        ),
    ] = ("simulator",)
    banks: Annotated[tuple[str, ...], setting("banks of live mode, in order of trial", reads_names("bank"))] = (
        "simulator",
    )
    test_banks: Annotated[tuple[str, ...], setting("banks of test mode", reads_names("bank"))] = ("simulator",)
    kyc: Annotated[str, setting("verifier of clients", reads_name("kyc"))] = "simulator"
    kyc_former: Annotated[
        tuple[str, ...], setting("former verifiers, still queried about their unfinished checks", reads_names("kyc"))
    ] = ()
    chain: Annotated[str, setting("service that finds delivery proofs on blockchains", reads_name("chain"))] = (
        "simulator"
    )
    deposits: Annotated[str, setting("service that receives USDT in live mode", reads_name("deposits"))] = "simulator"
    payouts: Annotated[str, setting("service that sends USDT in live mode", reads_name("payouts"))] = "simulator"
    notifier: Annotated[str, setting("service that posts webhooks", reads_name("notifier"))] = "http"
    files: Annotated[str, setting("store of uploaded documents; local: in data_dir", reads_name("files"))] = "local"
    receipts: Annotated[
        str,
        setting(
            "cash register for receipts of live payments whose bank writes none; none: no register",
            reads_name("receipts"),
        ),
    ] = "none"
    alarms: Annotated[
        tuple[str, ...], setting("channels for alarms to operators; none: no alarms are sent", reads_names("alarms"))
    ] = ()
    alarm_quiet_hours: Annotated[
        QuietHours | None,
        setting(
            "time in which only urgent alarms are sent, such as 22:00-08:00+03:00; none: never",
            read_quiet_hours,
            shown=_text,
        ),
    ] = None
    alarm_digest_minutes: Annotated[
        int, setting("minutes for which non-urgent alarms are collected after a message", read_integer(0, 1440))
    ] = 15
    alarm_backup_hours: Annotated[
        int, setting("age of the last backup, in hours, above which an alarm is sent; 0: never", read_integer(0, 8760))
    ] = 30
    notifications_telegram_token: Annotated[
        str | None,
        setting(
            "token of the bot that sends notifications to merchants' people; none: only by e-mail",
            read_telegram_token,
            secret=True,
        ),
    ] = None
    notifications_telegram_url: Annotated[
        str | None, setting("address of this bot's API; default https://api.telegram.org", read_address)
    ] = None
    allow_live_simulators: Annotated[
        bool | None,
        setting(
            "whether live mode may use simulators; default: only if base_url, pay_url and app_url are loopback",
            read_boolean,
        ),
    ] = None
    """Whether live mode may use simulators, which move no money and are controlled by payers. None: only if all three
    addresses are this machine's own. If false, live mode has no simulators."""
    allow_loopback_webhooks: Annotated[
        bool | None,
        setting(
            "whether webhooks of test mode may go to this machine itself; default as for live simulators", read_boolean
        ),
    ] = None
    """Whether webhooks of test mode may go to this machine itself, where other services may listen; None: as above."""
    shutdown_seconds: Annotated[
        float, setting("seconds that the process may take to end after SIGTERM", read_seconds)
    ] = 10.0
    lame_duck_seconds: Annotated[
        float, setting("seconds of these in which `api` still serves while /readyz answers 503", read_seconds)
    ] = 3.0
    """Seconds that a process beside others continues to serve after SIGTERM, as part of `shutdown_seconds`; at most
    half of it."""
    log_level: Annotated[
        str, setting("lowest level that is logged", read_choice("debug", "info", "warning", "error"))
    ] = "info"
    log_format: Annotated[
        str, setting("format of log lines; auto: text on a terminal, else JSON", read_choice("auto", "text", "json"))
    ] = "auto"
    access_log: Annotated[
        str,
        setting(
            "requests that are logged: none, only those answered 5xx or not at all, or all",
            read_choice("off", "errors", "all"),
        ),
    ] = "errors"
    metrics_host: Annotated[str, setting("address at which metrics are served", read_host)] = "127.0.0.1"
    metrics_port: Annotated[
        int | None,
        setting(
            "port at which this process serves its metrics; 0: any free port; none: no metrics", read_integer(0, 65535)
        ),
    ] = None
    four_eyes: Annotated[
        tuple[str, ...],
        setting(
            f"actions that wait for a second operator: {', '.join(Guarded)}, or all; none: one operator is enough",
            read_guarded,
        ),
    ] = ()
    four_eyes_refund_above: Annotated[
        Rub,
        setting(
            "with refunds in four_eyes: sum of a payment's refunds, in RUB, from which it applies; 0: always",
            read_rub,
            shown=str,
        ),
    ] = Rub(0)
    operator_names: Annotated[
        str,
        setting(
            "source of an operator's name: given (CAMBIST_OPERATOR, --operator), login, or key", read_choice(*Names)
        ),
    ] = "given"
    operator_key: Annotated[
        str | None,
        setting(
            "key of the operator of a command or the console, if operator_names is key", read_operator_key, secret=True
        ),
    ] = None
    four_eyes_days: Annotated[
        int, setting("days that an action waits for the second operator", read_integer(1, 90))
    ] = 3
    tracing: Annotated[
        bool, setting("whether to trace with OpenTelemetry, as set in the OTEL_* variables", read_boolean)
    ] = False
    vault: VaultKeys | None = None
    """None: keys from a key file in `data_dir`, made at the first start."""
    notification_networks: Mapping[str, tuple[IPv4Network | IPv6Network, ...]] = msgspec.field(default_factory=dict)
    """By adapter (plugins.py: `setting_key`): networks of its notifications, instead of the adapter's
    own."""
    providers: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Values of adapters' settings by full name, such as `tbank_terminal_key`. May contain credentials."""

    def __post_init__(self) -> None:
        fill = msgspec.structs.force_setattr
        fill(self, "base_url", self.base_url or _own_address(self.host, self.port))
        fill(self, "pay_url", self.pay_url or self.base_url)
        fill(self, "app_url", self.app_url or self.base_url)
        is_local = all(map(is_near, (self.base_url, self.pay_url, self.app_url)))
        for name in ("allow_live_simulators", "allow_loopback_webhooks"):
            fill(self, name, is_local if getattr(self, name) is None else getattr(self, name))

    @classmethod
    def load(
        cls, *, environ: Mapping[str, str] | None = None, folder: Path | None = None, **given: object
    ) -> "Settings":
        """Read the settings that `cambist serve` reads: `cambist.toml` in `folder`, over it the CAMBIST_ variables of
        `environ`, over them `given`, as text or as TOML has them. The defaults are this process's environment and
        current folder. Raises: SettingsError, with all faults at once; TypeError for a name that is no setting.
        """
        from .sources import load

        loaded = load(os.environ if environ is None else environ, given, folder or Path.cwd())
        unknown = sorted(given.keys() - loaded.options.keys() - {"config"})
        if unknown:
            raise TypeError(f"no such settings: {', '.join(unknown)}")
        return loaded.settings

    def listening_on(self, port: int) -> "Settings":
        """Return the settings with the port that the system chose for port 0, also in the addresses derived from it."""
        old, new = _own_address(self.host, self.port), _own_address(self.host, port)

        def moved(url: str) -> str:
            return new if url == old else url

        return msgspec.structs.replace(
            self, port=port, base_url=moved(self.base_url), pay_url=moved(self.pay_url), app_url=moved(self.app_url)
        )

    @property
    def storage_url(self) -> str:
        """`database_url`, or by default the SQLite file in `data_dir`."""
        return self.database_url or sqlite_url(self.data_dir / "cambist.db")

    @property
    def session_url(self) -> str:
        """URL of the database for everything that needs a session of its own."""
        return (is_postgres_url(self.storage_url) and self.database_direct_url) or self.storage_url

    @property
    def sqlite_path(self) -> Path | None:
        """Path of the SQLite database; None for another database."""
        return sqlite_path(self.storage_url)

    @property
    def database_location(self) -> str:
        """The database's location for people: a file, or servers and name without user, password and parameters."""
        _, hosts, path, _ = split_url(self.storage_url)
        return str(self.sqlite_path or f"{hosts}{path}")

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        shown = {name: getattr(self, name) for name in self.__struct_fields__}
        shown |= {name: OPTIONS[name].show(value) for name, value in shown.items() if name in SECRETS}
        shown["providers"] = dict.fromkeys(self.providers, "***")
        return list(shown.items())

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"


def _options() -> dict[str, Option]:
    hints = get_type_hints(Settings, include_extras=True)
    found = {name: option_of(name, hint) for name, hint in hints.items()}
    return {name: option for name, option in found.items() if option is not None}


OPTIONS: Mapping[str, Option] = {
    **_options(),
    "vault_key": Option(
        name="vault_key",
        read=read_vault_keys,
        secret=True,
        meaning="key that encrypts confidential values in the database; none: the key file in data_dir",
    ),
    "vault_pepper": Option(
        name="vault_pepper",
        read=read_pepper,
        secret=True,
        meaning="key of the digests of API secrets; none: the key file in data_dir",
    ),
}
"""Settings of the installation itself, in the order of `cambist config check`."""
SECRETS = frozenset(name for name, option in OPTIONS.items() if option.secret)


class SettingFault(msgspec.Struct, frozen=True, kw_only=True):
    """One invalid setting: its name, the origin of the value, and the fault."""

    name: str
    origin: str
    message: str


class SettingsError(Exception):
    """The settings are invalid. It has all faults at once."""

    def __init__(self, faults: tuple[SettingFault, ...]) -> None:
        super().__init__("; ".join(f"{fault.origin}: {fault.message}" for fault in faults))
        self.faults = faults

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the state, because the arguments are not those of Exception."""
        return type(self).__new__, (type(self), *self.args), self.__dict__


def daily_bytes(settings: Settings) -> DailyBytes:
    """Return how much one account may write in a day."""
    return DailyBytes(live=settings.daily_mb_live, test=settings.daily_mb_test)


def for_many_processes(settings: Settings) -> Settings:
    """Return the settings if several processes on several machines can share them (docs/cli.md "Serving").

    Raises: SettingsError with all reasons why they cannot.
    """
    faults: list[SettingFault] = []

    def need(name: str, message: str) -> None:
        faults.append(SettingFault(name=name, origin=f"{PREFIX}{name.upper()}", message=message))

    if not settings.storage_url.startswith("postgresql://"):
        need("database_url", "must be postgresql://…: several processes cannot share SQLite or memory")
    if settings.redis_url is None:
        need("redis_url", "is needed: with counters in memory every process would grant the whole limit")
    if settings.vault is None:
        need(
            "vault_key",
            "and CAMBIST_VAULT_PEPPER are needed: every machine would make a key file of its own; where one was made "
            "already (vault.key in data_dir), give its keys and its pepper; else `cambist vault new` prints both",
        )
    if faults:
        raise SettingsError(tuple(faults))
    return settings

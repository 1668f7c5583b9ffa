"""Settings of an installation (docs/cli.md "Settings"); `sources.py` reads them."""

from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ...core.domain.accounts.written_bytes import DailyBytes
from ...core.domain.masked import Masked
from ...core.domain.money import Rub
from ...ports.alarms import QuietHours
from ...ports.database_urls import is_postgres_url, read_postgres_url, sqlite_path, sqlite_url
from .readers import masked_url

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
    return _is_near(urlsplit(url).hostname or "")


def _is_near(host: str) -> bool:
    if not host or host.startswith("/") or host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of an installation. Empty addresses are derived from the others, and two permissions from the
    addresses."""

    data_dir: Path = Path("cambist-data")
    database_url: str | None = None
    """`postgresql://…`, `sqlite:///path`, `memory://` or a URL of another package; None: SQLite in `data_dir`. May
    contain a password."""
    redis_url: str | None = None
    """Redis in which several processes count requests and wake each other; None: in memory. May contain a password."""
    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 64
    """Number of concurrent jobs (deliveries, expiries, recoveries)."""
    base_url: str = ""
    pay_url: str = ""
    app_url: str = ""
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    """Networks whose X-Forwarded-For is trusted; none: the header is ignored."""
    pages_per_minute: int = 600
    daily_mb_live: int = 2048
    """Megabytes that one account may write in a UTC day in live mode."""
    daily_mb_test: int = 200
    test_data_days: int = 90
    """Days after which test data is deleted; 0: never."""
    connections_per_address: int = 512
    """Connections that one address may have open; trusted proxies have no limit."""
    vault: VaultKeys | None = None
    """None: keys from a key file in `data_dir`, made at the first start."""
    rate_sources: tuple[str, ...] = ("simulator",)
    banks: tuple[str, ...] = ("simulator",)
    test_banks: tuple[str, ...] = ("simulator",)
    kyc: str = "simulator"
    kyc_former: tuple[str, ...] = ()
    chain: str = "simulator"
    deposits: str = "simulator"
    payouts: str = "simulator"
    notifier: str = "http"
    files: str = "local"
    alarms: tuple[str, ...] = ()
    alarm_quiet_hours: QuietHours | None = None
    alarm_digest_minutes: int = 15
    alarm_backup_hours: int = 30
    notifications_telegram_token: str | None = None
    notifications_telegram_url: str | None = None
    allow_live_simulators: bool | None = None
    """Whether live mode may use simulators, which move no money and are controlled by payers. None: only if all three
    addresses are this machine's own. If false, live mode has no simulators."""
    allow_loopback_webhooks: bool | None = None
    """Whether webhooks of test mode may go to this machine itself, where other services may listen; None: as above."""
    shutdown_seconds: float = 10.0
    lame_duck_seconds: float = 3.0
    """Seconds that a process beside others continues to serve after SIGTERM, as part of `shutdown_seconds`; at most
    half of it."""
    log_level: str = "info"
    log_format: str = "auto"
    access_log: str = "errors"
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = None
    """None: metrics are neither counted nor served."""
    four_eyes: tuple[str, ...] = ()
    """Operator actions that need a second operator (core/domain/operators/guarded.py: `Guarded`)."""
    four_eyes_refund_above: Rub = Rub(0)
    four_eyes_days: int = 3
    notifications_per_minute: int = 3000
    """Provider notifications that one address may post in a minute."""
    notification_networks: Mapping[str, tuple[IPv4Network | IPv6Network, ...]] = msgspec.field(default_factory=dict)
    """By adapter (plugins.py: `setting_key`): networks of its notifications, instead of the adapter's
    own."""
    providers: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Values of adapters' settings by full name, such as `tbank_terminal_key`. May contain credentials."""
    operator_names: str = "given"
    """Source of operators' names (frontends/settings/operator.py: `Names`)."""
    operator_key: str | None = None
    """Key of the operator who runs this command, if `operator_names` is `key`."""
    tracing: bool = False

    def __post_init__(self) -> None:
        fill = msgspec.structs.force_setattr
        fill(self, "base_url", self.base_url or _own_address(self.host, self.port))
        fill(self, "pay_url", self.pay_url or self.base_url)
        fill(self, "app_url", self.app_url or self.base_url)
        is_local = all(map(is_near, (self.base_url, self.pay_url, self.app_url)))
        for name in ("allow_live_simulators", "allow_loopback_webhooks"):
            fill(self, name, is_local if getattr(self, name) is None else getattr(self, name))

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
    def sqlite_path(self) -> Path | None:
        """Path of the SQLite database; None for another database."""
        return sqlite_path(self.storage_url)

    @property
    def database_location(self) -> str:
        """The database's location for people: a file, or servers and name without user, password and parameters."""
        parts = urlsplit(self.storage_url)
        return str(self.sqlite_path or f"{parts.netloc.rpartition('@')[2]}{parts.path}")

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        shown = {name: getattr(self, name) for name in self.__struct_fields__}
        for name in ("database_url", "redis_url"):
            if shown[name] is not None:
                shown[name] = masked_url(shown[name])
        for name in ("operator_key", "notifications_telegram_token"):
            shown[name] = None if shown[name] is None else "***"
        shown["providers"] = dict.fromkeys(self.providers, "***")
        return list(shown.items())

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"


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

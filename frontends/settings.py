"""The settings of an installation: defaults, then `cambist.toml`, then the environment, then flags
(docs/cli.md "Settings").

Every value is read by the one row of `OPTIONS` that names it, wherever it comes from, and all faults are told at once.
No message quotes a value: it may be a secret that stands in the wrong place.
"""

import re
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ..core.domain.masked import Masked
from ..core.domain.money import Rub
from ..core.domain.operators.pending_acts import Guarded
from ..core.domain.shapes import nearest
from ..ports.alarms import QuietHours
from .operator import VARIABLE as OPERATOR
from .option_readers import VaultKey, masked_url, read_networks
from .options import OPTIONS, Option
from .provider_options import ALL_OPTIONS, PROVIDER_OPTIONS

PREFIX = "CAMBIST_"
CONFIG = "CAMBIST_CONFIG"
CONFIG_NAME = "cambist.toml"
OF_LISTEN = ("CAMBIST_API_KEY", "CAMBIST_API_SECRET")
"""Read by `cambist listen` itself: a merchant's, not the service's."""

_NETWORKS = re.compile(r"([a-z0-9_]{1,64})_notice_networks\Z")
"""Names of the settings of adapters: `yookassa_notice_networks`, or CAMBIST_YOOKASSA_NOTICE_NETWORKS."""

_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  (a name for each, not an address to bind)


class VaultKeys(Masked, frozen=True, kw_only=True):
    """The vault's keys by id, which of them seals, and the pepper of fingerprints. Its repr hides them."""

    keys: Mapping[int, bytes]
    current: int
    pepper: bytes


def _own_address(host: str, port: int) -> str:
    host = _ANYWHERE.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_near(url: str) -> bool:
    """Whether a server is on this very machine, as far as its address tells: a loopback address or a name that stands
    for one, or none at all."""
    host = urlsplit(url).hostname
    if not host or host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What an installation is told. The three addresses fill themselves in when they are left empty, and by them two
    permissions do."""

    data_dir: Path = Path("cambist-data")
    database_url: str | None = None
    """`postgresql://…`, `sqlite:///path`, `memory://` or what a package brings; None: SQLite in `data_dir`. May hold a
    password."""
    redis_url: str | None = None
    """Where several processes count requests together and wake each other; None: in memory. May hold a password."""
    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 64
    """Jobs (deliveries, expiries, recoveries) under way at once."""
    base_url: str = ""
    pay_url: str = ""
    app_url: str = ""
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    """Peers whose X-Forwarded-For is believed; none: the header is ignored."""
    pages_per_minute: int = 600
    connections_per_address: int = 512
    """Open ones at a time; of trusted proxies any number."""
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
    allow_live_simulators: bool | None = None
    """Whether live mode may work on simulators, which move no money and which payers command; None: where all three
    addresses are this machine's own. Without it nothing simulated is wired in live mode."""
    allow_loopback_webhooks: bool | None = None
    """Whether webhooks of test mode may go to this machine itself, where other services may listen; None: as above."""
    shutdown_seconds: float = 10.0
    lame_duck_seconds: float = 3.0
    """Of `shutdown_seconds`, half of them at most: how long one that serves beside others goes on after SIGTERM."""
    log_level: str = "info"
    log_format: str = "auto"
    access_log: str = "errors"
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = None
    """None: metrics are neither counted nor served."""
    four_eyes: tuple[str, ...] = ()
    """Which acts of operators wait for a second one (core/domain/operators/pending_acts.py: `Guarded`)."""
    four_eyes_refund_above: Rub = Rub(0)
    four_eyes_days: int = 3
    notices_per_minute: int = 3000
    """Notices of providers that one address may post in a minute."""
    notice_networks: Mapping[str, tuple[IPv4Network | IPv6Network, ...]] = msgspec.field(default_factory=dict)
    """By adapter (option_readers.py: `notice_key`): where its notices come from, instead of what it says itself."""
    providers: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """What was set for shipped adapters, by the option's name (provider_options.py). May hold credentials."""
    operator_names: str = "given"
    """Whose word an operator's name is (frontends/operator.py: `Names`)."""
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
        """The same with the port that the system chose for port 0, in the addresses made of it too."""
        old, new = _own_address(self.host, self.port), _own_address(self.host, port)

        def moved(url: str) -> str:
            return new if url == old else url

        return msgspec.structs.replace(
            self, port=port, base_url=moved(self.base_url), pay_url=moved(self.pay_url), app_url=moved(self.app_url)
        )

    @property
    def storage_url(self) -> str:
        """`database_url`, or the SQLite file in `data_dir` that stands for none."""
        return self.database_url or f"sqlite:///{self.data_dir / 'cambist.db'}"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        shown = {name: getattr(self, name) for name in self.__struct_fields__}
        for name in ("database_url", "redis_url"):
            if shown[name] is not None:
                shown[name] = masked_url(shown[name])
        shown["providers"] = dict.fromkeys(self.providers, "***")
        return list(shown.items())

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"


class SettingFault(msgspec.Struct, frozen=True, kw_only=True):
    """One wrong setting: its name, where the value came from, and what is wrong with it."""

    name: str
    origin: str
    message: str


class SettingsError(Exception):
    """The settings cannot be used. All faults at once."""

    def __init__(self, faults: tuple[SettingFault, ...]) -> None:
        super().__init__("; ".join(f"{fault.origin}: {fault.message}" for fault in faults))
        self.faults = faults


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """One setting as it may be shown. A secret's value is `***`."""

    name: str
    value: Any
    origin: str
    meaning: str


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """Settings, and how they came to be."""

    settings: Settings
    explained: tuple[Explained, ...]
    warnings: tuple[str, ...]
    config_file: Path | None


class _Raw(msgspec.Struct, frozen=True):
    """A value as it was found."""

    value: Any
    origin: str


def load(environ: Mapping[str, str], flags: Mapping[str, Any], folder: Path) -> Loaded:
    """Read the settings.

    `flags` holds what was given on the command line, by the options' names; None counts as not given. `config` among
    them names the file, before CAMBIST_CONFIG, before `cambist.toml` in `folder`.

    Raises: SettingsError.
    """
    faults: list[SettingFault] = []
    warnings: list[str] = []
    config = _config_file(environ, flags, folder)
    raw = _from_file(config, faults, warnings)
    raw.update(_from_environment(environ, faults, warnings))
    raw.update(
        {name: _Raw(flags[name], f"--{name.replace('_', '-')}") for name in ALL_OPTIONS if flags.get(name) is not None}
    )
    values: dict[str, Any] = {}
    for name, found in raw.items():
        try:
            values[name] = read_networks(found.value) if _NETWORKS.match(name) else ALL_OPTIONS[name].read(found.value)
        except ValueError as error:
            faults.append(SettingFault(name=name, origin=found.origin, message=str(error)))
    vault = _vault(values, raw, faults)
    if "four_eyes_refund_above" in values and Guarded.REFUNDS not in values.get("four_eyes", ()):
        message = f"says nothing without {Guarded.REFUNDS} in {PREFIX}FOUR_EYES"
        origin = raw["four_eyes_refund_above"].origin
        faults.append(SettingFault(name="four_eyes_refund_above", origin=origin, message=message))
    if faults:
        raise SettingsError(tuple(faults))
    plain = {name: values[name] for name in values.keys() & OPTIONS.keys() - {"vault_key", "vault_pepper"}}
    networks = {match[1]: values[name] for name in sorted(values) if (match := _NETWORKS.match(name))}
    providers = {name: values[name] for name in PROVIDER_OPTIONS if name in values}
    settings = Settings(**plain, vault=vault, notice_networks=networks, providers=providers)
    return Loaded(
        settings=settings,
        explained=(
            *(_explain(option, getattr(settings, name, None), raw.get(name)) for name, option in OPTIONS.items()),
            *(_explain(PROVIDER_OPTIONS[name], value, raw[name]) for name, value in providers.items()),
            *(_explain_networks(adapter, settings, raw) for adapter in networks),
        ),
        warnings=tuple(warnings),
        config_file=config,
    )


def _config_file(environ: Mapping[str, str], flags: Mapping[str, Any], folder: Path) -> Path | None:
    named = flags.get("config") or environ.get(CONFIG)
    if named:
        return Path(named)
    usual = folder / CONFIG_NAME
    return usual if usual.exists() else None


def _from_file(config: Path | None, faults: list[SettingFault], warnings: list[str]) -> dict[str, _Raw]:
    if config is None:
        return {}
    import tomllib

    def fault(message: str) -> dict[str, _Raw]:
        faults.append(SettingFault(name="config", origin=str(config), message=message))
        return {}

    try:
        table = tomllib.loads(config.read_text("utf-8"))
    except OSError as error:
        return fault(f"cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        return fault("is not UTF-8")
    except tomllib.TOMLDecodeError as error:
        return fault(f"is not TOML: {error}")
    known = [*(name for name in ALL_OPTIONS if name in table), *(name for name in table if _NETWORKS.match(name))]
    warnings += [
        f"{config}: {name!r} is no setting{_nearest(name, ALL_OPTIONS)}" for name in table if name not in known
    ]
    return {name: _Raw(table[name], f"{config}: {name}") for name in known}


def _from_environment(environ: Mapping[str, str], faults: list[SettingFault], warnings: list[str]) -> dict[str, _Raw]:
    """An empty variable counts as absent: that is what `${NAME:-}` of a compose file leaves behind."""
    found: dict[str, _Raw] = {}
    known = {CONFIG, OPERATOR, *OF_LISTEN}
    for name, option in ALL_OPTIONS.items():
        variable = f"{PREFIX}{name.upper()}"
        known.add(variable)
        if environ.get(variable):
            found[name] = _Raw(environ[variable], variable)
        if not option.secret:
            continue
        in_file = f"{variable}_FILE"
        known.add(in_file)
        if not environ.get(in_file):
            continue
        if name in found:
            faults.append(SettingFault(name=name, origin=in_file, message=f"is set beside {variable}; keep one"))
            continue
        try:
            found[name] = _Raw(Path(environ[in_file]).read_text("utf-8").rstrip("\r\n"), in_file)
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            faults.append(SettingFault(name=name, origin=in_file, message=f"names a file that cannot be read: {why}"))
    for variable in environ:
        name = variable.removeprefix(PREFIX).lower()
        if variable == f"{PREFIX}{name.upper()}" and _NETWORKS.match(name):
            known.add(variable)
            if environ[variable]:
                found[name] = _Raw(environ[variable], variable)
    strange = sorted(variable for variable in environ if variable.startswith(PREFIX) and variable not in known)
    warnings += [f"{variable} is no setting{_nearest(variable, known)}" for variable in strange]
    return found


def _nearest(name: str, known: Iterable[str]) -> str:
    near = nearest(name, known)
    return f"; did you mean {near}?" if near else ""


def _vault(values: Mapping[str, Any], raw: Mapping[str, _Raw], faults: list[SettingFault]) -> VaultKeys | None:
    given = {name: raw[name] for name in ("vault_key", "vault_pepper") if name in raw}
    if len(given) == 1:
        [(name, found)] = given.items()
        missing = "vault_pepper" if name == "vault_key" else "vault_key"
        message = f"needs {PREFIX}{missing.upper()} beside it: both are given, or both lie in the key file"
        faults.append(SettingFault(name=name, origin=found.origin, message=message))
    if "vault_key" not in values or "vault_pepper" not in values:
        return None
    keys: tuple[VaultKey, ...] = values["vault_key"]
    return VaultKeys(keys={key.number: key.key for key in keys}, current=keys[0].number, pepper=values["vault_pepper"])


def _explain(option: Option, value: Any, found: _Raw | None) -> Explained:
    hidden = None if found is None else "***"
    value = hidden if option.shown is None else option.shown(value)
    return Explained(
        name=option.name,
        value=value,
        origin="default" if found is None else found.origin,
        meaning=option.meaning,
    )


def _explain_networks(adapter: str, settings: Settings, raw: Mapping[str, _Raw]) -> Explained:
    name = f"{adapter}_notice_networks"
    return Explained(
        name=name,
        value=[str(network) for network in settings.notice_networks[adapter]],
        origin=raw[name].origin,
        meaning="where this provider's notices come from, instead of what its adapter says; 0.0.0.0/0,::/0: anywhere",
    )


def for_many_processes(settings: Settings) -> Settings:
    """The same, where several processes on several machines can share it (docs/cli.md "Serving").

    Raises: SettingsError with all that keeps them from it, and why.
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
            "already (vault.key in data_dir), give its keys and its pepper",
        )
    if faults:
        raise SettingsError(tuple(faults))
    return settings

"""Sources of settings: defaults, then `cambist.toml`, then the environment, then flags (docs/cli.md "Settings").

Every value is read by its `Option`, whatever its source, and all faults are reported at once. No message quotes a
value: it may be a secret in the wrong place.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ...core.domain.operators.guarded import Guarded
from ...core.domain.shapes import nearest
from ...ports.database_urls import is_postgres_url
from ...ports.settings import Option
from ...ports.written_files import written_text
from .operator import VARIABLE as OPERATOR
from .operator import Names
from .options import ALL_OPTIONS, with_further
from .plugins import KINDS, PluginError, declared
from .readers import VaultKey, read_networks, read_pepper, read_vault_keys
from .settings import OPTIONS, PREFIX, SettingFault, Settings, SettingsError, VaultKeys

CONFIG = "CAMBIST_CONFIG"
CONFIG_NAME = "cambist.toml"
OF_MERCHANTS = ("CAMBIST_API_KEY", "CAMBIST_API_SECRET", "CAMBIST_URL")
"""Variables of `cambist listen`, `trigger` and `mcp`, which belong to a merchant and not to the service."""

_NETWORKS = re.compile(r"([a-z0-9_]{1,64})_notification_networks\Z")
"""Names of adapters' network settings: `yookassa_notification_networks`, or CAMBIST_YOOKASSA_NOTIFICATION_NETWORKS."""
_NAMING = {name: OPTIONS[name] for kind, known in KINDS.items() if kind != "storage" for name in known.settings}
"""Settings that name adapters, which bring settings of their own."""


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """One setting for display. A secret's value is `***`."""

    name: str
    value: Any
    origin: str
    """Its source; `default` or `not set` if it has none."""
    meaning: str

    @property
    def is_given(self) -> bool:
        return self.origin not in ("default", "not set")


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """Settings and their sources."""

    settings: Settings
    options: Mapping[str, Option]
    """Every known setting by name, also those of packages whose adapters are named."""
    explained: tuple[Explained, ...]
    warnings: tuple[str, ...]
    config_file: Path | None


class _Raw(msgspec.Struct, frozen=True):
    """A raw value with its source."""

    value: Any
    origin: str


def load(environ: Mapping[str, str], flags: Mapping[str, Any], folder: Path) -> Loaded:
    """Read the settings.

    `flags` has the values of the command line by option name; None counts as not given. The file is `config` in
    `flags`, else CAMBIST_CONFIG, else `cambist.toml` in `folder`.

    Raises: SettingsError.
    """
    faults: list[SettingFault] = []
    warnings: list[str] = []
    config = _config_file(environ, flags, folder)
    options = ALL_OPTIONS
    of_named: set[str] = set()
    named = _read(_found(environ, flags, config, _NAMING, [], []), _NAMING, [])
    for kind, adapter in _adapters(named):
        try:
            own = declared(kind, adapter)
            options = with_further(options, own)
            of_named |= {option.name for option in own}
        except PluginError as error:
            # The start reports it as an error. Commands that need no adapter, such as `backup`, go on.
            warnings.append(f"{error}; its settings are not read")
        except ValueError as error:
            faults.append(SettingFault(name=adapter, origin=f"the {kind} {adapter!r}", message=str(error)))
    raw = _found(environ, flags, config, options, faults, warnings)
    values = _read(raw, options, faults)
    vault = _vault(values, raw, faults)
    if "four_eyes_refund_above" in values and Guarded.REFUNDS not in values.get("four_eyes", ()):
        message = f"says nothing without {Guarded.REFUNDS} in {PREFIX}FOUR_EYES"
        origin = raw["four_eyes_refund_above"].origin
        faults.append(SettingFault(name="four_eyes_refund_above", origin=origin, message=message))
    if values.get("four_eyes") and values.get("operator_names", Names.GIVEN) == Names.GIVEN:
        message = "a name that anybody may give is no second person: set operator_names to key or login"
        faults.append(SettingFault(name="four_eyes", origin=raw["four_eyes"].origin, message=message))
    if "database_direct_url" in values and not is_postgres_url(values.get("database_url", "")):
        message = f"must be left out where {PREFIX}DATABASE_URL is not postgresql://…"
        origin = raw["database_direct_url"].origin
        faults.append(SettingFault(name="database_direct_url", origin=origin, message=message))
    if faults:
        raise SettingsError(tuple(faults))
    plain = {name: values[name] for name in values.keys() & OPTIONS.keys() - {"vault_key", "vault_pepper"}}
    networks = {match[1]: values[name] for name in sorted(values) if (match := _NETWORKS.match(name))}
    providers = {name: values[name] for name in options if name in values and name not in OPTIONS}
    settings = Settings(**plain, vault=vault, notification_networks=networks, providers=providers)
    shown = [name for name in options if name in providers or (name in of_named and name not in OPTIONS)]
    return Loaded(
        settings=settings,
        options=options,
        explained=(
            *(_explain(option, getattr(settings, name, values.get(name)), raw) for name, option in OPTIONS.items()),
            *(_explain(options[name], values.get(name), raw, "not set") for name in shown),
            *(_explain_networks(adapter, settings, raw) for adapter in networks),
        ),
        warnings=tuple(warnings),
        config_file=config,
    )


def _found(
    environ: Mapping[str, str],
    flags: Mapping[str, Any],
    config: Path | None,
    options: Mapping[str, Option],
    faults: list[SettingFault],
    warnings: list[str],
) -> dict[str, _Raw]:
    """Return the value of each setting that is set, from its strongest source."""
    raw = _from_file(config, options, faults, warnings)
    raw.update(_from_environment(environ, options, faults, warnings))
    raw.update(
        {name: _Raw(flags[name], f"--{name.replace('_', '-')}") for name in options if flags.get(name) is not None}
    )
    return raw


def _read(raw: Mapping[str, _Raw], options: Mapping[str, Option], faults: list[SettingFault]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, found in raw.items():
        try:
            values[name] = read_networks(found.value) if _NETWORKS.match(name) else options[name].read(found.value)
        except ValueError as error:
            faults.append(SettingFault(name=name, origin=found.origin, message=str(error)))
    return values


def _adapters(named: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the adapters that settings name and that may have settings: kind and name, each once."""
    found = [
        (kind, name)
        for kind, known in KINDS.items()
        for setting in known.settings
        for name in ([named[setting]] if isinstance(named.get(setting), str) else named.get(setting, ()))
        if name not in known.built_in
    ]
    return list(dict.fromkeys(found))


def _config_file(environ: Mapping[str, str], flags: Mapping[str, Any], folder: Path) -> Path | None:
    named = flags.get("config") or environ.get(CONFIG)
    if named:
        return Path(named)
    usual = folder / CONFIG_NAME
    return usual if usual.exists() else None


def _from_file(
    config: Path | None, options: Mapping[str, Option], faults: list[SettingFault], warnings: list[str]
) -> dict[str, _Raw]:
    if config is None:
        return {}
    import tomllib

    def fault(message: str) -> dict[str, _Raw]:
        faults.append(SettingFault(name="config", origin=str(config), message=message))
        return {}

    try:
        text = written_text(config.read_bytes())
    except OSError as error:
        return fault(f"cannot be read: {error.strerror}")
    except ValueError as error:
        return fault(f"cannot be read: {error}")
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return fault(f"is not TOML: {error}")
    known = [*(name for name in options if name in table), *(name for name in table if _NETWORKS.match(name))]
    warnings += [f"{config}: {name!r} is no setting{_nearest(name, options)}" for name in table if name not in known]
    return {name: _Raw(table[name], f"{config}: {name}") for name in known}


def _from_environment(
    environ: Mapping[str, str], options: Mapping[str, Option], faults: list[SettingFault], warnings: list[str]
) -> dict[str, _Raw]:
    """Read the environment. An empty variable counts as absent, as `${NAME:-}` in a compose file leaves it."""
    found: dict[str, _Raw] = {}
    known = {CONFIG, OPERATOR, *OF_MERCHANTS}
    for name, option in options.items():
        variable = option.variable
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
            found[name] = _Raw(written_text(Path(environ[in_file]).read_bytes()).rstrip("\r\n"), in_file)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
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
    return _joined(values["vault_key"], values["vault_pepper"])


def read_vault(key: str, pepper: str) -> VaultKeys:
    """Return the vault's keys from the texts that `cambist vault new` prints. Raises: ValueError."""
    try:
        return _joined(read_vault_keys(key), read_pepper(pepper))
    except ValueError as fault:
        raise ValueError(f"vault_key and vault_pepper: {fault}") from None


def _joined(keys: tuple[VaultKey, ...], pepper: bytes) -> VaultKeys:
    return VaultKeys(keys={key.number: key.key for key in keys}, current=keys[0].number, pepper=pepper)


def _explain(option: Option, value: Any, raw: Mapping[str, _Raw], unset: str = "default") -> Explained:
    found = raw.get(option.name)
    return Explained(
        name=option.name,
        value=option.show(value),
        origin=unset if found is None else found.origin,
        meaning=option.meaning,
    )


def _explain_networks(adapter: str, settings: Settings, raw: Mapping[str, _Raw]) -> Explained:
    name = f"{adapter}_notification_networks"
    return Explained(
        name=name,
        value=[str(network) for network in settings.notification_networks[adapter]],
        origin=raw[name].origin,
        meaning="networks of this provider's notifications, instead of the adapter's own; 0.0.0.0/0,::/0: anywhere",
    )

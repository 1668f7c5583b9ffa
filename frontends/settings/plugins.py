"""Adapters that settings name, shipped or of other packages, and how they are made.

A shipped adapter is a row in shipped.py; a package has an entry point. Both name an `AdapterFactory`: the adapter's
settings, and a function that makes it of `Tools` (`FileTools` for a file store) and these settings. An entry point may
also name a plain function that takes the tools alone; for a storage a coroutine function that opens it:
`async def open_mine(tools: StorageTools) -> Storage`. A package is imported only when a setting names it.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

import msgspec

from ...ports.alarms import Alarms
from ...ports.bank import Bank
from ...ports.chain import ChainWatcher
from ...ports.deposits import DepositWatcher
from ...ports.faults import NotConfigured, Unavailable
from ...ports.files import FileStore
from ...ports.kyc import KycVerifier
from ...ports.notifier import Notifier
from ...ports.payouts import UsdtSender
from ...ports.rates import RateSource
from ...ports.receipts import ReceiptRegister
from ...ports.settings import AdapterFactory, Option, SettingMissing, variable_of
from ...ports.storage import Storage
from ...ports.tools import FileTools, StorageTools
from .shipped import SHIPPED

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")


class PluginError(NotConfigured):
    """An external adapter cannot be used; the message names it and the reason."""


class NotInstalled(NotConfigured):
    """A library of one of this package's extras is missing; the message names the extra."""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of adapter that may come from another package."""

    group: str
    """Group of entry points."""
    port: type
    built_in: tuple[str, ...]
    """Names made by the composition root itself, besides those of shipped.py."""
    settings: tuple[str, ...]
    """Settings that name one or several."""


KINDS: Mapping[str, Kind] = {
    "bank": Kind(
        group="cambist.banks",
        port=Bank,
        built_in=("simulator", "simulator-asked"),
        settings=("banks", "test_banks"),
    ),
    "rates": Kind(
        group="cambist.rates",
        port=RateSource,
        built_in=("simulator",),
        settings=("rate_sources",),
    ),
    "kyc": Kind(group="cambist.kyc", port=KycVerifier, built_in=("simulator",), settings=("kyc", "kyc_former")),
    "chain": Kind(group="cambist.chains", port=ChainWatcher, built_in=("simulator",), settings=("chain",)),
    "deposits": Kind(group="cambist.deposits", port=DepositWatcher, built_in=("simulator",), settings=("deposits",)),
    "payouts": Kind(group="cambist.payouts", port=UsdtSender, built_in=("simulator",), settings=("payouts",)),
    "notifier": Kind(group="cambist.notifiers", port=Notifier, built_in=("http",), settings=("notifier",)),
    "files": Kind(group="cambist.files", port=FileStore, built_in=("local",), settings=("files",)),
    "receipts": Kind(
        group="cambist.receipts",
        port=ReceiptRegister,
        built_in=("none", "simulator"),
        settings=("receipts",),
    ),
    "alarms": Kind(group="cambist.alarms", port=Alarms, built_in=(), settings=("alarms",)),
    "storage": Kind(
        group="cambist.storages",
        port=Storage,
        built_in=("memory", "sqlite", "postgresql"),
        settings=("database_url",),
    ),
}
"""All kinds by name. A storage is named by the scheme of its URL."""


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """An adapter that a setting may name."""

    kind: str
    name: str
    comes_from: str
    """`cambist`, or the distribution and its version."""
    used_by: tuple[str, ...] = ()
    """The settings that name it now."""


def scheme_of(url: str) -> str:
    """Return the scheme of a database URL, which names its storage."""
    return url.partition(":")[0]


def has_own_schema(url: str) -> bool:
    """Return whether the database has this program's schema, which the program migrates, copies and inspects."""
    return scheme_of(url) in ("sqlite", "postgresql")


def found(kind: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a kind by name. Raises: PluginError when two packages claim one name."""
    by_name: dict[str, EntryPoint] = {}
    for point in entry_points(group=KINDS[kind].group):
        other = by_name.setdefault(point.name, point)
        if other.value != point.value:
            raise PluginError(
                f"two packages have a {kind} named {point.name!r}: {_origin(other)} and {_origin(point)}; remove one"
            )
    return by_name


def unknown(kind: str, name: str) -> str | None:
    """Return what is wrong with a name in a setting, without quoting it; None: nothing."""
    known = KINDS[kind]
    ours = (*known.built_in, *SHIPPED[kind])
    if name in ours:
        return None
    try:
        others = found(kind)
    except PluginError as error:
        return str(error)
    if name in others:
        return None
    there = ", ".join((*ours, *sorted(others)))
    return f"must be out of: {there} (further ones come with packages that have an entry point in {known.group})"


def reads_names(kind: str) -> Callable[[Any], tuple[str, ...]]:
    """Return the reader of a setting that names adapters of a kind (options.py)."""

    def read(raw: Any) -> tuple[str, ...]:
        texts = re.split(r"[\s,]+", raw.strip()) if isinstance(raw, str) else raw
        refusal = ValueError("must be names, each once, separated by commas")
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise refusal
        named = tuple(text for text in texts if text != "")
        if not named or len(set(named)) < len(named):
            raise refusal
        for name in named:
            _check(kind, name)
        return named

    return read


def reads_name(kind: str) -> Callable[[Any], str]:
    """Return the reader of a setting that names one adapter."""

    def read(raw: Any) -> str:
        _check(kind, raw)
        return str(raw)

    return read


def _check(kind: str, name: Any) -> None:
    # An invalid name is not quoted: it may be a secret in the wrong place.
    if not isinstance(name, str) or not _NAME.match(name):
        raise ValueError("must be a name: letters, digits, dots, hyphens and underscores, at most 64")
    wrong = unknown(kind, name)
    if wrong is not None:
        raise ValueError(wrong)


def setting_key(adapter: str) -> str:
    """Return an adapter's name as used in names of settings: `own-bank` is `own_bank`, as in CAMBIST_OWN_BANK_TOKEN and
    CAMBIST_OWN_BANK_NOTIFICATION_NETWORKS."""
    return re.sub(r"[^a-z0-9]", "_", adapter.lower())


def declared(kind: str, name: str) -> tuple[Option, ...]:
    """Return the settings of the adapter of this name. Raises: PluginError."""
    factory, whose = _factory(kind, name)
    if not isinstance(factory, AdapterFactory):
        return ()
    with _blamed(whose, "declares no good settings", telling=(TypeError, NameError)):
        return factory.options(_prefix(factory, name))


def made(kind: str, name: str, tools: FileTools, providers: Mapping[str, Any]) -> Any:
    """Make the adapter of this name. `providers` is `Settings.providers`. Raises: PluginError, NotInstalled."""
    factory, whose = _factory(kind, name)
    is_shipped = name in SHIPPED[kind]
    needs = needing(SHIPPED[kind][name].extra, whose) if is_shipped else nullcontext()
    telling = () if is_shipped else (KeyError,)
    with _blamed(whose, "cannot be made", telling=telling, passing=(NotInstalled,)), needs:
        adapter = _called(factory, name, tools, providers)
    return checked(kind, adapter, whose)


def _called(factory: Any, name: str, tools: FileTools, providers: Mapping[str, Any]) -> Any:
    if not isinstance(factory, AdapterFactory):
        return factory(tools)
    prefix = _prefix(factory, name)
    try:
        return factory.make(tools, factory.read_from(prefix, providers))
    except SettingMissing as missing:
        variables = [variable_of(prefix + field) for field in missing.fields]
        raise NotConfigured(f"set {' and '.join(variables)}") from None


def _prefix(factory: AdapterFactory[Any, Any], name: str) -> str:
    return f"{setting_key(name)}_" if factory.prefix is None else factory.prefix


async def opened_storage(scheme: str, tools: StorageTools) -> Storage:
    """Open the storage for URLs of this scheme. Raises: PluginError; Unavailable from the storage."""
    factory, whose = _factory("storage", scheme)
    with _blamed(whose, "cannot be opened", telling=(KeyError,), passing=(Unavailable,)):
        opening = factory(tools)
        if not isinstance(opening, Awaitable):
            raise NotConfigured("its factory must be a coroutine function (async def)")
        storage = await opening
    try:
        return cast("Storage", checked("storage", storage, whose))
    except PluginError as refused:
        # It is open: close it, so that the connections and locks of the refused storage do not remain.
        try:
            await cast("Storage", storage).close()
        except Exception as fault:  # noqa: BLE001 - whatever it is, why the storage is refused comes first
            refused.add_note(f"and it could not be closed: {type(fault).__name__}")
        raise


def _factory(kind: str, name: str) -> tuple[Any, str]:
    """Return the factory of this name, and a text that names its package. Raises: PluginError."""
    if name in SHIPPED[kind]:
        return SHIPPED[kind][name], f"the {kind} {name!r}"
    point = found(kind).get(name)
    if point is None:
        raise PluginError(f"the setting {' or '.join(KINDS[kind].settings)} {unknown(kind, name)}: no {name!r}")
    whose = f"the {kind} {name!r} of {_origin(point)}"
    with _blamed(whose, "cannot be imported", telling=(ImportError, AttributeError, SyntaxError)):
        factory = point.load()
    if not callable(factory) and (kind == "storage" or not isinstance(factory, AdapterFactory)):
        wanted = "a coroutine function that takes StorageTools" if kind == "storage" else "an AdapterFactory"
        raise PluginError(f"{whose} is no factory: {point.value} must name {wanted}")
    return factory, whose


def checked(kind: str, adapter: Any, whose: str) -> Any:
    """Return the adapter if it has all members of the port. Raises: PluginError."""
    wanted = [name for name in _members(KINDS[kind].port) if not hasattr(adapter, name)]
    if wanted:
        raise PluginError(f"{whose} ({type(adapter).__name__}) lacks {', '.join(wanted)} of ports/{kind}.py")
    name = getattr(adapter, "name", "?")
    if not isinstance(name, str) or not name or ":" in name or len(name) > 64 or not name.isprintable():
        raise PluginError(f"{whose} ({type(adapter).__name__}) has no good `name`: 1 to 64 characters, no colon")
    return adapter


def _members(port: type) -> list[str]:
    return sorted(name for name in getattr(port, "__protocol_attrs__", vars(port)) if not name.startswith("_"))


def _origin(point: EntryPoint) -> str:
    if point.dist is None:
        return point.value
    return f"{point.dist.name} {point.dist.version}"


@contextmanager
def _blamed(
    whose: str, what: str, *, telling: tuple[type[Exception], ...], passing: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Turn any exception of external code into a PluginError that names its package.

    Only NotConfigured and exceptions in `telling` are quoted: any other message may contain a credential. Exceptions in
    `passing` are raised unchanged.
    """
    try:
        yield
    except passing:
        raise
    except NotConfigured as fault:
        raise PluginError(f"{whose} {what}: {fault}") from fault
    except telling as error:
        raise PluginError(f"{whose} {what}: {type(error).__name__}: {error}") from error
    except Exception as error:
        raise PluginError(f"{whose} {what}: {type(error).__name__} (a NotConfigured would be quoted)") from error


@contextmanager
def needing(extra: str, what: str) -> Iterator[None]:
    """Import the libraries of an extra inside. Raises: NotInstalled, which names what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if not missing or missing.startswith("cambist"):
            raise
        raise NotInstalled(f"{what} needs {missing!r}: pip install 'cambist[{extra}]'") from error


def named_by(settings: Any) -> Mapping[str, tuple[str, ...]]:
    """Return the adapters that each setting names."""
    values = {name: getattr(settings, name) for kind in KINDS.values() for name in kind.settings}
    values["database_url"] = scheme_of(settings.storage_url)
    return {name: value if isinstance(value, tuple) else (value,) for name, value in values.items()}


def all_installed(named: Mapping[str, tuple[str, ...]]) -> list[Installed]:
    """Return every adapter that may be named, and the settings that name it. `named` has the names in each setting.

    Raises: PluginError when two packages claim one name.
    """
    every: list[Installed] = []
    for kind, known in KINDS.items():
        origins = dict.fromkeys((*known.built_in, *SHIPPED[kind]), "cambist")
        origins |= {name: _origin(point) for name, point in sorted(found(kind).items())}
        every += [
            Installed(
                kind=kind,
                name=name,
                comes_from=origin,
                used_by=tuple(setting for setting in known.settings if name in named.get(setting, ())),
            )
            for name, origin in origins.items()
        ]
    return every

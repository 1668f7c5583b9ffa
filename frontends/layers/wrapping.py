"""Layers around provider adapters: calls to the provider pass through them, everything else is passed on unchanged.

The composition root adds them; neither the core nor an adapter knows of them.
"""

from collections.abc import Callable, Collection, Coroutine, Mapping
from enum import Enum
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, TypeVar, cast

import msgspec

from ...ports.bundle import Ports

P = TypeVar("P")

Call = Callable[..., Coroutine[Any, Any, Any]]
"""An operation of an adapter."""

Around = Callable[[str, Call], Call]
"""Returns the replacement of an operation, from its name and its function."""

Wrap = Callable[[str, Any], Any]
"""Returns the replacement of an adapter, from its port's name in OPERATIONS and the adapter."""

_NOTHING: Mapping[str, Callable[..., Any]] = {}


class Does(Enum):
    """Effect of an operation at the provider, which defines the meaning of a failure."""

    WRITE = "write"
    """It changes something, perhaps even without an answer: a failure is OutcomeUnknown."""
    READ = "read"
    """A repeat does no harm: a failure is Unavailable."""


_R, _W = Does.READ, Does.WRITE

OPERATIONS: Mapping[str, Mapping[str, Does]] = {
    "bank": {
        "create_invoice": _W,
        "find_invoice": _R,
        "invoice_state": _R,
        "cancel_invoice": _W,
        "refund": _W,
        "find_refund": _R,
        "refunds_since": _R,
        "bind": _W,
        "find_binding": _R,
        "mandate_state": _R,
        "charge": _W,
        "find_charge": _R,
        "revoke": _W,
        "write_receipt": _W,
        "find_receipt": _R,
        "remit": _W,
        "find_remittance": _R,
        "banks": _R,
        "entries": _R,
        "receive": _R,
        "search_invoice": _R,
        "search_refund": _R,
        "search_binding": _R,
        "search_charge": _R,
        "search_remittance": _R,
        "check": _R,
    },
    "chain": {"lookup": _R, "check": _R, "shortages": _R},
    "files": {"stat": _R, "remove": _R, "check": _R},
    "deposits": {"address": _R, "deposits": _R, "owns": _R, "check": _R, "shortages": _R},
    "kyc": {"register": _W, "find_check": _R, "search_check": _R, "check_state": _R, "receive": _R, "check": _R},
    "payouts": {
        "sign": _R,
        "broadcast": _W,
        "state": _R,
        "find": _R,
        "sent_since": _R,
        "in_place": _R,
        "owns": _R,
        "check": _R,
        "shortages": _R,
    },
    "rates": {"quote": _R, "check": _R},
    "receipts": {"write_receipt": _W, "find_receipt": _R, "receive": _R, "check": _R},
    "alarms": {"tell": _W, "tell_merchant": _W, "check": _R},
}
"""Operations of providers by port, including those that only some adapters have. `address` and `sign` count as reads,
because the same call may be repeated whatever happened to the first, and nothing leaves before `broadcast`. `remove`
does too, because a file may be removed twice."""


class _Wrapped:
    """Stands for an adapter. Its class has a member for each public name of the adapter (see `wrapped`)."""

    _passed_names: frozenset[str]
    """Public names of the adapter."""

    def __init__(self, adapter: Any) -> None:
        self._adapter = adapter

    @property
    def __class__(self) -> Any:
        """The adapter's class, so that `isinstance` gives the same result for both, also through several layers."""
        return self._adapter.__class__

    @__class__.setter
    def __class__(self, _: Any) -> None:
        raise TypeError("what stands for an adapter stays what it is")

    def __getattr__(self, name: str) -> Any:
        """Return a private attribute of the adapter, for code that inspects it anyway."""
        return getattr(self._adapter, name)

    def __repr__(self) -> str:
        return repr(self._adapter)


def wrapped(
    adapter: P, operations: Collection[str], around: Around, instead: Mapping[str, Callable[..., Any]] = _NOTHING
) -> P:
    """Return the adapter with its `operations` passed through `around`, and with the functions of `instead` in place of
    other methods.

    Methods show what an adapter can do (`isinstance(bank, MandateBank)`), so the class is made for it: it has the
    public names of the adapter and no others.
    """
    names = _names(adapter)
    replaced = {name: around(name, _called(adapter, name)) for name in operations if name in names}
    replaced.update((name, call) for name, call in instead.items() if name in names)
    members = {name: staticmethod(call) for name, call in replaced.items()}
    made = type(f"Wrapped{type(adapter).__name__}", (_passing(names),), members)
    return cast("P", made(adapter))


def _names(adapter: Any) -> frozenset[str]:
    """Return the adapter's public names."""
    known: frozenset[str] | None = getattr(type(adapter), "_passed_names", None)  # another layer is below
    own = {name for name in getattr(adapter, "__dict__", ()) if not name.startswith("_")}
    return known or _names_of_class(type(adapter)) | own  # type: ignore[arg-type]  # mypy takes no class for hashable


@lru_cache(maxsize=256)
def _names_of_class(kind: type[Any]) -> frozenset[str]:
    return frozenset(name for name in dir(kind) if not name.startswith("_"))


@lru_cache(maxsize=256)
def _passing(names: frozenset[str]) -> type[_Wrapped]:
    """Return a class that passes all these names on. Adapters of one class share it, also in several layers."""
    return type("Passing", (_Wrapped,), {"_passed_names": names, **{name: _passed(name) for name in names}})


@cache
def _passed(name: str) -> property:
    """Return a property that reads and sets the adapter's attribute. One for all classes."""
    # Creating a payment reads ten of these: `attrgetter` needs no Python frame.
    return property(attrgetter(f"_adapter.{name}"), lambda self, value: setattr(self._adapter, name, value))


def _called(adapter: Any, name: str) -> Call:
    """Return a function that looks up the method at each call, so that a later replacement (a spy) is called too."""

    async def call(*given: Any, **named: Any) -> Any:
        return await getattr(adapter, name)(*given, **named)

    return call


def with_providers(ports: Ports, wrap: Wrap) -> Ports:
    """Return the ports with each provider adapter replaced by `wrap`."""

    def each(port: str, named: Mapping[str, P]) -> dict[str, P]:
        return {name: wrap(port, adapter) for name, adapter in named.items()}

    replace = msgspec.structs.replace
    sources = {mode: tuple(wrap("rates", source) for source in asked) for mode, asked in ports.rates.sources.items()}
    return replace(
        ports,
        banks=replace(ports.banks, banks=each("bank", ports.banks.banks)),
        chain=wrap("chain", ports.chain),
        senders=replace(ports.senders, senders=each("payouts", ports.senders.senders)),
        deposits=replace(ports.deposits, watchers=each("deposits", ports.deposits.watchers)),
        kyc=wrap("kyc", ports.kyc),
        former_kyc=each("kyc", ports.former_kyc),
        register=None if ports.register is None else wrap("receipts", ports.register),
        files=wrap("files", ports.files),
        alarms=replace(ports.alarms, channels=each("alarms", ports.alarms.channels)),
        rates=replace(ports.rates, sources=sources),
    )

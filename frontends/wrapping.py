"""Layers around the adapters of providers: what is asked of a provider passes them, all else goes on as it is.

The composition root puts them there; neither the core nor an adapter knows of them.
"""

from collections.abc import Callable, Collection, Coroutine, Mapping
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar, cast

import msgspec

from ..ports.bundle import Ports

P = TypeVar("P")

Call = Callable[..., Coroutine[Any, Any, Any]]
"""An operation of an adapter."""

Around = Callable[[str, Call], Call]
"""Makes what is called instead, of an operation's name and of what does it."""

Wrap = Callable[[str, Any], Any]
"""Makes what stands for an adapter, of its port's name in OPERATIONS and of the adapter."""

_NOTHING: Mapping[str, Callable[..., Any]] = {}


class Does(Enum):
    """What an operation does at the provider: it says what its failure means."""

    WRITE = "write"
    """Something there, which may have happened although no answer came: OutcomeUnknown."""
    READ = "read"
    """Nothing that a repeat could double: a failed one is Unavailable."""


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
        "remit": _W,
        "find_remittance": _R,
        "banks": _R,
        "entries": _R,
        "hear": _R,
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
    "kyc": {"register": _W, "find_check": _R, "search_check": _R, "check_state": _R, "hear": _R, "check": _R},
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
    "alarms": {"tell": _W, "tell_merchant": _W, "check": _R},
}
"""By port, what is asked of providers: also what only some adapters can. `address` and `sign` count as reads, because
the same operation may be asked again whatever became of the first call, and nothing has left until `broadcast`; so does
`remove`, because a file can be taken away twice."""


class _Wrapped:
    """Stands for an adapter; its class has a member for each of the adapter's public names (see `wrapped`)."""

    def __init__(self, adapter: Any) -> None:
        self._adapter = adapter

    @property
    def __class__(self) -> Any:
        """The adapter's, so that `isinstance` says of both the same, also where layers lie upon one another."""
        return self._adapter.__class__

    @__class__.setter
    def __class__(self, _: Any) -> None:
        raise TypeError("what stands for an adapter stays what it is")

    def __getattr__(self, name: str) -> Any:
        """What is nobody's business outside, for those who look inside all the same."""
        return getattr(self._adapter, name)

    def __repr__(self) -> str:
        return repr(self._adapter)


def wrapped(
    adapter: P, operations: Collection[str], around: Around, instead: Mapping[str, Callable[..., Any]] = _NOTHING
) -> P:
    """The adapter, whose `operations` go through `around`, as far as it has them, with what is to be called `instead`
    of other methods.

    What an adapter can do is told by its methods (`isinstance(bank, MandateBank)`), so the class is made for it: it has
    what the adapter has, and nothing else.
    """
    names = {*dir(type(adapter)), *getattr(adapter, "__dict__", ())}
    members = {
        name: staticmethod(around(name, _called(adapter, name))) if name in operations else _passed(name)
        for name in names
        if not name.startswith("_")
    }
    members.update((name, staticmethod(call)) for name, call in instead.items() if name in members)
    made = type(f"Wrapped{type(adapter).__name__}", (_Wrapped,), members)
    return cast("P", made(adapter))


@cache
def _passed(name: str) -> property:
    """What is set is set at the adapter. One for all classes."""
    # Ten of a payment's creation: `attrgetter` is read without a frame of Python.
    return property(attrgetter(f"_adapter.{name}"), lambda self, value: setattr(self._adapter, name, value))


def _called(adapter: Any, name: str) -> Call:
    """Looks the method up at each call, so that one that was replaced since (by a spy) is called, too."""

    async def call(*given: Any, **named: Any) -> Any:
        return await getattr(adapter, name)(*given, **named)

    return call


def with_providers(ports: Ports, wrap: Wrap) -> Ports:
    """The ports, with what `wrap` makes in place of each adapter of a provider."""

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
        files=wrap("files", ports.files),
        alarms=replace(ports.alarms, channels=each("alarms", ports.alarms.channels)),
        rates=replace(ports.rates, sources=sources),
    )

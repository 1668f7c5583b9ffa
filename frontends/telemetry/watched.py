"""Ports whose calls are counted and traced: the composition root puts them around the adapters of a process that is
watched. Neither the core nor an adapter knows of it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, cast

import msgspec

from ...ports.bundle import Ports
from ...ports.notifier import Answer, Letter, Notifier, Receipt
from .telemetry import Telemetry

P = TypeVar("P")

OPERATIONS: Mapping[str, frozenset[str]] = {
    "bank": frozenset(
        {
            "create_invoice", "find_invoice", "invoice_state", "refund", "find_refund", "bind", "find_binding",
            "mandate_state", "charge", "find_charge", "revoke", "remit", "find_remittance",
        }
    ),
    "chain": frozenset({"lookup"}),
    "deposits": frozenset({"address", "deposits"}),
    "kyc": frozenset({"register", "find_check", "check_state"}),
    "payouts": frozenset({"sign", "broadcast", "state"}),
    "rates": frozenset({"quote"}),
}  # fmt: skip
"""What is asked of providers. All else that an adapter has is passed through as it is."""


class _Watched:
    """Stands for an adapter; its class has a member for each of the adapter's public names (see `watched`)."""

    def __init__(self, adapter: Any) -> None:
        self._adapter = adapter

    def __repr__(self) -> str:
        return repr(self._adapter)


def watched(telemetry: Telemetry, port: str, adapter: P) -> P:
    """The adapter, with its operations counted under this port's name.

    What the adapter can do is told by its methods (`isinstance(bank, MandateBank)`), so the class is made for it.
    """
    provider = str(getattr(adapter, "name", port))
    names = {*dir(type(adapter)), *getattr(adapter, "__dict__", ())}
    members = {
        name: _counted(telemetry, port, provider, name) if name in OPERATIONS[port] else _passed(name)
        for name in names
        if not name.startswith("_")
    }
    made = type(f"Watched{type(adapter).__name__}", (_Watched,), members)
    return cast("P", made(adapter))


def _passed(name: str) -> property:
    return property(lambda self: getattr(self._adapter, name))


def _counted(telemetry: Telemetry, port: str, provider: str, name: str) -> Callable[..., Awaitable[Any]]:
    async def ask(self: _Watched, *given: Any, **named: Any) -> Any:
        with telemetry.call(port, provider, name):
            return await getattr(self._adapter, name)(*given, **named)

    ask.__name__ = name
    return ask


class WatchedNotifier:
    """Fills the port Notifier over another one, and counts the letters by what became of them."""

    def __init__(self, telemetry: Telemetry, notifier: Notifier) -> None:
        self._telemetry = telemetry
        self._notifier = notifier

    async def post(self, letter: Letter) -> Receipt:
        """As the notifier does."""
        named = letter.headers
        with self._telemetry.letter(named.get("X-Webhook-Event"), named.get("X-Webhook-Id")) as ending:
            receipt = await self._notifier.post(letter)
            ending.outcome = _outcome(receipt)
        return receipt

    async def close(self) -> None:
        """The notifier's."""
        await self._notifier.close()


def _outcome(receipt: Receipt) -> str:
    if receipt.answer is Answer.RESPONDED and receipt.status is not None:
        return f"{receipt.status // 100}xx"
    return str(receipt.answer)


def watched_ports(telemetry: Telemetry | None, ports: Ports) -> Ports:
    """The ports with those to providers and receivers watched; as they are when nobody watches."""
    if telemetry is None:
        return ports

    def each(port: str, named: Mapping[str, P]) -> dict[str, P]:
        return {name: watched(telemetry, port, adapter) for name, adapter in named.items()}

    replace = msgspec.structs.replace
    sources = {
        mode: tuple(watched(telemetry, "rates", source) for source in asked)
        for mode, asked in ports.rates.sources.items()
    }
    return replace(
        ports,
        banks=replace(ports.banks, banks=each("bank", ports.banks.banks)),
        chain=watched(telemetry, "chain", ports.chain),
        senders=replace(ports.senders, senders=each("payouts", ports.senders.senders)),
        deposits=replace(ports.deposits, watchers=each("deposits", ports.deposits.watchers)),
        kyc=watched(telemetry, "kyc", ports.kyc),
        rates=replace(ports.rates, sources=sources),
        notifier=WatchedNotifier(telemetry, ports.notifier),
    )

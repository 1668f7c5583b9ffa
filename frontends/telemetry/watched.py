"""Ports whose calls are counted and traced: the composition root puts them around the adapters of a process that is
watched. Neither the core nor an adapter knows of it."""

from typing import Any, TypeVar

import msgspec

from ...ports.bundle import Ports
from ...ports.notifier import Answer, Letter, Notifier, Receipt
from ..wrapping import OPERATIONS, Call, with_providers, wrapped
from .telemetry import Telemetry

P = TypeVar("P")


def watched(telemetry: Telemetry, port: str, adapter: P) -> P:
    """The adapter, with its operations counted under this port's name."""
    provider = str(getattr(adapter, "name", port))

    def counted(operation: str, call: Call) -> Call:
        async def ask(*given: Any, **named: Any) -> Any:
            with telemetry.call(port, provider, operation):
                return await call(*given, **named)

        return ask

    return wrapped(adapter, OPERATIONS[port], counted)


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
    seen = with_providers(ports, lambda port, adapter: watched(telemetry, port, adapter))
    return msgspec.structs.replace(seen, notifier=WatchedNotifier(telemetry, ports.notifier))

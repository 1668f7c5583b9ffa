"""Wraps ports to count and trace their calls. The composition root adds the wrappers in processes with telemetry;
neither the core nor an adapter knows of them."""

from typing import Any, TypeVar

import msgspec

from ...ports.bundle import Ports
from ...ports.notifier import Answer, DeliveryResult, Notifier, WebhookRequest
from ..layers.wrapping import OPERATIONS, Call, with_providers, wrapped
from .telemetry import Telemetry

P = TypeVar("P")


def traced(telemetry: Telemetry, port: str, adapter: P) -> P:
    """Return the adapter, wrapped to count its operations under this port's name."""
    provider = str(getattr(adapter, "name", port))

    def counted(operation: str, call: Call) -> Call:
        async def ask(*given: Any, **named: Any) -> Any:
            with telemetry.call(port, provider, operation):
                return await call(*given, **named)

        return ask

    return wrapped(adapter, OPERATIONS[port], counted)


class TracedNotifier:
    """Implements the port Notifier on top of another notifier, and counts webhooks by outcome."""

    def __init__(self, telemetry: Telemetry, notifier: Notifier) -> None:
        self._telemetry = telemetry
        self._notifier = notifier

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        """Send the webhook and record its outcome."""
        named = webhook.headers
        with self._telemetry.webhook(named.get("X-Webhook-Event"), named.get("X-Webhook-Id")) as ending:
            result = await self._notifier.send(webhook)
            ending.outcome = _outcome(result)
        return result

    async def close(self) -> None:
        """Close the wrapped notifier."""
        await self._notifier.close()


def _outcome(result: DeliveryResult) -> str:
    if result.answer is Answer.RESPONDED and result.status is not None:
        return f"{result.status // 100}xx"
    return str(result.answer)


def traced_ports(telemetry: Telemetry | None, ports: Ports) -> Ports:
    """Return the ports with providers and the notifier traced, or unchanged without telemetry."""
    if telemetry is None:
        return ports
    seen = with_providers(ports, lambda port, adapter: traced(telemetry, port, adapter))
    return msgspec.structs.replace(seen, notifier=TracedNotifier(telemetry, ports.notifier))

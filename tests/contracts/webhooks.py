"""Kit for tests of the notifier: a name server with scripted answers, and webhooks to post."""

import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult

from cambist.adapters.clock import SystemClock
from cambist.adapters.notifier.exchanges import EXCHANGE, Exchange
from cambist.adapters.notifier.http import HttpNotifier
from cambist.ports.notifier import DeliveryResult, Notifier, WebhookRequest


class Names(AbstractResolver):
    """A name server that answers as scripted. A list of answers is returned one after another, as in DNS rebinding."""

    def __init__(self, names: Mapping[str, Sequence[Sequence[str]]]) -> None:
        self._names = {name: list(answers) for name, answers in names.items()}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        answers = self._names.get(host.lower().removesuffix("."))
        if not answers:
            raise OSError("no such name")
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        return [
            ResolveResult(hostname=host, host=address, port=port, family=socket.AF_INET, proto=0, flags=0)
            for address in addresses
        ]

    async def close(self) -> None: ...


exchanged_by: Callable[[TCPConnector], Exchange] = EXCHANGE
"""How webhooks go out, where a test does not say it."""


@asynccontextmanager
async def notifier(**options: Any) -> AsyncIterator[Notifier]:
    made = HttpNotifier(SystemClock(), **{"exchange": exchanged_by, "loopback": True, **options})
    try:
        yield made
    finally:
        await made.close()


def webhook(url: str, *, open_network: bool = True, headers: Mapping[str, str] | None = None) -> WebhookRequest:
    return WebhookRequest(url=url, headers=headers or {}, body=b'{"event":"x"}', open_network=open_network)


async def post(to: WebhookRequest, **options: Any) -> DeliveryResult:
    async with notifier(**options) as made:
        return await made.send(to)

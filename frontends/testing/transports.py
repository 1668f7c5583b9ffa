"""Transports into a sandbox: for httpx2, sync and async, and as an ASGI application. None of them uses the network."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import anyio.to_thread
import httpx2

from .runtime import BASE_URL, Answered, Asked

Ask = Callable[[Asked], Answered]
"""Blocks until the sandbox has answered. Must not be called from the stage's thread."""

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]


def _asked(request: httpx2.Request, body: bytes) -> Asked:
    return Asked(method=request.method, url=str(request.url), headers=request.headers.raw, body=body)


def _response(answered: Answered) -> httpx2.Response:
    return httpx2.Response(answered.status, headers=answered.headers, content=answered.body)


class SandboxTransport(httpx2.BaseTransport):
    """Transport for `httpx2.Client`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return _response(self._ask(_asked(request, request.read())))


class AsyncSandboxTransport(httpx2.AsyncBaseTransport):
    """Transport for `httpx2.AsyncClient` on any event loop: a worker thread waits for the answer."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        asked = _asked(request, await request.aread())
        return _response(await anyio.to_thread.run_sync(self._ask, asked))


class SandboxApp:
    """The service as an ASGI application for any ASGI client, on any event loop. It supports HTTP only and sends
    complete answers, so an event stream of the payer's window arrives only when it ends."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def __call__(
        self,
        scope: Scope,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        if scope["type"] != "http":
            raise NotImplementedError(f"the sandbox speaks no {scope['type']}")
        raw_path = scope.get("raw_path") or scope["path"].encode()
        target = raw_path.split(b"?")[0] + (b"?" + scope["query_string"] if scope.get("query_string") else b"")
        asked = Asked(
            method=scope["method"],
            url=BASE_URL + target.decode("ascii"),
            headers=[(bytes(name), bytes(value)) for name, value in scope["headers"]],
            body=await _body(receive),
        )
        answered = await anyio.to_thread.run_sync(self._ask, asked)
        await send({"type": "http.response.start", "status": answered.status, "headers": answered.headers})
        await send({"type": "http.response.body", "body": answered.body})


async def _body(receive: Callable[[], Awaitable[Message]]) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body"):
            return b"".join(parts)


async def _live(receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return

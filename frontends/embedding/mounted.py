"""The HTTP application below a path of another application."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


def require_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Raise RuntimeError in another event loop than the service's. Without a running loop, do nothing."""
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:
        return
    if here is not loop:
        raise RuntimeError(
            "this service belongs to the event loop that opened it, and was called in another one; open it where it is "
            "used, or use cambist.open_sync, which any thread may call"
        )


class Mounted:
    """Removes the mount path from requests, because the HTTP application only knows paths from its root."""

    def __init__(self, app: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._app = app
        self._loop = loop

    async def __call__(self, scope: Scope, receive: Receive, send: Send, /) -> None:
        """Answer a request. The lifespan does nothing here: the service opens and closes its own resources. Raises:
        RuntimeError in another event loop than the service's."""
        require_loop(self._loop)
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        root = scope.get("root_path", "").rstrip("/")
        if root:
            own = dict(scope, root_path="")
            # Hosts differ in whether the path that they pass on still includes the mount path.
            if scope["path"] == root or scope["path"].startswith(f"{root}/"):
                own["path"] = scope["path"].removeprefix(root) or "/"
                own["raw_path"] = own["path"].encode("utf-8", "surrogatepass")
            scope = own
        await self._app(scope, receive, send)


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return

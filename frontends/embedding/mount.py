"""A service as a part of an ASGI application, which opens and closes it (docs/embedding.md "In a web application")."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from ..app.compose import Adapters
from ..settings.settings import Settings
from .event_handler import OnEvent
from .mounted import Receive, Send
from .opening import Opening
from .running import RunningService
from .service import AsgiApp, Service


class Mount:
    """ASGI application of a service of its own: `app.mount("/pay", cambist.Mount("postgresql://…", base_url=…))`.

    The service opens at the start of the host's lifespan (`FastAPI(lifespan=pay.lifespan)`), or of its own where it is
    the whole application. A host without a lifespan, such as daphne or Django, opens it by its first request. Jobs run
    in the background, unless `works` is False. The other arguments are those of `cambist.open`.
    """

    def __init__(
        self,
        database: str | Settings = "memory://",
        *,
        on_event: OnEvent | None = None,
        adapters: Adapters | None = None,
        base_url: str = "",
        migrated: bool | None = None,
        vault_key: str = "",
        vault_pepper: str = "",
        works: bool = True,
    ) -> None:
        self._opening = Opening(
            database=database,
            on_event=on_event,
            adapters=adapters,
            base_url=base_url,
            migrated=migrated,
            vault_key=vault_key,
            vault_pepper=vault_pepper,
        )
        self._running = RunningService(self._opening, works=works)
        self._app: tuple[Service, AsgiApp] | None = None

    async def service(self) -> Service:
        """Return the open service, and open it first if it is not. Raises: exceptions of `cambist.open`."""
        return await self._running.service()

    async def close(self) -> None:
        """Let running jobs finish, then close the service. The lifespan does so at its end."""
        await self._running.close()

    def replaced(self, change: Callable[[Opening], Opening]) -> AbstractAsyncContextManager[Service]:
        """Open the service with changed arguments during the block, without a worker. For `cambist.testing`."""
        return self._running.replaced(change(self._opening))

    @asynccontextmanager
    async def lifespan(self, _app: object = None) -> AsyncIterator[None]:
        """Keep the service open during the block. Give this to a host that takes a lifespan, or enter it in yours."""
        await self.service()
        try:
            yield
        finally:
            await self.close()

    async def __call__(self, scope: Any, receive: Any, send: Any, /) -> None:
        """Answer a request, or follow the lifespan of an application that is this one alone."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        service = await self.service()
        if self._app is None or self._app[0] is not service:
            self._app = service, service.asgi()
        await self._app[1](scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message: Any = await receive()
            try:
                await (self.service() if message["type"] == "lifespan.startup" else self.close())
            except Exception as fault:
                await send({"type": f"{message['type']}.failed", "message": str(fault)})
                raise
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

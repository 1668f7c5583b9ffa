"""A service that runs in a task of its own, from its first use to its close, for hosts without a lifespan."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from .service import Service

log = logging.getLogger("cambist.embedding")


class RunningService:
    """Opens a service once, however many callers ask for it, and works its jobs until it is closed.

    One task opens and closes the service, because its parts belong to the task that opened them. If the worker dies,
    the service is closed and the next call opens it anew.
    """

    def __init__(self, opening: Callable[[], AbstractAsyncContextManager[Service]], *, works: bool) -> None:
        self._opening = opening
        self._works = works
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Service] | None = None
        self._stop = asyncio.Event()

    async def service(self) -> Service:
        """Return the open service, and open it first if it is not. Raises: exceptions of `cambist.open`."""
        if self._stop.is_set():
            # It is closing: its parts are no longer to be used.
            await self._ended()
        if self._task is None or self._task.done() or self._ready is None:
            self._stop = asyncio.Event()
            self._ready = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._run(self._ready, self._stop))
        return await asyncio.shield(self._ready)

    async def close(self) -> None:
        """Let running jobs finish, then close the service. A closed service may be opened again."""
        self._stop.set()
        await self._ended()

    @asynccontextmanager
    async def replaced(self, opening: Callable[[], AbstractAsyncContextManager[Service]]) -> AsyncIterator[Service]:
        """Open another service during the block, without a worker: for tests. Raises: RuntimeError if it is open."""
        if self._task is not None and not self._task.done():
            raise RuntimeError("the service is open already; close it first")
        former = self._opening, self._works
        self._opening, self._works = opening, False
        try:
            yield await self.service()
        finally:
            await self.close()
            self._opening, self._works = former

    async def _ended(self) -> None:
        """Wait for the task. An ended one may belong to an event loop that is closed, so it is not touched."""
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task])

    async def _run(self, ready: "asyncio.Future[Service]", stop: asyncio.Event) -> None:
        try:
            async with AsyncExitStack() as closing:
                service = await closing.enter_async_context(self._opening())
                if self._works:
                    await closing.enter_async_context(service.working())
                ready.set_result(service)
                await stop.wait()
        except asyncio.CancelledError:
            # The event loop ends.
            ready.cancel()
            raise
        except Exception as fault:
            if ready.done():
                log.critical("the service ended, and is opened again at its next use", exc_info=fault)
                return
            ready.set_exception(fault)
            ready.exception()  # the callers may be gone; then nobody else reads it

"""Parts that sandboxes share because they are slow to create: an event loop in a thread, and one HTTP application.

Creating the application takes twenty times as long as opening an app. All sandboxes therefore share one application,
and a context variable, set for every request, selects the ports of the current sandbox.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from contextvars import Context, ContextVar
from pathlib import Path
from typing import Any, TypeVar, cast

import httpx2
import msgspec
from anyio.from_thread import BlockingPortal

from ...ports.bundle import Ports, Urls
from ..process.gc_pause import gc_paused
from ..server.app import create_app

T = TypeVar("T")

BASE_URL = "https://cambist.test"
"""A placeholder: `.test` is a reserved domain, and no request leaves the process."""

_meant: ContextVar[Ports] = ContextVar("cambist_sandbox_ports")


class _LatePort:
    """One port of the current sandbox."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(getattr(_meant.get(), self._name), name)


class _LatePorts:
    """Ports of the current sandbox. Ports read while the application is created, before any sandbox is current, are
    resolved at each use; the URLs are the same for all."""

    def __getattr__(self, name: str) -> Any:
        ports = _meant.get(None)
        if ports is not None:
            return getattr(ports, name)
        if name == "urls":
            return Urls(base_url=BASE_URL, pay_url=BASE_URL, app_url=BASE_URL)
        return _LatePort(name)


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request passed to the stage's thread. Its repr hides keys and body."""

    method: str
    url: str
    headers: list[tuple[bytes, bytes]]
    body: bytes

    def __repr__(self) -> str:
        return f"Asked({self.method})"


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """An answer returned from the stage's thread."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Runtime:
    """The event loop and the application. Usable from any thread except its own."""

    def __init__(self, portal: BlockingPortal, folder: Path) -> None:
        self._folder = folder
        self._opened = 0
        self._portal = portal
        self._app: httpx2.ASGITransport | None = None

    def new_folder(self) -> Path:
        """Return a folder for one sandbox's files, which is created at the first upload."""
        self._opened += 1
        return self._folder / str(self._opened)

    def call(self, work: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Run a coroutine function in the event loop and wait for it."""
        return self._portal.call(work, *args)

    def within(self, manager: AbstractAsyncContextManager[T]) -> AbstractContextManager[T]:
        """Return an async context manager as a plain one that runs in the event loop."""
        return self._portal.wrap_async_context_manager(manager)

    async def answer(self, ports: Ports, asked: Asked) -> Answered:
        """Answer a request with these ports. Call it only in the event loop."""
        app = self._application()
        _meant.set(ports)
        request = httpx2.Request(asked.method, asked.url, headers=asked.headers, content=asked.body)
        response = await app.handle_async_request(request)
        # The raw body: the client gets the encoding header and decodes the body itself.
        body = b"".join([part async for part in response.aiter_raw()])
        return Answered(status=response.status_code, headers=response.headers.raw, body=body)

    def _application(self) -> httpx2.ASGITransport:
        if self._app is None:
            # Runs in an empty context, in which no sandbox is current.
            with gc_paused():
                app: Any = Context().run(create_app, cast("Ports", _LatePorts()))
            self._app = httpx2.ASGITransport(app, raise_app_exceptions=False)
        return self._app

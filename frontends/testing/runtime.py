"""What sandboxes share, because it is slow to make: an event loop in a thread, and one HTTP application.

Making what answers its pages takes twenty times as long as making a house. So there is one, over ports that say at each
call which house is meant: a context variable, set for every request.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from contextvars import Context, ContextVar
from pathlib import Path
from typing import Any, TypeVar, cast

import httpx
import msgspec
from anyio.from_thread import BlockingPortal

from ...ports.bundle import Ports, Urls
from ..gc_pause import gc_paused
from ..http.app import create_app

T = TypeVar("T")

BASE_URL = "https://cambist.test"
"""No address: `.test` is reserved, and nothing goes to any network."""

_meant: ContextVar[Ports] = ContextVar("cambist_sandbox_ports")


class _LatePort:
    """One port of whichever house is meant at the time."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(getattr(_meant.get(), self._name), name)


class _LatePorts:
    """Ports of whichever house is meant. What is taken of them before any is meant, while the application is made, is
    looked up at each use instead; addresses are the same for all."""

    def __getattr__(self, name: str) -> Any:
        ports = _meant.get(None)
        if ports is not None:
            return getattr(ports, name)
        if name == "urls":
            return Urls(base_url=BASE_URL, pay_url=BASE_URL, app_url=BASE_URL)
        return _LatePort(name)


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request on its way into the stage's thread. Its repr hides keys and body."""

    method: str
    url: str
    headers: list[tuple[bytes, bytes]]
    body: bytes

    def __repr__(self) -> str:
        return f"Asked({self.method})"


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """An answer on its way out."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Runtime:
    """The loop and the application. Usable from any thread but its own."""

    def __init__(self, portal: BlockingPortal, folder: Path) -> None:
        self._folder = folder
        self._opened = 0
        self._portal = portal
        self._app: httpx.ASGITransport | None = None

    def new_folder(self) -> Path:
        """For what one house keeps in files; made at its first upload."""
        self._opened += 1
        return self._folder / str(self._opened)

    def call(self, work: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Do it in the event loop, and wait for it."""
        return self._portal.call(work, *args)

    def within(self, manager: AbstractAsyncContextManager[T]) -> AbstractContextManager[T]:
        """An async context as a plain one, in the event loop."""
        return self._portal.wrap_async_context_manager(manager)

    async def answer(self, ports: Ports, asked: Asked) -> Answered:
        """Let a house answer a request. In the event loop only."""
        app = self._application()
        _meant.set(ports)
        request = httpx.Request(asked.method, asked.url, headers=asked.headers, content=asked.body)
        response = await app.handle_async_request(request)
        # As it was sent: whoever asked is told the encoding, and undoes it.
        body = b"".join([part async for part in response.aiter_raw()])
        return Answered(status=response.status_code, headers=response.headers.raw, body=body)

    def _application(self) -> httpx.ASGITransport:
        if self._app is None:
            # In a context of its own, where no house is meant.
            with gc_paused():
                app: Any = Context().run(create_app, cast("Ports", _LatePorts()))
            self._app = httpx.ASGITransport(app, raise_app_exceptions=False)
        return self._app

"""A service for programs without an event loop: Django and Flask under WSGI, scripts and shells
(docs/embedding.md "Synchronous programs").

The service runs in an event loop of its own, in its own thread. Every call waits for its result.
"""

import asyncio
import atexit
import functools
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast

from ...core.domain.accounts.accounts import Mode
from ...core.domain.payments.payments import Payment
from ..app.compose import Adapters
from ..settings.plugins import needing
from ..settings.settings import Settings
from .event_handler import Event, OnEvent
from .merchant import Merchant
from .running import RunningService
from .service import Service
from .service import open as open_service

P = ParamSpec("P")
T = TypeVar("T")

Wsgi = Callable[[dict[str, Any], Any], Iterable[bytes]]
"""A WSGI application."""

_HANDLERS = 4
"""Events handled at once. Each takes a thread, because the handler may block."""


def _of_service(
    method: Callable[Concatenate[Service, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["SyncService", P], T]:
    @functools.wraps(method)
    def call(self: "SyncService", /, *args: P.args, **kwargs: P.kwargs) -> T:
        async def ask(service: Service) -> T:
            return await method(service, *args, **kwargs)

        return self.run(ask)

    return call


def _of_merchant(
    method: Callable[Concatenate[Merchant, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["SyncMerchant", P], T]:
    @functools.wraps(method)
    def call(self: "SyncMerchant", /, *args: P.args, **kwargs: P.kwargs) -> T:
        async def ask(service: Service) -> T:
            return await method(await service.merchant(self.account_id, self.mode), *args, **kwargs)

        return self._service.run(ask)

    return call


def _listed_by(
    method: Callable[Concatenate[Merchant, P], AsyncIterator[T]],
) -> Callable[Concatenate["SyncMerchant", P], Iterator[T]]:
    @functools.wraps(method)
    def call(self: "SyncMerchant", /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        async def begin(service: Service) -> AsyncIterator[T]:
            return method(await service.merchant(self.account_id, self.mode), *args, **kwargs)

        records = self._service.run(begin)

        async def following(_: Service) -> list[T]:
            async for record in records:
                return [record]
            return []

        while found := self._service.run(following):
            yield from found

    return call


class SyncMerchant:
    """One account in one mode. Created by `SyncService.merchant`; its methods are those of `cambist.Merchant`, and
    wait for their results."""

    def __init__(self, service: "SyncService", account_id: str, mode: Mode) -> None:
        self._service = service
        self.account_id = account_id
        self.mode = mode

    def __repr__(self) -> str:
        return f"SyncMerchant({self.account_id!r}, {self.mode.value!r})"

    do = _of_merchant(Merchant.do)
    create_payment = _of_merchant(Merchant.create_payment)
    payment = _of_merchant(Merchant.payment)
    payments = _listed_by(Merchant.payments)
    refund = _of_merchant(Merchant.refund)
    refund_state = _of_merchant(Merchant.refund_state)
    refunds = _listed_by(Merchant.refunds)
    settlements = _listed_by(Merchant.settlements)
    events = _listed_by(Merchant.events)
    movements = _listed_by(Merchant.movements)
    balance = _of_merchant(Merchant.balance)
    simulate = _of_merchant(Merchant.simulate)

    def payment_url(self, payment: Payment) -> str:
        """Return the page for the payer. It works while this service's HTTP application or `cambist serve` runs at that
        address."""

        async def ask(service: Service) -> str:
            return (await service.merchant(self.account_id, self.mode)).payment_url(payment)

        return self._service.run(ask)


class SyncService:
    """A service for synchronous programs. Created by `cambist.open_sync`. Any thread may use it."""

    def __init__(self, opening: Callable[[], RunningService]) -> None:
        self._opening = opening
        self._lock = threading.Lock()
        self._loop: _Loop | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, ask: Callable[[Service], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine function with the `cambist.Service` in its event loop, and return its result.

        Raises: exceptions of the coroutine; RuntimeError in an event loop, which the wait would block.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._running().run(ask)
        raise RuntimeError("this call would block the event loop: use cambist.open here, or call it in a thread")

    create_account = _of_service(Service.create_account)
    account = _of_service(Service.account)
    accounts = _of_service(Service.accounts)
    receive = _of_service(Service.receive)
    heard = _of_service(Service.heard)
    notification_addresses = _of_service(Service.notification_addresses)
    run_due = _of_service(Service.run_due)
    do = _of_service(Service.do)

    def merchant(self, account_id: str, mode: Mode | str = Mode.TEST) -> SyncMerchant:
        """Return an account in a mode: `test`, which moves no money, or `live`. Its calls raise Refusal
        ACCOUNT_NOT_FOUND."""
        return SyncMerchant(self, account_id, Mode(mode))

    def wsgi(self, *, prefix: str = "", then: Wsgi | None = None) -> Wsgi:
        """Return a WSGI application that serves the API and the payer window below `prefix`, and everything else by
        `then`. An open window takes one of the server's threads. Raises: NotInstalled."""
        with needing("wsgi", "the HTTP application under WSGI"):
            import a2wsgi

        path = prefix.rstrip("/")
        made: dict[int, Wsgi] = {}

        def serve(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            given = environ.get("PATH_INFO", "")
            if path and given != path and not given.startswith(f"{path}/"):
                if then is not None:
                    return then(environ, start_response)
                start_response("404 Not Found", [("Content-Type", "text/plain; charset=utf-8")])
                return [b"Not found\n"]
            running = self._running()
            if id(running) not in made:
                made.clear()
                made[id(running)] = cast("Wsgi", a2wsgi.ASGIMiddleware(running.asgi(), loop=running.loop))
            below = {**environ, "SCRIPT_NAME": environ.get("SCRIPT_NAME", "") + path, "PATH_INFO": given[len(path) :]}
            return made[id(running)](below, start_response)

        return serve

    def close(self) -> None:
        """Let running jobs finish, and close the service. The end of the program does so too. A later call opens it
        again."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None and loop.process == os.getpid():
            loop.close()

    def _running(self) -> "_Loop":
        """Return the loop of this process. After a fork the parent's is left alone, and this process gets its own.

        Raises: RuntimeError after a fork of a process that had opened a SQLite file. The library's locks are copied
        with the memory, so the file would appear locked for ever.
        """
        with self._lock:
            if self._loop is not None and self._loop.process != os.getpid() and self._loop.on_sqlite:
                raise RuntimeError("fork before the first use of a service on SQLite, or use Postgres")
            if self._loop is None or self._loop.process != os.getpid() or self._loop.is_closed:
                self._loop = _Loop(self._opening)
            return self._loop


class _Loop:
    """Event loop in a thread, with the service that runs in it."""

    def __init__(self, opening: Callable[[], RunningService]) -> None:
        self.process = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.is_closed = False
        self.on_sqlite = False
        self._opening = opening
        self._service: RunningService | None = None
        self._app: Any = None
        # A daemon: the interpreter waits for other threads before it calls what closes this one.
        self._thread = threading.Thread(target=self._turn, name="cambist", daemon=True)
        self._thread.start()
        _at_exit(self.close)

    def run(self, ask: Callable[[Service], Coroutine[Any, Any, T]]) -> T:
        async def asked() -> T:
            return await ask(await self._opened())

        return asyncio.run_coroutine_threadsafe(asked(), self.loop).result()

    def asgi(self) -> Any:
        """Return the HTTP application of the service, one for all callers."""

        async def app(scope: Any, receive: Any, send: Any) -> None:
            service = await self._opened()
            if self._app is None:
                self._app = service.asgi()
            await self._app(scope, receive, send)

        return app

    def close(self) -> None:
        """Close the service, then end the loop and the thread. A second call does nothing."""
        if self.is_closed or self.process != os.getpid():
            return
        self.is_closed = True
        if self._service is not None:
            asyncio.run_coroutine_threadsafe(self._service.close(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    async def _opened(self) -> Service:
        if self._service is None:
            self._service = self._opening()
        service = await self._service.service()
        self.on_sqlite = service.settings.sqlite_path is not None
        return service

    def _turn(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
        finally:
            self.loop.close()


def open_sync(
    database: str | Settings = "memory://",
    *,
    on_event: Callable[[Event], object] | None = None,
    adapters: Adapters | None = None,
    base_url: str = "",
    migrated: bool | None = None,
    vault_key: str = "",
    vault_pepper: str = "",
    works: bool = True,
) -> SyncService:
    """Return a service for a synchronous program. It opens at its first use, and anew in a forked process.

    `on_event` is called in a thread of its own, so it may block, for up to 10 seconds. Jobs run in the background,
    unless `works` is False. The other arguments, and what its first use raises, are those of `cambist.open`.
    """

    def opening() -> RunningService:
        return RunningService(
            lambda: open_service(
                database,
                on_event=_in_threads(on_event),
                adapters=adapters,
                base_url=base_url,
                migrated=migrated,
                vault_key=vault_key,
                vault_pepper=vault_pepper,
            ),
            works=works,
        )

    return SyncService(opening)


def _in_threads(on_event: Callable[[Event], object] | None) -> OnEvent | None:
    """Return a handler for the event loop that calls `on_event` in a thread."""
    if on_event is None:
        return None
    threads = ThreadPoolExecutor(_HANDLERS, thread_name_prefix="cambist-events")

    async def heard(event: Event) -> None:
        await asyncio.get_running_loop().run_in_executor(threads, on_event, event)

    return heard


def _at_exit(close: Callable[[], None]) -> None:
    """Call `close` at the end of the program, while threads may still be started.

    `atexit` comes too late: the interpreter has shut the thread pools down by then, and the database needs them.
    `threading` calls its own functions first; it is private, so without it `atexit` has to do.
    """
    register = getattr(threading, "_register_atexit", None)
    if register is None:
        atexit.register(close)
        return
    try:
        register(close)
    except RuntimeError:  # the program is ending already
        atexit.register(close)

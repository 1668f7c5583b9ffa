"""A service for programs without an event loop: Django and Flask under WSGI, scripts and shells
(docs/embedding.md "Synchronous programs").

The service runs in an event loop of its own, in its own thread. Every call waits for its result.
"""

import asyncio
import atexit
import functools
import gc
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast

from ...core.domain.accounts.accounts import Mode
from ...ports.faults import Unavailable
from ..app.compose import Adapters
from ..settings.plugins import needing
from ..settings.settings import Settings
from .event_handler import Event
from .merchant import Merchant
from .opening import Opening
from .running import RunningService
from .service import AsgiApp, Service
from .stop_signals import StopSignals

P = ParamSpec("P")
T = TypeVar("T")

Wsgi = Callable[[dict[str, Any], Any], Iterable[bytes]]
"""A WSGI application."""

_BATCH = 100
"""Records of a list that one change to the event loop's thread brings."""
_LEAVING = 5.0
"""Seconds that cancelled calls have to end when the service is closed."""
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
            return await method(self.within(service), *args, **kwargs)

        return self._service.run(ask)

    return call


def _listed_by(
    method: Callable[Concatenate[Merchant, P], AsyncIterator[T]],
) -> Callable[Concatenate["SyncMerchant", P], Iterator[T]]:
    @functools.wraps(method)
    def call(self: "SyncMerchant", /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        async def begin(service: Service) -> AsyncIterator[T]:
            return method(self.within(service), *args, **kwargs)

        records = self._service.run(begin)

        async def batch(_: Service) -> list[T]:
            found: list[T] = []
            async for record in records:
                found.append(record)
                if len(found) == _BATCH:
                    break
            return found

        while found := self._service.run(batch):
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

    def within(self, service: Service) -> Merchant:
        """Return the same account and mode for coroutines in the service's event loop."""
        return Merchant(service.ports, self.account_id, self.mode, asyncio.get_running_loop())


class SyncService:
    """A service for synchronous programs. Created by `cambist.open_sync`. Any thread may use it."""

    def __init__(self, opening: Callable[[ThreadPoolExecutor], Opening], *, works: bool) -> None:
        self._opening = opening
        self._works = works
        self._lock = threading.Lock()
        self._loop: _Loop | None = None
        self._ends_with_program = False
        self._signals = StopSignals()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, ask: Callable[[Service], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine function with the `cambist.Service` in its event loop, and return its result.

        Raises: exceptions of the coroutine; Unavailable when the service is closed meanwhile; RuntimeError in an event
        loop, which the wait would block.
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
        self._signals.watch(self._end_streams)
        self._signals.prepare_children(self._end_streams)

        def serve(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            given = environ.get("PATH_INFO", "")
            if path and given != path and not given.startswith(f"{path}/"):
                if then is not None:
                    return then(environ, start_response)
                start_response("404 Not Found", [("Content-Type", "text/plain; charset=utf-8")])
                return [b"Not found\n"]
            self._signals.watch_in_child()
            below = {**environ, "SCRIPT_NAME": environ.get("SCRIPT_NAME", "") + path, "PATH_INFO": given[len(path) :]}
            return answered(self._running(), below, start_response)

        def answered(running: "_Loop", environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
            tasks: list[asyncio.Task[None]] = []

            async def answer(*called: Any) -> None:
                task: Any = asyncio.current_task()
                tasks.append(task)
                await running.answer(*called)

            try:
                yield from cast("Wsgi", a2wsgi.ASGIMiddleware(answer, loop=running.loop))(environ, start_response)
            finally:
                # The client may have left before the end, and a2wsgi would leave the task waiting for ever.
                if not running.loop.is_closed():
                    for task in tasks:
                        running.loop.call_soon_threadsafe(task.cancel)

        return serve

    def close(self) -> None:
        """Let running jobs finish, and close the service. The end of the program does so too. A later call opens it
        again."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None and loop.process == os.getpid():
            loop.close()

    @contextmanager
    def replaced(self, change: Callable[[Opening], Opening]) -> Iterator[None]:
        """Open the service with changed arguments during the block, without a worker. For `cambist.testing`.

        Raises: RuntimeError if it is open.
        """
        former = self._opening, self._works
        with self._lock:
            if self._loop is not None:
                raise RuntimeError("the service is open already; close it first")
            self._opening, self._works = lambda threads: change(former[0](threads)), False
        try:
            yield
        finally:
            self.close()
            self._opening, self._works = former

    def _end(self) -> None:
        """Close at the end of the program. The interpreter would then collect the garbage of its whole heap, which
        takes as long as all else, and seconds on a busy machine; the system frees the memory at once."""
        self.close()
        gc.freeze()

    def _end_streams(self) -> None:
        """Close open payer windows. Called by a signal, so it takes no lock, which the main thread may hold."""
        if self._loop is not None and self._loop.process == os.getpid():
            self._loop.end_streams()

    def _running(self) -> "_Loop":
        """Return the loop of this process. After a fork the parent's is left alone, and this process gets its own.

        Raises: RuntimeError after a fork of a process that had opened a SQLite file. The library's locks are copied
        with the memory, so the file would appear locked for ever.
        """
        with self._lock:
            if self._loop is not None and self._loop.process != os.getpid():
                if self._loop.on_sqlite:
                    raise RuntimeError("fork before the first use of a service on SQLite, or use Postgres")
                self._loop = None
            if self._loop is None:
                self._loop = _Loop(self._opening, works=self._works)
                if not self._ends_with_program:
                    _at_exit(self._end)
                    self._ends_with_program = True
            return self._loop


class _Loop:
    """Event loop in a thread, with the service that runs in it."""

    def __init__(self, opening: Callable[[ThreadPoolExecutor], Opening], *, works: bool) -> None:
        self.process = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.on_sqlite = False
        self._handlers = ThreadPoolExecutor(_HANDLERS, thread_name_prefix="cambist-events")
        self._threads = ThreadPoolExecutor(thread_name_prefix="cambist-work")
        self.loop.set_default_executor(self._threads)
        self._service = RunningService(opening(self._handlers), works=works)
        self._app: tuple[Service, AsgiApp] | None = None
        self._lock = threading.Lock()
        self._is_closed = False
        # A daemon: the interpreter waits for other threads before it calls what closes this one.
        self._thread = threading.Thread(target=self._turn, name="cambist", daemon=True)
        self._thread.start()

    def run(self, ask: Callable[[Service], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine function with the open service, and wait for its result. Raises: Unavailable when the loop
        ends first."""

        async def asked() -> T:
            return await ask(await self._opened())

        with self._lock:
            # Nothing begins in a loop that ends, because nobody would answer it.
            if self._is_closed:
                raise Unavailable("the service was closed meanwhile")
            begun = asyncio.run_coroutine_threadsafe(asked(), self.loop)
        try:
            return begun.result()
        except CancelledError as cancelled:
            raise Unavailable("the service was closed meanwhile") from cancelled

    async def answer(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, as an ASGI application in this loop."""
        service = await self._opened()
        if self._app is None or self._app[0] is not service:
            self._app = service, service.asgi()
        await self._app[1](scope, receive, send)

    def end_streams(self) -> None:
        """Close open payer windows soon."""
        if self._app is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._app[0].end_streams)

    def close(self) -> None:
        """Close the service, then end the loop and its threads. Calls under way are cancelled. Only one caller does
        this."""
        asyncio.run_coroutine_threadsafe(self._service.close(), self.loop).result()
        with self._lock:
            self._is_closed = True
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self._handlers.shutdown(wait=False, cancel_futures=True)

    async def _opened(self) -> Service:
        service = await self._service.service()
        self.on_sqlite = service.settings.sqlite_path is not None
        return service

    def _turn(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            # Twice, because a task may begin another while it ends. One that does not end is left behind.
            for _ in range(2):
                if left := asyncio.all_tasks(self.loop):
                    for task in left:
                        task.cancel()
                    self.loop.run_until_complete(asyncio.wait(left, timeout=_LEAVING))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            # Not by the loop's own method: it starts a thread, which Python 3.12 forbids at the end of the program.
            self._threads.shutdown(cancel_futures=True)
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

    def opening(threads: ThreadPoolExecutor) -> Opening:
        async def heard(event: Event) -> None:
            if on_event is not None:
                await asyncio.get_running_loop().run_in_executor(threads, on_event, event)

        return Opening(
            database=database,
            on_event=None if on_event is None else heard,
            adapters=adapters,
            base_url=base_url,
            migrated=migrated,
            vault_key=vault_key,
            vault_pepper=vault_pepper,
        )

    return SyncService(opening, works=works)


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

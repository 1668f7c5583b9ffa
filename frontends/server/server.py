"""The service in one process: API, payer window and, optionally, the worker on one event loop."""

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from math import floor

import msgspec
import uvicorn

from ...core.usecases.accounts.written_bytes import ByteCounter
from ..app.compose import App, open_app, system_clock
from ..app.notification_addresses import begin_receiving
from ..app.simulators import tell_of_simulators
from ..app.stopping import Stopping
from ..http.edge.crowd import Crowd
from ..http.edge.gated import GatedProtocol
from ..http.edge.half_requests import IDLE, HalfRequests
from ..http.edge.intake import Intake
from ..http.edge.leaving import Departure, LeavingServer
from ..http.edge.parse_budget import ParseBudget
from ..http.edge.plain_server import PlainServer
from ..http.edge.streams import WindowStreams
from ..layers.quarantine import tell_if_held
from ..operations.provider_checks import providers_checked
from ..process.gc_pause import gc_paused, keep_for_good
from ..process.insides import tell_of_insides
from ..process.marking import marks_kept
from ..process.observed import observed, scraped
from ..process.open_files import allowed, file_budget
from ..process.registry import counts_alone, registered
from ..process.uvicorn_insides import INSIDES
from ..settings.settings import Settings, daily_bytes
from ..telemetry.limit_hits import hits_kept, requests_kept
from ..telemetry.logs import configure_logging
from ..telemetry.requests import RequestWatch
from ..worker.process import at_work, run_loop
from .app import create_app
from .first_sign_in import show_first_sign_in

log = logging.getLogger("cambist.serve")

_BACKLOG = 4096


class Running(msgspec.Struct, frozen=True):
    """A service that accepts requests."""

    app: App
    stopped: asyncio.Task[None]
    """Done after SIGTERM or SIGINT, when the server has drained."""
    stopping: Callable[[], bool]
    """Whether the service is stopping. It may still be draining."""


def serve(settings: Settings, *, works: bool = True) -> None:
    """Serve until SIGTERM or SIGINT, then finish requests and jobs under way (at most `shutdown_seconds`) and return.
    If other processes serve too, it first reports itself not ready and continues to serve for `lame_duck_seconds` of
    that time.

    Without `works` it runs no jobs: other processes do. It prints one line on stdout when it accepts requests; scripts
    wait for that line. A terminal also gets the sign-in of a fresh installation (first_sign_in.py). Raises: OSError
    when it cannot listen on the address; exceptions of `registered` and `open_app`.
    """
    configure_logging(settings.log_level, settings.log_format)
    stopping = Stopping(system_clock(), settings.shutdown_seconds, os._exit)

    async def until_stopped() -> None:
        async with contextlib.AsyncExitStack() as closing:
            with gc_paused():
                await closing.enter_async_context(registered(settings, counts=True, works=works))
                service = await closing.enter_async_context(running(settings, works=works, stopping=stopping))
            keep_for_good()
            await tell_if_held(service.app.ports)
            tell_of_simulators(service.app)
            tell_of_insides()
            _say_whose_keys(service.app.settings)
            sys.stdout.write(f"cambist serves at {service.app.settings.base_url}\n")
            sys.stdout.flush()
            if works:
                await show_first_sign_in(service.app, sys.stdout)
            await asyncio.wait([service.stopped])

    run_loop(until_stopped())


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes any free port. Raises: OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        taken = error.errno == errno.EADDRINUSE
        what = ": stop what listens there, or name another CAMBIST_PORT" if taken else ""
        raise OSError(error.errno, f"{error.strerror}{what}", f"{host}:{port}") from None
    listener.setblocking(False)
    return listener


@asynccontextmanager
async def running(
    settings: Settings,
    listener: socket.socket | None = None,
    *,
    works: bool = True,
    stopping: Stopping | None = None,
) -> AsyncIterator[Running]:
    """Run a service that accepts requests and, with `works`, runs jobs until the end of the block. Then drain it.

    It listens on `listener`, which it closes, or on its own socket. Draining may take the time of `stopping`, which
    starts at the signal. Raises: OSError when it cannot listen on the address; exceptions of `open_app` and of the
    worker.
    """
    ends = stopping or Stopping(system_clock(), settings.shutdown_seconds)
    with contextlib.closing(listener or listen(settings.host, settings.port)) as listener:
        settings = settings.listening_on(listener.getsockname()[1])
        async with (
            observed(settings, system_clock()) as telemetry,
            open_app(settings, telemetry=telemetry) as app,
            scraped(settings, telemetry, app.ports),
        ):
            await begin_receiving(settings, app.ports)
            streams = WindowStreams()
            written = ByteCounter(daily_bytes(app.settings))
            watch = RequestWatch(app.ports.clock, app.telemetry, app.settings.access_log, written=written)
            server = _server(app, streams, watch, ends)

            def stop(status: int = 0) -> None:
                ends.begin(status)
                server.should_exit = True

            _handle_signals(stop)
            async with (
                at_work(app, lambda: stop(1), ends) if works else contextlib.nullcontext(),
                hits_kept(app.ports, watch.hits, watch.uses, watch.written),
                requests_kept(app.ports, watch.requests),
                providers_checked(app.ports),
                marks_kept(app),
            ):
                serving = asyncio.create_task(server.serve(sockets=[listener]))
                ready = asyncio.create_task(server.ready.wait())
                watching = asyncio.create_task(HalfRequests(server.connections).watch(app.ports.clock))
                try:
                    await asyncio.wait([serving, ready], return_when=asyncio.FIRST_COMPLETED)
                    yield Running(app, serving, lambda: server.should_exit)
                finally:
                    ready.cancel()
                    stop()
                    await serving
                    watching.cancel()


def _server(app: App, streams: WindowStreams, watch: RequestWatch, ends: Stopping) -> LeavingServer | PlainServer:
    settings, departure = app.settings, Departure()
    counters = None if app.telemetry is None else app.telemetry.counters
    intake = Intake(app.ports.clock, counters)
    room = file_budget(allowed())
    of_an_address = min(settings.connections_per_address, room.of_an_address)
    crowd = Crowd(room.connections, of_an_address, app.ports.ids, settings.trusted_proxies, counters, settings.base_url)
    # A process that serves alone skips the lame duck phase: no other process could take its requests.
    lame_duck = 0.0 if counts_alone(settings) else min(settings.lame_duck_seconds, settings.shutdown_seconds / 2)
    config = uvicorn.Config(
        create_app(
            app.ports,
            trusted_proxies=settings.trusted_proxies,
            streams=streams,
            watch=watch,
            is_leaving=lambda: departure.begun,
            pages_per_minute=settings.pages_per_minute,
            notifications_per_minute=settings.notifications_per_minute,
        ),
        http=partial(  # type: ignore[arg-type]  # called, and nothing else
            GatedProtocol, intake, ParseBudget(), app.ports.ids, settings.base_url
        )
        if INSIDES.is_known
        else "httptools",
        timeout_keep_alive=round(IDLE),
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=max(floor(ends.for_requests - lame_duck), 1),
    )
    if not INSIDES.is_known:
        return PlainServer(config, streams, departure, app.ports.clock)
    return LeavingServer(config, crowd, streams, departure, app.ports.clock, lame_duck)


def _handle_signals(stop: Callable[[], None]) -> None:
    """Install signal handlers. uvicorn raises its signal again after it has stopped, for the previous handler. Without
    ours that would be the system's default, which ends the process with the worker's jobs under way.

    The event loop receives each signal besides uvicorn's own handler, so this handler only repeats the stop. Calling
    uvicorn's handler again would count one Ctrl-C as two.
    """
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)


def _say_whose_keys(settings: Settings) -> None:
    """Warn that a key file is local to one machine, when several machines can reach the database."""
    if settings.vault is None and settings.storage_url.startswith("postgresql://"):
        log.warning(
            "the vault's keys are in a key file of this machine; for more machines set CAMBIST_VAULT_KEY and "
            "CAMBIST_VAULT_PEPPER on all of them"
        )

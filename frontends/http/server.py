"""The whole service in one process: API, payer window and worker on one event loop."""

import asyncio
import contextlib
import logging
import signal
import socket
import sys

import uvicorn

from ...core.domain.accounts import Mode
from ...ports.bank import BankRoutes
from ..compose import open_house
from ..settings import Settings
from ..worker.loop import Worker
from .app import create_app
from .logs import configure_logging

log = logging.getLogger("cambist.serve")

_BACKLOG = 1024


class _Server(uvicorn.Server):
    """Says on stdout, in one line, where it accepts requests: scripts wait for that line."""

    def __init__(self, config: uvicorn.Config, base_url: str) -> None:
        super().__init__(config)
        self._base_url = base_url

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            sys.stdout.write(f"cambist serves at {self._base_url}\n")
            sys.stdout.flush()


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT, then finish what is under way (at most `shutdown_seconds`) and return.

    Raises: OSError when the address cannot be listened on; what `open_house` raises.
    """
    configure_logging(settings.log_level, settings.log_format)
    try:
        import uvloop
    except ImportError:
        asyncio.run(_serve(settings))
    else:
        uvloop.run(_serve(settings))


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any free one. Raises: OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener


async def _serve(settings: Settings) -> None:
    with contextlib.closing(listen(settings.host, settings.port)) as listener:
        settings = settings.listening_on(listener.getsockname()[1])
        async with open_house(settings) as house:
            _say_what_is_simulated(house.ports.banks)
            app = create_app(house.ports, trusted_proxies=settings.trusted_proxies)
            config = uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=True,
                lifespan="on",
                timeout_graceful_shutdown=int(settings.shutdown_seconds),
            )
            server = _Server(config, settings.base_url)
            await _run(server, listener, Worker(house.ports, at_once=settings.workers), settings.shutdown_seconds)


async def _run(server: uvicorn.Server, listener: socket.socket, worker: Worker, patience: float) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        # The server raises the signal anew when it has stopped, for whoever handled it before: without these, that is
        # the system's default, which would end the process with the worker's jobs under way.
        loop.add_signal_handler(number, server.handle_exit, number, None)
    working = asyncio.create_task(worker.work())

    def stop_serving(done: "asyncio.Task[None]") -> None:
        if not done.cancelled() and done.exception() is not None:
            log.critical("the worker died", exc_info=done.exception())
            server.should_exit = True

    working.add_done_callback(stop_serving)
    try:
        await server.serve(sockets=[listener])
    finally:
        worker.stop()
        try:
            await asyncio.wait_for(working, patience)
        except TimeoutError:
            log.warning("jobs under way did not end in %.0f s; their leases bring them back", patience)


def _say_what_is_simulated(banks: BankRoutes) -> None:
    """A fresh installation works in live mode too, on simulators; nobody shall take that for money."""
    for mode, names in banks.order.items():
        pretended = [name for name in names if banks.named(name).capabilities.simulated]
        if pretended and mode == Mode.LIVE:
            log.warning("live mode runs on simulators (%s): no real money moves", ", ".join(pretended))

"""A worker in its process: beside the API (`cambist serve`), or alone (`cambist worker`)."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager

from ..app.compose import App, open_app, system_clock
from ..app.notification_addresses import begin_receiving
from ..app.simulators import tell_of_simulators
from ..app.stopping import Stopping
from ..layers.quarantine import tell_if_held
from ..operations.provider_checks import providers_checked
from ..process.gc_pause import gc_paused, keep_for_good
from ..process.insides import tell_of_insides
from ..process.marking import marks_kept
from ..process.observed import observed, scraped
from ..process.open_files import allowed, file_budget, raise_limit
from ..process.registry import registered
from ..settings.settings import Settings
from ..telemetry.logs import configure_logging
from .loop import Worker

log = logging.getLogger("cambist.worker")


def work(settings: Settings) -> None:
    """Run jobs until SIGTERM or SIGINT, then finish the jobs under way within `shutdown_seconds` and return.

    It prints one line on stdout when it is ready; scripts wait for that line. Raises: exceptions of `open_app` and of
    the worker.
    """
    configure_logging(settings.log_level, settings.log_format)
    stopping = Stopping(system_clock(), settings.shutdown_seconds, os._exit)

    async def until_stopped() -> None:
        async with AsyncExitStack() as closing:
            with gc_paused():
                await closing.enter_async_context(registered(settings, counts=False, works=True))
                telemetry = await closing.enter_async_context(observed(settings, system_clock()))
                app = await closing.enter_async_context(open_app(settings, telemetry=telemetry))
                await closing.enter_async_context(scraped(settings, telemetry, app.ports))
            keep_for_good()
            await tell_if_held(app.ports)
            tell_of_simulators(app)
            tell_of_insides(serves=False)
            await begin_receiving(settings, app.ports)
            stopped = asyncio.Event()

            def stop(status: int = 0) -> None:
                stopping.begin(status)
                stopped.set()

            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, stop)
            async with at_work(app, lambda: stop(1), stopping), marks_kept(app), providers_checked(app.ports):
                sys.stdout.write("cambist works\n")
                sys.stdout.flush()
                await stopped.wait()

    run_loop(until_stopped())


def run_loop(main: Coroutine[None, None, None]) -> None:
    """Run a coroutine on the fastest available event loop, in our own process, with a raised limit of open files."""
    raise_limit()
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)


@asynccontextmanager
async def at_work(app: App, on_death: Callable[[], None], stopping: Stopping | None = None) -> AsyncIterator[Worker]:
    """Run a worker inside the block, and yield it; at the end, let it finish the jobs under way in the time that
    `stopping` leaves. `on_death` is called when the worker fails.

    Raises: the exception that ended the worker, so that the process supervisor sees a failure and starts it again.
    """
    webhooks = file_budget(allowed()).webhooks
    worker = Worker(app.ports, at_once=app.settings.workers, webhooks=webhooks, telemetry=app.telemetry)
    working = asyncio.create_task(worker.work())

    def look_why(done: "asyncio.Task[None]") -> None:
        if not done.cancelled() and done.exception() is not None:
            log.critical("the worker died; the process stops", exc_info=done.exception())
            on_death()

    working.add_done_callback(look_why)
    try:
        yield worker
    finally:
        worker.stop()
        ends = stopping or Stopping(system_clock(), app.settings.shutdown_seconds)
        done, _ = await asyncio.wait([working], timeout=ends.left_for_jobs())
        if done:
            working.result()
        else:
            log.warning("%d jobs under way did not end; they are left for the next worker", worker.under_way)
            working.cancel()
            await worker.leave()

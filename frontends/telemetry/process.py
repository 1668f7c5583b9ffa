"""Whether a process is counted and traced, and by what: settings become telemetry around the house, and what serves
it."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from ...ports.bundle import Ports
from ...ports.clock import Clock
from ..settings import SettingFault, Settings, SettingsError
from ..stopping import closed_soon
from .telemetry import Telemetry
from .tracing import Tracing, start_tracing


@asynccontextmanager
async def observed(settings: Settings, clock: Clock) -> AsyncIterator[Telemetry | None]:
    """The telemetry that the settings ask for, open; None where they ask for none. Raises: SettingsError."""
    if settings.metrics_port is None and not settings.tracing:
        yield None
        return
    tracing = start_tracing() if settings.tracing else None
    try:
        yield Telemetry(clock, tracing)
    finally:
        if tracing is not None:
            await _close(tracing)


async def _close(tracing: Tracing) -> None:
    """In a thread that keeps no process: a collector that hangs has it wait."""
    loop, closed = asyncio.get_running_loop(), asyncio.Event()

    def close() -> None:
        tracing.close()
        with suppress(RuntimeError):  # the loop is gone, and nobody waits any more
            loop.call_soon_threadsafe(closed.set)

    threading.Thread(target=close, daemon=True).start()

    async def is_closed() -> None:
        await closed.wait()

    await closed_soon("tracing", is_closed)


@asynccontextmanager
async def scraped(settings: Settings, telemetry: Telemetry | None, ports: Ports) -> AsyncIterator[None]:
    """The metrics are served inside, where the settings name a port.

    Raises: SettingsError without the extra `metrics`, or when the port cannot be listened on.
    """
    if telemetry is None or settings.metrics_port is None:
        yield
        return
    try:
        from .exposition import exposed
    except ImportError:
        raise _wrong_port("needs the extra `metrics`: pip install 'cambist[metrics]'") from None
    from .signs import Reader, reading  # here: nobody asks for them without metrics

    reader = Reader(ports)
    async with AsyncExitStack() as stack:
        try:
            stack.enter_context(exposed(telemetry, reader, settings.metrics_host, settings.metrics_port))
        except OSError as fault:
            raise _wrong_port(f"cannot be listened on: {fault.strerror or fault}") from None
        await stack.enter_async_context(reading(ports, reader, telemetry.counters))
        yield


def _wrong_port(message: str) -> SettingsError:
    return SettingsError((SettingFault(name="metrics_port", origin="CAMBIST_METRICS_PORT", message=message),))

"""Sets up metrics and tracing of a process from its settings."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from ...ports.bundle import Ports
from ...ports.clock import Clock
from ..app.stopping import closed_soon
from ..settings.settings import SettingFault, Settings, SettingsError
from ..telemetry.telemetry import Telemetry
from ..telemetry.tracing import Tracing, start_tracing


@asynccontextmanager
async def observed(settings: Settings, clock: Clock) -> AsyncIterator[Telemetry | None]:
    """Yield the telemetry that the settings ask for, or None. Raises: SettingsError."""
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
    """Close tracing in a daemon thread, because a collector that hangs would block the process."""
    loop, closed = asyncio.get_running_loop(), asyncio.Event()

    def close() -> None:
        tracing.close()
        with suppress(RuntimeError):  # the loop has been closed and nothing waits any more
            loop.call_soon_threadsafe(closed.set)

    threading.Thread(target=close, daemon=True).start()

    async def is_closed() -> None:
        await closed.wait()

    await closed_soon("tracing", is_closed)


@asynccontextmanager
async def scraped(settings: Settings, telemetry: Telemetry | None, ports: Ports) -> AsyncIterator[None]:
    """Serve the metrics while the block runs, if the settings name a port.

    Raises: SettingsError without the extra `metrics`, or if the port cannot be bound.
    """
    if telemetry is None or settings.metrics_port is None:
        yield
        return
    try:
        from ..telemetry.exposition import exposed
    except ImportError:
        raise _wrong_port("needs the extra `metrics`: pip install 'cambist[metrics]'") from None
    from ..telemetry.signs import Reader, reading  # imported here because only metrics need them

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

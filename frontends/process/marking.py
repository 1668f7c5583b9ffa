"""While a process serves or works, it checks that its database is still the same, and renews the mark from time to time
(core/usecases/installation/marking.py)."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ...core.usecases.installation.failovers import LOOKS_EVERY, FailoverWatch
from ...core.usecases.installation.marking import EVERY, POLL, mark_anew, recognise
from ...core.usecases.vault_checks import vault_misfits
from ..app.compose import App, vault_misfit
from ..app.maintenance import open_beside
from ..settings.plugins import has_own_schema

log = logging.getLogger("cambist.hold")


@asynccontextmanager
async def marks_kept(app: App) -> AsyncIterator[None]:
    """Mark the database now, and every minute to the end of the block. A failover of the server is noticed within a
    second (core/usecases/installation/failovers.py)."""
    if not has_own_schema(app.settings.storage_url):
        yield
        return
    beside, ports = open_beside(app.settings), app.ports

    watch = None if app.witnessed is None else FailoverWatch(ports, app.witnessed, beside)
    logged: list[str] = []

    async def poll() -> None:
        await recognise(ports.storage, ports.vault, beside, ports.clock, ports.ids, app.witnessed)
        misfits = await vault_misfits(ports.storage, ports.vault)
        if misfits and misfits != logged:
            log.error("%s", vault_misfit(app.settings, misfits))
        logged[:] = misfits

    async def mark() -> None:
        marked_at = polled_at = -EVERY
        while True:
            now = ports.clock.monotonic()
            is_due = now - polled_at >= POLL
            try:
                if watch is not None:
                    await watch.look()
                if is_due:
                    await poll()
                if now - marked_at >= EVERY:
                    await mark_anew(ports.storage, ports.vault, beside, ports.clock, ports.ids)
                    marked_at = now
            except Exception as fault:  # noqa: BLE001 - whatever it is, it is tried again
                # Harmless: the existing mark still matches the row.
                if is_due:
                    log.warning("the database could not be marked: %s", fault)
            polled_at = now if is_due else polled_at
            await ports.clock.sleep(POLL if watch is None else LOOKS_EVERY)

    marking = asyncio.create_task(mark())
    try:
        yield
    finally:
        marking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await marking

"""While a process serves or works, it checks that its database is still the same, and renews the mark from time to time
(core/usecases/installation/marking.py)."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ...core.usecases.installation.marking import EVERY, POLL, mark_anew, recognise
from ...core.usecases.vault_checks import vault_misfits
from ..app.compose import App, vault_misfit
from ..app.maintenance import open_beside
from ..settings.plugins import has_own_schema

log = logging.getLogger("cambist.hold")


@asynccontextmanager
async def marks_kept(app: App) -> AsyncIterator[None]:
    """Mark the database now, and every minute to the end of the block. A failover of the server is noticed within POLL,
    and the installation is held: the last writes of the former primary may be missing."""
    if not has_own_schema(app.settings.storage_url):
        yield
        return
    beside, ports = open_beside(app.settings), app.ports

    async def mark() -> None:
        marked_at = -EVERY
        logged: list[str] = []
        while True:
            try:
                await recognise(ports.storage, ports.vault, beside, ports.clock, ports.ids)
                misfits = await vault_misfits(ports.storage, ports.vault)
                if misfits and misfits != logged:
                    log.error("%s", vault_misfit(app.settings, misfits))
                logged = misfits
                if ports.clock.monotonic() - marked_at >= EVERY:
                    await mark_anew(ports.storage, ports.vault, beside, ports.clock, ports.ids)
                    marked_at = ports.clock.monotonic()
            except Exception as fault:  # noqa: BLE001 - whatever it is, it is tried again
                # Harmless: the existing mark still matches the row.
                log.warning("the database could not be marked: %s", fault)
            await ports.clock.sleep(POLL)

    marking = asyncio.create_task(mark())
    try:
        yield
    finally:
        marking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await marking

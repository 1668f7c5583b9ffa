"""While a process serves, its database is marked anew now and then (core/usecases/marking.py)."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ..core.usecases.marking import EVERY, mark_anew
from ..ports.faults import Fault
from .compose import House
from .upkeep import open_beside

log = logging.getLogger("cambist.hold")


@asynccontextmanager
async def marks_kept(house: House) -> AsyncIterator[None]:
    """Mark the database at once, and every minute to the end of the block."""
    beside = open_beside(house.settings)
    if not beside.keeps:
        yield
        return
    ports = house.ports

    async def mark() -> None:
        while True:
            try:
                await mark_anew(ports.storage, beside, ports.clock, ports.ids)
            except Fault as fault:
                # Nothing is the worse for it: the mark that stands fits the row.
                log.warning("the database could not be marked: %s", fault)
            await ports.clock.sleep(EVERY)

    marking = asyncio.create_task(mark())
    try:
        yield
    finally:
        marking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await marking

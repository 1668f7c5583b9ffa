"""What a process that counts requests does beside them: it writes now and then how many limits it saw hit."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ...core.usecases.accounts.limit_hits import HitCounter
from ...ports.bundle import Ports

EVERY = 10.0
"""Seconds between two looks whether there is something to write: what a process that is killed loses at most."""
PATIENCE = 5.0
"""Seconds that the last writing may take, at the end of the process."""

log = logging.getLogger("cambist.limits")


@asynccontextmanager
async def hits_kept(ports: Ports, hits: HitCounter) -> AsyncIterator[None]:
    """What is counted is written inside, and once more at the end, after the last request."""
    over = asyncio.Event()
    writing = asyncio.create_task(_write(ports, hits, over))
    try:
        yield
    finally:
        over.set()
        # Not cut off in a commit, of which nobody would know whether it was carried out.
        await asyncio.wait([writing], timeout=PATIENCE)
        writing.cancel()


async def _write(ports: Ports, hits: HitCounter, over: asyncio.Event) -> None:
    last = False
    while not last:
        pauses = [asyncio.create_task(ports.clock.sleep(EVERY)), asyncio.create_task(over.wait())]
        await asyncio.wait(pauses, return_when=asyncio.FIRST_COMPLETED)
        for pause in pauses:
            pause.cancel()
        last = over.is_set()
        try:
            await hits.flush(ports)
        except Exception as fault:  # noqa: BLE001 - numbers that wait for the next time must not end the writing
            log.info("limits that were hit could not be written yet: %s", type(fault).__name__)

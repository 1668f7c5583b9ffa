"""What a process that counts requests does beside them: it writes now and then which limits it saw hit, and which keys
used."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from ...core.usecases.accounts.request_log import RequestLog
from ...ports.bundle import Ports

EVERY = 10.0
"""Seconds between two looks whether there is something to write: what a process that is killed loses at most."""
REQUESTS_EVERY = 1.0
"""The same of the log of requests, which somebody may be following; it says itself whether writing is worth while."""
PATIENCE = 5.0
"""Seconds that the last writing may take, at the end of the process."""

log = logging.getLogger("cambist.limits")


class Book(Protocol):
    """What is noted of requests in memory, for a while."""

    async def flush(self, ports: Ports) -> None:
        """Write it. What could not be written waits on."""
        ...


@asynccontextmanager
async def hits_kept(
    ports: Ports, *books: Book, every: float = EVERY, when: Callable[[Ports], bool] | None = None
) -> AsyncIterator[None]:
    """What is noted is written inside, where given only `when` that is worth while, and once more at the end, after the
    last request."""
    over = asyncio.Event()
    writing = asyncio.create_task(_write(ports, books, over, every, when))
    try:
        yield
    finally:
        over.set()
        # Not cut off in a commit, of which nobody would know whether it was carried out.
        await asyncio.wait([writing], timeout=PATIENCE)
        writing.cancel()


def requests_kept(ports: Ports, requests: RequestLog) -> AbstractAsyncContextManager[None]:
    """The same of the log of requests."""
    return hits_kept(ports, requests, every=REQUESTS_EVERY, when=requests.is_due)


async def _write(
    ports: Ports, books: Sequence[Book], over: asyncio.Event, every: float, when: Callable[[Ports], bool] | None
) -> None:
    last = False
    while not last:
        pauses = [asyncio.create_task(ports.clock.sleep(every)), asyncio.create_task(over.wait())]
        await asyncio.wait(pauses, return_when=asyncio.FIRST_COMPLETED)
        for pause in pauses:
            pause.cancel()
        last = over.is_set()
        if not (last or when is None or when(ports)):
            continue
        for book in books:
            try:
                await book.flush(ports)
            except Exception as fault:  # noqa: BLE001 - what waits for the next time must not end the writing
                log.info("%s could not be written yet: %s", type(book).__name__, type(fault).__name__)

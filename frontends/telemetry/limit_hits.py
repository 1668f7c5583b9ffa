"""Writes rate-limit hits and key uses to the storage at intervals, in every process that counts requests."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from ...core.usecases.accounts.request_log import RequestLog
from ...ports.bundle import Ports

EVERY = 10.0
"""Seconds between two writes; a killed process loses at most this much."""
REQUESTS_EVERY = 1.0
"""The same for the request log, shorter because somebody may be following it. The log itself decides whether to
write."""
PATIENCE = 5.0
"""Maximum duration of the last write at the end of the process, in seconds."""

log = logging.getLogger("cambist.limits")


class Book(Protocol):
    """Records about requests, buffered in memory."""

    async def flush(self, ports: Ports) -> None:
        """Write the buffer. Records that could not be written stay in it."""
        ...


@asynccontextmanager
async def hits_kept(
    ports: Ports, *books: Book, every: float = EVERY, when: Callable[[Ports], bool] | None = None
) -> AsyncIterator[None]:
    """Write the buffers periodically while the block runs, if `when` allows it, and once more after the last
    request."""
    over = asyncio.Event()
    writing = asyncio.create_task(_write(ports, books, over, every, when))
    try:
        yield
    finally:
        over.set()
        # Wait for the write: cancelling a commit would leave its outcome unknown.
        await asyncio.wait([writing], timeout=PATIENCE)
        writing.cancel()


def requests_kept(ports: Ports, requests: RequestLog) -> AbstractAsyncContextManager[None]:
    """Do the same for the request log."""
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

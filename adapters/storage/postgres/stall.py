"""Detection of a Postgres that hangs: it accepts connections and never answers.

Otherwise every request would wait for its own connection and statement, up to 25 s, and hold its place for as long.
So a task checks twice a second whether the server answered anything. If requests wait and no answer came, the task
sends a query on its own connection. If the server does not answer that either, the task shuts the gate (gate.py)
until it does.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from contextvars import Context

from .gate import Gate

POLLS_EVERY = 0.5
"""Seconds between two checks."""
ANSWERS_WITHIN = 2.0
"""Seconds that the server has to answer the query."""
TRUSTED_FOR = 2.0
"""Seconds after an answer without another query. A single long read is silent for a while, too."""
REASON = "Postgres gives no answer: it hangs"

log = logging.getLogger("cambist.storage")


class Stall:
    """Watcher that shuts the gate while the server hangs.

    `ask` sends one query on its own connection, with a time limit. Its TimeoutError means that the server hangs.
    Any other error counts as an answer, because a server that is down refuses quickly.
    """

    def __init__(
        self,
        gate: Gate,
        ask: Callable[[], Awaitable[None]],
        *,
        polls_every: float = POLLS_EVERY,
        answers_within: float = ANSWERS_WITHIN,
        trusted_for: float = TRUSTED_FOR,
    ) -> None:
        self._gate = gate
        self._ask = ask
        self._every = polls_every
        self._within = answers_within
        self._trusted_for = trusted_for
        self._task: asyncio.Task[None] | None = None

    def watch(self) -> None:
        """Start watching, in a new context, because the task belongs to no request."""
        self._task = asyncio.get_running_loop().create_task(self._look(), context=Context())

    async def end(self) -> None:
        """Stop watching."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _look(self) -> None:
        before: list[int] = []
        while True:
            await asyncio.sleep(self._every)
            now = [pool.moved for pool in self._gate.pools]
            if now != before or not any(pool.is_waited_for for pool in self._gate.pools):
                before = now
                continue
            try:
                await self._find_out(before)
            except Exception:
                log.exception("whether Postgres answers could not be found out")
            before = []

    async def _find_out(self, before: list[int]) -> None:
        asking = asyncio.create_task(self._answers())
        try:
            await asyncio.wait((asking,), timeout=self._within)
            if asking.done() and asking.result():
                await asyncio.sleep(self._trusted_for)
                return
            if [pool.moved for pool in self._gate.pools] != before:
                return
            await self._gate.shut(REASON)
            while not await asking:
                asking = asyncio.create_task(self._answers())
        finally:
            self._gate.open(REASON)
            asking.cancel()

    async def _answers(self) -> bool:
        with contextlib.suppress(TimeoutError):
            try:
                await self._ask()
            except TimeoutError:
                raise
            except Exception as fault:  # noqa: BLE001 - any answer shows that it does not hang
                log.info("Postgres answers with a fault: %s", type(fault).__name__)
            return True
        return False

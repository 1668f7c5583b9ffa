"""Finding out that Postgres hangs: it takes connections and gives no answer, neither good nor bad.

Left to itself every request would wait for its own connection and statement, 25 s, and each one's place with it. So a
task looks twice a second whether anything comes back. Where something is under way and nothing does, it asks on a
connection of its own. When that is not answered either, all that wait are let go, and whoever comes is refused at once,
until the server answers again.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from typing import Protocol

from ....ports.faults import Unavailable

LOOKS_EVERY = 0.5
"""Seconds."""
ANSWERS_WITHIN = 2.0
"""Seconds that the question may take which is asked when nothing comes back."""
TRUSTED_FOR = 2.0
"""Seconds after an answer in which it is not asked again: a long read alone brings nothing back for a while, too."""

log = logging.getLogger("cambist.storage")


class Waited(Protocol):
    """Something in which requests wait for the server."""

    @property
    def is_waited_for(self) -> bool:
        """Whether anybody does."""
        ...

    @property
    def moved(self) -> int:
        """A number that differs from the one before when anything came back."""
        ...

    async def break_off(self) -> None:
        """Let all go that wait. They hear that the connection is gone."""
        ...


class Stall:
    """Whether the server hangs. `ask` is one question on a connection of its own, with an end; a fault is an answer,
    because a server that is away is refused soon enough; its TimeoutError is none."""

    def __init__(
        self,
        ask: Callable[[], Awaitable[None]],
        *,
        looks_every: float = LOOKS_EVERY,
        answers_within: float = ANSWERS_WITHIN,
        trusted_for: float = TRUSTED_FOR,
    ) -> None:
        self._ask = ask
        self._every = looks_every
        self._within = answers_within
        self._trusted_for = trusted_for
        self._pools: Sequence[Waited] = ()
        self._task: asyncio.Task[None] | None = None
        self.is_on = False

    def watch(self, *pools: Waited) -> None:
        """Look at these from now on."""
        self._pools = pools
        # In a context of its own: it is nobody's request.
        self._task = asyncio.get_running_loop().create_task(self._look(), context=Context())

    async def end(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.is_on = False

    def refuse(self) -> None:
        """Raises Unavailable while the server hangs: nothing was sent to it."""
        if self.is_on:
            raise Unavailable("Postgres gives no answer: it hangs")

    async def _look(self) -> None:
        before: list[int] = []
        while True:
            await asyncio.sleep(self._every)
            now = [pool.moved for pool in self._pools]
            if now != before or not any(pool.is_waited_for for pool in self._pools):
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
            if [pool.moved for pool in self._pools] != before:
                return
            await self._begin()
            while not await asking:
                asking = asyncio.create_task(self._answers())
            log.warning("Postgres answers again")
        finally:
            self.is_on = False
            asking.cancel()

    async def _begin(self) -> None:
        log.error("Postgres gives no answer: requests are refused until it does")
        self.is_on = True
        for pool in self._pools:
            await pool.break_off()

    async def _answers(self) -> bool:
        with contextlib.suppress(TimeoutError):
            try:
                await self._ask()
            except TimeoutError:
                raise
            except Exception as fault:  # noqa: BLE001 - whatever it says, it does not hang
                log.info("Postgres answers with a fault: %s", type(fault).__name__)
            return True
        return False

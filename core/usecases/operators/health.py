"""Rules of `/health`. Each rule is one word, which docs/operations.md "Health rules" explains."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

from ....ports.bundle import Ports
from ..common.quarantine import read_hold
from ..ledger.watch import ledger_faults
from ..recurring_jobs import missing_recurring_jobs
from ..vault_checks import vault_misfits
from .probes import CLOCK_OFF, clock_offset, gateways, lateness, without_gateway
from .unreadable import count_unreadable

NO_WORKER = 300.0
"""Age in seconds of a due job without a worker from which we conclude that no worker runs. Workers poll every second,
and the job of a dead worker is free after eight."""

T = TypeVar("T")


class Question(Generic[T]):
    """A call that may hang. One call runs at a time, and callers that arrive meanwhile share its answer.

    The call is never cancelled, because a driver that hangs may hang in its cancellation too. A caller stops waiting
    after its timeout. From then until the call ends, all callers get a TimeoutError at once.
    """

    def __init__(self, ask: Callable[[], Awaitable[T]]) -> None:
        self._ask = ask
        self._task: asyncio.Task[T] | None = None
        self._overdue = False

    @property
    def is_under_way(self) -> bool:
        return self._task is not None and not self._task.done()

    async def answer(self, within: float) -> T:
        """Return the answer. Raises: the call's own exceptions; TimeoutError when `within` seconds have passed."""
        task = self._task
        if task is None or task.done():
            task = self._task = asyncio.get_running_loop().create_task(self._asked())
            task.add_done_callback(_heard)
            self._overdue = False
        if not self._overdue:
            await asyncio.wait((task,), timeout=within)
        if not task.done():
            self._overdue = True
            raise TimeoutError("no answer in time")
        return task.result()

    async def _asked(self) -> T:
        return await self._ask()


def _heard(task: asyncio.Task[T]) -> None:
    """Retrieve the exception of a call that nobody awaits, so that the event loop does not report it."""
    if not task.cancelled():
        task.exception()


Rule = Callable[[Ports], Awaitable[bool]]
"""Returns whether the rule is met."""


async def _storage(ports: Ports) -> bool:
    await ports.storage.check()
    return True


async def _counters(ports: Ports) -> bool:
    return await ports.counters.works()


async def _queue(ports: Ports) -> bool:
    return await ports.queue.works()


async def _clock(ports: Ports) -> bool:
    return abs(await clock_offset(ports)) <= CLOCK_OFF


async def _worker(ports: Ports) -> bool:
    return await lateness(ports) < NO_WORKER


async def _standing(ports: Ports) -> bool:
    return not await missing_recurring_jobs(ports)


async def _gateways(ports: Ports) -> bool:
    return not without_gateway(await gateways(ports))


async def _ledger(ports: Ports) -> bool:
    return not await ledger_faults(ports)


async def _unreadable(ports: Ports) -> bool:
    return not await count_unreadable(ports)


async def _held(ports: Ports) -> bool:
    return await read_hold(ports) is None


async def _vault(ports: Ports) -> bool:
    return not await vault_misfits(ports.storage, ports.vault)


STORAGE, VAULT = "storage", "vault"
UNKNOWN = "unknown"
"""Shown for signs that cannot be read at present."""

PARTS: Mapping[str, Rule] = {STORAGE: _storage, "meter": _counters, "queue": _queue}
"""Parts that the service depends on."""

SIGNS: Mapping[str, Rule] = {
    "clock": _clock,
    "worker": _worker,
    "standing": _standing,
    "gateways": _gateways,
    "ledger": _ledger,
    "unreadable": _unreadable,
    VAULT: _vault,
    "held": _held,
}
"""Rules that read the storage, so their state is unknown without it."""

LOOKED_AT_EVERY: Mapping[str, float] = {"ledger": 60.0}
"""Seconds for which an answer is cached, where it is not EVERY."""
EVERY = 1.0
"""Seconds for which every other answer is cached. The storage is queried once a second at most, however many clients
call `/health`."""

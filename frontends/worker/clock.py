"""Reaction of a worker to a change of the machine's clock, if the storage uses that clock
(core/usecases/clock_steps.py)."""

import logging
from collections import deque
from collections.abc import Iterable
from datetime import timedelta

import msgspec

from ...core.usecases.clock_steps import REPEATS, ClockWatch, SetBack, found_set_back, put_right
from ...core.usecases.jobs import WORKER_LEASE
from ...ports.bundle import Ports
from ...ports.jobs import Job
from ...ports.storage import Clocked

log = logging.getLogger("cambist.worker")


class MachineClock:
    """Detects changes of the clock, and adjusts leases and due times."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._clocked = ports.storage if isinstance(ports.storage, Clocked) else None
        self._watch: ClockWatch | None = None
        self._set_back: SetBack | None = None
        """Size of a backward step, until due times are adjusted for it."""
        self._repeats: deque[tuple[float, SetBack]] = deque()
        """Times of repeated adjustments, in seconds of the monotonic clock, each with its backward step."""

    async def look(self, under_way: Iterable[Job]) -> None:
        """If the clock was set, renew the leases of running jobs and adjust due times. Call it before each claim, which
        would otherwise find leases that seem to have expired.

        Raises: exceptions of the storage; the next call tries again.
        """
        clock, storage = self._ports.clock, self._ports.storage
        if self._clocked is None or not self._clocked.by_own_clock:
            return
        if self._watch is None:
            # Start the watch before reading: the clock may be set during the read. A step that is then seen twice is
            # overcorrected, so a job only runs too early.
            watch = ClockWatch(clock)
            self._set_back = await found_set_back(self._ports)
            self._watch = watch
        step = self._watch.look()
        if step < timedelta(0):
            self._set_back = SetBack(by=-step, seen=clock.now() - step).and_before(self._set_back)
        if step:
            log.warning("the machine's clock was set by %.1f s", step.total_seconds())
            self._repeats.clear()
            await storage.renew([*under_way], WORKER_LEASE)
        if self._set_back is not None:
            await put_right(self._ports, self._set_back)
            again = msgspec.structs.replace(self._set_back, again=True)
            self._repeats.extend((clock.monotonic() + pause, again) for pause in REPEATS)
            self._set_back = None
        while self._repeats and self._repeats[0][0] <= clock.monotonic():
            await put_right(self._ports, self._repeats[0][1])
            self._repeats.popleft()

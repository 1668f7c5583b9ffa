"""What a worker does when this machine's clock is set, where the storage goes by it (core/usecases/clock_steps.py)."""

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
    """Notices that the clock was set, and has leases and due times follow."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._clocked = ports.storage if isinstance(ports.storage, Clocked) else None
        self._watch: ClockWatch | None = None
        self._set_back: SetBack | None = None
        """How far it was set back, until due times are put right for it."""
        self._repeats: deque[tuple[float, SetBack]] = deque()
        """When due times are put right once more, in seconds of the monotonic clock, and for which setting back."""

    async def look(self, under_way: Iterable[Job]) -> None:
        """Renew the leases of what is under way and put due times right, where the clock was set. Called before each
        claim, which would else see leases that seem to have ended.

        Raises: what the storage raises; the next look tries again.
        """
        clock, storage = self._ports.clock, self._ports.storage
        if self._clocked is None or not self._clocked.by_own_clock:
            return
        if self._watch is None:
            # Watched from before: it may be set while what is stored is read. What is then seen twice is put right by
            # too much, and looked at too early.
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

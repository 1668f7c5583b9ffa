"""One time limit for many exchanges, on one timer."""

import asyncio
from types import TracebackType


class Deadlines:
    """Time limit that works as `asyncio.timeout`, at a fraction of its cost.

    All exchanges have the same limit, so they expire in the order of their start, and one timer is enough. It is
    set to the first deadline or earlier, and moves on when it fires. Belongs to the event loop in which it is made.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self.running: dict[Deadline, float] = {}
        """Deadline of each exchange, in the order of their start."""
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> "Deadline":
        """Start the limit of the current task.

        Use it at once, and once: `with deadlines.begin(): …` raises TimeoutError when the time is over.
        """
        deadline = Deadline(self.running, asyncio.current_task(self._loop))
        self.running[deadline] = over = self._loop.time() + self._limit
        if self._timer is None:
            self._timer = self._loop.call_at(over, self._ring)
        return deadline

    def _ring(self) -> None:
        self._timer = None
        # A loop that counts in milliseconds may fire half of one early.
        now = self._loop.time() + 0.001
        for deadline, over in list(self.running.items()):
            if over > now:
                self._timer = self._loop.call_at(over, self._ring)
                return
            del self.running[deadline]
            deadline.end()


class Deadline:
    """Limit of one exchange."""

    __slots__ = ("_before", "_ended", "_running", "_task")

    def __init__(self, running: "dict[Deadline, float]", task: "asyncio.Task[object] | None") -> None:
        if task is None:
            raise RuntimeError("a deadline is for a task")
        self._running = running
        self._task = task
        self._before = task.cancelling()
        self._ended = False

    def end(self) -> None:
        """Cancel the task, because its time is over."""
        self._ended = True
        self._task.cancel()

    def __enter__(self) -> None:
        """Do nothing: `begin` started the limit."""

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._ended:
            del self._running[self]
        # If another task cancelled it as well, let that cancellation go on.
        elif self._task.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise TimeoutError from fault

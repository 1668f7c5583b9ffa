"""One limit for many exchanges, on one timer."""

import asyncio
from types import TracebackType


class Deadlines:
    """Ends what takes longer than `limit` seconds, as `asyncio.timeout` would, at a fraction of its cost.

    All have the same limit, so the first that began is the first to be over, and one timer is enough: it stands at or
    before the first deadline, and moves on when it rings. Belongs to the event loop in which it is made.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self.running: dict[Deadline, float] = {}
        """When each is over, in the order in which they began."""
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> "Deadline":
        """The present task's time runs from now: `with deadlines.begin(): …`, at once and once, raises TimeoutError
        when it is over."""
        deadline = Deadline(self.running, asyncio.current_task(self._loop))
        self.running[deadline] = over = self._loop.time() + self._limit
        if self._timer is None:
            self._timer = self._loop.call_at(over, self._ring)
        return deadline

    def _ring(self) -> None:
        self._timer = None
        # A loop that counts in milliseconds may ring half of one early.
        now = self._loop.time() + 0.001
        for deadline, over in list(self.running.items()):
            if over > now:
                self._timer = self._loop.call_at(over, self._ring)
                return
            del self.running[deadline]
            deadline.end()


class Deadline:
    """The limit of one exchange."""

    __slots__ = ("_before", "_ended", "_running", "_task")

    def __init__(self, running: "dict[Deadline, float]", task: "asyncio.Task[object] | None") -> None:
        if task is None:
            raise RuntimeError("a deadline is for a task")
        self._running = running
        self._task = task
        self._before = task.cancelling()
        self._ended = False

    def end(self) -> None:
        """The time is over."""
        self._ended = True
        self._task.cancel()

    def __enter__(self) -> None:
        """It was begun already."""

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._ended:
            del self._running[self]
        # Cancelled by somebody else as well: that is theirs, and goes on.
        elif self._task.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise TimeoutError from fault

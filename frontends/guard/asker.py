"""On whose behalf a task asks providers: a job that holds a worker's slot, a request that wants its answer in time, or
nobody in particular. The guard goes by it; who works and who serves say it."""

from collections.abc import Callable
from contextvars import ContextVar, Token

import msgspec

_ASKER: ContextVar["Asker | None"] = ContextVar("on whose behalf providers are asked", default=None)


class Asker(msgspec.Struct, eq=False):
    """Inside the block this task asks on behalf of it, and so do the tasks that it begins. Every request passes here,
    so it is no generator, and a struct."""

    is_job: bool
    until: float | None = None
    """Of a request: when all calls of it together are to be over, by the machine's monotonic clock; set by its first.
    A slow upload before that is not the provider's."""
    on_slow: Callable[[], None] | None = None
    """Of a job: a call of it takes long, and it needs no slot meanwhile."""
    on_quick: Callable[[], None] | None = None
    """Of a job: no call of it takes long any more."""
    _slow: int = 0
    _token: Token["Asker | None"] | None = None

    def begin_slow(self) -> None:
        """One call takes long."""
        self._slow += 1
        if self._slow == 1 and self.on_slow is not None:
            self.on_slow()

    def end_slow(self) -> None:
        """It has ended."""
        self._slow -= 1
        if self._slow == 0 and self.on_quick is not None:
            self.on_quick()

    def __enter__(self) -> None:
        self._token = _ASKER.set(self)

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _ASKER.reset(self._token)


def request_asks() -> Asker:
    """A merchant's or a payer's request asks, inside."""
    return Asker(is_job=False)


def job_asks(on_slow: Callable[[], None], on_quick: Callable[[], None]) -> Asker:
    """A job asks, inside; it is told while calls of it take long."""
    return Asker(is_job=True, on_slow=on_slow, on_quick=on_quick)


def present_asker() -> Asker | None:
    """On whose behalf this task asks; None: of nobody who was named, as an operator's command."""
    return _ASKER.get()

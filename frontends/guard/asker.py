"""Tells the guard on whose behalf a task asks providers: a job, which holds a worker's slot; a request, which has to be
answered in time; or nobody in particular. The worker and the HTTP front end set it."""

from collections.abc import Callable
from contextvars import ContextVar, Token

import msgspec

_ASKER: ContextVar["Asker | None"] = ContextVar("on whose behalf providers are asked", default=None)


class Asker(msgspec.Struct, eq=False):
    """Whose calls those of a `with` block are: those of this task, and of the tasks that it begins there.

    Every request enters one, so it is a struct with `__enter__`, which costs less than a generator.
    """

    is_job: bool
    until: float | None = None
    """Of a request: when its calls have to be over together, in seconds of the machine's monotonic clock. Its first
    call sets it, so that a slow upload before that takes no time from the provider."""
    on_slow: Callable[[], None] | None = None
    """Of a job: called when a call of it takes long, so that it holds no slot meanwhile."""
    on_quick: Callable[[], None] | None = None
    """Of a job: called when no call of it takes long any more."""
    _slow: int = 0
    _token: Token["Asker | None"] | None = None

    def begin_slow(self) -> None:
        """Count a call that takes long."""
        self._slow += 1
        if self._slow == 1 and self.on_slow is not None:
            self.on_slow()

    def end_slow(self) -> None:
        """Count it off: it has ended."""
        self._slow -= 1
        if self._slow == 0 and self.on_quick is not None:
            self.on_quick()

    def __enter__(self) -> None:
        self._token = _ASKER.set(self)

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _ASKER.reset(self._token)


def request_asks() -> Asker:
    """Make the asker of a merchant's or a payer's request."""
    return Asker(is_job=False)


def job_asks(on_slow: Callable[[], None], on_quick: Callable[[], None]) -> Asker:
    """Make the asker of a job: `on_slow` is called when the first call of it takes long, `on_quick` when none does any
    more."""
    return Asker(is_job=True, on_slow=on_slow, on_quick=on_quick)


def present_asker() -> Asker | None:
    """On whose behalf this task asks; None for whoever set nothing, as an operator's command."""
    return _ASKER.get()

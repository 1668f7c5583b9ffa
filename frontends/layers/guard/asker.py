"""Tells the guard on whose behalf a task calls providers: a job, which occupies a worker's slot; a request, which has a
deadline; or neither. The worker and the HTTP front end set it."""

from collections.abc import Callable
from contextvars import ContextVar, Token

import msgspec

_ASKER: ContextVar["Asker | None"] = ContextVar("on whose behalf providers are asked", default=None)


class Asker(msgspec.Struct, eq=False):
    """Marks the calls of a `with` block, and of the tasks started in it, as belonging to a job or a request.

    Every request enters one, so it is a struct with `__enter__`, which costs less than a generator.
    """

    is_job: bool
    until: float | None = None
    """Deadline of all calls of a request, on the machine's monotonic clock. The first call sets it, so that a slow
    upload before it does not shorten the provider's time."""
    on_slow: Callable[[], None] | None = None
    """For a job: called when one of its calls becomes slow, so that the job frees its slot."""
    on_quick: Callable[[], None] | None = None
    """For a job: called when none of its calls is slow any more."""
    _slow: int = 0
    _token: Token["Asker | None"] | None = None

    def begin_slow(self) -> None:
        """Count a slow call."""
        self._slow += 1
        if self._slow == 1 and self.on_slow is not None:
            self.on_slow()

    def end_slow(self) -> None:
        """Count the end of a slow call."""
        self._slow -= 1
        if self._slow == 0 and self.on_quick is not None:
            self.on_quick()

    def __enter__(self) -> None:
        self._token = _ASKER.set(self)

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _ASKER.reset(self._token)


def request_asks() -> Asker:
    """Return the asker of a merchant's or a payer's request."""
    return Asker(is_job=False)


def job_asks(on_slow: Callable[[], None], on_quick: Callable[[], None]) -> Asker:
    """Return the asker of a job. `on_slow` is called when its first call becomes slow, `on_quick` when no call is slow
    any more."""
    return Asker(is_job=True, on_slow=on_slow, on_quick=on_quick)


def present_asker() -> Asker | None:
    """Return the current asker, or None outside jobs and requests, such as in an operator's command."""
    return _ASKER.get()

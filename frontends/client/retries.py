"""Decides whether and when a call is repeated. Pure logic: the clients send and sleep."""

import random
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from .errors import FRAMES_HIDDEN, Advice, Answer, CambistError, NoAnswer, is_untouched, refusal, unexpected
from .requests import Request, new_key

T = TypeVar("T")
__tracebackhide__ = FRAMES_HIDDEN

_GOOD = range(200, 300)


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """Retry policy of a client. `Retries(attempts=1)` sends everything once."""

    attempts: int = 4
    """Attempts per call, including the first."""
    first_pause: float = 0.5
    """First pause in seconds. It doubles each time and is shortened at random by up to half. Retry-After takes
    precedence."""
    patience: float = 60.0
    """Limit on all pauses of a call together, in seconds. The error is raised at once if the next pause would exceed
    it."""
    new_key: bool = False
    """After `502 PROVIDER_ERROR` from POST /payments, create the payment again with another key. Only for keys that the
    client generated. Off by default, because the first payment may exist with the same external_id; it expires unpaid.
    """


class Course(Generic[T]):
    """State of one call over its attempts."""

    def __init__(self, request: Request[T], retries: Retries, chance: Callable[[], float] = random.random) -> None:
        self.request = request
        """The request to send next."""
        self._retries = retries
        self._chance = chance
        self._good: Answer | None = None
        self._tried = 0
        self._paused = 0.0

    def result(self) -> T:
        """Decode the good answer. Raises: CambistError UNEXPECTED_ANSWER."""
        if self._good is None:
            raise RuntimeError("there is no good answer yet")
        try:
            return self.request.read(self._good.body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise unexpected(self.request, self._good, f"The answer cannot be read: {error}") from None

    def pause(self, answer: Answer | NoAnswer) -> float | None:
        """Return the seconds to sleep before the next attempt, or None if the answer is good. Raises: CambistError."""
        if isinstance(answer, Answer) and answer.status in _GOOD:
            self._good = answer
            return None
        error = refusal(self.request, answer) if isinstance(answer, Answer) else answer
        self._tried += 1
        if self._tried >= self._retries.attempts or not self._goes_again(error):
            raise error
        pause = self._length(error)
        if self._paused + pause > self._retries.patience:
            raise error
        self._paused += pause
        return pause

    def _goes_again(self, error: CambistError) -> bool:
        if error.advice is Advice.SAME_KEY:
            return self.request.repeatable or is_untouched(error)
        if error.advice is Advice.NEW_KEY and self._retries.new_key and self.request.renewable and self.request.own_key:
            self.request = msgspec.structs.replace(self.request, key=new_key())
            return True
        return False

    def _length(self, error: CambistError) -> float:
        if error.retry_after is not None:
            return float(error.retry_after)
        longest: float = self._retries.first_pause * 2 ** (self._tried - 1)
        return longest * (1 - self._chance() / 2)

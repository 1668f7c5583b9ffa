"""When a call is sent again, and after what pause. Pure: the clients do the sending and the sleeping."""

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
    """How patient a client is. `Retries(attempts=1)` sends everything once."""

    attempts: int = 4
    """Of one call, the first included."""
    first_pause: float = 0.5
    """Seconds; doubled each time, less up to half by chance. What the service asks for (Retry-After) goes first."""
    patience: float = 60.0
    """Seconds that all pauses of one call may take. A longer one is not begun: the error comes at once."""
    new_key: bool = False
    """After `502 PROVIDER_ERROR` to POST /payments, make the payment anew by another key. Only for keys that the client
    made. Off, because the first payment may exist all the same, with the same external_id; it expires unpaid."""


class Course(Generic[T]):
    """One call on its way through its attempts."""

    def __init__(self, request: Request[T], retries: Retries, chance: Callable[[], float] = random.random) -> None:
        self.request = request
        """To be sent next."""
        self._retries = retries
        self._chance = chance
        self._good: Answer | None = None
        self._tried = 0
        self._paused = 0.0

    def result(self) -> T:
        """What the good answer says. Raises: CambistError UNEXPECTED_ANSWER."""
        if self._good is None:
            raise RuntimeError("there is no good answer yet")
        try:
            return self.request.read(self._good.body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise unexpected(self.request, self._good, f"The answer cannot be read: {error}") from None

    def pause(self, answer: Answer | NoAnswer) -> float | None:
        """Seconds to sleep before `request` is sent again; None: the answer is good. Raises: CambistError."""
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

"""What can go wrong with a call, by code, and what to do about it.

The advice comes from the service's own catalogue of refusals. What a code does not say alone is said here: a status
that has another advice, and what heals too slowly to be waited for within a call.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from operator import methodcaller
from typing import Any

import msgspec

from ...core.domain.errors import CATALOGUE, Retry
from .requests import Request

NO_ANSWER = "NO_ANSWER"
UNEXPECTED_ANSWER = "UNEXPECTED_ANSWER"

_TOO_MANY = 429
_SERVER_ERROR = 500
_AWAY = 503
_DIGITS = 12
"""Of a number in a header; longer ones are nonsense."""
_HELP = re.compile(r"""<(https?://[^<>\s"]+)>\s*;[^,<]*\brel="?help\b""")
_SLOW = frozenset(("PROVIDER_NOT_CONFIGURED", "FEATURE_DISABLED"))
"""An operator or a contract must change first."""


class Advice(StrEnum):
    """What to do with the same request."""

    SAME_KEY = "same_key"
    """Send it again soon, with the same Idempotency-Key: nothing is done twice. The client has tried already."""
    NEW_KEY = "new_key"
    """Its key keeps this answer. If it is still wanted, make it anew with another key."""
    WAIT = "wait"
    """It can succeed later, with the same key: see `next_allowed_at`, or wait for what the message names."""
    NEVER = "never"
    """It is wrong, or not allowed: change it. Its key is not used up."""


class RateLimit(msgspec.Struct, frozen=True, kw_only=True):
    """How the limit stands that a request reached last. `reset` in seconds from the answer on."""

    limit: int
    remaining: int
    reset: int


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer as it came. Header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def __repr__(self) -> str:
        return f"Answer(status={self.status})"

    @property
    def rate_limit(self) -> RateLimit | None:
        """None on paths that are not counted."""
        limit, remaining, reset = (
            _number(self.headers.get(f"ratelimit-{name}")) for name in RateLimit.__struct_fields__
        )
        if limit is None or remaining is None or reset is None:
            return None
        return RateLimit(limit=limit, remaining=remaining, reset=reset)

    @property
    def doc_url(self) -> str | None:
        """Of the header Link, with `rel="help"`: a page that explains the refusal."""
        found = _HELP.search(self.headers.get("link", ""))
        return found[1] if found else None

    @property
    def retry_after(self) -> int | None:
        """Seconds that the service asks to wait."""
        asked = _number(self.headers.get("retry-after"))
        if asked is None and self.status == _TOO_MANY and self.rate_limit is not None:
            return self.rate_limit.reset
        return asked


class CambistError(Exception):
    """A call that did not succeed. Everything that the client raises for an answer, or for none, is one."""

    def __init__(
        self, message: str, *, code: str, advice: Advice, request: Request[Any], answer: Answer | None
    ) -> None:
        super().__init__(message)
        self.code = code
        """Of the service's catalogue, or `NO_ANSWER`, `UNEXPECTED_ANSWER`."""
        self.message = message
        self.advice = advice
        self.idempotency_key = request.key
        """Repeat with this one where the advice is `same_key` or `wait`."""
        self.status = answer.status if answer else None
        self.request_id = answer.headers.get("x-request-id") if answer else None
        """Quote it to support."""
        self.retry_after = answer.retry_after if answer else None
        """Seconds."""
        self.rate_limit = answer.rate_limit if answer else None
        self.doc_url = answer.doc_url if answer else None
        """Where the service explains the code; None where it did not say."""
        self.details: Any = None
        """An object (`missing_fields`, `next_allowed_at`), or a list of `{path, message}`; None without."""

    @property
    def meaning(self) -> str | None:
        """What the code means, in the catalogue's words."""
        entry = CATALOGUE.get(self.code)
        return entry.meaning if entry else None

    @property
    def next_allowed_at(self) -> str | None:
        """When the same charge will be accepted, ISO 8601; None where the service does not say."""
        return self.details.get("next_allowed_at") if isinstance(self.details, dict) else None

    def __str__(self) -> str:
        where = f", request {self.request_id}" if self.request_id else ""
        status = f" ({self.status}{where})" if self.status else ""
        return f"{self.code}{status}: {self.message} [{self.advice.value}]"


FRAMES_HIDDEN = methodcaller("errisinstance", CambistError)
"""For `__tracebackhide__` of the client's modules: of a call that did not succeed pytest shows the line of the test
that made it, and not the client's inside."""


class NoAnswer(CambistError):
    """No answer came: no connection, a timeout, a connection that broke. Unless `is_unsent`, it may have been done."""

    def __init__(self, message: str, *, request: Request[Any], is_unsent: bool) -> None:
        again = Advice.SAME_KEY if request.repeatable or is_unsent else Advice.WAIT
        super().__init__(message, code=NO_ANSWER, advice=again, request=request, answer=None)
        self.is_unsent = is_unsent
        """It certainly never reached the service."""


class _Error(msgspec.Struct, frozen=True):
    code: str
    message: str
    details: Any = None


class _Envelope(msgspec.Struct, frozen=True):
    error: _Error


def refusal(request: Request[Any], answer: Answer) -> CambistError:
    """The error of an answer that is not good."""
    try:
        told = msgspec.json.decode(answer.body, type=_Envelope).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        return unexpected(request, answer, "The answer is none of the service's; something between has answered")
    made = CambistError(
        told.message, code=told.code, advice=_advice(request, answer.status, told.code), request=request, answer=answer
    )
    made.details = told.details
    return made


def unexpected(request: Request[Any], answer: Answer, message: str) -> CambistError:
    """An answer that cannot be read."""
    again = Advice.SAME_KEY if answer.status >= _SERVER_ERROR or answer.status == _TOO_MANY else Advice.NEVER
    return CambistError(message, code=UNEXPECTED_ANSWER, advice=again, request=request, answer=answer)


def is_untouched(error: CambistError) -> bool:
    """Nothing was done, whatever the request: it never arrived, was over the limit, or a part of the service was away
    before it began."""
    if isinstance(error, NoAnswer):
        return error.is_unsent
    return error.status == _TOO_MANY or (error.status == _AWAY and error.code in CATALOGUE)


def _advice(request: Request[Any], status: int, code: str) -> Advice:
    entry = CATALOGUE.get(code)
    if entry is None:
        return Advice.SAME_KEY if status >= _SERVER_ERROR or status == _TOO_MANY else Advice.NEVER
    retry = entry.retry_at(status)
    if retry is Retry.NEW_KEY:
        # Without a key nothing keeps the answer (KYC: "verifier did not answer; retry after 30 to 60 s").
        return Advice.NEW_KEY if request.key is not None else Advice.SAME_KEY
    if retry is Retry.NEVER:
        return Advice.NEVER
    if code in _SLOW or (status < _SERVER_ERROR and status != _TOO_MANY):
        return Advice.WAIT
    return Advice.SAME_KEY


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) <= _DIGITS else None

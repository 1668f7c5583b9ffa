"""Errors of a call by code, with advice on how to proceed.

The advice comes from the service's error catalogue. This module adds the cases that depend on more than the code:
statuses with other advice, and conditions that last too long to wait for within a call.
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
"""Maximum digits of a number in a header; longer ones are ignored."""
_HELP = re.compile(r"""<(https?://[^<>\s"]+)>\s*;[^,<]*\brel="?help\b""")
_SLOW = frozenset(("PROVIDER_NOT_CONFIGURED", "FEATURE_DISABLED"))
"""Codes that only an operator or a change of contract can resolve."""


class Advice(StrEnum):
    """How to proceed with the same request."""

    SAME_KEY = "same_key"
    """Send it again soon with the same Idempotency-Key; nothing happens twice. The client has already retried."""
    NEW_KEY = "new_key"
    """The key stays bound to this answer. To try again, create the object with another key."""
    WAIT = "wait"
    """It can succeed later with the same key: see `next_allowed_at`, or wait for the condition in the message."""
    NEVER = "never"
    """The request is invalid or not allowed. Change it; its key can still be used."""


class RateLimit(msgspec.Struct, frozen=True, kw_only=True):
    """State of the rate limit that the last request counted towards. `reset` is in seconds from the answer."""

    limit: int
    remaining: int
    reset: int


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP answer. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def __repr__(self) -> str:
        return f"Answer(status={self.status})"

    @property
    def rate_limit(self) -> RateLimit | None:
        """The rate limit, or None on paths that are not counted."""
        limit, remaining, reset = (
            _number(self.headers.get(f"ratelimit-{name}")) for name in RateLimit.__struct_fields__
        )
        if limit is None or remaining is None or reset is None:
            return None
        return RateLimit(limit=limit, remaining=remaining, reset=reset)

    @property
    def doc_url(self) -> str | None:
        """URL of a page that explains the error, from the Link header with `rel="help"`."""
        found = _HELP.search(self.headers.get("link", ""))
        return found[1] if found else None

    @property
    def retry_after(self) -> int | None:
        """Seconds to wait, as requested by the service."""
        asked = _number(self.headers.get("retry-after"))
        if asked is None and self.status == _TOO_MANY and self.rate_limit is not None:
            return self.rate_limit.reset
        return asked


class CambistError(Exception):
    """A failed call. The client raises it, or a subclass, for every bad or missing answer."""

    def __init__(
        self, message: str, *, code: str, advice: Advice, request: Request[Any], answer: Answer | None
    ) -> None:
        super().__init__(message)
        self.code = code
        """A code of the service's catalogue, or `NO_ANSWER`, `UNEXPECTED_ANSWER`."""
        self.message = message
        self.advice = advice
        self.idempotency_key = request.key
        """Repeat with this key if the advice is `same_key` or `wait`."""
        self.status = answer.status if answer else None
        self.request_id = answer.headers.get("x-request-id") if answer else None
        """Quote this id to support."""
        self.retry_after = answer.retry_after if answer else None
        """Seconds."""
        self.rate_limit = answer.rate_limit if answer else None
        self.doc_url = answer.doc_url if answer else None
        """Page that explains the code, or None."""
        self.details: Any = None
        """An object (`missing_fields`, `next_allowed_at`), a list of `{path, message}`, or None."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the state, because the arguments are not those of Exception."""
        return type(self).__new__, (type(self), *self.args), self.__dict__

    @property
    def meaning(self) -> str | None:
        """Meaning of the code, as the catalogue describes it."""
        entry = CATALOGUE.get(self.code)
        return entry.meaning if entry else None

    @property
    def next_allowed_at(self) -> str | None:
        """Time when the same charge will be accepted, ISO 8601, or None if the service does not say."""
        return self.details.get("next_allowed_at") if isinstance(self.details, dict) else None

    def __str__(self) -> str:
        where = f", request {self.request_id}" if self.request_id else ""
        status = f" ({self.status}{where})" if self.status else ""
        return f"{self.code}{status}: {self.message} [{self.advice.value}]"


FRAMES_HIDDEN = methodcaller("errisinstance", CambistError)
"""Value for `__tracebackhide__` in the client's modules. For a failed call pytest then shows the line of the test and
not the client's internals."""


class NoAnswer(CambistError):
    """No answer arrived: no connection, a timeout, or a broken connection. Unless `is_unsent`, the request may have
    been executed."""

    def __init__(self, message: str, *, request: Request[Any], is_unsent: bool) -> None:
        again = Advice.SAME_KEY if request.repeatable or is_unsent else Advice.WAIT
        super().__init__(message, code=NO_ANSWER, advice=again, request=request, answer=None)
        self.is_unsent = is_unsent
        """The request certainly never reached the service."""


class _Error(msgspec.Struct, frozen=True):
    code: str
    message: str
    details: Any = None


class _Envelope(msgspec.Struct, frozen=True):
    error: _Error


def refusal(request: Request[Any], answer: Answer) -> CambistError:
    """Return the error for an answer with an error status."""
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
    """Return the error for an answer that cannot be read."""
    again = Advice.SAME_KEY if answer.status >= _SERVER_ERROR or answer.status == _TOO_MANY else Advice.NEVER
    return CambistError(message, code=UNEXPECTED_ANSWER, advice=again, request=request, answer=answer)


def is_untouched(error: CambistError) -> bool:
    """Return whether the request certainly had no effect: it never arrived, exceeded the rate limit, or needed a part
    of the service that was unavailable before it started."""
    if isinstance(error, NoAnswer):
        return error.is_unsent
    return error.status == _TOO_MANY or (error.status == _AWAY and error.code in CATALOGUE)


def _advice(request: Request[Any], status: int, code: str) -> Advice:
    entry = CATALOGUE.get(code)
    if entry is None:
        return Advice.SAME_KEY if status >= _SERVER_ERROR or status == _TOO_MANY else Advice.NEVER
    retry = entry.retry_at(status)
    if retry is Retry.NEW_KEY:
        # Without a key no answer is stored (KYC: "verifier did not answer; retry after 30 to 60 s").
        return Advice.NEW_KEY if request.key is not None else Advice.SAME_KEY
    if retry is Retry.NEVER:
        return Advice.NEVER
    if code in _SLOW or (status < _SERVER_ERROR and status != _TOO_MANY):
        return Advice.WAIT
    return Advice.SAME_KEY


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) <= _DIGITS else None

"""One node, by JSON-RPC over HTTP: a question, and its answer in a shape.

A node's address may hold a key. So it stands in no fault, repr or log line: a node is called by its network and its
place in the setting.
"""

import asyncio
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from ...ports.clock import Clock
from ...ports.faults import Fault, NotConfigured, OutcomeUnknown, Unavailable
from ..provider_http import Answer, AnswerTooLong, ProviderHttp

T = TypeVar("T")

ANSWER_MAX = 8 * 1024 * 1024
_LIMIT = 7.0
_AT_ONCE = 8
"""Questions under way, at most: a pass over many addresses is not to look like an attack."""
_REST = {HTTPStatus.TOO_MANY_REQUESTS: 5.0, HTTPStatus.FORBIDDEN: 30.0}
"""Seconds in which a node is not asked the same question when it does not say how long. TronGrid answers 403, and keeps
to 30 seconds."""
_REST_MOST = 60.0
_NO_ANSWER_REST = 2.0
"""Seconds; twice as many each time it gives none again: one that hangs must not hold up every look."""
_TOO_OFTEN = re.compile(
    r"rate.?limit|request rate|too many requests|throttl|capacity|per second|/second|quota|credit|lack of computing",
    re.IGNORECASE,
)
"""Of a code that says both, the words tell too many questions from too many results."""
_TOO_OFTEN_CODES = (429, -32029, -32097)
_KEY_HEADERS = {"tron": "TRON-PRO-API-KEY"}
_WORDS = 120
_SAID = 1000


class NodeRefused(Unavailable):
    """The node says no to this question, for certain and not for being asked too often."""

    def __init__(self, message: str, code: int = 0, *, said: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, retry_after=retry_after)
        self.code = code
        self.said = said
        """The node's own words, for what they mean and not for a log."""


class TooOften(Unavailable):
    """The node counts our questions, or gave no answer just now: ask it later, and not for less."""


class _Error(msgspec.Struct, frozen=True):
    code: int = 0
    message: str = ""


class _Reply(msgspec.Struct, frozen=True):
    id: int | str | None = None
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()
    own_error: str | None = msgspec.field(default=None, name="Error")
    """TRON's limiter speaks no JSON-RPC."""


class _OddAnswer(Fault):
    """JSON, but no answer to the question. It says nothing about the node's other answers."""


class _NoAnswer(_OddAnswer):
    """What came is not even JSON: something else than the node answers at its address."""


class NodeAddress(msgspec.Struct, frozen=True):
    """Where a node is, and what it is to be told. Its repr hides the keys."""

    base: str
    query: Mapping[str, str] | None
    headers: Mapping[str, str]

    def __repr__(self) -> str:
        return "<NodeAddress>"


class Node:
    """A node of a network. Belongs to the event loop that first asks it."""

    def __init__(self, name: str, url: str, clock: Clock, *, limit: float = _LIMIT) -> None:
        """`url`: as the setting has it; what stands before an `@` is a key, which goes into a header. Opens nothing
        yet. Raises: NotConfigured for what is no address of a node."""
        self.name = name
        at = read_address(name, url)
        self._query = at.query
        self._http = ProviderHttp(
            name, at.base, limit=limit, headers={"Content-Type": "application/json", **at.headers}
        )
        self._clock = clock
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._rests_until = float("-inf")
        """While it is silent, the node is asked nothing."""
        self._limited_until: dict[str, float] = {}
        """By method: the node counts our questions, and is asked the other ones."""
        self._silent = 0
        """How many questions in a row had no answer."""
        self._number = 0

    def __repr__(self) -> str:
        return f"<Node {self.name}>"

    async def ask(self, method: str, shape: type[T], *params: Any) -> T:
        """The result, in this shape. A read, whatever the method.

        Raises: NodeRefused; TooOften; Unavailable for everything else that is no answer; NotConfigured when the key is
        not taken. Only silence, or an answer that is not JSON, rests the node for other questions.
        """
        return await self._asked(method, shape, params, writes=False)

    async def send(self, method: str, *params: Any) -> str:
        """The same for what does something there.

        Raises: NodeRefused; TooOften, Unavailable, NotConfigured: it was certainly not done; OutcomeUnknown.
        """
        return await self._asked(method, str, params, writes=True)

    async def _asked(self, method: str, shape: type[T], params: Sequence[Any], *, writes: bool) -> T:
        rest = max(self._rests_until, self._limited_until.get(method, float("-inf"))) - self._clock.monotonic()
        if rest > 0:
            raise TooOften(f"{self.name} is left alone for a moment", retry_after=rest)
        async with self._places:
            self._number += 1
            number = self._number
            body = msgspec.json.encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            try:
                answer = await self._http.call(
                    "POST", "", writes=writes, body=body, query=self._query, answer_max=ANSWER_MAX
                )
            except AnswerTooLong:
                raise
            except Unavailable:
                self._rest_silent()
                raise
        try:
            return self._result(method, answer, number, shape)
        except _OddAnswer as fault:
            if writes:
                raise OutcomeUnknown(str(fault)) from None
            if isinstance(fault, _NoAnswer):
                self._rest_silent()
                raise Unavailable(str(fault)) from None
            raise (NodeRefused if 400 <= answer.status < 500 else Unavailable)(str(fault)) from None

    async def ask_for(self, method: str, shape: type[T], *params: Any) -> T | None:
        """The same, of what may not be there: None."""
        found: T | None = await self.ask(method, shape | None, *params)  # type: ignore[arg-type]  # a union is a shape, too
        return found

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()

    def _result(self, method: str, answer: Answer, number: int, shape: type[T]) -> T:
        status = answer.status
        if status in _REST:
            raise self._too_often(method, f"status {status}", answer.retry_after() or _REST[HTTPStatus(status)])
        if status == HTTPStatus.UNAUTHORIZED:
            raise NotConfigured(f"{self.name}: the key in its address is not taken")
        try:
            reply = msgspec.json.decode(answer.body, type=_Reply)
        except msgspec.ValidationError:
            raise _OddAnswer(f"{self.name}: {method}: status {status}, and JSON of another shape") from None
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            # A status of 4xx is a refusal, whatever stands below it.
            kind = _OddAnswer if 400 <= status < 500 else _NoAnswer
            raise kind(f"{self.name}: {method}: status {status}, and no answer of JSON-RPC") from None
        self._silent = 0
        error = None if bytes(reply.error) in (b"", b"null") else _error(bytes(reply.error))
        if reply.own_error is not None or (error is not None and _is_too_often(error)):
            said = reply.own_error or ("" if error is None else error.message)
            raise self._too_often(method, _quotable(said), answer.retry_after() or 1.0)
        if error is not None:
            told = f"{self.name}: {method}: {error.code} {_quotable(error.message)}"
            raise NodeRefused(told, error.code, said=error.message[:_SAID])
        if status != HTTPStatus.OK or not bytes(reply.result) or str(reply.id) != str(number):
            raise _OddAnswer(f"{self.name}: {method}: status {status}, and no answer to this question")
        try:
            return msgspec.json.decode(reply.result, type=shape)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise _OddAnswer(f"{self.name}: the answer to {method} is not of the shape known to us") from None

    def _too_often(self, method: str, said: str, seconds: float) -> TooOften:
        seconds = min(seconds, _REST_MOST)
        self._limited_until[method] = self._clock.monotonic() + seconds
        return TooOften(f"{self.name} is asked too often: {said}", retry_after=seconds)

    def _rest_silent(self) -> None:
        now = self._clock.monotonic()
        if self._rests_until > now:
            return  # several questions under way at once are one silence
        self._rests_until = now + min(_NO_ANSWER_REST * 2 ** min(self._silent, 5), _REST_MOST)
        self._silent += 1


def _error(raw: bytes) -> _Error:
    """An error in whatever shape: a code or words that cannot be read make it no less of an error."""
    try:
        return msgspec.json.decode(raw, type=_Error)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _Error(message=raw.decode(errors="replace"))


def _is_too_often(error: _Error) -> bool:
    said = error.message
    return error.code in _TOO_OFTEN_CODES or (
        _TOO_OFTEN.search(said) is not None and "result" not in said and "range" not in said
    )


def _quotable(said: str) -> str:
    """What a node said, as far as it can stand in a log: a line, without an address, which may hold our key."""
    words = "".join(each for each in said[: 4 * _WORDS] if each.isprintable()).split(" ")
    return " ".join("…" if "://" in word else word for word in words)[:_WORDS]


def read_address(name: str, url: str) -> NodeAddress:
    """What an address of the setting says; `name` begins with the network's. Raises: NotConfigured, which does not
    quote it."""
    try:
        parts = urlsplit(url)
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        query = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True)) if parts.query else None
    except ValueError:
        raise NotConfigured(f"{name}: its address is none") from None
    base = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
    header = _KEY_HEADERS.get(name.partition(" ")[0])
    if not user:
        return NodeAddress(base, query, {})
    if header is not None:
        return NodeAddress(base, query, {header: user})
    basic = b64encode(f"{user}:{password}".encode()).decode()
    return NodeAddress(base, query, {"Authorization": f"Basic {basic}"})

"""One node, over JSON-RPC and HTTP: a query, and its typed answer.

A node's address may contain a key, so no fault, repr or log line shows it. They name a node by its network and its
position in the setting.
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
"""Concurrent queries at most: a pass over many addresses must not look like an attack."""
_REST = {HTTPStatus.TOO_MANY_REQUESTS: 5.0, HTTPStatus.FORBIDDEN: 30.0}
"""Seconds without the same query after this status, if the node does not say how long.

TronGrid answers 403, and keeps it up for 30 seconds.
"""
_REST_MOST = 60.0
_NO_ANSWER_REST = 2.0
"""Seconds without queries after a missing answer, doubled each time: a node that hangs must not delay every read."""
_TOO_OFTEN = re.compile(
    r"rate.?limit|request rate|too many requests|throttl|capacity|per second|/second|quota|credit|lack of computing",
    re.IGNORECASE,
)
"""Words that separate too many queries from too many results, for a code that means both."""
_TOO_OFTEN_CODES = (429, -32029, -32097)
_KEY_HEADERS = {"tron": "TRON-PRO-API-KEY"}
_WORDS = 120
_SAID = 1000


class NodeRefused(Unavailable):
    """The node refuses this query, certainly and not for its frequency."""

    def __init__(self, message: str, code: int = 0, *, said: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, retry_after=retry_after)
        self.code = code
        self.said = said
        """The node's own text, to find its meaning and not for a log."""


class TooOften(Unavailable):
    """The node limits our queries, or did not answer just now: repeat the query later, not with a smaller range."""


class _Error(msgspec.Struct, frozen=True):
    code: int = 0
    message: str = ""


class _Reply(msgspec.Struct, frozen=True):
    id: int | str | None = None
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()
    own_error: str | None = msgspec.field(default=None, name="Error")
    """Error of TRON's rate limiter, which does not speak JSON-RPC."""


class _OddAnswer(Fault):
    """JSON that does not answer the query. It says nothing about the node's other answers."""


class _NoAnswer(_OddAnswer):
    """The answer is not even JSON: another program than the node answers at its address."""


class NodeAddress(msgspec.Struct, frozen=True):
    """URL of a node, and the headers for it. Its repr hides the keys."""

    base: str
    query: Mapping[str, str] | None
    headers: Mapping[str, str]

    def __repr__(self) -> str:
        return "<NodeAddress>"


class Node:
    """Node of a network. It belongs to the event loop that queries it first."""

    def __init__(self, name: str, url: str, clock: Clock, *, limit: float = _LIMIT) -> None:
        """Read the URL of the setting, in which a key may stand before an `@` and then goes into a header, without
        connecting. Raises: NotConfigured for a text that is no address of a node.
        """
        self.name = name
        at = read_address(name, url)
        self._query = at.query
        self._http = ProviderHttp(
            name, at.base, limit=limit, headers={"Content-Type": "application/json", **at.headers}
        )
        self._clock = clock
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._rests_until = float("-inf")
        """Time until which the node gets no queries, after a missing answer."""
        self._limited_until: dict[str, float] = {}
        """End of a pause by method: the node limits this method, and still gets other queries."""
        self._silent = 0
        """Number of queries in a row without an answer."""
        self._number = 0

    def __repr__(self) -> str:
        return f"<Node {self.name}>"

    async def ask(self, method: str, shape: type[T], *params: Any) -> T:
        """Return the result in this shape. The method must only read.

        Raises: NodeRefused; TooOften; Unavailable for any other failure; NotConfigured if the key is refused. Only
        silence, or an answer that is not JSON, pauses the node for other queries.
        """
        return await self._asked(method, shape, params, writes=False)

    async def send(self, method: str, *params: Any) -> str:
        """Call a method that has an effect.

        Raises: NodeRefused; TooOften, Unavailable or NotConfigured if it certainly had no effect; OutcomeUnknown.
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
        """Return the result; None if the node has no such thing."""
        found: T | None = await self.ask(method, shape | None, *params)  # type: ignore[arg-type] # a union is a shape, too
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
            # A status of 4xx is a refusal, whatever the body contains.
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
            return  # several concurrent queries count as one silence
        self._rests_until = now + min(_NO_ANSWER_REST * 2 ** min(self._silent, 5), _REST_MOST)
        self._silent += 1


def _error(raw: bytes) -> _Error:
    """Return an error of any shape. It stays an error even if its code or text cannot be read."""
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
    """Return the part of a node's text that may go into a log: one line, without an address, which may contain our
    key.
    """
    words = "".join(each for each in said[: 4 * _WORDS] if each.isprintable()).split(" ")
    return " ".join("…" if "://" in word else word for word in words)[:_WORDS]


def read_address(name: str, url: str) -> NodeAddress:
    """Read an address of the setting; `name` begins with the network's.

    Raises: NotConfigured, which does not quote it.
    """
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

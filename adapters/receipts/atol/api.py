"""Calls to ATOL Online: tokens, documents and reports, with errors converted to the port's faults
(docs/providers/atol.md "How its answers are read")."""

import asyncio
import re
from collections.abc import Mapping
from decimal import Decimal
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import msgspec

from ....ports.clock import Clock
from ....ports.faults import Fault, NotConfigured, OutcomeUnknown, Refused, Unavailable
from ...provider_http import Answer, ProviderHttp
from .tills import Till

NAME = "atol"
_LIMIT = 8.0
"""Seconds of one exchange. A call takes one, and three when its token has expired."""
_WAIT_MAX = 5.0
"""Longest wait for a report's turn, in seconds."""
_JSON = {"Content-Type": "application/json; charset=utf-8"}
_FIELD = re.compile(r"#/[A-Za-z0-9_/.\[\]]{1,100}")

TOKENS = frozenset({10, 11})
"""Error codes of a token that ATOL does not accept any more."""
NO_DOCUMENT, EXISTS, NOT_READY = 30, 33, 34
_REFUSALS = frozenset({13, 31, 32, 40, 41})
"""Error codes of a document that was not registered because of its content."""
_NOT_CONFIGURED: Mapping[int, str] = {
    12: "it does not take the login and the password",
    14: "the login is blocked: ask ATOL's support",
    20: "the group of registers is not one of this login",
    21: "the registers of the group have another format: see CAMBIST_ATOL_FORMAT",
}

_encoder = msgspec.json.Encoder(decimal_format="number")


class Problem(msgspec.Struct, frozen=True):
    """The `error` of an answer."""

    code: int
    text: str = ""
    type: str = ""


class Payload(msgspec.Struct, frozen=True):
    """Numbers of a written document."""

    total: Decimal
    fn_number: str
    ecr_registration_number: str
    fiscal_document_number: int
    fiscal_document_attribute: int
    receipt_datetime: str
    ofd_receipt_url: str | None = None


class Said(msgspec.Struct, frozen=True):
    """An answer about a document."""

    uuid: str | None = None
    status: str | None = None
    error: Problem | None = None
    payload: Payload | None = None


class _Session(msgspec.Struct, frozen=True):
    """An answer of getToken. The repr is empty."""

    token: str | None = None
    error: Problem | None = None

    def __repr__(self) -> str:
        return "<session>"


class _Token:
    """The token of one login. Only one request for it runs at a time."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self.value: str | None = None


class AtolApi:
    """ATOL's API. The repr and the faults contain no credential and nothing of a document."""

    def __init__(self, base_url: str, clock: Clock, *, registers: int = 1) -> None:
        """`base_url` ends with the version. `registers`: how many reports a second a group answers."""
        self._http = ProviderHttp(NAME, base_url, limit=_LIMIT, headers=_JSON, clock=clock)
        self._clock = clock
        self._tokens: dict[str, _Token] = {}
        self._pause = 1.0 / registers
        self._next_reports: dict[str, float] = {}

    def __repr__(self) -> str:
        return "<AtolApi>"

    @property
    def clock_skew(self) -> float | None:
        """Clock difference from ProviderHttp."""
        return self._http.clock_skew

    async def send(self, till: Till, operation: str, document: Mapping[str, Any]) -> tuple[str, bool]:
        """Register a document. Return ATOL's id, and False if the group has a document with this external id already.

        Raises: Refused `receipt` if it was not registered because of what it says; NotConfigured; Unavailable;
        OutcomeUnknown.
        """
        answer = await self._call(till, "POST", operation, writes=True, body=_encoder.encode(document))
        said = answer.decoded(Said)
        code = None if said.error is None else said.error.code
        if code in _REFUSALS:
            fields = " ".join(_FIELD.findall("" if said.error is None else said.error.text)[:10])
            raise Refused(f"{NAME}: the document is not accepted (error {code}) {fields}".strip(), reason="receipt")
        is_new = answer.status == HTTPStatus.OK and said.error is None
        if not said.uuid or not (is_new or code == EXISTS):
            raise OutcomeUnknown(f"{NAME}: status {answer.status}, error {code}")
        return said.uuid, is_new

    async def report(self, till: Till, uuid: str) -> Said:
        """Read the state of a document. Raises: Unavailable, also for a document that ATOL does not know, or not any
        more; NotConfigured."""
        await self._take_turn(till.group)
        answer = await self._call(till, "GET", f"report/{quote(uuid, safe='')}", writes=False)
        said = answer.decoded(Said)
        if answer.status != HTTPStatus.OK:
            code = None if said.error is None else said.error.code
            why = "it has no such document, or not for 32 days any more" if code == NO_DOCUMENT else f"error {code}"
            raise Unavailable(f"{NAME}: status {answer.status}: {why}")
        return said

    async def check(self, till: Till) -> None:
        """Check login, group and version by the report of a document that does not exist. Raises: NotConfigured;
        Unavailable."""
        answer = await self._call(till, "GET", "report/00000000-0000-4000-8000-000000000000", writes=False)
        said = answer.decoded(Said)
        if said.error is None or said.error.code not in (NO_DOCUMENT, NOT_READY):
            raise Unavailable(f"{NAME}: status {answer.status} for a document that does not exist")

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()

    async def _take_turn(self, group: str) -> None:
        """Wait until the group may be asked for a report. Raises: Unavailable if too many wait already."""
        now = self._clock.monotonic()
        turn = max(self._next_reports.get(group, now), now)
        if turn - now > _WAIT_MAX:
            raise Unavailable(f"{NAME}: too many reports at once", retry_after=turn - now)
        self._next_reports[group] = turn + self._pause
        if turn > now:
            await self._clock.sleep(turn - now)

    async def _call(self, till: Till, method: str, path: str, *, writes: bool, body: bytes | None = None) -> Answer:
        """Make a call with a token. If ATOL does not accept the token, nothing was done: take a new one, once."""
        token, refused = "", ""
        for _ in range(2):
            token = await self._token(till, refused)
            answer = await self._http.call(
                method, f"/{quote(till.group, safe='')}/{path}", writes=writes, body=body, headers={"Token": token}
            )
            if answer.status != HTTPStatus.UNAUTHORIZED or _code(answer) not in TOKENS:
                return _settled(answer, till)
            refused = token
        raise NotConfigured(f"{NAME}: it accepts no token of the login of {till.named}")

    async def _token(self, till: Till, refused: str) -> str:
        """Return the token that all calls share, or a new one if it is the refused one. ATOL advises to take a new
        token only then. Raises: NotConfigured; Unavailable."""
        shared = self._tokens.setdefault(till.owner, _Token())
        async with shared.turn:
            if shared.value is None or shared.value == refused:
                shared.value = await self._new_token(till)
            return shared.value

    async def _new_token(self, till: Till) -> str:
        body = _encoder.encode({"login": till.login, "pass": till.password})
        answer = _settled(await self._http.call("POST", "/getToken", writes=False, body=body), till)
        token = answer.decoded(_Session).token
        if answer.status != HTTPStatus.OK or not token or not token.isascii() or not token.isprintable():
            raise Unavailable(f"{NAME}: getToken: status {answer.status}, error {_code(answer)}")
        return token


def _settled(answer: Answer, till: Till) -> Answer:
    """Return the answer if it is about the document. Raises: Unavailable; NotConfigured; the answer's `unreadable`."""
    if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
        raise Unavailable(f"{NAME}: too many requests", retry_after=answer.retry_after())
    code = _code(answer)
    if code is not None and code in _NOT_CONFIGURED:
        raise NotConfigured(f"{NAME}: {till.named}: {_NOT_CONFIGURED[code]}")
    if answer.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN) and code is None:
        raise Unavailable(f"{NAME}: {answer.status} without an error of ATOL's: a proxy's answer")
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR or not (
        answer.status == HTTPStatus.OK or answer.status >= 400
    ):
        raise answer.unreadable(f"{NAME}: status {answer.status}")
    return answer


def _code(answer: Answer) -> int | None:
    try:
        error = answer.decoded(Said).error
    except Fault:
        return None
    return None if error is None else error.code

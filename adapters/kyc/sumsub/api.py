"""Sumsub API calls of a check, signed, with errors converted to the port's faults (docs/providers/sumsub.md "How its
answers are read")."""

from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from ....ports.clock import Clock
from ....ports.faults import Fault, NotConfigured, OutcomeUnknown, Refused, Unavailable
from ....ports.kyc import NoAnswer
from ...provider_http import Answer, ProviderHttp
from .signing import signed
from .wire import Applicant, Complaint, Levels, Link, Review, Steps

T = TypeVar("T")

_JSON = "application/json"
NOT_ASKED_FOR = "not_asked_for"
_THERE_ALREADY, _NOT_IN_LEVEL = 1000, 1010
"""`errorCode`s: the image was uploaded before; the level has no step for its type."""
_WINDOW = 5.0
"""Window of Sumsub's limits in seconds (300 reads, 50 writes). It is the wait after a 429 without a Retry-After."""


class SumsubApi:
    """Sumsub's API with one pair of token and secret. The repr and the faults contain neither of them, nor personal
    data."""

    def __init__(self, http: ProviderHttp, token: str, secret: str, clock: Clock) -> None:
        self._http = http
        self._token = token
        self._secret = secret
        self._clock = clock

    def __repr__(self) -> str:
        return "<SumsubApi>"

    @property
    def is_sandbox(self) -> bool:
        """Report whether the token belongs to the sandbox."""
        return self._token.startswith("sbx:")

    @property
    def clock_skew(self) -> float | None:
        """Clock difference from ProviderHttp."""
        return self._http.clock_skew

    async def create(self, operation: str, level: str, person: Mapping[str, Any]) -> Applicant | None:
        """Create the applicant of this operation; return None if it exists already.

        Raises: NotConfigured if the level does not exist; Refused, OutcomeUnknown, Unavailable.
        """
        body = msgspec.json.encode({"externalUserId": operation, **person})
        answer = await self._write("POST", f"/resources/applicants?levelName={_quoted(level)}", body, _JSON)
        if answer.status == 409:
            return None
        if answer.status == 404:
            raise NotConfigured(f"sumsub: it has no level of the name that is set ({_complaint(answer)})")
        return _done(answer).decoded(Applicant)

    async def find(self, operation: str) -> Applicant | None:
        """Read the applicant of an operation, or None."""
        answer = await self._read(f"/resources/applicants/-;externalUserId={_quoted(operation)}/one")
        return None if answer.status == 404 else _read_as(answer, Applicant)

    async def applicant(self, reference: str) -> Applicant | None:
        """Read the applicant with this id, or None."""
        return await self._of_reference(reference, "one", Applicant)

    async def review(self, reference: str) -> Review | None:
        """Read the state of the applicant's review, or None for an unknown id. The answer contains no personal data."""
        return await self._of_reference(reference, "status", Review)

    async def steps(self, reference: str) -> Steps | None:
        """Read the submitted documents and their results, or None for an unknown id."""
        return await self._of_reference(reference, "requiredIdDocsStatus", Steps)

    async def _of_reference(self, reference: str, what: str, shape: type[T]) -> T | None:
        answer = await self._read(f"/resources/applicants/{_quoted(reference)}/{what}")
        # A malformed id answers 400, an unknown one 404.
        return None if answer.status in (400, 404) else _read_as(answer, shape)

    async def add_document(self, reference: str, body: bytes, content_type: str) -> None:
        """Submit one document built by `wire.multipart`. Submitting the same image again changes nothing.

        Raises: Refused if the document is rejected, with reason `NOT_ASKED_FOR` if the level has no step for it;
        OutcomeUnknown, Unavailable, NotConfigured.
        """
        target = f"/resources/applicants/{_quoted(reference)}/info/idDoc"
        answer = await self._write("POST", target, body, content_type)
        code = _complaint(answer).error_code if answer.status >= 400 else None
        if code == _THERE_ALREADY:
            return
        if code == _NOT_IN_LEVEL:
            raise Refused("sumsub: the level does not ask for this document", reason=NOT_ASKED_FOR)
        _done(answer).decoded(dict)

    async def begin(self, reference: str) -> None:
        """Start the applicant's review. Raises: Refused if a step is missing; OutcomeUnknown, Unavailable,
        NotConfigured."""
        answer = await self._write("POST", f"/resources/applicants/{_quoted(reference)}/status/pending")
        _done(answer).decoded(dict)  # an HTML page of a proxy is no answer of Sumsub

    async def link(self, operation: str, level: str, seconds: int) -> str:
        """Create an address of the form for the operation's applicant. Each call creates a new address and changes
        nothing else.

        Raises: Refused, OutcomeUnknown, Unavailable, NotConfigured.
        """
        body = msgspec.json.encode({"levelName": level, "userId": operation, "ttlInSecs": seconds})
        answer = _done(await self._write("POST", "/resources/sdkIntegrations/levels/-/websdkLink", body, _JSON))
        url = answer.decoded(Link).url
        if not url.startswith("https://"):
            raise OutcomeUnknown("sumsub: the form's address is none of https")
        return url

    async def levels(self) -> Levels:
        """Read the levels of the account."""
        return _read_as(await self._read("/resources/applicants/-/levels"), Levels)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    async def _write(self, method: str, target: str, body: bytes = b"", content_type: str | None = None) -> Answer:
        """Raises: OutcomeUnknown, Unavailable, NotConfigured."""
        return _settled(await self._call(method, target, body, content_type), OutcomeUnknown)

    async def _read(self, target: str) -> Answer:
        """Raises: NoAnswer if the request was sent, else Unavailable; NotConfigured."""
        try:
            answer = await self._call("GET", target)
        except OutcomeUnknown as lost:
            raise NoAnswer(str(lost)) from None
        return _settled(answer, NoAnswer)

    async def _call(self, method: str, target: str, body: bytes = b"", content_type: str | None = None) -> Answer:
        """Send a signed request. Reads also pass `writes=True`, to distinguish unanswered requests from those never
        sent."""
        headers = {**signed(self._token, self._secret, self._clock.now(), method, target, body), "Accept": _JSON}
        if content_type is not None:
            headers["Content-Type"] = content_type
        return await self._http.call(method, target, writes=True, body=body or None, headers=headers)


def _settled(answer: Answer, unclear: type[Fault]) -> Answer:
    """Return the answer if it is about the request itself. Raises: `unclear`, Unavailable, NotConfigured."""
    if answer.status == 429:
        wait = answer.retry_after()
        raise Unavailable("sumsub: its limit is reached", retry_after=_WINDOW if wait is None else wait)
    if answer.status in (401, 403):
        if _complaint(answer) == Complaint():
            raise Unavailable(f"sumsub: {answer.status} without an error of Sumsub's: a proxy's answer")
        raise NotConfigured(
            f"sumsub: {answer.status} ({_complaint(answer)}): it does not take the token, the secret or its "
            "permissions, or this machine's clock is more than a minute wrong"
        )
    if answer.status >= 500 or not (200 <= answer.status < 300 or answer.status >= 400):
        raise unclear(f"sumsub: {answer.status}")
    return answer


def _done(answer: Answer) -> Answer:
    """Raises: Refused."""
    if answer.status >= 400:
        raise Refused(f"sumsub: {answer.status} ({_complaint(answer)})", reason="incomplete")
    return answer


def _read_as(answer: Answer, shape: type[T]) -> T:
    """Raises: NoAnswer."""
    try:
        return _done(answer).decoded(shape)
    except (Refused, OutcomeUnknown) as fault:
        raise NoAnswer(str(fault)) from None


def _complaint(answer: Answer) -> Complaint:
    try:
        return msgspec.json.decode(answer.body, type=Complaint)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Complaint()


def _quoted(part: str) -> str:
    return quote(part, safe="")

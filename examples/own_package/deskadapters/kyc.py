"""An identity verifier over HTTP. Our operation is its idempotency key, so each operation creates one check, however
often it is sent."""

import hashlib
import hmac

import httpx2
import msgspec

import cambist
from cambist.ports import (
    AdapterFactory,
    Check,
    CheckNotification,
    CheckRequest,
    CheckStatus,
    Forged,
    InboundNotification,
    KycVerifier,
    NoAnswer,
    OutcomeUnknown,
    Purpose,
    Received,
    Refused,
    Unavailable,
)

from .answers import check_taken, client
from .settings import DeskSettings

_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_STATUSES = {"form": CheckStatus.FORM, "passed": CheckStatus.VERIFIED, "refused": CheckStatus.FAILED}


class _Told(msgspec.Struct):
    key: str
    """Idempotency key of the changed check: our operation."""


class _Said(msgspec.Struct):
    """A check as the verifier shows it. Answers are decoded into the required fields only; one without them is
    unreadable."""

    id: str
    status: str
    form_url: str


class DeskVerifier:
    """Implement cambist.ports.KycVerifier and Notifications."""

    name = "desk"
    """Stored with every checked client, so it must never change."""
    notification_networks = ("203.0.113.0/28",)
    """Networks that the verifier publishes."""

    def __init__(self, tools: cambist.Tools, url: str, token: str) -> None:
        self._files = tools.files
        self._token = token
        self._http = client(url, token, 10)

    async def register(self, request: CheckRequest) -> Check:
        purposes = {document.purpose for document in request.documents}
        by_form = request.email is not None and request.user_type is not None
        if not (by_form if request.redirect else purposes >= {Purpose.SELFIE, Purpose.DOCUMENT}):
            raise Refused("a document or a field is missing", reason="incomplete")
        documents: dict[str, str] = {}
        for document in request.documents:
            content = b"".join([part async for part in self._files.read(document.key)])
            documents[document.purpose] = content.hex()
        if self._http.is_closed:
            raise Unavailable("the adapter is closed")
        body = {"phone": request.phone, "email": request.email, "form": request.redirect, "documents": documents}
        try:
            answer = await self._http.post("/checks", json=body, headers={"Idempotency-Key": request.operation})
        except _NOT_SENT as error:
            raise Unavailable("the verifier cannot be reached") from error  # the check certainly did not begin
        except httpx2.HTTPError as error:
            raise OutcomeUnknown("the verifier gave no answer") from error  # the check may have begun
        check_taken(answer)
        if 400 <= answer.status_code < 500:
            raise Refused(f"the verifier answered {answer.status_code}")
        if not answer.is_success:
            raise OutcomeUnknown(f"the verifier answered {answer.status_code}")  # a 5xx, or an unexpected redirect
        try:
            return _check(answer.content)
        except (ValueError, RecursionError) as error:
            raise OutcomeUnknown("the verifier's answer cannot be read") from error

    async def find_check(self, operation: str) -> Check | None:
        return await self._read(f"/checks/by-key/{operation}")

    async def check_state(self, reference: str) -> Check:
        found = await self._read(f"/checks/{reference}")
        if found is None:
            raise Refused("the verifier knows no such check", reason="not_found")
        return found

    async def receive(self, notification: InboundNotification) -> Received:
        expected = hmac.new(self._token.encode(), notification.body, hashlib.sha256).hexdigest()
        signature = notification.headers.get("x-desk-signature", "").encode("utf-8", "surrogatepass")
        if not hmac.compare_digest(expected.encode(), signature):
            raise Forged("the signature is wrong")
        try:
            told = msgspec.json.decode(notification.body, type=_Told)
        except (msgspec.DecodeError, RecursionError):
            raise Forged("it is no notification") from None
        return Received(notifications=(CheckNotification(operation=told.key),))

    async def close(self) -> None:
        await self._http.aclose()

    async def _read(self, path: str) -> Check | None:
        """Read a check. The faults differ, because merchants get 502 if the verifier does not answer, and 503 if it is
        unreachable."""
        if self._http.is_closed:
            raise Unavailable("the adapter is closed")
        try:
            answer = await self._http.get(path)
            check_taken(answer)
            if answer.status_code == 404:
                return None
            answer.raise_for_status()
            return _check(answer.content)
        except _NOT_SENT as error:
            raise Unavailable("the verifier cannot be reached") from error
        except (httpx2.HTTPError, ValueError, RecursionError) as error:
            raise NoAnswer("the verifier did not answer a question") from error


def _check(content: bytes) -> Check:
    said = msgspec.json.decode(content, type=_Said)
    status = _STATUSES.get(said.status, CheckStatus.PROCESSING)
    return Check(
        reference=said.id,
        status=status,
        form_url=said.form_url if status is CheckStatus.FORM else None,
        level=1 if status is CheckStatus.VERIFIED else 0,
    )


def _make(tools: cambist.Tools, own: DeskSettings) -> KycVerifier:
    """Build it of its settings. mypy and pyright check the class against the protocol that is returned."""
    return DeskVerifier(tools, own.url, own.token)


desk = AdapterFactory(settings=DeskSettings, make=_make)
"""The entry point names it."""

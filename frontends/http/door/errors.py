"""The one place that turns a refusal into the documented envelope (docs/errors.md "Errors";
docs/concepts.md "Requests in general")."""

import logging
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, MethodNotAllowedException, NotFoundException
from msgspec import UNSET, UnsetType

from ....core.domain.errors import FieldFault, Refusal, doc_url
from ....ports.faults import Stale, Unavailable
from .answers import Answer, encode

log = logging.getLogger("cambist.http")


class ErrorDetails(msgspec.Struct, frozen=True, kw_only=True):
    """What a program can go by, of refusals that say more: each says some of it."""

    missing_fields: list[str] | UnsetType = UNSET
    next_allowed_at: str | UnsetType = UNSET
    payment_id: str | UnsetType = UNSET
    failure_reason: str | UnsetType = UNSET
    right: str | UnsetType = UNSET


class ErrorBody(msgspec.Struct, frozen=True):
    """What was refused, and why."""

    code: str
    message: str
    details: list[FieldFault] | ErrorDetails | UnsetType = UNSET


class ErrorEnvelope(msgspec.Struct, frozen=True):
    """The body of every refusal."""

    error: ErrorBody


def envelope(code: str, message: str, details: Any = None) -> bytes:
    """The error body; `details` only where there are any."""
    return encode(ErrorEnvelope(ErrorBody(code, message, details or UNSET)))


def refused(refusal: Refusal, *headers: tuple[bytes, bytes]) -> Answer:
    """The answer that a refusal is, on every way out of the service."""
    if refusal.retry_after is not None:
        headers = (*headers, (b"retry-after", b"%d" % refusal.retry_after))
    body = envelope(refusal.code, refusal.message, refusal.details)
    return Answer(body, refusal.status, headers, code=refusal.code)


def help_header(base_url: str, code: str) -> tuple[bytes, bytes]:
    """The header of a refusal that leads to what docs/errors.md says of its code (RFC 8288): the envelope has no room
    for it."""
    return b"link", f'<{doc_url(base_url, code)}>; rel="help"'.encode()


def endpoint_not_found() -> Refusal:
    """Unknown path, or a path that is not there for this caller."""
    return Refusal("NOT_FOUND", "Endpoint not found")


def method_not_allowed() -> Refusal:
    """A path that is there, asked by another method."""
    return Refusal("METHOD_NOT_ALLOWED", "This path does not know this method")


def internal_error() -> Refusal:
    """Our fault; nothing of it goes out."""
    return Refusal("INTERNAL_ERROR", "Internal error; quote the X-Request-Id of this answer")


def on_error(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """The answer to whatever was raised on the way through the framework."""
    headers = (error.headers or {}) if isinstance(error, MethodNotAllowedException) else {}
    allow = [(b"allow", value.encode()) for name, value in headers.items() if name.lower() == "allow"]
    return refused(refusal_of(error), *allow).of_framework(request.scope)


def refusal_of(error: Exception) -> Refusal:
    """What is answered to what a use case raised, or the framework: a header or a path that it cannot read. Of a fault
    of ours nothing goes out; all of it goes to the log under the request's id."""
    match error:
        case Refusal():
            return error
        case Unavailable() | Stale():
            # A storage or a provider, of which no rule says better; or what was asked for went away meanwhile.
            log.warning("unavailable: %s", error)
            return Refusal("PROVIDER_UNAVAILABLE", "Temporarily unavailable; try again", retry_after=30)
        case NotFoundException():
            return endpoint_not_found()
        case MethodNotAllowedException():
            return method_not_allowed()
        case HTTPException() if error.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
            return Refusal("VALIDATION_ERROR", "The request cannot be read")
        case _:
            log.error("unhandled error", exc_info=error)
            return internal_error()

"""Conversion of refusals to the documented error envelope, in this one module (docs/errors.md "Errors";
docs/concepts.md "Requests in general")."""

import logging
from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, MethodNotAllowedException, NotFoundException
from msgspec import UNSET, Meta, UnsetType

from ....core.domain import shared_fields as shared
from ....core.domain.errors import FieldFault, Refusal, doc_url
from ....core.domain.payments.payments import FailureReason
from ....ports.faults import Stale, Unavailable
from .answers import Answer, encode

log = logging.getLogger("cambist.http")


class ErrorDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Machine-readable details of a refusal. Each error code sets some of the fields."""

    missing_fields: Annotated[
        list[str] | UnsetType, Meta(description="Fields that the terminal requires and the request lacks")
    ] = UNSET
    next_allowed_at: Annotated[shared.MomentText | UnsetType, shared.NEXT_ALLOWED_AT] = UNSET
    payment_id: Annotated[
        str | UnsetType, Meta(description="Id of the failed charge, or of the payment with an unknown outcome")
    ] = UNSET
    failure_reason: Annotated[Annotated[str, shared.among(FailureReason)] | UnsetType, shared.FAILURE_REASON] = UNSET
    right: Annotated[str | UnsetType, Meta(description="The right that the key lacks")] = UNSET


class ErrorBody(msgspec.Struct, frozen=True):
    """Code, message and details of a refusal."""

    code: Annotated[
        str, Meta(description="Error code for programs, together with the HTTP status; new codes may be added")
    ]
    message: Annotated[str, Meta(description="Text for people; it may change")]
    details: Annotated[
        list[FieldFault] | ErrorDetails | UnsetType,
        Meta(description="More about the error, where there is more: the invalid fields, or values for programs"),
    ] = UNSET


class ErrorEnvelope(msgspec.Struct, frozen=True):
    """The body of every refusal."""

    error: Annotated[ErrorBody, shared.ERROR]


def envelope(code: str, message: str, details: Any = None) -> bytes:
    """Return the error body. It has `details` only where there are any."""
    return encode(ErrorEnvelope(ErrorBody(code, message, details or UNSET)))


def refused(refusal: Refusal, *headers: tuple[bytes, bytes]) -> Answer:
    """Return the answer to a refusal. Every part of the service uses it."""
    if refusal.retry_after is not None:
        headers = (*headers, (b"retry-after", b"%d" % refusal.retry_after))
    body = envelope(refusal.code, refusal.message, refusal.details)
    return Answer(body, refusal.status, headers, code=refusal.code)


def help_header(base_url: str, code: str) -> tuple[bytes, bytes]:
    """Return the link header to the documentation of an error code (RFC 8288), because the envelope has no field for
    it."""
    return b"link", f'<{doc_url(base_url, code)}>; rel="help"'.encode()


def endpoint_not_found() -> Refusal:
    """Return the refusal of an unknown path, or of a path that this caller may not see."""
    return Refusal("NOT_FOUND", "Endpoint not found")


def method_not_allowed() -> Refusal:
    """Return the refusal of a known path with an unsupported method."""
    return Refusal("METHOD_NOT_ALLOWED", "This path does not support this method")


def internal_error() -> Refusal:
    """Return the refusal for an error of ours. It discloses nothing about the error."""
    return Refusal("INTERNAL_ERROR", "Internal error; quote the X-Request-Id of this answer")


def on_error(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Return the answer to an exception raised inside the framework."""
    headers = (error.headers or {}) if isinstance(error, MethodNotAllowedException) else {}
    allow = [(b"allow", value.encode()) for name, value in headers.items() if name.lower() == "allow"]
    return refused(refusal_of(error), *allow).of_framework(request.scope)


def refusal_of(error: Exception) -> Refusal:
    """Return the refusal for an exception of a use case or of the framework, such as an unreadable header or path. Our
    own errors are logged under the request's id, and nothing of them is disclosed."""
    match error:
        case Refusal():
            return error
        case Unavailable() | Stale():
            # The storage or a provider is unavailable and no use case handled it, or the object changed at the same
            # time.
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

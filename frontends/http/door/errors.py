"""The one place that turns a refusal into the documented envelope (docs/errors.md "Errors";
docs/concepts.md "Requests in general")."""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, MethodNotAllowedException, NotFoundException
from msgspec import UNSET, UnsetType

from ....core.domain.errors import FieldFault, Refusal
from ....ports.faults import Stale, Unavailable
from .answers import Answer, encode

log = logging.getLogger("cambist.http")


class ErrorDetails(msgspec.Struct, frozen=True, kw_only=True):
    """What a program can go by, of refusals that say more: each says some of it."""

    missing_fields: list[str] | UnsetType = UNSET
    next_allowed_at: str | UnsetType = UNSET
    payment_id: str | UnsetType = UNSET
    failure_reason: str | UnsetType = UNSET


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
    return Answer(envelope(refusal.code, refusal.message, refusal.details), refusal.status, headers)


def _answer(refusal: Refusal, *headers: tuple[bytes, bytes]) -> Response[bytes]:
    return refused(refusal, *headers).of_framework()


def endpoint_not_found() -> Refusal:
    """Unknown path, or a path that is not there for this caller."""
    return Refusal("NOT_FOUND", "Endpoint not found")


def internal_error() -> Refusal:
    """Our fault; nothing of it goes out."""
    return Refusal("INTERNAL_ERROR", "Internal error; quote the X-Request-Id of this answer")


def on_refusal(_: Request[Any, Any, Any], refusal: Refusal) -> Response[bytes]:
    return _answer(refusal)


def on_not_found(_: Request[Any, Any, Any], __: NotFoundException) -> Response[bytes]:
    return _answer(endpoint_not_found())


def on_wrong_method(_: Request[Any, Any, Any], error: MethodNotAllowedException) -> Response[bytes]:
    refusal = Refusal("METHOD_NOT_ALLOWED", "This path does not know this method")
    allow = [(b"allow", value.encode()) for name, value in (error.headers or {}).items() if name.lower() == "allow"]
    return _answer(refusal, *allow)


def on_http(_: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    """What the framework itself refuses: a header or path that it cannot read."""
    status = error.status_code
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return _answer(internal_error())
    return _answer(Refusal("VALIDATION_ERROR", "The request cannot be read"))


def on_unavailable(_: Request[Any, Any, Any], fault: Unavailable | Stale) -> Response[bytes]:
    """The storage or a provider did not answer, and no rule says better; or what was asked for went away meanwhile."""
    return _answer(_away(fault))


def on_anything(_: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Our fault: nothing of it goes out, all of it goes to the log under the request's id."""
    return _answer(_our_fault(error))


def refusal_of(error: Exception) -> Refusal:
    """What is answered to what a use case raised."""
    match error:
        case Refusal():
            return error
        case Unavailable() | Stale():
            return _away(error)
        case _:
            return _our_fault(error)


def _away(fault: Unavailable | Stale) -> Refusal:
    log.warning("unavailable: %s", fault)
    return Refusal("PROVIDER_UNAVAILABLE", "Temporarily unavailable; try again", retry_after=30)


def _our_fault(error: Exception) -> Refusal:
    log.error("unhandled error", exc_info=error)
    return internal_error()


HANDLERS: Mapping[Any, Any] = {
    Refusal: on_refusal,
    NotFoundException: on_not_found,
    MethodNotAllowedException: on_wrong_method,
    HTTPException: on_http,
    Unavailable: on_unavailable,
    Stale: on_unavailable,
    Exception: on_anything,
}

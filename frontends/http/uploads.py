"""PUT /uploads/{key}: receives documents from a merchant's front end, at an address from POST /kyc/upload-url.

It is outside /api/v1 and has no keys: the signature in the address is the permission, from any page. So any origin may
upload, and none can read anything.
"""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from litestar import Request, Response, route
from litestar.exceptions import LitestarException
from litestar.params import FromPath

from ...core.domain.accounts.rate_limit import Network
from ...core.domain.errors import Refusal
from ...core.usecases.kyc.upload_put import receive_upload
from ...ports.bundle import Ports
from .edge.answers import answer
from .edge.concurrency import ConcurrencyLimit
from .edge.errors import refused
from .edge.origin import origin
from .edge.routing import Router

_CORS: Mapping[str, str] = {"Access-Control-Allow-Origin": "*", "Cache-Control": "no-store"}
_PREFLIGHT: Mapping[str, str] = {
    **_CORS,
    "Access-Control-Allow-Methods": "PUT",
    "Access-Control-Allow-Headers": "content-type, if-none-match",
    "Access-Control-Max-Age": "600",
}
PER_ADDRESS = 4
"""Largest number of concurrent uploads from one client address in a process."""

_LENGTH = re.compile(r"[0-9]{1,15}\Z")


def uploads_router(ports: Ports, trusted_proxies: Sequence[Network] = ()) -> Router:
    """Return the router of PUT and OPTIONS /uploads/{key}."""
    concurrency = ConcurrencyLimit(PER_ADDRESS)

    # One handler for both: with a handler for PUT only, the framework itself answers OPTIONS, without our headers.
    @route("/{file_key:str}", http_method=["PUT", "OPTIONS"], include_in_schema=False)
    async def upload(request: Request[Any, Any, Any], file_key: FromPath[str]) -> Response[bytes]:
        if request.method == "OPTIONS":
            return Response(b"", status_code=204, headers=dict(_PREFLIGHT))
        try:
            await _receive(ports, concurrency, origin(request, trusted_proxies), request, file_key)
            response = answer({"status": "uploaded"}).of_framework()
        except Refusal as refusal:
            response = refused(refusal).of_framework(request.scope)
        response.headers.update(_CORS)
        return response

    return Router("/uploads", route_handlers=[upload])


async def _receive(
    ports: Ports, concurrency: ConcurrencyLimit, address: str, request: Request[Any, Any, Any], file_key: str
) -> None:
    declared = request.headers.get("content-length")
    if declared is not None and not _LENGTH.match(declared):
        raise Refusal("VALIDATION_ERROR", "Content-Length is no length")
    if not concurrency.has_room(address):
        raise Refusal("PROVIDER_UNAVAILABLE", "Too many uploads at once from your address; try again", retry_after=10)
    with concurrency.taken(address):
        await receive_upload(
            ports,
            address,
            file_key,
            request.query_params,
            request.headers.get("content-type"),
            None if declared is None else int(declared),
            _parts(request),
        )


async def _parts(request: Request[Any, Any, Any]) -> AsyncIterator[bytes]:
    try:
        async for part in request.stream():
            yield part
    except LitestarException:
        # The client has disconnected, so nobody reads the answer.
        raise Refusal("VALIDATION_ERROR", "The upload was cut short") from None

"""Uploads to a granted address, which is valid once and needs no other permission (docs/kyc.md "In live mode").

Uploads do not pass the API's checks: they use no key and no rate limit of an account, but a limit per client address.
"""

from collections.abc import AsyncIterator, Mapping

from ....ports.bundle import Ports
from ....ports.faults import Unavailable
from ....ports.files import BUSY, EXISTS, FORBIDDEN, TOO_LARGE, StoredFile, UploadFault, UploadReceiver
from ...domain.errors import Refusal
from ..accounts.rate_limits import admit_stranger

PER_MINUTE = 60
"""Uploads from one client address in a window."""


async def receive_upload(
    ports: Ports,
    ip: str,
    key: str,
    query: Mapping[str, str],
    content_type: str | None,
    length: int | None,
    parts: AsyncIterator[bytes],
) -> StoredFile:
    """Store the content of an upload, completely or not at all. Nothing is read before it is admitted.

    Raises: Refusal NOT_FOUND if files are uploaded elsewhere; RATE_LIMIT_EXCEEDED, UPLOAD_FORBIDDEN, VALIDATION_ERROR
    (a different type than granted, by header or content), PAYLOAD_TOO_LARGE, UPLOAD_EXISTS; PROVIDER_UNAVAILABLE when
    it cannot be stored for now.
    """
    files = ports.files
    if not isinstance(files, UploadReceiver):
        raise Refusal("NOT_FOUND", "Endpoint not found")
    counted = await admit_stranger(ports, "uploads", ip, PER_MINUTE)
    if counted.over:
        message = f"Too many uploads. Limit: {PER_MINUTE} per minute."
        raise Refusal("RATE_LIMIT_EXCEEDED", message, retry_after=counted.wait)
    try:
        files.admit(key, query, content_type, length)
        return await files.receive(key, query, parts)
    except UploadFault as fault:
        raise _refusal(fault) from None
    except Unavailable:
        raise Refusal("PROVIDER_UNAVAILABLE", "The file cannot be stored for now; try again", retry_after=30) from None


def _refusal(fault: UploadFault) -> Refusal:
    message = str(fault)
    if fault.reason == FORBIDDEN:
        return Refusal("UPLOAD_FORBIDDEN", message)
    if fault.reason == EXISTS:
        return Refusal("UPLOAD_EXISTS", message)
    if fault.reason == TOO_LARGE:
        return Refusal("PAYLOAD_TOO_LARGE", message)
    if fault.reason == BUSY:
        return Refusal("PROVIDER_UNAVAILABLE", message, retry_after=10)
    return Refusal("VALIDATION_ERROR", message)

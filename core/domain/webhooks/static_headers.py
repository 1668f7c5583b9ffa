"""Static headers of a webhook endpoint: the merchant's own headers, sent with every webhook, such as `Authorization`
(docs/webhooks.md "Your own headers")."""

import base64
import re
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import unquote_to_bytes

from .. import shared_fields as shared
from ..errors import shape_error

MOST = 10
"""Static headers of one endpoint, at most."""
NAME_LONGEST = 64
VALUE_LONGEST = 2048

AUTHORIZATION = "Authorization"

StaticHeaders = Annotated[
    dict[str, Annotated[str, shared.limits(minLength=1, maxLength=VALUE_LONGEST)]],
    shared.limits(maxProperties=MOST, examples=[{AUTHORIZATION: "Bearer 7f3a"}]),
]
"""Static headers in a body."""

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z")
_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?\Z")
"""Visible ASCII, with spaces inside only: receivers strip or reject anything else."""
_CREDENTIALS = re.compile(r"(https?://)([^/?#@]*)@(.*)\Z", re.IGNORECASE | re.DOTALL)
_OURS = ("x-webhook-", "webhook-", "content-", "proxy-", "sec-")
"""Prefixes of headers that sign or describe the webhook, or that control the connection to a proxy."""
_RESERVED = frozenset(
    (
        *("accept-encoding", "connection", "date", "expect", "host", "keep-alive", "te", "trailer"),
        *("transfer-encoding", "upgrade", "user-agent"),
    )
)


def read_static_headers(given: Mapping[str, str]) -> dict[str, str]:
    """Return the headers as they are sent, in their order.

    Raises: Refusal VALIDATION_ERROR for too many headers, a malformed or reserved name, a name that repeats in another
    case, and a value that is not one line of visible ASCII.
    """
    if len(given) > MOST:
        raise shape_error("headers", f"has at most {MOST} headers")
    seen: set[str] = set()
    for name, value in given.items():
        lowered = name.lower()
        if not _NAME.match(name) or len(name) > NAME_LONGEST:
            raise shape_error("headers", f"a name has 1 to {NAME_LONGEST} letters, digits and dashes, like X-Token")
        if lowered in _RESERVED or lowered.startswith(_OURS):
            raise shape_error("headers", f"{name} is set by the service; choose another name")
        if lowered in seen:
            raise shape_error("headers", f"{name} occurs twice")
        if not _VALUE.match(value) or len(value) > VALUE_LONGEST:
            raise shape_error(
                "headers", f"the value of {name} must be one line of 1 to {VALUE_LONGEST} ASCII characters"
            )
        seen.add(lowered)
    return dict(given)


def without_credentials(url: str) -> tuple[str, str | None]:
    """Return a URL without `user:password@`, and the `Authorization` header that says the same; None without
    credentials. Addresses are shown and logged, so the credentials must not stay in them."""
    parts = _CREDENTIALS.match(url)
    if parts is None:
        return url, None
    pair = unquote_to_bytes(parts[2])
    return f"{parts[1]}{parts[3]}", f"Basic {base64.b64encode(pair if b':' in pair else pair + b':').decode()}"


def with_authorization(headers: Mapping[str, str], value: str | None) -> dict[str, str]:
    """Return the headers with this `Authorization`, in place of another one; unchanged for None."""
    if value is None:
        return dict(headers)
    others = {name: each for name, each in headers.items() if name.lower() != AUTHORIZATION.lower()}
    return {**others, AUTHORIZATION: value}

"""The client address by which what has no key is counted: uploads and the streams of pages."""

from collections.abc import Sequence
from typing import Any

from litestar import Request

from ....core.domain.accounts.quota import Network, client_ip


def origin(request: Request[Any, Any, Any], trusted_proxies: Sequence[Network]) -> str:
    """Where a request comes from, beyond the proxies that are trusted."""
    forwarded = ",".join(request.headers.getall("x-forwarded-for", [])) or None
    return client_ip(request.client.host if request.client else None, forwarded, trusted_proxies)

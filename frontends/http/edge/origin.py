"""The client address, used to count requests, uploads and page streams that have no key."""

from collections.abc import Collection, Mapping
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from litestar import Request
from litestar.types import HTTPScope

from ....core.domain.accounts.rate_limit import Network, client_address, client_ip
from .headers import headers_of


def origin(request: Request[Any, Any, Any], trusted_proxies: Collection[Network]) -> str:
    """Return the client's address, as reported by trusted proxies."""
    return address_of(request.scope, headers_of(request.scope), trusted_proxies)


def address_of(scope: HTTPScope, known: Mapping[bytes, bytes], trusted_proxies: Collection[Network]) -> str:
    """Return the same for an ASGI scope outside the framework. `known` are its headers."""
    client = scope.get("client")
    forwarded = known.get(b"x-forwarded-for")
    return client_ip(
        client[0] if client else None, None if forwarded is None else forwarded.decode("latin-1"), trusted_proxies
    )


def whole_address_of(
    scope: HTTPScope, known: Mapping[bytes, bytes], trusted_proxies: Collection[Network]
) -> IPv4Address | IPv6Address | None:
    """Return the same as an address object with the full IPv6 address; None if there is no address."""
    client = scope.get("client")
    forwarded = known.get(b"x-forwarded-for")
    return client_address(
        client[0] if client else None, None if forwarded is None else forwarded.decode("latin-1"), trusted_proxies
    )

"""The client address by which what has no key is counted: requests, uploads and the streams of pages."""

from collections.abc import Collection, Mapping
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from litestar import Request
from litestar.types import HTTPScope

from ....core.domain.accounts.quota import Network, client_address, client_ip
from .headers import headers_of


def origin(request: Request[Any, Any, Any], trusted_proxies: Collection[Network]) -> str:
    """Where a request comes from, beyond the proxies that are trusted."""
    return address_of(request.scope, headers_of(request.scope), trusted_proxies)


def address_of(scope: HTTPScope, known: Mapping[bytes, bytes], trusted_proxies: Collection[Network]) -> str:
    """The same of a request that is not the framework's; `known` are its headers."""
    client = scope.get("client")
    forwarded = known.get(b"x-forwarded-for")
    return client_ip(
        client[0] if client else None, None if forwarded is None else forwarded.decode("latin-1"), trusted_proxies
    )


def whole_address_of(
    scope: HTTPScope, known: Mapping[bytes, bytes], trusted_proxies: Collection[Network]
) -> IPv4Address | IPv6Address | None:
    """The same as an address, IPv6 in full; None where it has none."""
    client = scope.get("client")
    forwarded = known.get(b"x-forwarded-for")
    return client_address(
        client[0] if client else None, None if forwarded is None else forwarded.decode("latin-1"), trusted_proxies
    )

"""What the adapters of this package share: how they speak HTTP, and what they make of an answer that says nothing."""

import ssl
from functools import cache

import httpx

from cambist.ports import NotConfigured, Unavailable


def client(url: str, token: str, seconds: float) -> httpx.AsyncClient:
    """A client of the provider at `url`, which waits that long."""
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.AsyncClient(base_url=url, headers=headers, timeout=seconds, verify=_authorities())


@cache
def _authorities() -> ssl.SSLContext:
    """For all clients: to read whom the machine trusts takes 30 ms."""
    return ssl.create_default_context()


def check_taken(answer: httpx.Response) -> None:
    """Raises: NotConfigured where the provider does not take our token; Unavailable where it did not look at the call,
    because it is asked too often."""
    if answer.status_code in (401, 403):
        raise NotConfigured("the provider does not take DESK_TOKEN")
    if answer.status_code == 429:
        said = answer.headers.get("Retry-After", "")
        raise Unavailable("the provider is busy", retry_after=float(said) if said.isdecimal() else None)

"""Shared code of this package's adapters: HTTP clients and the answers common to all providers."""

import ssl
from functools import cache

import httpx2

from cambist.ports import NotConfigured, Unavailable


def client(url: str, token: str, seconds: float) -> httpx2.AsyncClient:
    """Build a client of the provider at `url` with this timeout."""
    headers = {"Authorization": f"Bearer {token}"}
    return httpx2.AsyncClient(base_url=url, headers=headers, timeout=seconds, verify=_authorities())


@cache
def _authorities() -> ssl.SSLContext:
    """Load the machine's trust store once for all clients, because it takes 30 ms."""
    return ssl.create_default_context()


def check_taken(answer: httpx2.Response) -> None:
    """Raises: NotConfigured if the provider rejects our token; Unavailable if it ignored the call because of its rate
    limit."""
    if answer.status_code in (401, 403):
        raise NotConfigured("the provider does not take CAMBIST_DESK_TOKEN")
    if answer.status_code == 429:
        said = answer.headers.get("Retry-After", "")
        raise Unavailable("the provider is busy", retry_after=float(said) if said.isdecimal() else None)

"""Whether and where the dashboard is served, without importing its pages."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from ...core.domain.accounts.quota import Network
from ...ports.bundle import Ports
from ..http.door.routing import Router
from ..http.payer.page_limit import PageLimit


def is_servable(app_url: str) -> bool:
    """Return whether browsers keep our cookies at this address: https, or a loopback host."""
    parts = urlsplit(app_url)
    return parts.scheme == "https" or parts.hostname in ("localhost", "127.0.0.1", "::1")


def dashboard_routers(ports: Ports, trusted_proxies: Sequence[Network], limit: PageLimit) -> list[Router]:
    """Return the router of the dashboard; none if its address does not suit browsers."""
    if not is_servable(ports.urls.app_url):
        return []
    from .app import dashboard_router

    return [dashboard_router(ports, trusted_proxies, limit)]

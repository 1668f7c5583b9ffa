"""Rules of the service's public addresses: what a wrong one costs, for `cambist config check` and `cambist doctor`."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from ..settings.settings import Settings, is_near


def is_servable(app_url: str) -> bool:
    """Return whether browsers keep the dashboard's cookies at this address: https, or a loopback host."""
    parts = urlsplit(app_url)
    return parts.scheme == "https" or parts.hostname in ("localhost", "127.0.0.1", "::1")


def unsafe_addresses(settings: Settings) -> list[str]:
    """Return a sentence for each address over which data travels unencrypted, and for a dashboard that people cannot
    use."""
    faults = []
    for name in ("base_url", "pay_url", "app_url"):
        url: str = getattr(settings, name)
        if url.startswith("http://") and not is_near(url):
            faults.append(f"{name} is http: keys and payer data travel unencrypted")
    if not is_servable(settings.app_url):
        faults.append(
            "app_url is http: browsers keep no session there, so the dashboard is not served; "
            "set CAMBIST_APP_URL to an https address"
        )
    elif not is_near(settings.app_url) and _is_ip_address(settings.app_url):
        faults.append("app_url is an IP address: browsers offer no passkeys there; set CAMBIST_APP_URL to a host name")
    return faults


def _is_ip_address(url: str) -> bool:
    try:
        ip_address(urlsplit(url).hostname or "")
    except ValueError:
        return False
    return True

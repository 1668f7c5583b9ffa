"""What the hosted KYC page shows, and where it may send a client back to (docs/kyc.md "A page that does it")."""

from enum import StrEnum
from urllib.parse import urlsplit

from ..web_addresses import is_web_address


class Face(StrEnum):
    """What a client sees."""

    DOCUMENTS = "documents"
    """Upload a selfie and a document."""
    DETAILS = "details"
    """Give an e-mail and a user type."""
    FORM = "form"
    """Go on to the verifier's form."""
    PROCESSING = "processing"
    VERIFIED = "verified"
    FAILED = "failed"
    """Refused for good; who may try again sees what to give."""
    NOT_REQUIRED = "not_required"


def _origin(url: str) -> tuple[str, str] | None:
    """`https://host[:port]` as browsers write it, and the rest; None for what is not plainly an https address.

    Stricter than any web address, because two are compared: a character that browsers would encode, and a host with a
    second spelling, are no address at all.
    """
    if not is_web_address(url) or any(char in '"<>^`{|}' for char in url):
        return None
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    if parts.scheme != "https" or parts.netloc.endswith(":") or host.endswith("."):
        return None
    shown = f"[{host}]" if ":" in host else host
    origin = f"https://{shown}" if port in (None, 443) else f"https://{shown}:{port}"
    rest = url[8 + len(parts.netloc) :]
    return origin, rest if rest.startswith("/") else f"/{rest}"


def return_address(wish: str | None, merchant_url: str | None) -> str | None:
    """Where the client goes from the page: to `wish` where it is https and of the merchant's own origin, else to `/`
    there. None: the merchant has no https address of its own.

    The answer begins with the merchant's stored origin, whatever the wish says.
    """
    merchant = None if merchant_url is None else _origin(merchant_url)
    if merchant is None:
        return None
    asked = None if wish is None else _origin(wish)
    if asked is None or asked[0] != merchant[0]:
        return f"{merchant[0]}/"
    return f"{merchant[0]}{asked[1]}"

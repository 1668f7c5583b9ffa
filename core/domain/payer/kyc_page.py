"""The states of the hosted KYC page, and its redirects back to the shop (docs/kyc.md "A page that does it")."""

import re
from enum import StrEnum
from urllib.parse import urlsplit

from ..web_addresses import is_web_address


class Face(StrEnum):
    """Content of the page."""

    DOCUMENTS = "documents"
    """Upload a selfie and a document."""
    DETAILS = "details"
    """Enter an e-mail address and a user type."""
    FORM = "form"
    """Continue to the verifier's form."""
    RECEIVED = "received"
    """The only answer for a known phone that a stranger entered: it reveals nothing about the client."""
    PROCESSING = "processing"
    VERIFIED = "verified"
    FAILED = "failed"
    """Finally refused; if another try is allowed, the page shows the upload form instead."""
    NOT_REQUIRED = "not_required"


_WRITTEN = re.compile(r"[0-9 ()+.\u00a0\u2010-\u2015-]{1,40}\Z")
"""Characters that people use in phone numbers."""
_RUSSIAN = re.compile(r"7[0-9]{10}\Z")


def typed_phone(text: str) -> str | None:
    """Return the typed Russian phone as `+7` and 10 digits. It may begin with 8, +7 or neither, and contain the usual
    separators. None: it is not a Russian phone."""
    if not _WRITTEN.match(text):
        return None
    bare = text.strip()
    digits = "".join(each for each in bare if each.isdigit())
    if "+" in bare:
        return f"+{digits}" if bare[0] == "+" and bare.count("+") == 1 and _RUSSIAN.match(digits) else None
    if len(digits) == 11 and digits[0] in "78":
        digits = digits[1:]
    return f"+7{digits}" if len(digits) == 10 else None


def shop_origins(text: str) -> tuple[str, ...]:
    """Return the origins for a typed address of a shop, in the form of browsers: `shop.example`, with or without https,
    `www.` and a path. Empty: it is not an address."""
    bare = text.strip().lower().removeprefix("http://").removeprefix("https://")
    found = _origin(f"https://{bare}")
    if found is None:
        return ()
    host = found[0].removeprefix("https://")
    return found[0], f"https://{host.removeprefix('www.') if host.startswith('www.') else f'www.{host}'}"


def origin_of(url: str | None) -> str | None:
    """Return the origin of an https URL in the form of browsers; None: it is not one."""
    found = None if url is None else _origin(url)
    return None if found is None else found[0]


def _origin(url: str) -> tuple[str, str] | None:
    """Return `https://host[:port]` in the form of browsers, and the rest; None for anything but a plain https URL.

    It is stricter than for other web addresses, because two origins are compared: a character that browsers would
    encode, and a host with a second spelling, are refused.
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
    """Return the URL to which the page sends the client: `wish` if it is https and of the merchant's own origin,
    otherwise `/` of that origin. None: the merchant has no https URL.

    The result always begins with the merchant's stored origin.
    """
    merchant = None if merchant_url is None else _origin(merchant_url)
    if merchant is None:
        return None
    asked = None if wish is None else _origin(wish)
    if asked is None or asked[0] != merchant[0]:
        return f"{merchant[0]}/"
    return f"{merchant[0]}{asked[1]}"

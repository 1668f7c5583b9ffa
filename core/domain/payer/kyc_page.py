"""What the hosted KYC page shows, and where it may send a client back to (docs/kyc.md "A page that does it")."""

import re
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
    RECEIVED = "received"
    """All that is told whoever named a phone that is known already: nothing of how its client stands."""
    PROCESSING = "processing"
    VERIFIED = "verified"
    FAILED = "failed"
    """Refused for good; who may try again sees what to give."""
    NOT_REQUIRED = "not_required"


_WRITTEN = re.compile(r"[0-9 ()+.\u00a0\u2010-\u2015-]{1,40}\Z")
"""What phones are written with."""
_RUSSIAN = re.compile(r"7[0-9]{10}\Z")


def typed_phone(text: str) -> str | None:
    """The Russian phone that somebody typed, as `+7` and 10 digits: with 8 or +7 before it, or neither, and whatever
    people put between the digits. None: it is none."""
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
    """The origins that somebody means who types the address of a shop, as browsers take it: `shop.example`, with or
    without https, `www.` and a path. Empty: it is none."""
    bare = text.strip().lower().removeprefix("http://").removeprefix("https://")
    found = _origin(f"https://{bare}")
    if found is None:
        return ()
    host = found[0].removeprefix("https://")
    return found[0], f"https://{host.removeprefix('www.') if host.startswith('www.') else f'www.{host}'}"


def origin_of(url: str | None) -> str | None:
    """The origin of an https address as browsers write it; None: it is none."""
    found = None if url is None else _origin(url)
    return None if found is None else found[0]


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

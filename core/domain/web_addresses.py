"""Web addresses from strangers: targets of our calls, and of redirects for payers."""

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from unicodedata import normalize
from urllib.parse import urlsplit

LONGEST = 2048
"""Longest address, in characters."""

WEB_ADDRESS = f"must be an http or https URL of at most {LONGEST} ASCII characters, without user and password"
"""Message about an invalid address."""

_HOST_LONGEST = 253
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,63}\Z")
_HOST = re.compile(r"(https?://)([^/?#:@\[\]]+)(.*)\Z", re.IGNORECASE)
_AMBIGUOUS = re.compile("[\u00df\u1e9e\u03c2\u200c\u200d]")
"""Characters that old and new rules of Punycode encode differently: the result may be somebody else's name."""
_PLAIN = re.compile(r"[!-\[\]-~]*\Z")
"""Visible ASCII without the backslash, which is a slash to browsers but not to us."""


def is_web_address(text: str) -> bool:
    """Return whether it is an absolute http or https URL that browsers, our parser and a receiver interpret alike.

    Names and paths in other scripts must be encoded: in Punycode and percent-encoded. User and password are not
    allowed, because addresses are shown to operators and logged; and an IPv4 address must be in its plain form. Before
    a call, the notifier also checks the addresses to which the host resolves.
    """
    if len(text) > LONGEST or not _PLAIN.match(text):
        return False
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or not host or port == 0 or "@" in parts.netloc:
        return False
    return _is_bracketed(host, parts.netloc) if ":" in host or "[" in parts.netloc else _is_name(host)


def web_address(text: str) -> str:
    """Return the address that an operator entered, with its host in Punycode. Raises: ValueError for an invalid
    address."""
    address = in_punycode(text) or text
    if not is_web_address(address):
        raise ValueError(WEB_ADDRESS)
    return address


def web_address_fault(text: str) -> str:
    """Describe the fault of an address, with the correct spelling if its host is in another script."""
    address = in_punycode(text)
    return WEB_ADDRESS if address is None else f"{WEB_ADDRESS}; write {address}"


def in_punycode(text: str) -> str | None:
    """Return the web address with a host of another script in Punycode. None: its host needs none, or it is not a valid
    address even then."""
    parts = _HOST.match(text)
    if parts is None or parts[2].isascii() or _AMBIGUOUS.search(parts[2]):
        return None
    # Compatibility characters, such as circled or wide letters, do not belong in a real name.
    name = parts[2].lower()
    if normalize("NFKC", name) != name or not all(char.isalnum() or char in "-." for char in name):
        return None
    try:
        host = parts[2].encode("idna").decode("ascii")
    except UnicodeError:
        return None
    address = f"{parts[1]}{host}{parts[3]}"
    return address if is_web_address(address) else None


def _is_bracketed(host: str, netloc: str) -> bool:
    """Return whether `[…]` or `[…]:port` contains an IPv6 address, and nothing else."""
    if not re.match(r"\[[0-9A-Fa-f:.]+\](?::[0-9]*)?\Z", netloc):
        return False
    try:
        IPv6Address(host)
    except AddressValueError:
        return False
    return True


def _is_name(host: str) -> bool:
    labels = host.removesuffix(".").split(".")
    if len(host) > _HOST_LONGEST or not all(map(_LABEL.match, labels)):
        return False
    if labels[-1].isdigit() or labels[-1].startswith("0x"):
        # A name never ends in a number: this is an IPv4 address, and browsers accept forms of it that others do not.
        try:
            IPv4Address(host)
        except AddressValueError:
            return False
    return True

"""Addresses of the web that strangers give us: where we call, and where a payer is sent."""

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import urlsplit

LONGEST = 2048
"""Characters of an address."""

WEB_ADDRESS = f"must be an http or https URL of at most {LONGEST} ASCII characters, without user and password"
"""What is told to whoever gives another one."""

_HOST_LONGEST = 253
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,63}\Z")
_PLAIN = re.compile(r"[!-\[\]-~]*\Z")
"""Visible ASCII without the backslash, which is a slash to browsers and not to us."""


def is_web_address(text: str) -> bool:
    """Whether it is an absolute http or https URL that browsers, our parser and a receiver read alike.

    Names and paths in other scripts are written as they travel: in Punycode and percent-encoded. There is no user and
    password in it, because addresses are shown to operators and written to logs; and an IPv4 address is in its plain
    form. Where we call, the notifier judges the host once more, by what it resolves to.
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
    """The address as it is. Raises: ValueError for what is none."""
    if not is_web_address(text):
        raise ValueError(WEB_ADDRESS)
    return text


def _is_bracketed(host: str, netloc: str) -> bool:
    """Whether `[…]` or `[…]:port` holds an IPv6 address, and nothing stands around it."""
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
        # A name never ends in a number: it is an IPv4 address, which browsers read in forms that others do not.
        try:
            IPv4Address(host)
        except AddressValueError:
            return False
    return True

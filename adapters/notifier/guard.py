"""Addresses to which webhooks may go: a merchant chooses the receiver, and could name our own network
(docs/webhooks.md "Your address").

There are two checks. `check_url` reads the address as text and rejects what the text shows. `SocketGuard` checks
the numeric address when a socket is made. So no name, redirect, odd spelling of a number or changed DNS answer gets
around it. A checking resolver alone would let literal addresses through, because they are never resolved.
"""

import errno
import re
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from aiohttp import AddrInfoType
from yarl import URL

_URL_MAX = 2048
_PORT_MAX = 65535
_PORTS = {"https": 443, "http": 80}
_URL = re.compile(r"([A-Za-z]+)://([^/?#]*)(.*)\Z", re.ASCII)
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::([0-9]{0,5}))?\Z", re.ASCII)
_HOST_MAX = 253
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,63}\Z", re.ASCII)
"""RFC 1035, 2.3. Underscores occur in practice."""

_REFUSED_4 = tuple(
    ip_network(net)
    for net in (
        "0.0.0.0/8",  # "this network": Linux connects 0.0.0.0 to itself
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT; one cloud's metadata
        "127.0.0.0/8",
        "168.63.129.16/32",  # a cloud's host agent, behind an address that looks public
        "169.254.0.0/16",  # link-local; clouds' metadata
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",  # multicast, reserved, broadcast
    )
)
_GLOBAL_6 = ip_network("2000::/3")
"""Range of all addresses assigned for the public internet.

Every other one (NAT64 64:ff9b::/96, unique local, link-local, old ways to write an IPv4 address) is refused without
a list.
"""
_REFUSED_6 = tuple(
    ip_network(net)
    for net in (
        "2001::/23",  # Teredo (2001::/32), ORCHID, benchmarks
        "2001:db8::/32",
        "2002::/16",  # 6to4: an IPv4 address inside
        "3fff::/20",  # documentation
    )
)
_LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


class BadAddress(ValueError):
    """The webhook's address is not allowed. The message is for operators and contains no part of the address."""


class AddressBlocked(OSError):
    """The host resolves to a network address that is never allowed.

    An OSError, as the connector expects from a socket.
    """

    WHY = "the host's network address is not public"

    def __init__(self) -> None:
        # Always use the same errno and text: the connector joins the errors of several addresses, and keeps this type
        # only if they are all alike.
        super().__init__(errno.EACCES, self.WHY)


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Return whether it is an address of the public internet.

    The lists are our own, because `is_global` differs between Python versions (and is true for multicast); both
    must agree.
    """
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        listed = address not in _GLOBAL_6 or any(address in net for net in _REFUSED_6)
    else:
        listed = any(address in net for net in _REFUSED_4)
    return not listed and address.is_global and not address.is_multicast and not address.is_reserved


def is_loopback(address: IPv4Address | IPv6Address) -> bool:
    """Return whether it is this machine, also as an IPv4 address inside an IPv6 one."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return any((mapped or address) in net for net in _LOOPBACK)


class SocketGuard:
    """Maker of the connector's sockets, which makes none for a forbidden address, so that no byte leaves.

    `loopback`: also allow this machine's own addresses (test mode, if the installation permits it).
    """

    def __init__(self, *, loopback: bool) -> None:
        self._loopback = loopback

    def __call__(self, info: AddrInfoType) -> socket.socket:
        """Return a socket for `info`. Raises: AddressBlocked."""
        family, kind, protocol, _, where = info
        try:
            address = ip_address(where[0])
        except ValueError:
            raise AddressBlocked from None
        if not is_public(address) and not (self._loopback and is_loopback(address)):
            raise AddressBlocked
        return socket.socket(family, kind, protocol)


def check_url(text: str, *, plain_http: bool) -> URL:
    """Return the address in the merchant's spelling. Raises: BadAddress.

    https may go to any port, because merchants' receivers use many, and a TLS greeting harms no other service.
    `plain_http` (test mode) also allows http. Only scheme and host become lower case. The check must see what the
    URL parser reads, so an address on which the two disagree is refused.
    """
    if len(text) > _URL_MAX:
        raise BadAddress(f"longer than {_URL_MAX} characters")
    if any(char <= " " or char in "\\\x7f" for char in text):
        raise BadAddress("a space, backslash or control character in it")
    if not text.isascii():
        raise BadAddress("a character that is not ASCII in it: write the host in Punycode")
    parts = _URL.match(text)
    if parts is None:
        raise BadAddress("not a URL")
    scheme, authority = parts[1].lower(), parts[2].lower()
    if scheme not in (("https", "http") if plain_http else ("https",)):
        raise BadAddress("https or http only" if plain_http else "https only")
    if "@" in authority:
        raise BadAddress("a user or password in it")
    where = _AUTHORITY.match(authority)
    if where is None:
        raise BadAddress("no host of that form")
    host = where[1].removeprefix("[").removesuffix("]")
    port = int(where[2] or _PORTS[scheme])
    if not 0 < port <= _PORT_MAX:
        raise BadAddress("no port of that number")
    _check_host(host)
    try:
        url = URL(f"{scheme}://{authority}{request_target(text)}", encoded=True)
        same = (url.scheme, url.raw_host, url.port, url.raw_user) == (scheme, host, port, None)
    except ValueError:
        raise BadAddress("not a URL") from None
    if not same:
        raise BadAddress("not a URL")
    return url


def request_target(text: str) -> str:
    """Return path and query of an address as written, without the fragment, which is never sent."""
    parts = _URL.match(text)
    rest = parts[3].partition("#")[0] if parts else ""
    return rest if rest.startswith("/") else f"/{rest}"


def _check_host(host: str) -> None:
    if ":" in host:
        try:
            IPv6Address(host)  # the SocketGuard checks the address itself
        except ValueError:
            raise BadAddress("no host of that form") from None
        return
    labels = host.removesuffix(".").split(".")
    if len(host) > _HOST_MAX or not all(map(_LABEL.match, labels)):
        raise BadAddress("no host of that form")
    if labels[-1].isdigit() or labels[-1].lower().startswith("0x"):
        # A name never ends in a number, so this is an IPv4 address, and only its plain form means the same everywhere.
        try:
            IPv4Address(host)
        except ValueError:
            raise BadAddress("an IPv4 address that is not in its plain form") from None

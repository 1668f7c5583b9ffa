"""Rate limits (docs/limits.md "Requests"): the counters of a request, the verdict, and the headers.

There are two buckets without common counters, each with a limit per source address and one per key. All of this runs on
every request before authorization, so names are limited in size, and constant values are computed once.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeVar

import msgspec

WINDOW = 60
"""Length of a window in seconds. Windows are fixed and begin at whole minutes of Unix time, so the clock alone decides
when one ends."""

API = "/api/v1"
_UNDER_API = API + "/"
_API_LENGTH = len(API)

Network = IPv4Network | IPv6Network
Header = tuple[bytes, bytes]
G = TypeVar("G")

_LONGEST_NAME = 64
"""Longest `X-Api-Key` that is counted by its own text; ours are shorter, a longer one is counted by its digest."""


class Limit(msgspec.Struct, frozen=True, gc=False):
    """Rule of one counter, with its constant headers precomputed."""

    name: str
    """Prefix of the names of its counters: bucket and kind."""
    number: int
    """Requests per window; the next one exceeds the limit."""
    message: str
    """Message for a merchant over the limit, word for word as documented."""
    fixed: tuple[Header, Header, Header]


def _limit(name: str, number: int, message: str) -> Limit:
    text = b"%d" % number
    return Limit(
        name=name,
        number=number,
        message=message,
        fixed=(
            (b"x-ratelimit-limit", text),
            (b"ratelimit-policy", b"%d;w=%d" % (number, WINDOW)),
            (b"ratelimit-limit", text),
        ),
    )


class Bucket(msgspec.Struct, frozen=True, gc=False):
    """A group of endpoints that are counted together."""

    name: str
    per_ip: Limit
    per_key: Limit


MONEY = Bucket(
    name="money",
    per_ip=_limit(
        "money:ip:",
        120,
        "Too many payment requests from this IP. Limit: 120 per minute. Retry with the same Idempotency-Key.",
    ),
    per_key=_limit(
        "money:key:", 120, "Too many payment requests. Limit: 120 per minute. Retry with the same Idempotency-Key."
    ),
)
GENERAL = Bucket(
    name="general",
    per_ip=_limit("general:ip:", 300, "Too many requests for API. Limit: 300 per minute per IP."),
    per_key=_limit("general:key:", 60, "Too many requests. Limit: 60 per minute."),
)

_MOST = max(limit.number for each in (MONEY, GENERAL) for limit in (each.per_ip, each.per_key))
_REMAINING = tuple(
    ((b"x-ratelimit-remaining", b"%d" % left), (b"ratelimit-remaining", b"%d" % left)) for left in range(_MOST + 1)
)
"""Indexed by the number of requests left."""
_MONEY_PATHS = frozenset({"/payments", "/exchanges", "/subscriptions"})
_RESET = tuple(((b"ratelimit-reset", b"%d" % left), (b"retry-after", b"%d" % left)) for left in range(WINDOW + 1))
"""Indexed by the seconds until the window ends."""


def normalise_path(path: str) -> str:
    """Return the canonical spelling of a path: one slash in front, one between two parts, none at the end.

    Takes the path as the server decoded it (`/%70ayments` is `/payments` by then). Only slashes are normalised, because
    only those spellings reach the same endpoint. Everything else is a different path that no endpoint answers, and
    stays unchanged: dot segments are not resolved (`/payments/.` is 404 in the general bucket), a second
    percent-encoding is not decoded, capitals are not lowered. Routing must use the same path as counting.
    """
    if "//" not in path and path[-1:] != "/" and path[:1] == "/":
        return path
    return "/" + "/".join(part for part in path.split("/") if part)


def api_path(path: str) -> str | None:
    """Return a normalised path relative to /api/v1 (`/payments`; `/` for the prefix alone), or None if it is not under
    it and so is not counted."""
    if path.startswith(_UNDER_API):
        return path[_API_LENGTH:]
    return "/" if path == API else None


def bucket(method: str, path: str) -> Bucket:
    """Return the bucket of a request; `path` is normalised and relative to /api/v1. The list of money endpoints is
    closed (docs/limits.md "Requests"); `{id}` is any one part, known or not."""
    if method != "POST":
        return GENERAL
    if path in _MONEY_PATHS:
        return MONEY
    if path.startswith("/subscriptions/") and path.endswith("/charges") and path.count("/") == 3:
        return MONEY
    return GENERAL


def limits(of: Bucket, ip: str, api_key: str | None, make: Callable[[str, int], G]) -> tuple[G, ...]:
    """Return the counters of a request, in order: its address, then its key (docs/limits.md "Requests").

    Without a key, or with an empty one, only the address is counted. Each counter is made by `make(name, limit)`, so
    that the use case can use the type of its port. A long or non-ASCII key is counted by its digest: names stay small,
    and different keys keep different counters.
    """
    per_ip = of.per_ip
    first = make(per_ip.name + ip, per_ip.number)
    if not api_key:
        return (first,)
    per_key = of.per_key
    if len(api_key) > _LONGEST_NAME or not api_key.isascii():
        api_key = "#" + sha256(api_key.encode("utf-8", "surrogatepass")).hexdigest()
    return first, make(per_key.name + api_key, per_key.number)


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """Result of a request at the limits, for the last limit that it reached."""

    limit: Limit
    over: bool
    """Whether to answer 429 RATE_LIMIT_EXCEEDED with the limit's message."""
    remaining: int
    """Requests left in this window, never below zero."""
    reset: int
    """Unix seconds when the window ends."""
    wait: int
    """Seconds until then, 1 to 60."""


def window(now: int) -> int:
    """Return the number of the window that contains the Unix second `now`."""
    return now // WINDOW


def verdict(of: Bucket, counts: Sequence[int], now: int) -> Verdict:
    """Judge by the counts reached: one if the request was refused by its address or has no key, two otherwise.

    A counter over its limit is always the last one counted, so the last one determines the result. `now` is in whole
    Unix seconds, rounded down, so that a client that waits for `wait` seconds is never too early.
    """
    limit = of.per_ip if len(counts) == 1 else of.per_key
    left = limit.number - counts[-1]
    wait = WINDOW - now % WINDOW
    if left < 0:
        return Verdict(limit, True, 0, now + wait, wait)
    return Verdict(limit, False, left, now + wait, wait)


def headers(of: Verdict) -> list[Header]:
    """Return the seven headers of every response, and `Retry-After` if the request is over the limit
    (docs/limits.md "Requests")."""
    limit = of.limit
    x_limit, policy, plain_limit = limit.fixed
    x_remaining, remaining = _REMAINING[of.remaining]
    reset, retry_after = _RESET[of.wait]
    x_reset = (b"x-ratelimit-reset", b"%d" % of.reset)
    if of.over:
        return [x_limit, x_remaining, x_reset, policy, plain_limit, remaining, reset, retry_after]
    return [x_limit, x_remaining, x_reset, policy, plain_limit, remaining, reset]


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Parse the setting `trusted_proxies`: addresses or networks. Raises ValueError for anything else."""
    return tuple(ip_network(text.strip()) for text in texts)


def client_ip(peer: str | None, forwarded_for: str | None, trusted_proxies: Collection[Network]) -> str:
    """Return the source by which a request is counted (docs/limits.md "Requests").

    It is the address at the other end of the socket, unless that is a trusted proxy. Then the hops of `X-Forwarded-For`
    (several such headers joined with commas) are read from the right, since each hop is confirmed by the one after it.
    The first hop that is not trusted is the client; hops further left do not count. A hop that is not an address ends
    the search at the proxy that wrote it. A peer without an address (a Unix socket) is not trusted.

    IPv4 counts by the address, even if mapped into IPv6; IPv6 by the /64, since one customer has at least that.
    """
    if not trusted_proxies and peer and ":" not in peer:
        return peer  # a socket spells IPv4 in only one way
    told = forwarded_for or ""
    behind = _behind_proxies if len(told) <= _LONGEST_NAME else _behind_proxies.__wrapped__
    # A frozenset caches its hash, and passing an existing one makes no copy.
    return behind(peer or "", told, frozenset(trusted_proxies))


def is_trusted(peer: str | None, trusted_proxies: Collection[Network]) -> bool:
    """Return whether a trusted proxy is at the other end of the socket."""
    address = _address(peer or "") if trusted_proxies else None
    return address is not None and is_among(address, trusted_proxies)


def client_address(
    peer: str | None, forwarded_for: str | None, trusted_proxies: Collection[Network]
) -> IPv4Address | IPv6Address | None:
    """Return the same source as an address, IPv6 in full; None if it has none."""
    return _first_untrusted(peer or "", forwarded_for or "", trusted_proxies)


def is_among(address: IPv4Address | IPv6Address, networks: Collection[Network]) -> bool:
    """Return whether an address is in one of the networks."""
    return any(address in network for network in networks)


@lru_cache(maxsize=4096)
def _behind_proxies(peer: str, forwarded_for: str, trusted_proxies: frozenset[Network]) -> str:
    """Cached, because a client sends many requests. Long headers bypass the cache, because anybody may send them."""
    address = _first_untrusted(peer, forwarded_for, trusted_proxies)
    return "unknown" if address is None else _source(address)


def _first_untrusted(
    peer: str, forwarded_for: str, trusted_proxies: Collection[Network]
) -> IPv4Address | IPv6Address | None:
    address = _address(peer)
    if address is None:
        return None
    if forwarded_for and is_among(address, trusted_proxies):
        for hop in reversed(forwarded_for.split(",")):
            named = _address(hop)
            if named is None:
                break
            address = named
            if not is_among(address, trusted_proxies):
                break
    return address


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Return the address in a hop: bare, or with a port as some proxies write it (`1.2.3.4:80`,
    `[2001:db8::1]:443`)."""
    return _read_address(text) if len(text) <= _LONGEST_NAME else None


@lru_cache(maxsize=1024)
def _read_address(text: str) -> IPv4Address | IPv6Address | None:
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _source(address: IPv4Address | IPv6Address) -> str:
    if isinstance(address, IPv4Address):
        return str(address)
    return f"{IPv6Address(int(address) >> 64 << 64)}/64"

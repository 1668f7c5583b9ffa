"""Rate limits (docs/limits.md "Requests"): which counters a request moves, when it is over, what the headers say.

Two buckets that share no counter, each with a limit per source address and one per key. Everything here runs on every
request before authorization, so names are bounded in size, and what can be made once is made once.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeVar

import msgspec

WINDOW = 60
"""Seconds. Windows are fixed and begin at whole minutes of Unix time, so that the clock alone tells when one ends."""

API = "/api/v1"
_UNDER_API = API + "/"
_API_LENGTH = len(API)

Network = IPv4Network | IPv6Network
Header = tuple[bytes, bytes]
G = TypeVar("G")

_LONGEST_NAME = 64
"""Longest `X-Api-Key` that is counted by its own text; ours are shorter, a longer one is counted by its digest."""


class Limit(msgspec.Struct, frozen=True, gc=False):
    """One counter's rule, with the headers that depend on nothing else already made."""

    name: str
    """What the names of its counters begin with: bucket and kind."""
    number: int
    """Requests per window; the next one is over."""
    message: str
    """What a merchant reads who is over it, word for word as the interface promises it."""
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
    """Endpoints that are counted together."""

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
"""By the number of requests left."""
_MONEY_PATHS = frozenset({"/payments", "/exchanges", "/subscriptions"})
_RESET = tuple(((b"ratelimit-reset", b"%d" % left), (b"retry-after", b"%d" % left)) for left in range(WINDOW + 1))
"""By the seconds until the window ends."""


def normalise_path(path: str) -> str:
    """One spelling of a path: one slash in front, one between two parts, none at the end.

    Takes the path as the server decoded it (`/%70ayments` is `/payments` by then). Exactly the slashes are
    normalised, because exactly those spellings reach the same endpoint. Everything else is another path, which no
    endpoint answers, and stays one: dot segments are not resolved (`/payments/.` is 404 in the general bucket), a
    second percent-encoding is not decoded, capitals are not lowered. What is counted by this path must also be
    routed by it.
    """
    if "//" not in path and path[-1:] != "/" and path[:1] == "/":
        return path
    return "/" + "/".join(part for part in path.split("/") if part)


def api_path(path: str) -> str | None:
    """A normalised path relative to /api/v1 (`/payments`; `/` for the prefix alone), or None when it is not under
    it and so is not counted."""
    if path.startswith(_UNDER_API):
        return path[_API_LENGTH:]
    return "/" if path == API else None


def bucket(method: str, path: str) -> Bucket:
    """The bucket of a request; `path` is normalised and relative to /api/v1. The list of money endpoints is closed
    (docs/limits.md "Requests"); `{id}` is any one part, known or not."""
    if method != "POST":
        return GENERAL
    if path in _MONEY_PATHS:
        return MONEY
    if path.startswith("/subscriptions/") and path.endswith("/charges") and path.count("/") == 3:
        return MONEY
    return GENERAL


def limits(of: Bucket, ip: str, api_key: str | None, make: Callable[[str, int], G]) -> tuple[G, ...]:
    """The counters that a request moves, in order: its address, then its key (docs/limits.md "Requests").

    Without a key, or with an empty one, only the address is counted. Each is made as `make(name, limit)`, so that
    the use case gets its port's own words for them. A long or non-ASCII key is counted by its digest: the names stay
    small, and different keys stay different counters.
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
    """What became of a request at the limits; it describes the limit that the request reached last."""

    limit: Limit
    over: bool
    """Answer 429 RATE_LIMIT_EXCEEDED with the limit's message."""
    remaining: int
    """Requests left in this window, never below zero."""
    reset: int
    """Unix seconds when the window ends."""
    wait: int
    """Seconds until then, 1 to 60."""


def window(now: int) -> int:
    """The number of the window that holds the Unix second `now`."""
    return now // WINDOW


def verdict(of: Bucket, counts: Sequence[int], now: int) -> Verdict:
    """Judge by the counts reached: one when the request stopped at its address or has no key, two otherwise.

    A counter over its limit is always the last one counted, so the last one is the one to tell of. `now` is in whole
    Unix seconds, rounded down, so that whoever waits for `wait` seconds is never a moment early.
    """
    limit = of.per_ip if len(counts) == 1 else of.per_key
    left = limit.number - counts[-1]
    wait = WINDOW - now % WINDOW
    if left < 0:
        return Verdict(limit, True, 0, now + wait, wait)
    return Verdict(limit, False, left, now + wait, wait)


def headers(of: Verdict) -> list[Header]:
    """The seven headers that every response carries, and `Retry-After` when the request is over
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
    """The setting `trusted_proxies`: addresses or networks. Raises ValueError for anything else."""
    return tuple(ip_network(text.strip()) for text in texts)


def client_ip(peer: str | None, forwarded_for: str | None, trusted_proxies: Collection[Network]) -> str:
    """The source that a request is counted by (docs/limits.md "Requests").

    The address at the other end of the socket, unless a trusted proxy is there. Then the hops of `X-Forwarded-For`
    (several such headers joined with commas) are read from the right, each vouched for by the one after it, up to the
    first that is not trusted: the client, whatever it wrote further left. A hop that is no address ends the walk at
    the proxy that wrote it. A peer without an address (a Unix socket) is no trusted one.

    IPv4 by the address, also where it comes mapped into IPv6; IPv6 by the /64, since one customer has at least that.
    """
    if not trusted_proxies and peer and ":" not in peer:
        return peer  # a socket spells IPv4 in one way only
    told = forwarded_for or ""
    behind = _behind_proxies if len(told) <= _LONGEST_NAME else _behind_proxies.__wrapped__
    # A frozenset remembers its hash, and one that is given is not copied.
    return behind(peer or "", told, frozenset(trusted_proxies))


def is_trusted(peer: str | None, trusted_proxies: Collection[Network]) -> bool:
    """Whether a trusted proxy is at the other end of the socket."""
    address = _address(peer or "") if trusted_proxies else None
    return address is not None and is_among(address, trusted_proxies)


def client_address(
    peer: str | None, forwarded_for: str | None, trusted_proxies: Collection[Network]
) -> IPv4Address | IPv6Address | None:
    """The same source as an address, IPv6 in full; None where it has none."""
    return _first_untrusted(peer or "", forwarded_for or "", trusted_proxies)


def is_among(address: IPv4Address | IPv6Address, networks: Collection[Network]) -> bool:
    """Whether an address is in one of the networks."""
    return any(address in network for network in networks)


@lru_cache(maxsize=4096)
def _behind_proxies(peer: str, forwarded_for: str, trusted_proxies: frozenset[Network]) -> str:
    """Kept, because a client sends many requests; long headers are not, because anybody may send them."""
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
    """The address in a hop: bare, or with a port as some proxies write it (`1.2.3.4:80`, `[2001:db8::1]:443`)."""
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

"""URLs of Redis servers. Every adapter and front end parses them here."""

import re
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from .database_urls import host_and_port, split_url

_ONE = ("redis", "rediss", "unix")
_WATCHED = {"redis+sentinel": "redis", "rediss+sentinel": "rediss"}
"""Schemes of servers that Sentinels watch, with the scheme of the connections."""
_PORT = 26379
"""Port of Sentinels."""
_SERVICE = re.compile(r"/([A-Za-z0-9._-]{1,100})(/[0-9]{1,4})?\Z")
_OF_SENTINELS = ("sentinel_username", "sentinel_password")


class RedisUrl(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed URL. Its repr hides it: it may contain a password."""

    url: str
    """URL of the one server. With Sentinels: its host stands for the server that they name."""
    hosts: tuple[str, ...]
    """Names or addresses of the server, or of the Sentinels; empty for a socket."""
    sentinels: tuple[tuple[str, int], ...] = ()
    """Hosts and ports; empty without Sentinel."""
    service: str = ""
    """Name under which the Sentinels know the servers."""
    sentinel_login: Mapping[str, str] = {}
    """Name and password for the Sentinels themselves, by redis-py's names."""
    has_password: bool = False
    is_encrypted: bool = False

    def __repr__(self) -> str:
        return "<Redis URL>"


def read_redis_url(url: str) -> RedisUrl:
    """Parse a URL. Raises: ValueError, which quotes no part of it."""
    scheme = url.partition("://")[0]
    read = None
    if url.isprintable() and "#" not in url and f"{scheme}://" in url:
        # The standard library's errors quote a part of the URL.
        with suppress(ValueError):
            read = _watched(url, _WATCHED[scheme]) if scheme in _WATCHED else _single(url)
    if read is None:
        raise ValueError(
            "must be redis://:password@host:port/number, rediss://…, unix:///path or "
            "redis+sentinel://:password@host:port,host:port/service/number"
        )
    return read


def is_watched(url: str) -> bool:
    """Return whether the URL names Sentinels."""
    return url.partition("://")[0] in _WATCHED


def _single(url: str) -> RedisUrl | None:
    parts = urlsplit(url)
    if parts.scheme == "unix":
        fits = bool(parts.path.strip("/"))
    else:
        fits = parts.port != 0 and bool(parts.hostname) and re.fullmatch(r"/?|/[0-9]{1,4}", parts.path) is not None
    if parts.scheme not in _ONE or not fits:
        return None
    return RedisUrl(
        url=url,
        hosts=(parts.hostname,) if parts.hostname else (),
        has_password=parts.password is not None or "password" in dict(parse_qsl(parts.query)),
        is_encrypted=parts.scheme != "redis",
    )


def _watched(url: str, scheme: str) -> RedisUrl | None:
    user, place, path, query = split_url(url)
    service = _SERVICE.match(path)
    sentinels = tuple(host_and_port(each, _PORT) for each in place.split(","))
    options = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    login = {name.removeprefix("sentinel_"): options.pop(name) for name in _OF_SENTINELS if name in options}
    if service is None or not all(host for host, _ in sentinels) or not all(login.values()):
        return None
    at = "@" if user else ""
    return RedisUrl(
        url=f"{scheme}://{user}{at}sentinel{service[2] or ''}{'?' if options else ''}{urlencode(options)}",
        hosts=tuple(host for host, _ in sentinels),
        sentinels=sentinels,
        service=service[1],
        sentinel_login=login,
        has_password=":" in user or "password" in options,
        is_encrypted=scheme == "rediss",
    )

"""Clients of Redis for counters, queue and checks. All of them are made here.

A URL with Sentinels names no server: each new connection asks them for the present primary. A connection to a primary
that was replaced breaks, or refuses writes, and then the next one asks again.
"""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import redis
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio import sentinel as sentinel_async
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.connection import parse_url
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelConnectionPool

from ..ports.redis_urls import RedisUrl, read_redis_url

C = TypeVar("C", bound=redis.Redis)


class _Pool(SentinelConnectionPool):
    """A pool that closes its Sentinels' connections, too."""

    def disconnect(self, inuse_connections: bool = True) -> None:
        super().disconnect(inuse_connections)
        if inuse_connections:
            for each in self.sentinel_manager.sentinels:
                each.close()


class _AsyncPool(sentinel_async.SentinelConnectionPool):
    """The same for asyncio."""

    async def disconnect(self, inuse_connections: bool = True) -> None:
        await super().disconnect(inuse_connections)
        if inuse_connections:
            for each in self.sentinel_manager.sentinels:
                await each.aclose()


def redis_client(url: str, within: float, *, kind: type[C], retries: int = 0) -> C:
    """Return a client for threads, which connects at its first command. `within`: seconds for a connection and for an
    answer."""
    read = read_redis_url(url)
    given = {**_times(within), "retry": Retry(NoBackoff(), retries)}
    if not read.sentinels:
        made: Any = kind.from_url(url, **given)
        return cast("C", made)  # the signature hides the subclass
    login, own = _connections(read)
    for_sentinels = {**login, **_times(within), "retry": Retry(NoBackoff(), 0)}
    manager: Any = Sentinel(read.sentinels, sentinel_kwargs=for_sentinels)  # type: ignore[no-untyped-call]
    found: C = manager.master_for(read.service, redis_class=kind, connection_pool_class=_Pool, **own, **given)
    return found


def async_redis_client(url: str, within: float) -> AsyncRedis:
    """Return a client for asyncio, which repeats no command."""
    read = read_redis_url(url)
    given: dict[str, Any] = {**_times(within), "retry": AsyncRetry(NoBackoff(), 0)}
    if not read.sentinels:
        return AsyncRedis.from_url(url, **given)
    login, own = _connections(read)
    manager: Any = sentinel_async.Sentinel(read.sentinels, sentinel_kwargs={**login, **given})  # type: ignore[no-untyped-call]
    found: AsyncRedis = manager.master_for(read.service, connection_pool_class=_AsyncPool, **own, **given)
    return found


async def silent_sentinels(url: str, within: float) -> list[str]:
    """Return the Sentinels of the URL that do not answer, or do not know its service."""
    read = read_redis_url(url)
    login, _ = _connections(read)
    silent = []
    for host, port in read.sentinels:
        client: Any = AsyncRedis(host=host, port=port, **login, **_times(within), retry=AsyncRetry(NoBackoff(), 0))
        try:
            if read.service not in await client.sentinel_masters():
                silent.append(f"{host}:{port}")
        except (redis.RedisError, OSError):
            silent.append(f"{host}:{port}")
        finally:
            await client.aclose()
    return silent


def _times(within: float) -> dict[str, Any]:
    return {"socket_timeout": within, "socket_connect_timeout": within}


def _connections(read: RedisUrl) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the options of connections to the Sentinels, and to the server that they name."""
    own: dict[str, Any] = dict(parse_url(read.url))  # type: ignore[no-untyped-call] # untyped in redis
    for name in ("host", "port", "connection_class"):
        own.pop(name, None)
    if read.is_encrypted:
        own["ssl"] = True
    tls = {name: value for name, value in own.items() if name.startswith("ssl")}
    return {**tls, **read.sentinel_login}, own

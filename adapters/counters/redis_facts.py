"""Facts about a Redis server, for checks of its configuration."""

from collections.abc import Mapping
from typing import Any

from redis.exceptions import RedisError

from ...ports.faults import Unavailable
from ...ports.redis_urls import is_watched
from ..redis_clients import async_redis_client, silent_sentinels

_ANSWERS_WITHIN = 3.0


async def redis_facts(url: str) -> tuple[float, Mapping[str, str]]:
    """Return the server's clock in Unix seconds and its INFO values. With Sentinels, `silent_sentinels` names those
    that do not answer. Raises: Unavailable."""
    client: Any = async_redis_client(url, _ANSWERS_WITHIN)
    try:
        seconds, microseconds = await client.time()
        said = await client.info()
    except (RedisError, OSError, TimeoutError) as fault:
        if is_watched(url):
            # The library's message is a page long.
            silent = ", ".join(await silent_sentinels(url, _ANSWERS_WITHIN)) or "none"
            name = type(fault).__name__
            raise Unavailable(
                f"no Redis that Sentinels name answers ({name}); Sentinels that fail: {silent}"
            ) from fault
        raise Unavailable(f"Redis did not answer: {type(fault).__name__}: {fault}") from fault
    finally:
        await client.aclose()
    if is_watched(url):
        said["silent_sentinels"] = ", ".join(await silent_sentinels(url, _ANSWERS_WITHIN))
    return seconds + microseconds / 1_000_000, {name: str(value) for name, value in said.items()}

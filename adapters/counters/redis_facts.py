"""Facts about a Redis server, for checks of its configuration."""

from collections.abc import Mapping
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from ...ports.faults import Unavailable

_ANSWERS_WITHIN = 3.0


async def redis_facts(url: str) -> tuple[float, Mapping[str, str]]:
    """Return the server's clock in Unix seconds and its INFO values. Raises: Unavailable."""
    client: Any = Redis.from_url(
        url, socket_timeout=_ANSWERS_WITHIN, socket_connect_timeout=_ANSWERS_WITHIN, retry=Retry(NoBackoff(), 0)
    )
    try:
        seconds, microseconds = await client.time()
        said = await client.info()
    except (RedisError, OSError, TimeoutError) as fault:
        raise Unavailable(f"Redis did not answer: {type(fault).__name__}: {fault}") from fault
    finally:
        await client.aclose()
    return seconds + microseconds / 1_000_000, {name: str(value) for name, value in said.items()}

"""Looking up names with threads of our own."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from aiohttp.abc import AbstractResolver, ResolveResult


class ThreadResolver(AbstractResolver):
    """The system's resolver, on threads that nothing else waits for.

    A name whose servers are dead holds its thread for many seconds. The event loop's own pool has six threads on two
    cores (uvloop's has four), so that a handful of dead names there would stop the lookups of every other merchant.
    """

    def __init__(self, threads: int) -> None:
        # Threads start with the first lookups, not here.
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="cambist-dns")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of `host`. Raises OSError when it has none."""
        look_up = partial(
            socket.getaddrinfo, host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
        )
        found = await asyncio.get_running_loop().run_in_executor(self._pool, look_up)
        return [
            ResolveResult(
                hostname=host,
                host=str(where[0]),
                port=port,
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _, protocol, _, where in found
        ]

    async def close(self) -> None:
        """Forget the lookups under way; their threads end with them."""
        self._pool.shutdown(wait=False, cancel_futures=True)

"""DNS lookups on our own threads."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from typing import TypeVar

from aiohttp.abc import AbstractResolver, ResolveResult

T = TypeVar("T")

Name = tuple[str, int, socket.AddressFamily]
"""Subject of a lookup: host name, port, and kind of address."""

_PATIENCE = 1.0
"""Seconds after which a lookup falls back to the previous answer, and the name counts as slow."""
_REMEMBERED = 10_000
"""Names with a cached answer, or known as slow."""


class Lookup:
    """Lookup under way, shared by all callers."""

    __slots__ = ("begun", "task", "waiting")

    task: "asyncio.Task[list[ResolveResult]]"

    def __init__(self) -> None:
        self.waiting = 0
        self.begun = False
        """Whether it has a thread, which it then keeps."""


class ThreadResolver(AbstractResolver):
    """The system's resolver, on separate threads.

    A name with dead servers holds its thread for many seconds. The event loop's own pool has six threads on two
    cores (uvloop's has four), so a handful of dead names there would stop the lookups of every other merchant.
    Here, too, there may be more dead names than threads. So each name has one thread at most, and names whose last
    lookup was slow share half of the threads. A name that was found before keeps its answer while it is looked up
    again. That answer may be old; the guard checks the connected address.
    """

    def __init__(self, threads: int, *, patience: float = _PATIENCE) -> None:
        # The threads start with the first lookups, not here.
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="cambist-dns")
        self._for_slow_ones = asyncio.Semaphore(max(threads // 2, 1))
        self._patience = patience
        self._under_way: dict[Name, Lookup] = {}
        self._known: dict[Name, list[ResolveResult]] = {}
        self._slow: dict[Name, None] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of `host`. Raises OSError if it has none."""
        name = host, port, family
        lookup = self._under_way.get(name)
        if lookup is None:
            lookup = self._under_way[name] = Lookup()
            lookup.task = asyncio.create_task(self._look_up(name, lookup))
            lookup.task.add_done_callback(partial(self._over, name))
        known = self._known.get(name)
        lookup.waiting += 1
        try:
            await asyncio.wait([lookup.task], timeout=None if known is None else self._patience)
        finally:
            lookup.waiting -= 1
            # A lookup that has its thread goes on without its callers, because its answer is useful later.
            if not lookup.waiting and not lookup.begun:
                self._under_way.pop(name, None)
                lookup.task.cancel()
        if known is not None and (not lookup.task.done() or lookup.task.cancelled()):
            return known
        if lookup.task.cancelled():
            raise OSError("the notifier was closed")
        return lookup.task.result()

    async def close(self) -> None:
        """Drop the lookups under way; their threads end with them."""
        for lookup in [*self._under_way.values()]:
            lookup.task.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _look_up(self, name: Name, lookup: Lookup) -> list[ResolveResult]:
        host, port, family = name
        look_up = partial(
            socket.getaddrinfo, host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
        )
        loop = asyncio.get_running_loop()
        async with self._for_slow_ones if name in self._slow else nullcontext():
            lookup.begun = True
            late = loop.call_later(self._patience, self._note_slow, name)
            try:
                found = await loop.run_in_executor(self._pool, look_up)
            finally:
                late.cancel()
            if late.when() > loop.time():
                self._slow.pop(name, None)
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

    def _note_slow(self, name: Name) -> None:
        _remember(self._slow, name, None)

    def _over(self, name: Name, task: "asyncio.Task[list[ResolveResult]]") -> None:
        lookup = self._under_way.get(name)
        if lookup is not None and lookup.task is task:
            del self._under_way[name]
        if task.cancelled():
            return
        if task.exception() is None:
            _remember(self._known, name, task.result())
        else:
            # An answer that there is no such name counts at once.
            self._known.pop(name, None)


def _remember(names: dict[Name, T], name: Name, what: T) -> None:
    names.pop(name, None)
    if len(names) >= _REMEMBERED:
        del names[next(iter(names))]
    names[name] = what

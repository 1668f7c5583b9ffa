"""Counters in Redis, which all processes share.

What one event-loop tick asks goes to Redis in one call of one script, and what is asked meanwhile goes with the next:
redis-py costs some 50 us of CPU per command, so that a call per request would cost more than most requests
(benchmarks/test_rate_limit.py shows both ways). The script runs whole or not at all, so counts are exact.

While Redis is away each process counts by itself, up to the full limit. A merchant below its limit is never refused
because a server of ours is down; whoever floods passes at most the limit once per process. Dividing the limit among
the processes would hold the sum, and would refuse the merchant whose connections all lead to one of them.

The script's keys lie where they fall, so Redis Cluster cannot run it; a Redis with replicas can.
"""

import asyncio
import logging
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError

from ...ports.clock import Clock
from ...ports.counters import Counter
from .memory import MemoryCounters

PREFIX = "cambist.counters"
"""Of keys in Redis; it stays, so that programs of two releases count together."""

_ANSWERS_WITHIN = 1.0
"""Seconds for a connection and for an answer. A request waits at its door that long, at most, and only the first. Less
would take a process that was busy for a moment for a Redis that is away, and its counts would not be exact."""
_TRIES_AGAIN = 0.5
"""Seconds between two attempts to reach a Redis that is away."""
_KEPT = 180
"""Seconds that Redis keeps a counter: longer than any window, and than the clocks of the machines are apart."""
_BATCH = 256
"""Decisions in one call, so that no call holds up Redis for long."""

_SCRIPT = """
local reached, counter, argument = {}, 0, 2
while argument <= #ARGV do
    local over = false
    local count = tonumber(ARGV[argument])
    for number = 1, count do
        counter = counter + 1
        if over then
            reached[counter] = 0
        else
            local value = redis.call('INCR', KEYS[counter])
            if value == 1 then redis.call('EXPIRE', KEYS[counter], ARGV[1]) end
            reached[counter] = value
            over = value > tonumber(ARGV[argument + number])
        end
    end
    argument = argument + count + 1
end
return reached
"""
"""For each decision in turn: adds one to its counters up to the first that is over. 0 stands for those not counted.

KEYS: the counters of all decisions, one after the other. ARGV: the seconds to keep a counter, then for each decision
how many counters it has and their limits.
"""

log = logging.getLogger("cambist.counters")


class _Decision:
    """One request's counter, waiting for the next call."""

    __slots__ = ("counts", "limits", "window")

    def __init__(self, window: int, limits: Sequence[Counter], counts: "asyncio.Future[list[int]]") -> None:
        self.window = window
        self.limits = limits
        self.counts = counts


class RedisCounters:
    """Fixed windows in Redis; a MemoryCounters of this process while Redis is away."""

    def __init__(self, url: str, clock: Clock, *, prefix: str = PREFIX) -> None:
        """Connects at the first count. Nothing is tried twice: a call that broke off may have counted."""
        self._redis = Redis.from_url(
            url,
            socket_timeout=_ANSWERS_WITHIN,
            socket_connect_timeout=_ANSWERS_WITHIN,
            retry=Retry(NoBackoff(), 0),
        )
        self._clock = clock
        self._prefix = prefix
        self._alone = MemoryCounters()
        self._waiting: list[_Decision] = []
        self._calling: asyncio.Task[None] | None = None
        self._sha = ""
        self._is_away = False
        self._next_try = 0.0

    async def count(self, window: int, limits: Sequence[Counter]) -> Sequence[int]:
        """Counted with everything else that waits; by this process alone while Redis is away."""
        if not limits:
            return []
        if self._is_away and not self._may_try():
            return await self._alone.count(window, limits)
        counts: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Decision(window, limits, counts))
        if self._calling is None:
            self._calling = asyncio.create_task(self._call())
        return await counts

    async def works(self) -> bool:
        """Whether Redis counts, found by counting: one that is full or a mere replica still answers a ping.

        A Redis that came back is used from here on.
        """
        try:
            await self._run([f"{self._prefix}:probe"], [_KEPT, 1, 0])
        except (RedisError, OSError) as error:
            self._lose(error)
        else:
            self._find()
        return not self._is_away

    async def close(self) -> None:
        """Answer what waits, and disconnect."""
        if self._calling is not None:
            await self._calling
        await self._redis.aclose()
        await self._alone.close()

    def _may_try(self) -> bool:
        """Whether this request shall look if Redis is back. One at a time: the others need not wait for it."""
        now = self._clock.monotonic()
        if now < self._next_try:
            return False
        self._next_try = now + _TRIES_AGAIN
        return True

    async def _call(self) -> None:
        """Call until nobody waits. It starts a tick after the first decision, and so takes along the tick's others."""
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
                await self._decide(batch)
        finally:
            self._calling = None

    async def _decide(self, batch: list[_Decision]) -> None:
        keys: list[str] = []
        arguments = [_KEPT]
        for decision in batch:
            arguments.append(len(decision.limits))
            for counter in decision.limits:
                keys.append(self._key(decision.window, counter.key))
                arguments.append(counter.limit)
        try:
            reached = await self._run(keys, arguments)
        except Exception as error:  # noqa: BLE001
            # Whatever it was: a request is never refused for the counters's sake. Who came meanwhile waits no second
            # time.
            self._lose(error)
            together, self._waiting = [*batch, *self._waiting], []
            for decision in together:
                _answer(decision, await self._alone.count(decision.window, decision.limits))
            return
        self._find()
        start = 0
        for decision in batch:
            end = start + len(decision.limits)
            _answer(decision, [count for count in reached[start:end] if count])
            start = end

    async def _run(self, keys: list[str], arguments: list[int]) -> list[int]:
        try:
            answer: Any = await self._redis.evalsha(self._sha, len(keys), *keys, *arguments)
        except NoScriptError:
            # A Redis that is new or was restarted, which has counted nothing yet.
            self._sha = str(await self._redis.script_load(_SCRIPT))
            answer = await self._redis.evalsha(self._sha, len(keys), *keys, *arguments)
        reached: list[int] = answer
        return reached

    def _key(self, window: int, name: str) -> str:
        """The digest: names are whatever strangers send, and somebody may send a secret for a key."""
        digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        return f"{self._prefix}:{window}:{digest}"

    def _lose(self, error: Exception) -> None:
        self._next_try = self._clock.monotonic() + _TRIES_AGAIN
        if not self._is_away:
            self._is_away = True
            log.warning("Redis is away (%s); this process counts by itself", type(error).__name__)

    def _find(self) -> None:
        if self._is_away:
            self._is_away = False
            log.warning("Redis is back; requests are counted together again")


def _answer(decision: _Decision, counts: list[int]) -> None:
    if not decision.counts.done():  # whoever asked may be gone
        decision.counts.set_result(counts)

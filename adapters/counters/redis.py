"""Counters in Redis, shared by all processes.

All requests of one event-loop tick go to Redis in one script call; requests that arrive meanwhile go with the next
call. redis-py costs about 50 us of CPU per command, so a call per request would cost more than most requests
(benchmarks/test_rate_limit.py compares both). A script runs completely or not at all, so counts are exact.

While Redis is away each process counts by itself, up to the full limit. A failure of our server therefore never refuses
a merchant below its limit; a flood passes at most the limit once per process. Dividing the limit among the processes
would keep the total, but would refuse a merchant whose connections all reach one process.

The script's keys are not in one hash slot, so Redis Cluster cannot run it. A Redis with replicas can.
"""

import asyncio
import logging
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from redis.exceptions import NoScriptError, RedisError

from ...ports.clock import Clock
from ...ports.counters import Counter
from ..redis_clients import async_redis_client
from .memory import MemoryCounters

PREFIX = "cambist.counters"
"""Prefix of keys in Redis. It must not change, so that processes of two releases count together."""

_ANSWERS_WITHIN = 1.0
"""Seconds for a connection and for an answer. A request waits at most this long, and only the first one does. A shorter
timeout would mistake a briefly busy process for an unavailable Redis, and counts would not be exact."""
_TRIES_AGAIN = 0.5
"""Seconds between two attempts to reach an unavailable Redis."""
_KEPT = 180
"""Seconds that Redis keeps a counter: longer than any window plus the clock difference between machines."""
_BATCH = 256
"""Decisions in one call, so that no call blocks Redis for long."""

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
"""For each decision, increment its counters in order up to the first one over its limit; 0 marks counters that were not
incremented.

KEYS: the counters of all decisions in order. ARGV: the seconds to keep a counter, then for each decision the number of
its counters and their limits.
"""

log = logging.getLogger("cambist.counters")


class _Decision:
    """Counters of one request, waiting for the next call."""

    __slots__ = ("counts", "limits", "window")

    def __init__(self, window: int, limits: Sequence[Counter], counts: "asyncio.Future[list[int]]") -> None:
        self.window = window
        self.limits = limits
        self.counts = counts


class RedisCounters:
    """Fixed windows in Redis, or in a MemoryCounters of this process while Redis is away."""

    def __init__(self, url: str, clock: Clock, *, prefix: str = PREFIX) -> None:
        """Connect at the first count. No call is retried, because an interrupted call may have counted."""
        self._redis = async_redis_client(url, _ANSWERS_WITHIN)
        self._clock = clock
        self._prefix = prefix
        self._alone = MemoryCounters()
        self._waiting: list[_Decision] = []
        self._calling: asyncio.Task[None] | None = None
        self._sha = ""
        self._is_away = False
        self._next_try = 0.0

    async def count(self, window: int, limits: Sequence[Counter]) -> Sequence[int]:
        """Count together with all waiting requests; in this process alone while Redis is away."""
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
        """Report whether Redis can count, by counting: a full Redis or a mere replica would still answer a ping. If
        Redis is back, use it again."""
        try:
            await self._run([f"{self._prefix}:probe"], [_KEPT, 1, 0])
        except (RedisError, OSError) as error:
            self._lose(error)
        else:
            self._find()
        return not self._is_away

    async def close(self) -> None:
        """Answer waiting requests, and disconnect."""
        if self._calling is not None:
            await self._calling
        await self._redis.aclose()
        await self._alone.close()

    def _may_try(self) -> bool:
        """Report whether this request should check if Redis is back. Only one request does so at a time; the others
        need not wait."""
        now = self._clock.monotonic()
        if now < self._next_try:
            return False
        self._next_try = now + _TRIES_AGAIN
        return True

    async def _call(self) -> None:
        """Call Redis until no request waits. The task starts one tick after the first decision, so it includes the
        others of that tick."""
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
            # Whatever the error, the counters never cause a refusal. Count requests that arrived meanwhile as well, so
            # that they do not wait for another timeout.
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
            # A new or restarted Redis, which has not counted anything yet.
            self._sha = str(await self._redis.script_load(_SCRIPT))
            answer = await self._redis.evalsha(self._sha, len(keys), *keys, *arguments)
        reached: list[int] = answer
        return reached

    def _key(self, window: int, name: str) -> str:
        """Return the key. Names are hashed, because clients send arbitrary text and may send a secret by mistake."""
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
    if not decision.counts.done():  # the request may have been cancelled
        decision.counts.set_result(counts)

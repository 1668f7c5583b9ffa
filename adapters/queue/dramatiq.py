"""Wake-ups between processes: Dramatiq over Redis.

Dramatiq runs actors in threads, one message each. Here an asyncio loop claims jobs from the database, and a message
only wakes that loop. So the bridge is small: one actor, in one thread of each worker process. A message names no job,
because any worker that polls finds all due jobs. It reaches one worker process, which is enough: the others poll every
second, and so does that process if the message is lost.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import dramatiq
import redis
from dramatiq.brokers.redis import RedisBroker
from redis.exceptions import NoScriptError

from ...ports.clock import Clock
from ...ports.jobs import Job
from ..redis_clients import redis_client

NAMESPACE = "cambist:queue"

_QUEUE = "wake_ups"
_ACTOR = "look"
_SOON = timedelta(seconds=1)
"""Jobs due later are found when workers poll for the next due job."""
_PAUSE = 0.02
"""Seconds between two messages of a process. All wake-ups in between become one message (each costs 0.4 ms of CPU)."""
_PAUSE_AWAY = 1.0
_ENOUGH = 64
"""Maximum number of waiting messages, so that they do not fill Redis while no worker runs."""
_LOOK_MS = 100
"""Maximum milliseconds between two polls of Redis by an idle worker's thread."""
_STOP_MS = 1000
_ANSWERS_WITHIN = 1.0

log = logging.getLogger("cambist.queue")


class _Watched(redis.Redis):
    """A client that records whether Redis answers, for every command of the broker's threads."""

    is_away = False
    _noting = threading.Lock()

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Run a command. Convert a timeout to a lost connection, which Dramatiq can handle."""
        try:
            answer = super().execute_command(*args, **options)  # type: ignore[no-untyped-call] # untyped in redis
        except NoScriptError:
            raise  # this is an answer, and the broker's scripts handle it
        except redis.RedisError as error:
            self._note(away=True)
            if isinstance(error, redis.TimeoutError):
                raise redis.ConnectionError("Redis does not answer in time") from error
            raise
        self._note(away=False)
        return answer

    def _note(self, *, away: bool) -> None:
        if away == self.is_away:
            return
        with self._noting:
            if away == self.is_away:
                return  # another thread was first
            self.is_away = away
        log.warning("Redis is %s", "away; workers look for jobs every second" if away else "back; wake-ups are sent")


class _Looks:
    """Messages of one queue, rebuilt by us. Anybody who can write to Redis may write anything, and another queue's name
    alone would end the working thread. So the content of a message is ignored: it only causes one wake-up."""

    def __init__(self, consumer: Any, queue_name: str) -> None:
        self._consumer = consumer
        self._queue_name = queue_name

    def __getattr__(self, name: str) -> Any:
        """Delegate all other attributes to Dramatiq's consumer."""
        return getattr(self._consumer, name)

    def __iter__(self) -> "_Looks":
        return self

    def __next__(self) -> Any:
        """Return the next message, rebuilt. Raises: an error for a malformed message; the message is then gone, and the
        thread starts again after a pause."""
        came = next(self._consumer)
        if came is None:
            return None
        options = came.options if isinstance(came.options, dict) else {}
        return dramatiq.MessageProxy(
            dramatiq.Message(
                queue_name=self._queue_name,
                actor_name=_ACTOR,
                args=(),
                kwargs={},
                options={"redis_message_id": str(options.get("redis_message_id"))},
                message_id=came.message_id,
            )
        )


class _Broker(RedisBroker):
    """Dramatiq's Redis broker, whose messages are rebuilt by us."""

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 5000) -> Any:
        """Return the messages of a queue."""
        return _Looks(super().consume(queue_name, prefetch, timeout), queue_name)


class DramatiqQueue:
    """Send wake-ups from any process; receive them from the first `wait` on."""

    def __init__(self, url: str, clock: Clock, *, namespace: str = NAMESPACE) -> None:
        """Connect at the first wake-up or wait.

        With Dramatiq's defaults, messages taken by a killed worker stay with it for many minutes: heartbeats count for
        60 seconds, and one command in a thousand looks for workers without one.
        """
        self._clock = clock
        # One retry, so that a connection broken by a restart of Redis loses no wake-up.
        self._redis = redis_client(url, _ANSWERS_WITHIN, kind=_Watched, retries=1)
        self._broker: Any = _Broker(  # type: ignore[no-untyped-call] # untyped in dramatiq
            client=self._redis, namespace=namespace, middleware=[], heartbeat_timeout=5000, maintenance_chance=1_000_000
        )
        self._actor = dramatiq.actor(broker=self._broker, queue_name=_QUEUE, actor_name=_ACTOR)(self._look)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cambist-queue")
        self._sending: asyncio.Task[None] | None = None
        self._is_wanted = False
        self._is_hinted = False
        self._waiters: set[asyncio.Future[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._worker: dramatiq.Worker | None = None
        self._lock = threading.Lock()

    async def wake_up(self, jobs: Sequence[Job]) -> None:
        """Wake this process's own workers if they are idle, else a worker of any process. Never wait for Redis."""
        soon = self._clock.now() + _SOON
        if not any(job.due <= soon for job in jobs):
            return
        if self._waiters:
            self._arrive()
            return
        self._is_wanted = True
        if self._sending is None:
            self._sending = asyncio.create_task(self._send())

    async def wait(self, seconds: float) -> None:
        """Return when a wake-up arrives, or arrived since the last wait, or after `seconds`."""
        self._listen()
        if seconds > 0 and not self._is_hinted:
            await self._nap(seconds)
        # Clear the hint only here, when this waiter is sure to return. A waiter cancelled earlier leaves it to the next
        # one.
        self._is_hinted = False

    async def works(self) -> bool:
        """Report whether Redis answers."""
        with contextlib.suppress(redis.RedisError, OSError):
            await self._in_thread(self._redis.ping)
        return not self._redis.is_away

    async def close(self) -> None:
        """Send the pending wake-up, stop listening, disconnect."""
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
        if self._is_wanted and not self._redis.is_away:
            await self._in_thread(self._push)
        with self._lock:
            self._loop = None
        if self._worker is not None:
            await asyncio.to_thread(_stop, self._worker)
        await asyncio.to_thread(self._thread.shutdown)
        self._broker.close()
        self._redis.close()

    async def _nap(self, seconds: float) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = asyncio.ensure_future(self._clock.sleep(seconds))
        timer.add_done_callback(lambda _: _wake(waiter))
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)
            timer.cancel()

    def _arrive(self) -> None:
        self._is_hinted = True
        for waiter in self._waiters:
            _wake(waiter)

    def _look(self) -> None:
        """Run as the actor in the worker's thread."""
        with self._lock:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._arrive)

    def _listen(self) -> None:
        if self._worker is not None:
            return
        self._loop = asyncio.get_running_loop()
        # While Redis is away, each of these loggers repeats it every three seconds. _Watched logs it once.
        for name in (_QUEUE, f"{_QUEUE}.DQ"):
            logging.getLogger(f"dramatiq.worker.ConsumerThread({name})").disabled = True
        self._worker = dramatiq.Worker(self._broker, worker_threads=1, worker_timeout=_LOOK_MS)
        self._worker.start()

    async def _send(self) -> None:
        """Send until no wake-up was requested during the last pause."""
        try:
            while self._is_wanted:
                self._is_wanted = False
                await self._in_thread(self._push)
                await self._clock.sleep(_PAUSE_AWAY if self._redis.is_away else _PAUSE)
        finally:
            self._sending = None

    def _push(self) -> None:
        """Send in a separate thread, because Dramatiq's `send` blocks. A lost wake-up costs a delay of one second."""
        try:
            if self._broker.do_qsize(_QUEUE) < _ENOUGH:
                self._actor.send()
        except (redis.RedisError, dramatiq.BrokerError, OSError):
            log.debug("a wake-up was lost", exc_info=True)

    async def _in_thread(self, work: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)


def _stop(worker: dramatiq.Worker) -> None:
    """Stop the listener. Its threads are daemons, so a hanging thread does not keep the process alive."""
    try:
        worker.stop(timeout=_STOP_MS)
    except Exception:
        log.debug("the listener did not stop in order", exc_info=True)

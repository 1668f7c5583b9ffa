"""A deterministic event loop: virtual time, several processes in one, and a seed that chooses the next one to run.

Every process of the world is a strand with its own ready handles. It can be killed between any two of them, after which
none of its code runs, not even `finally` (`kill -9`), or stopped for a while as by SIGSTOP. There are no I/O and no
threads: a request for either fails loudly (docs/reliability.md "How it works").
"""

import asyncio
import contextvars
import heapq
import inspect
import random
import struct
import threading
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import Context
from itertools import count
from typing import Any, TypeVar
from zlib import crc32

from tests.simulation.strands import WORLD, Strand, enter, strand_of

T = TypeVar("T")

_STEP = struct.Struct("<iiid").pack

_REFUSALS = 50
"""Times that a coroutine may refuse to close; then the loop leaves it open."""


class NoSuchThing(RuntimeError):
    """The code requested something of the real world: a thread, a socket, a process."""


class Stuck(AssertionError):
    """No strand can continue, now or later."""


class SimFuture(asyncio.Future[Any]):
    """A future whose hash is a number, given when first asked for: sets of futures iterate in the same order in every
    run."""

    _serial = 0

    def __hash__(self) -> int:
        if not self._serial:
            self._serial = self.get_loop().next_serial()  # type: ignore[attr-defined]  # a SimLoop
        return self._serial


class SimTask(asyncio.Task[Any]):
    """The same for a task."""

    _serial = 0

    def __hash__(self) -> int:
        if not self._serial:
            self._serial = self.get_loop().next_serial()  # type: ignore[attr-defined]  # a SimLoop
        return self._serial


class SimHandle(asyncio.TimerHandle):
    """Runs at its time, or as soon as possible. Created for each step, without asyncio's debugging data."""

    __slots__ = ()
    _context: Context
    _callback: Callable[..., object]

    def __init__(
        self, when: float, callback: Callable[..., object], args: tuple[Any, ...], loop: "SimLoop", context: Context
    ) -> None:
        self._when = when
        self._callback = callback
        self._args = args
        self._loop = loop
        self._context = context
        self._cancelled = False
        self._scheduled = False
        self._repr = None
        self._source_traceback = None

    def cancel(self) -> None:
        self._cancelled = True
        self._callback = _nothing
        self._args = ()


def _nothing() -> None:
    """Callback of a cancelled handle."""


class SimLoop(asyncio.BaseEventLoop):
    """The loop. `seed` chooses who goes next; within one process handles run in the order in which they became ready,
    as asyncio promises, or, with `shuffled`, in any."""

    _stopping: bool
    """As in the base loop: a stop was requested."""

    def __init__(self, seed: str, *, shuffled: bool = False) -> None:
        super().__init__()
        self._chance = random.Random(f"{seed}/steps")
        self._shuffled = shuffled
        self._now = 0.0
        self._timers: list[tuple[float, int, SimHandle, Strand]] = []
        self._numbers = count(1)
        self._serials = count(1)
        self._live: list[Strand] = []
        """The strands that have something to run, and may: neither dead nor stopped."""
        self._owner = threading.get_ident()
        self._only: Strand | None = None
        self._kept: list[SimTask] = []
        """All tasks, so that none is collected on the way, at a moment of the collector's choosing."""
        self.steps = 0
        self.trace = 0
        """A checksum over all that ran, and when."""
        self.refused: list[str] = []
        """Refused requests for the real world."""
        self.inline: set[str] = set()
        """Names of functions that may run inline instead of in a thread."""
        WORLD.ready, WORLD.is_stopped, WORLD.is_dead, WORLD.fuse = [], False, False, None

    def time(self) -> float:
        """Seconds since the world began."""
        return self._now

    def next_serial(self) -> int:
        """The hash of the next task or future."""
        return next(self._serials)

    def call_soon(  # type: ignore[override]  # plainer than typeshed has it, as are the next ones
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Schedule the callback in the process of its context."""
        mine = contextvars.copy_context() if context is None else context
        handle = SimHandle(self._now, callback, args, self, mine)
        self._add(handle, strand_of(mine))
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        mine = contextvars.copy_context() if context is None else context
        timer = SimHandle(when, callback, args, self, mine)
        if when <= self._now:
            self._add(timer, strand_of(mine))
        else:
            heapq.heappush(self._timers, (when, next(self._numbers), timer, strand_of(mine)))
        return timer

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Schedule the callback; only this thread may call."""
        if threading.get_ident() != self._owner:
            self._refuse("a call from another thread")
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> "asyncio.Future[T]":
        """Run the function inline, at once, if it is known to be harmless; otherwise refuse it."""
        inner: Any = args[0] if getattr(func, "__name__", "") == "run" and args else func
        inner = getattr(inner, "func", inner)  # asyncio.to_thread sends a partial of Context.run
        name = getattr(inner, "__qualname__", repr(inner))
        if getattr(func, "args", ()):
            name = getattr(func.args[0], "__qualname__", name)  # type: ignore[attr-defined]  # a partial
        if name not in self.inline:
            self._refuse(f"a thread, for {name}")
        done: asyncio.Future[T] = self.create_future()
        done.set_result(func(*args))
        return done

    def create_future(self) -> Any:
        return SimFuture(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Generator[Any, None, T] | Coroutine[Any, Any, T], *, name: str | None = None, context: Any = None
    ) -> Any:
        task = SimTask(coro, loop=self, name=name, context=context)
        self._kept.append(task)
        if len(self._kept) > 20_000:
            self._kept = [each for each in self._kept if not each.done()]
        return task

    def spawn(self, strand: Strand, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Begin a task of a process."""
        context = contextvars.copy_context()
        context.run(enter, strand)
        task: asyncio.Task[T] = self.create_task(work, context=context)
        return task

    def outside(self, seconds: float, call: Callable[[], object]) -> None:
        """Call the function after this delay, even if the calling strand is dead: the call is already on its way in the
        world."""
        context = contextvars.copy_context()
        context.run(enter, WORLD)
        self.call_later(seconds, call, context=context)

    def kill(self, strand: Strand) -> None:
        """Stop all code of the process for good."""
        strand.is_dead = True
        strand.ready.clear()
        self._settle(strand)

    def stop_strand(self, strand: Strand) -> None:
        """Stop running the process's code until it is resumed."""
        strand.is_stopped = True
        self._settle(strand)

    def go_on(self, strand: Strand) -> None:
        """Resume the strand and run the handles that became ready meanwhile."""
        strand.is_stopped = False
        self._settle(strand)

    def alone(self, strand: Strand | None) -> None:
        """Let this one alone run, and no time pass; None: all again."""
        self._only = strand

    def dismiss(self) -> None:
        """Close what still waits, in the order in which it began, and the loop. Tasks that a `finally` begins meanwhile
        are this loop's, too, and closed before they run."""
        asyncio._set_running_loop(self)
        try:
            while self._kept:
                kept, self._kept = self._kept, []
                for task in kept:
                    if not task.done():
                        task._log_destroy_pending = False  # type: ignore[attr-defined]  # destroyed on purpose
                        _close(task.get_coro())
                    elif not task.cancelled():
                        task.exception()  # its reader is dead
        finally:
            asyncio._set_running_loop(None)
        for strand in self._live:
            strand.ready.clear()
        self._live.clear()
        self._timers.clear()
        self.close()

    def _refuse(self, what: str) -> None:
        self.refused.append(what)
        raise NoSuchThing(f"the simulation has no {what}")

    def _add(self, handle: SimHandle, strand: Strand) -> None:
        if strand.is_dead:
            return
        ready = strand.ready
        ready.append(handle)
        if len(ready) == 1 and not strand.is_stopped:
            self._live.append(strand)

    def _settle(self, strand: Strand) -> None:
        runs = bool(strand.ready) and not strand.is_dead and not strand.is_stopped
        if runs and strand not in self._live:
            self._live.append(strand)
        elif not runs and strand in self._live:
            self._live.remove(strand)

    def _pass_time(self) -> None:
        """Go on to the moment at which the next timer is due."""
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
        if not timers:
            raise Stuck("nobody can go on")
        self._now = timers[0][0]
        while timers and timers[0][0] <= self._now:
            _, _, timer, strand = heapq.heappop(timers)
            if not timer._cancelled:
                self._add(timer, strand)

    def _next(self) -> Strand:
        """The process whose turn it is."""
        live = self._live
        if self._only is not None:
            if not self._only.ready:
                raise Stuck(f"{self._only.name} waits for time while it stands still")
            return self._only
        while not live:
            self._pass_time()
        return live[int(self._chance.random() * len(live))] if len(live) > 1 else live[0]

    def _run_once(self) -> None:
        """Run one handle of one process, and so on until the loop is stopped."""
        while True:
            strand = self._next()
            ready = strand.ready
            which = int(self._chance.random() * len(ready)) if self._shuffled and len(ready) > 1 else 0
            handle = ready.pop(which)
            if not ready and not strand.is_stopped:
                self._live.remove(strand)
            if handle._cancelled:
                continue
            self.steps += 1
            strand.steps += 1
            self.trace = crc32(_STEP(strand.number, which, len(ready), self._now), self.trace)
            try:
                handle._context.run(handle._callback, *handle._args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as broken:  # noqa: BLE001 - as the base loop does
                self.call_exception_handler({"message": f"in {handle!r}", "exception": broken, "handle": handle})
            if strand.fuse is not None:
                strand.fuse -= 1
                if strand.fuse <= 0:
                    strand.fuse = None
                    if strand.on_fuse is not None:
                        strand.on_fuse()
            if self._stopping:
                break

    def _process_events(self, event_list: list[Any]) -> None:
        """There is no I/O."""

    def _write_to_self(self) -> None:
        """Do nothing: the loop never sleeps in a selector."""


def _close(coro: Any) -> None:
    """Have a coroutine do what a killed process would have done at its end. An `await` in a `finally` refuses the
    closing; it is cancelled, because closing once more would pass by the generators of context managers below it."""
    with suppress(BaseException):
        coro.close()
    for _ in range(_REFUSALS):
        if inspect.getcoroutinestate(coro) == inspect.CORO_CLOSED:
            return
        with suppress(BaseException):
            coro.throw(asyncio.CancelledError())

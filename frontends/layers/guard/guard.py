"""Guards every call to a provider: it ends in time, with one of three outcomes (ARCHITECTURE.md "Three outcomes"), and
uses permits of its own provider only.

An adapter that hangs, swallows its cancellation, or raises something other than a fault affects only its own operation:
the caller sees the fault of a silent provider (`OutcomeUnknown` for a write, `Unavailable` or `NoAnswer` for a read).
"""

import asyncio
import logging
import traceback
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any, TypeVar

from ....ports.bundle import Ports
from ....ports.clock import Clock
from ....ports.faults import Fault, OutcomeUnknown, Unavailable
from ....ports.kyc import NoAnswer
from ..wrapping import OPERATIONS, Call, Does, with_providers, wrapped
from .answers import Question, check_answer, check_drawn, clean_answer
from .asker import Asker, present_asker
from .bulkheads import SLOW, Bulkhead
from .fault_log import FaultLog
from .values import InvalidAnswer

P = TypeVar("P")

LIMIT = 20.0
"""Time limit of one provider call, in seconds. An adapter may give up sooner."""

REQUEST_LIMIT = 24.0
"""Time limit of all calls of one merchant request together, in seconds, so that it is answered within 25. A second bank
gets the time that the first one left."""

LEAST = 2.0
"""Minimum remaining seconds to start a call. With fewer its outcome would most likely be unknown."""

_CLOSING = 1.0
"""Seconds that running calls get to end when the app closes."""

_CALLERS_FAULT: Mapping[str, type[Exception]] = {"lookup": ValueError}
"""Exceptions other than faults that an operation raises about its arguments (ports/chain.py)."""

log = logging.getLogger("cambist.providers")


class NotInTime(TimeoutError):
    """The cause of the caller's fault when no answer arrived within the limit."""


class Guard:
    """Wraps the provider adapters of one app."""

    def __init__(self, clock: Clock, own: Collection[type[Any]] = ()) -> None:
        """`clock`: the machine's clock, so that advancing a test account's clock ends no call. `own`: classes of banks
        whose drawn invoices are not checked, because they are made by this package in this process."""
        self._clock = clock
        self._own = own
        self._under_way: set[asyncio.Task[Any]] = set()
        self._closed = False

    def over(self, port: str, adapter: P) -> P:
        """Wrap an adapter of `port`, so that each of its operations (`wrapping.OPERATIONS`) is guarded.

        Reads and writes, and jobs and requests, have separate permits, so that they cannot block each other.
        """
        provider = f"{port} {getattr(adapter, 'name', port)}"

        @cache
        def bulkhead(does: Does, of_jobs: bool) -> Bulkhead:
            return Bulkhead(self._clock, f"{provider}: {does.value}s of {'jobs' if of_jobs else 'requests'}")

        faults = FaultLog(self._clock)

        def guarded(operation: str, call: Call) -> Call:
            asked = _Asked(port, provider, operation)

            async def ask(*given: Any, **named: Any) -> Any:
                asker = present_asker()
                mine = bulkhead(asked.does, asker is not None and asker.is_job)
                ticket = object()
                await mine.take(ticket)
                try:
                    limit = self._time_left(asked, asker)
                except Unavailable:
                    mine.give_back(ticket, heard=True)
                    raise
                try:
                    answer = await self._answer(asked, asker, mine, ticket, limit, lambda: call(*given, **named))
                    answer, odd = clean_answer(port, operation, answer)
                    if odd:
                        faults.tell_odd(str(asked), odd)
                    return asked.checked(answer, (given, named))
                except Fault as fault:
                    faults.tell(str(asked), fault)
                    raise

            return ask

        drawing = {} if type(adapter) in self._own else {"draw_invoice": _drawing(adapter, provider)}
        return wrapped(adapter, OPERATIONS[port], guarded, drawing)

    async def close(self) -> None:
        """Refuse new calls, cancel running ones, and wait a second for them. Calls that swallow the cancellation are
        abandoned."""
        self._closed = True
        for task in self._under_way:
            task.cancel()
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=_CLOSING)

    def _time_left(self, asked: "_Asked", asker: Asker | None) -> float:
        """Return the seconds that the call may take. A request's time starts with its first call. Raises: Unavailable
        if too little is left, or the process is stopping."""
        if self._closed:
            raise Unavailable(f"{asked}: not begun, because the process is stopping")
        if asker is None or asker.is_job:
            return LIMIT
        now = self._clock.monotonic()
        if asker.until is None:
            asker.until = now + REQUEST_LIMIT
        left = min(asker.until - now, LIMIT)
        if left < LEAST:
            raise Unavailable(f"{asked}: not begun, because the request has to be answered")
        return left

    async def _answer(
        self,
        asked: "_Asked",
        asker: Asker | None,
        bulkhead: Bulkhead,
        ticket: object,
        limit: float,
        begin: Callable[[], Any],
    ) -> Any:
        """Run the call in a separate task, so that a call that cannot be cancelled blocks nothing, and release its
        permit.

        `begin` creates the coroutine. The wait ends with the task or after `limit` seconds of the machine's clock. If a
        job's call takes more than `SLOW` seconds, `asker` frees the worker's slot until the call ends.
        Raises: as `_read`.
        """
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        begun = self._clock.monotonic()
        is_slow = False

        def end(_: object = None) -> None:
            if not ended.done():
                ended.set_result(None)

        def slow() -> None:
            nonlocal is_slow
            is_slow = True
            if asker is not None:
                asker.begin_slow()

        task = loop.create_task(begin())
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        task.add_done_callback(end)
        alarms = [self._clock.call_later(limit, end)]
        if asker is not None and asker.is_job:
            alarms.append(self._clock.call_later(SLOW, slow))
        try:
            await ended
        finally:
            for alarm in alarms:
                alarm.cancel()
            if is_slow and asker is not None:
                asker.end_slow()
            if task.done():
                bulkhead.give_back(ticket, heard=_is_received(task))
            else:
                bulkhead.give_up(ticket, silent=ended.done() and not ended.cancelled())
                task.cancel()
                task.add_done_callback(lambda done: self._late(asked, done, begun))
                task.add_done_callback(lambda _: bulkhead.end())
        return self._read(asked, task, limit)

    def _read(self, asked: "_Asked", task: "asyncio.Task[Any]", limit: float) -> Any:
        """Return the result of a finished or abandoned task. Raises: the adapter's own fault, or the fault that stands
        for a timeout, a cancellation or an exception that is not a fault."""
        if not task.done():
            log.warning("%s gave no answer within %.0f s", asked, limit)
            raise asked.unheard(f"no answer within {limit:.0f} s", silent=True) from NotInTime()
        if task.cancelled():
            if not self._closed:
                log.error("%s was cancelled by its own adapter", asked)
            raise asked.unheard("cancelled")
        fault = task.exception()
        if fault is None:
            return task.result()
        if isinstance(fault, Fault) or not isinstance(fault, Exception) or asked.expects(fault):
            raise fault
        # The message of a foreign exception may contain a payer's data or a secret; its stack does not.
        log.error("%s raised %s\n%s", asked, type(fault).__name__, "".join(traceback.format_tb(fault.__traceback__)))
        raise asked.unheard(f"its adapter raised {type(fault).__name__}") from None

    def _late(self, asked: "_Asked", task: "asyncio.Task[Any]", begun: float) -> None:
        """Log and drop the result of an abandoned call. Its operation is polled again later."""
        if task.cancelled():
            return
        how = "an answer" if task.exception() is None else type(task.exception()).__name__
        took = self._clock.monotonic() - begun
        log.warning("%s came to an end after %.0f s with %s, which nobody waited for: dropped", asked, took, how)


def _is_received(task: "asyncio.Task[Any]") -> bool:
    """Return whether the provider answered, even with a refusal."""
    if task.cancelled():
        return False
    fault = task.exception()
    return fault is None or (isinstance(fault, Fault) and not isinstance(fault, (OutcomeUnknown, Unavailable)))


def _drawing(adapter: Any, provider: str) -> Callable[..., Any]:
    """Guard `draw_invoice` of a bank (ports/bank.py: DrawingBank). For an invalid invoice it returns None, and the
    invoice is then requested from the bank."""

    def draw_invoice(*given: Any, **named: Any) -> Any:
        try:
            drawn = adapter.draw_invoice(*given, **named)
            check_drawn(drawn)
        except InvalidAnswer as wrong:
            log.error("%s: draw_invoice: garbage: %s", provider, wrong)  # noqa: TRY400 - its path is all there is
            return None
        return drawn

    return draw_invoice


class _Asked:
    """An operation of one provider: its name in logs and faults, and the fault that stands for a missing answer."""

    def __init__(self, port: str, provider: str, operation: str) -> None:
        self.does = OPERATIONS[port][operation]
        self._port = port
        self._named = f"{provider}: {operation}"
        self._operation = operation
        self._silent: Callable[[str], Fault] = NoAnswer if port == "kyc" else Unavailable

    def __str__(self) -> str:
        return self._named

    def expects(self, fault: Exception) -> bool:
        """Return whether the operation may raise this about its arguments."""
        return isinstance(fault, _CALLERS_FAULT.get(self._operation, ()))

    def checked(self, answer: Any, question: Question) -> Any:
        """Return the answer. Raises: the fault of a missing answer, if the answer is invalid."""
        try:
            check_answer(self._port, self._operation, answer, question)
        except InvalidAnswer as wrong:
            log.error("%s: garbage: %s", self, wrong)  # noqa: TRY400 - its path is all there is
            raise self.unheard(f"garbage: {wrong}") from wrong
        return answer

    def unheard(self, why: str, *, silent: bool = False) -> Fault:
        """Return the fault of a call with an unknown end. `silent`: nothing at all was received."""
        message = f"{self._named}: {why}"
        if self.does is Does.WRITE:
            return OutcomeUnknown(message)
        return self._silent(message) if silent else Unavailable(message)


def guarded_ports(guard: Guard, ports: Ports) -> Ports:
    """Return the ports with their provider adapters guarded."""
    return with_providers(ports, guard.over)

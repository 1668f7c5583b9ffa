"""The layer that every call to a provider passes: it ends in time, and in one of the three ends.

An adapter that hangs, does not let itself be cancelled, or raises what is no fault, is a matter of its own operation
alone: the caller is answered as if the provider had not been heard.
"""

import asyncio
import logging
import traceback
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ...ports.bundle import Ports
from ...ports.clock import Clock
from ...ports.faults import Fault, OutcomeUnknown, Unavailable
from ...ports.kyc import NoAnswer
from ..wrapping import OPERATIONS, Call, Does, with_providers, wrapped

P = TypeVar("P")

LIMIT = 20.0
"""Seconds that one call to a provider may take. Adapters that give up sooner are heard sooner."""

_CLOSING = 1.0
"""Seconds that calls under way get to end when the house is closed."""

_CALLERS_FAULT: Mapping[str, type[Exception]] = {"lookup": ValueError}
"""What an operation raises beyond faults for what it is given (ports/chain.py)."""

log = logging.getLogger("cambist.providers")


class NotInTime(TimeoutError):
    """No answer came within the limit: the cause of the fault that the caller sees."""


class Guard:
    """Stands around the adapters of one house."""

    def __init__(self, clock: Clock, *, limit: float = LIMIT) -> None:
        """`clock`: the machine's, so that a test account's time that is advanced ends no call."""
        self._clock = clock
        self._limit = limit
        self._under_way: set[asyncio.Task[Any]] = set()

    def over(self, port: str, adapter: P) -> P:
        """The adapter, with its operations guarded."""
        provider = str(getattr(adapter, "name", port))

        def guarded(operation: str, call: Call) -> Call:
            asked = _Asked(port, provider, operation)

            async def ask(*given: Any, **named: Any) -> Any:
                return await self._answer(asked, call, given, named)

            return ask

        return wrapped(adapter, OPERATIONS[port], guarded)

    async def close(self) -> None:
        """End the calls under way. Who does not let itself be ended is left alone."""
        for task in self._under_way:
            task.cancel()
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=_CLOSING)

    async def _answer(self, asked: "_Asked", call: Call, given: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """In a task of its own, so that a call which cannot be cancelled holds nobody."""
        loop = asyncio.get_running_loop()
        task = loop.create_task(call(*given, **named))
        self._under_way.add(task)
        ended: asyncio.Future[None] = loop.create_future()

        def end(_: object = None) -> None:
            if not ended.done():
                ended.set_result(None)

        task.add_done_callback(self._under_way.discard)
        task.add_done_callback(end)
        begun = self._clock.monotonic()
        alarm = self._clock.call_later(self._limit, end)
        try:
            await ended
        finally:
            alarm.cancel()
            if not task.done():
                task.cancel()
                task.add_done_callback(lambda done: self._late(asked, done, begun))
        if not task.done():
            log.warning("%s gave no answer within %.0f s", asked, self._limit)
            raise asked.unheard(f"no answer within {self._limit:.0f} s", silent=True) from NotInTime()
        if task.cancelled():
            log.error("%s was cancelled by its own adapter", asked)
            raise asked.unheard("cancelled by its own adapter")
        fault = task.exception()
        if fault is None:
            return task.result()
        if isinstance(fault, Fault) or not isinstance(fault, Exception) or asked.expects(fault):
            raise fault
        # What it says may hold what belongs in no log; where it happened does not.
        log.error("%s raised %s\n%s", asked, type(fault).__name__, "".join(traceback.format_tb(fault.__traceback__)))
        raise asked.unheard(f"its adapter raised {type(fault).__name__}") from None

    def _late(self, asked: "_Asked", task: "asyncio.Task[Any]", begun: float) -> None:
        """Nobody waits any more: what came is dropped. The same operation is asked for, or sent again, later."""
        if task.cancelled():
            return
        how = "an answer" if task.exception() is None else type(task.exception()).__name__
        took = self._clock.monotonic() - begun
        log.warning("%s came to an end after %.0f s with %s, which nobody waited for: dropped", asked, took, how)


class _Asked:
    """An operation of a provider, as logs and faults name it."""

    def __init__(self, port: str, provider: str, operation: str) -> None:
        self._named = f"{port} {provider}: {operation}"
        self._operation = operation
        self._writes = OPERATIONS[port][operation] is Does.WRITE
        self._silent: Callable[[str], Fault] = NoAnswer if port == "kyc" else Unavailable

    def __str__(self) -> str:
        return self._named

    def expects(self, fault: Exception) -> bool:
        """Whether the operation may raise this for what it was given."""
        return isinstance(fault, _CALLERS_FAULT.get(self._operation, ()))

    def unheard(self, why: str, *, silent: bool = False) -> Fault:
        """The fault of a call whose end is not known. `silent`: nothing at all was heard."""
        message = f"{self._named}: {why}"
        if self._writes:
            return OutcomeUnknown(message)
        return self._silent(message) if silent else Unavailable(message)


def guarded_ports(guard: Guard, ports: Ports) -> Ports:
    """The ports with those to providers guarded."""
    return with_providers(ports, guard.over)

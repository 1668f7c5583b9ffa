"""Reads the health of the service every 15 s and keeps the last result for scrapes. A scrape never touches the storage,
so it answers at once even during an outage."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from ...core.usecases.alarms.channels import channels_failing
from ...core.usecases.common.quarantine import read_hold
from ...core.usecases.gateways.gateways import ShownGateway
from ...core.usecases.ledger.watch import ledger_faults
from ...core.usecases.notification_addresses import last_received
from ...core.usecases.operators import probes
from ...core.usecases.operators.health import Question
from ...core.usecases.operators.probes import SettlementSigns, Unknown, Waiting
from ...core.usecases.operators.unreadable import count_unreadable
from ...core.usecases.reconciliation.signs import ReconciliationSigns, days_not_compared, reconciliation_signs
from ...ports.bundle import Ports
from .counters import Counters

EVERY = 15.0
"""Seconds between two readings."""
LEDGER_EVERY = 4
"""Every fourth reading checks the ledger."""
PATIENCE = 5.0
"""Timeout of one query, in seconds."""
BEAT = 0.5
"""Seconds between two measurements of the loop's delay."""

T = TypeVar("T")

log = logging.getLogger("cambist.telemetry")


class Signs(msgspec.Struct, frozen=True, kw_only=True):
    """One reading. Values that could not be read are null or absent, never old."""

    read_at: float
    """Monotonic time of the clock."""
    up: dict[str, bool]
    clock_offset: float | None = None
    """Seconds."""
    queue_age: float | None = None
    jobs_due: int | None = None
    waiting: tuple[Waiting, ...] = ()
    breakers_open: int | None = None
    gateways: tuple[ShownGateway, ...] = ()
    suspense: int | None = None
    unknown: tuple[Unknown, ...] = ()
    settlements: tuple[SettlementSigns, ...] = ()
    notifications: dict[str, datetime] = msgspec.field(default_factory=dict)
    """Time of the last notification of each provider."""
    alarm_channels: dict[str, float] = msgspec.field(default_factory=dict)
    """Seconds for which each channel has been failing; 0 if it works."""
    reconciliations: tuple[ReconciliationSigns, ...] = ()
    days_not_compared: int | None = None
    held: bool | None = None
    unreadable: int | None = None
    ledger_faults: int | None = None


class Reader:
    """Takes readings one after another."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._readings = 0
        self._questions: dict[str, Question[Any]] = {}
        self._ledger: int | None = None
        self.signs: Signs | None = None
        """The last reading."""

    async def read(self) -> None:
        """Take a reading. Never raises, and takes at most a few times `PATIENCE`."""
        ports = self._ports
        storage, meter, queue = await asyncio.gather(
            self._told("storage", lambda: _check(ports)),
            self._told("meter", ports.counters.works),
            self._told("queue", ports.queue.works),
        )
        up = {"storage": storage is True, "meter": meter is True, "queue": queue is True}
        read_at = ports.clock.monotonic()
        self.signs = await self._from_storage(read_at, up) if up["storage"] else Signs(read_at=read_at, up=up)
        self._readings += 1

    async def _from_storage(self, read_at: float, up: dict[str, bool]) -> Signs:
        ports, told = self._ports, self._told
        due, waiting = await told("waiting", lambda: probes.waiting_jobs(ports)) or (None, ())
        if self._readings % LEDGER_EVERY == 0 or self._ledger is None:
            self._ledger = await self._look_at_ledger()
        return Signs(
            read_at=read_at,
            up=up,
            clock_offset=await told("clock", lambda: _clock_offset(ports)),
            queue_age=await told("lateness", lambda: probes.lateness(ports)),
            jobs_due=due,
            waiting=waiting,
            breakers_open=await told("breakers", lambda: probes.open_breakers(ports)),
            gateways=tuple(await told("gateways", lambda: probes.gateways(ports)) or ()),
            suspense=await told("suspense", lambda: probes.waiting_suspense(ports)),
            unknown=await told("unknown", lambda: probes.unknown_outcomes(ports)) or (),
            settlements=await told("settlements", lambda: probes.settlements(ports)) or (),
            notifications=await told("notifications", lambda: last_received(ports)) or {},
            alarm_channels=await told("alarms", lambda: channels_failing(ports)) or {},
            reconciliations=await told("reconciliation", lambda: reconciliation_signs(ports)) or (),
            days_not_compared=await told("comparisons", lambda: days_not_compared(ports)),
            held=await told("held", lambda: _is_held(ports)),
            unreadable=await told("unreadable", lambda: count_unreadable(ports)),
            ledger_faults=self._ledger,
        )

    async def _look_at_ledger(self) -> int | None:
        faults = await self._told("ledger", lambda: ledger_faults(self._ports))
        for fault in faults or ():
            log.error("the ledger does not hold: %s", fault)
        return None if faults is None else len(faults)

    async def _told(self, name: str, ask: Callable[[], Awaitable[T]]) -> T | None:
        """Return the result, or None if the query fails or takes too long."""
        question: Question[T] = self._questions.setdefault(name, Question(ask))
        try:
            return await question.answer(PATIENCE)
        except Exception as fault:  # noqa: BLE001 - what cannot be read must not end the reading of all else
            log.info("a reading for the metrics failed: %s", type(fault).__name__)
            return None


async def _check(ports: Ports) -> bool:
    await ports.storage.check()
    return True


async def _clock_offset(ports: Ports) -> float:
    return (await probes.clock_offset(ports)).total_seconds()


async def _is_held(ports: Ports) -> bool:
    return await read_hold(ports) is not None


@asynccontextmanager
async def reading(ports: Ports, reader: Reader, counters: Counters) -> AsyncIterator[None]:
    """Take readings and measure the loop's delay while the block runs. The first reading starts at once."""

    async def read() -> None:
        while True:
            await reader.read()
            await ports.clock.sleep(EVERY)

    async def beat() -> None:
        last = 0.0
        while True:
            worst = 0.0
            for _ in range(int(EVERY / BEAT)):
                before = ports.clock.monotonic()
                await ports.clock.sleep(BEAT)
                worst = max(worst, ports.clock.monotonic() - before - BEAT)
                # Include the previous interval, so that a scrape right after its end still sees its maximum.
                counters.loop_lag = max(worst, last)
            last = worst

    tasks = [asyncio.create_task(read()), asyncio.create_task(beat())]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

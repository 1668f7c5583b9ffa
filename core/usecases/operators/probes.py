"""State of the service for monitors, dashboards and `/health`. Each read costs the same however much is stored."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import AtLeast, AtMost, Between
from ...domain.accounts.accounts import Mode
from ...domain.gateways.gateways import GatewayStatus
from ...domain.payments.outcomes import Operation, UnknownOutcome
from ...domain.payments.suspense import Suspense
from ...domain.settlement.settlement import SettlementBatch
from ...domain.webhooks.breaker import Breaker
from ..gateways.gateways import ShownGateway, list_gateways
from ..gateways.outcomes import told_from
from ..settlement.settlement import DAILY

COUNTED = 1000
"""Number of due jobs that are counted by kind, longest due first. Further jobs are only part of the total."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SETTLEMENT_DAYS = 8
"""Maximum age of a settlement that is reported, in days."""


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """Due jobs of one kind without a worker."""

    kind: str
    jobs: int
    lateness: float
    """Seconds since the oldest of them became due."""


class Unknown(msgspec.Struct, frozen=True, kw_only=True):
    """Number of operations of one kind with an unknown outcome."""

    mode: Mode
    operation: Operation
    count: int


class SettlementSigns(msgspec.Struct, frozen=True, kw_only=True):
    """State of the settlements of a mode."""

    mode: Mode
    completed_at: datetime | None
    """Last completion of a settlement within the last week."""
    lateness: float
    """Seconds by which the daily settlement is late, or since an open one began. Zero when neither applies."""


CLOCK_OFF = timedelta(seconds=30)
"""Maximum difference between this machine's clock and the storage's. If ours is ahead, jobs that are due at once start
late by the difference. Beyond this limit rates from the future are refused; receivers refuse signatures from 5 min on.
"""


async def clock_offset(ports: Ports) -> timedelta:
    """Return by how much the storage's clock, which decides when jobs are due, is ahead of this machine's. Negative
    when it is behind."""
    before = ports.clock.now()
    storages = await ports.storage.now()
    return storages - (before + (ports.clock.now() - before) / 2)


async def lateness(ports: Ports) -> float:
    """Return the seconds since the oldest due job without a worker became due. Zero when no job is due. Running workers
    keep it near zero."""
    due = await ports.storage.next_due()
    if due is None:
        return 0.0
    return max((await ports.storage.now() - due).total_seconds(), 0.0)


async def waiting_jobs(ports: Ports) -> tuple[int, tuple[Waiting, ...]]:
    """Return the number of due jobs, including those in the hands of workers, and for the `COUNTED` longest due the
    jobs without a worker, by kind."""
    now = await ports.storage.now()
    async with ports.storage.unit() as unit:
        found = await unit[Job].find(order="due", limit=COUNTED, readable=True, due=AtMost(now))
        total = len(found) if len(found) < COUNTED else await unit[Job].total(due=AtMost(now))
    oldest: dict[str, list[datetime]] = {}
    for job in found:
        if job.leased_until is None or job.leased_until <= now:
            oldest.setdefault(job.kind, []).append(job.due)
    return total, tuple(
        Waiting(kind=kind, jobs=len(due), lateness=(now - due[0]).total_seconds()) for kind, due in oldest.items()
    )


async def open_breakers(ports: Ports) -> int:
    """Return the number of receivers to which nothing is sent because they do not answer well."""
    async with ports.storage.unit() as unit:
        return await unit[Breaker].total(next_probe_at=AtLeast(_EPOCH))


async def waiting_suspense(ports: Ports) -> int:
    """Return the number of suspended transfers that wait for an operator."""
    async with ports.storage.unit() as unit:
        return await unit[Suspense].total(resolved_at=None)


async def unknown_outcomes(ports: Ports) -> tuple[Unknown, ...]:
    """Return the number of bank operations with an unknown outcome. Operations too old to be reported to operators are
    left out."""
    now = ports.clock.now()
    async with ports.storage.unit() as unit:
        return tuple(
            [
                Unknown(
                    mode=mode,
                    operation=operation,
                    count=await unit[UnknownOutcome].total(
                        mode=mode, operation=operation, created_at=AtLeast(told_from(operation, now))
                    ),
                )
                for mode in Mode
                for operation in Operation
            ]
        )


async def gateways(ports: Ports) -> list[ShownGateway]:
    """Return every gateway of both modes, with its state for all accounts."""
    return [gateway for mode in Mode for gateway in await list_gateways(ports, mode)]


def without_gateway(shown: Sequence[ShownGateway]) -> tuple[Mode, ...]:
    """Return the modes in which every gateway is down, so payments are unlikely to succeed."""
    return tuple(
        mode
        for mode in Mode
        if any(each.mode is mode for each in shown)
        and all(each.status is GatewayStatus.DOWN for each in shown if each.mode is mode)
    )


async def settlements(ports: Ports) -> tuple[SettlementSigns, ...]:
    """Return the state of the settlements of each mode. Settlements of single accounts in test mode are left out."""
    now = ports.clock.now()
    async with ports.storage.unit() as unit:
        daily = await unit[Job].get(DAILY)
        overdue = 0.0 if daily is None else (now - daily.due).total_seconds()
        signs = []
        for mode in Mode:
            days = [(now + timedelta(days=days)).date() for days in (-_SETTLEMENT_DAYS, 2)]
            found = await unit[SettlementBatch].find(id=Between(*(f"{mode}:{day}" for day in days)))
            begun = [batch.started_at for batch in found if batch.completed_at is None]
            late = max([overdue, 0.0, *((now - started).total_seconds() for started in begun)])
            done = [batch.completed_at for batch in found if batch.completed_at is not None]
            signs.append(SettlementSigns(mode=mode, completed_at=max(done, default=None), lateness=late))
    return tuple(signs)

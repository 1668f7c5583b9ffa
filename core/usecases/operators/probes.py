"""How the service does, in reads that cost the same however much it holds: for monitors, dashboards, `/health`."""

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
"""Due jobs that are told apart by kind, the longest due first. What lies behind them is only counted as a whole."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SETTLEMENT_DAYS = 8
"""How far back a settlement is looked for."""


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of one kind that are due and that no worker has in hand."""

    kind: str
    jobs: int
    lateness: float
    """Seconds since the oldest of them fell due."""


class Unknown(msgspec.Struct, frozen=True, kw_only=True):
    """How many operations of one kind have an unknown outcome."""

    mode: Mode
    operation: Operation
    count: int


class SettlementSigns(msgspec.Struct, frozen=True, kw_only=True):
    """How the settlements of a mode do."""

    mode: Mode
    completed_at: datetime | None
    """When one was last completed, of the last week."""
    lateness: float
    """Seconds by which opening the daily one is late, or since an open one began; zero when nothing is open."""


CLOCK_OFF = timedelta(seconds=30)
"""How far this machine's clock and the storage's may differ. Where ours is ahead, what is due at once is begun so much
later. Rates of the future are refused from here on, signatures by receivers from 5 min."""


async def clock_offset(ports: Ports) -> timedelta:
    """How far the storage's clock, by which jobs are due, is ahead of this machine's; below zero: behind it."""
    before = ports.clock.now()
    storages = await ports.storage.now()
    return storages - (before + (ports.clock.now() - before) / 2)


async def lateness(ports: Ports) -> float:
    """Seconds since the oldest job fell due that no worker has in hand; zero when none is due. Workers at work keep
    this near zero."""
    due = await ports.storage.next_due()
    if due is None:
        return 0.0
    return max((await ports.storage.now() - due).total_seconds(), 0.0)


async def waiting_jobs(ports: Ports) -> tuple[int, tuple[Waiting, ...]]:
    """How many jobs are due, those in hand included, and of the `COUNTED` longest due which wait for a worker."""
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
    """How many receivers are not sent to, because they do not answer well."""
    async with ports.storage.unit() as unit:
        return await unit[Breaker].total(next_probe_at=AtLeast(_EPOCH))


async def waiting_suspense(ports: Ports) -> int:
    """How many sums of money wait for an operator."""
    async with ports.storage.unit() as unit:
        return await unit[Suspense].total(resolved_at=None)


async def unknown_outcomes(ports: Ports) -> tuple[Unknown, ...]:
    """Of how many operations at banks nobody knows what became of them, those that operators need not be told of any
    more left out."""
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
    """Every gateway of both modes, as it is for all accounts."""
    return [gateway for mode in Mode for gateway in await list_gateways(ports, mode)]


def without_gateway(shown: Sequence[ShownGateway]) -> tuple[Mode, ...]:
    """The modes in which every gateway is down, so that no payment can be taken with confidence."""
    return tuple(
        mode
        for mode in Mode
        if any(each.mode is mode for each in shown)
        and all(each.status is GatewayStatus.DOWN for each in shown if each.mode is mode)
    )


async def settlements(ports: Ports) -> tuple[SettlementSigns, ...]:
    """How the settlements of each mode do; accounts' own ones in test mode are not among them."""
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

"""Health: `/health` for monitors, `/livez` and `/readyz` for whatever starts and stops the process."""

import asyncio
import logging
from collections.abc import Callable

import msgspec
from litestar import Response, get
from litestar.handlers import HTTPRouteHandler

from ...core.domain.days import iso
from ...core.usecases.health import EVERY, LOOKED_AT_EVERY, PARTS, SIGNS, Rule
from ...ports.bundle import Ports
from ...ports.faults import Fault
from .answers import answer

PATIENCE = 2.0
"""Seconds after which a part that does not answer does not work."""

log = logging.getLogger("cambist.health")


class Health(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """SPEC "Conventions", health check. `core` tells of the storage, without which nothing works."""

    status: str
    timestamp: str
    core: str
    degraded: list[str] = msgspec.field(default_factory=list)
    """What does not work as it should, by the words of core/usecases/health.py; absent when all is well. But for
    `storage`, payments may go on."""


async def storage_works(ports: Ports) -> bool:
    """Whether the storage reads and writes: a full disk shows here."""
    try:
        await ports.storage.check()
    except Fault as fault:
        log.warning("the storage does not work: %s", fault)
        return False
    return True


class _Looked:
    """One rule's answer, kept for a while; those who ask at the same time wait for the same look."""

    def __init__(self, ports: Ports, name: str, rule: Rule) -> None:
        self._ports = ports
        self._name = name
        self._rule = rule
        self._answer: asyncio.Task[bool] | None = None
        self._asked_at = 0.0

    async def is_well(self) -> bool:
        now = self._ports.clock.monotonic()
        kept_for = LOOKED_AT_EVERY.get(self._name, EVERY)
        fresh = self._answer is not None and (not self._answer.done() or now - self._asked_at < kept_for)
        if self._answer is None or not fresh:
            self._asked_at = now
            self._answer = asyncio.create_task(self._look())
        # Who goes away while it looks takes the answer from nobody.
        return await asyncio.shield(self._answer)

    async def _look(self) -> bool:
        try:
            async with asyncio.timeout(PATIENCE):
                well = await self._rule(self._ports)
        except Exception as fault:  # noqa: BLE001 - whatever it is, the monitor gets its 503
            log.warning("health: %s cannot be told: %s", self._name, str(fault) or type(fault).__name__)
            return False
        if not well:
            log.warning("health: %s is not well", self._name)
        return well


class _Doctor:
    """Asks all rules; those that need the storage only while it works."""

    def __init__(self, ports: Ports) -> None:
        self._parts = {name: _Looked(ports, name, rule) for name, rule in PARTS.items()}
        self._signs = {name: _Looked(ports, name, rule) for name, rule in SIGNS.items()}

    async def degraded(self) -> list[str]:
        """The names of the rules by which something is not well."""
        found = await _not_well(self._parts)
        return found if "storage" in found else found + await _not_well(self._signs)


async def _not_well(looked: dict[str, _Looked]) -> list[str]:
    well = await asyncio.gather(*(each.is_well() for each in looked.values()))
    return [name for name, is_well in zip(looked, well, strict=True) if not is_well]


def health_handlers(ports: Ports, is_leaving: Callable[[], bool] = lambda: False) -> list[HTTPRouteHandler]:
    """GET /health (also under /api/v1), /livez, /readyz; none needs a key. One that `is_leaving` is not ready."""
    doctor = _Doctor(ports)

    @get(["/health", "/api/v1/health"])
    async def health() -> Response[bytes]:
        degraded = await doctor.degraded()
        view = Health(
            status="degraded" if degraded else "ok",
            timestamp=iso(ports.clock.now()),
            core="degraded" if "storage" in degraded else "ok",
            degraded=degraded,
        )
        return answer(view, status=503 if degraded else 200)

    @get("/livez")
    async def livez() -> Response[bytes]:
        return answer({"status": "ok"})

    @get("/readyz")
    async def readyz() -> Response[bytes]:
        if is_leaving():
            return answer({"status": "leaving"}, status=503)
        # The storage alone: a balancer that goes by this must not take every process out while Redis is away.
        ready = await storage_works(ports)
        return answer({"status": "ok" if ready else "degraded"}, status=200 if ready else 503)

    return [health, livez, readyz]

"""Health: `/health` for monitors, `/livez` and `/readyz` for whatever starts and stops the process."""

import asyncio
import logging

import msgspec
from litestar import Response, get
from litestar.handlers import HTTPRouteHandler

from ...core.domain.days import iso
from ...ports.bundle import Ports
from ...ports.faults import Fault
from .answers import answer

log = logging.getLogger("cambist.health")


class Health(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """SPEC "Conventions", health check. `core` tells of the storage, without which nothing works."""

    status: str
    timestamp: str
    core: str
    degraded: list[str] = msgspec.field(default_factory=list)
    """What does not work as it should: `storage`, `meter` (each process counts requests by itself), `queue` (jobs are
    found a second later). Absent when all is well. Without meter and queue payments go on."""


async def storage_works(ports: Ports) -> bool:
    """Whether the storage reads and writes: a full disk shows here."""
    try:
        await ports.storage.check()
    except Fault as fault:
        log.warning("the storage does not work: %s", fault)
        return False
    return True


def health_handlers(ports: Ports) -> list[HTTPRouteHandler]:
    """GET /health (also under /api/v1), /livez, /readyz; none needs a key."""

    @get(["/health", "/api/v1/health"])
    async def health() -> Response[bytes]:
        storage, meter, queue = await asyncio.gather(storage_works(ports), ports.meter.works(), ports.queue.works())
        works = {"storage": storage, "meter": meter, "queue": queue}
        degraded = [name for name, is_well in works.items() if not is_well]
        view = Health(
            status="degraded" if degraded else "ok",
            timestamp=iso(ports.clock.now()),
            core="ok" if storage else "degraded",
            degraded=degraded,
        )
        return answer(view, status=503 if degraded else 200)

    @get("/livez")
    async def livez() -> Response[bytes]:
        return answer({"status": "ok"})

    @get("/readyz")
    async def readyz() -> Response[bytes]:
        # The storage alone: a balancer that goes by this must not take every process out while Redis is away.
        ready = await storage_works(ports)
        return answer({"status": "ok" if ready else "degraded"}, status=200 if ready else 503)

    return [health, livez, readyz]

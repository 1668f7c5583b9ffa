"""Health: `/health` for monitors, `/livez` and `/readyz` for whatever starts and stops the process."""

import logging

import msgspec
from litestar import Response, get
from litestar.handlers import HTTPRouteHandler

from ...core.domain.days import iso
from ...ports.bundle import Ports
from ...ports.faults import Fault
from .answers import answer

log = logging.getLogger("cambist.health")


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """SPEC "Conventions", health check."""

    status: str
    timestamp: str
    core: str


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
        core = "ok" if await storage_works(ports) else "degraded"
        view = Health(status=core, timestamp=iso(ports.clock.now()), core=core)
        return answer(view, status=200 if core == "ok" else 503)

    @get("/livez")
    async def livez() -> Response[bytes]:
        return answer({"status": "ok"})

    @get("/readyz")
    async def readyz() -> Response[bytes]:
        ready = await storage_works(ports)
        return answer({"status": "ok" if ready else "degraded"}, status=200 if ready else 503)

    return [health, livez, readyz]

"""Health checks: `/health` for monitors, `/livez` and `/readyz` for process managers and load balancers."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec
from litestar.types import ASGIApp
from msgspec import Meta

from ...core.domain import shared_fields as shared
from ...core.domain.days import iso
from ...core.usecases.operators.health import (
    EVERY,
    LOOKED_AT_EVERY,
    PARTS,
    SIGNS,
    STORAGE,
    UNKNOWN,
    VAULT,
    Question,
    Rule,
)
from ...ports.bundle import Ports
from .edge.answers import answer
from .edge.operation import ApiRequest, Operation

PATIENCE = 1.9
"""Seconds after which a part without an answer counts as failed. All checks of one request share this time, so monitors
and balancers get an answer within 2 s whatever hangs."""
STALE = 60.0
"""Seconds for which a sign's last answer stays valid while the next one is late."""

log = logging.getLogger("cambist.health")


class Health(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer of /health (docs/operations.md "Health rules"). `core` is the state of the storage, without which
    nothing works."""

    status: Annotated[str, shared.STATUS]
    timestamp: Annotated[str, shared.TIMESTAMP]
    core: Annotated[str, Meta(description="`ok` or `degraded`: the state of the storage")]
    degraded: Annotated[list[str], Meta(description="Parts that do not work")] = msgspec.field(default_factory=list)
    """Degraded parts, by their names in core/usecases/operators/health.py; absent when all is well. Payments may still
    work unless `storage` is among them."""


class _Looked:
    """The cached answer of one rule. Concurrent requests share one check."""

    def __init__(self, ports: Ports, name: str, rule: Rule) -> None:
        self.name = name
        self._clock = ports.clock
        self._question = Question(lambda: rule(ports))
        self._asked_at = 0.0
        self._kept_until = 0.0
        self._well: bool | None = None

    async def is_well(self, within: float) -> bool | None:
        """Return whether the rule holds, from the cache or from a check that ends within `within` seconds.

        None: the check failed, or its last answer is older than STALE.
        """
        now = self._clock.monotonic()
        if now < self._kept_until and not self._question.is_under_way:
            return self._well
        if not self._question.is_under_way:
            self._asked_at = now
        kept_for = LOOKED_AT_EVERY.get(self.name, EVERY)
        try:
            well = await self._question.answer(within)
        except TimeoutError:
            log.warning("health: %s gives no answer in time", self.name)
            return self._well if now - self._kept_until < STALE else None
        except Exception as fault:  # noqa: BLE001 - whatever it is, the monitor gets its 503
            log.warning("health: %s cannot be told: %s", self.name, str(fault) or type(fault).__name__)
            self._well, kept_for = None, EVERY
        else:
            if not well:
                log.warning("health: %s is not well", self.name)
            self._well = well
        self._kept_until = self._asked_at + kept_for
        return self._well


class Doctor:
    """Checks all rules. The signs are read from the storage, so they are checked only while it works."""

    def __init__(self, ports: Ports) -> None:
        self._parts = [_Looked(ports, name, rule) for name, rule in PARTS.items() if name != STORAGE]
        self._signs = [_Looked(ports, name, rule) for name, rule in SIGNS.items()]
        self._storage = _Looked(ports, STORAGE, PARTS[STORAGE])
        self._vault = next(each for each in self._signs if each.name == VAULT)

    async def degraded(self) -> list[str]:
        """Return the names of the failed rules, within PATIENCE."""
        # A part without an answer counts as failed. The signs are checked concurrently with the other parts, because a
        # part that hangs would leave them no time.
        signs, parts = await asyncio.gather(self._asked_of_the_storage(), _ask(self._parts, PATIENCE))
        if signs is None:
            return [STORAGE, *(name for name, well in parts if not well)]
        known = [name for name, well in (*parts, *signs) if well is False]
        silent = [name for name, well in parts if well is None]
        unknown = [UNKNOWN] if any(well is None for _, well in signs) else []
        return [*(name for name in (*PARTS, *SIGNS) if name in known or name in silent), *unknown]

    async def _asked_of_the_storage(self) -> "list[tuple[str, bool | None]] | None":
        """Return the signs; None if the storage does not work."""
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE
        if not await self._storage.is_well(PATIENCE):
            return None
        return await _ask(self._signs, until - loop.time())

    async def is_ready(self) -> bool:
        """Return whether the storage reads and writes (it cannot write on a full disk), and our keys match the
        database."""
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE
        if not await self._storage.is_well(PATIENCE):
            return False
        return await self._vault.is_well(until - loop.time()) is not False


async def _ask(looked: Sequence[_Looked], within: float) -> "list[tuple[str, bool | None]]":
    well = await asyncio.gather(*(each.is_well(within) for each in looked))
    return [(each.name, is_well) for each, is_well in zip(looked, well, strict=True)]


async def get_health(ports: Ports, _: None, request: ApiRequest[None]) -> ASGIApp:
    """Handle GET /health, also under /api/v1."""
    degraded = await request.context.degraded()
    view = Health(
        status="degraded" if degraded else "ok",
        timestamp=iso(ports.clock.now()),
        core="degraded" if "storage" in degraded else "ok",
        degraded=degraded,
    )
    return answer(view, status=503 if degraded else 200)


_MEANING = "Check whether the service works; needs no key"

HEALTH = (
    Operation("get_health", "get", "/health", "Health", _MEANING, get_health, answer=Health, failing=503, keyed=False),
    Operation(
        "get_api_health",
        "get",
        "/api/v1/health",
        "Health",
        _MEANING,
        get_health,
        answer=Health,
        failing=503,
        keyed=False,
    ),
)


def probes(doctor: Doctor, is_leaving: Callable[[], bool]) -> tuple[Operation[None], ...]:
    """Return GET /livez and /readyz, which need no key. The process is not ready while `is_leaving`. Both are for
    operators and not part of the OpenAPI document."""

    async def livez(_: Ports, __: None, ___: ApiRequest[None]) -> ASGIApp:
        return answer({"status": "ok"})

    async def readyz(_: Ports, __: None, ___: ApiRequest[None]) -> ASGIApp:
        if is_leaving():
            return answer({"status": "leaving"}, status=503)
        # Redis is not checked: a balancer that follows this check would take out every process while Redis is
        # unavailable.
        ready = await doctor.is_ready()
        return answer({"status": "ok" if ready else "degraded"}, status=200 if ready else 503)

    return (
        Operation("live", "get", "/livez", "Health", "Whether the process answers", livez, keyed=False),
        Operation("ready", "get", "/readyz", "Health", "Whether it takes requests", readyz, keyed=False),
    )

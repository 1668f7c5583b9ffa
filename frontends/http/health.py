"""Health: `/health` for monitors, `/livez` and `/readyz` for whatever starts and stops the process."""

import asyncio
import logging
from collections.abc import Callable

import msgspec
from litestar.types import ASGIApp

from ...core.domain.days import iso
from ...core.usecases.operators.health import EVERY, LOOKED_AT_EVERY, PARTS, SIGNS, Question, Rule
from ...ports.bundle import Ports
from .door.answers import answer
from .door.operation import ApiRequest, Operation

PATIENCE = 1.9
"""Seconds after which a part that does not answer does not work. All that one request asks has no more: monitors and
balancers are told within 2 s, whatever hangs."""

log = logging.getLogger("cambist.health")


class Health(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer of /health (docs/operations.md "Health rules"). `core` tells of the storage, without which nothing
    works."""

    status: str
    timestamp: str
    core: str
    degraded: list[str] = msgspec.field(default_factory=list)
    """What does not work as it should, by the words of core/usecases/operators/health.py; absent when all is well. But
    for `storage`, payments may go on."""


class _Looked:
    """One rule's answer, kept for a while; those who ask at the same time wait for the same look."""

    def __init__(self, ports: Ports, name: str, rule: Rule) -> None:
        self._clock = ports.clock
        self._name = name
        self._question = Question(lambda: rule(ports))
        self._asked_at = 0.0
        self._kept_until = 0.0
        self._was_well = False

    async def is_well(self, within: float) -> bool:
        """By an answer that is kept, or one that comes within so many seconds."""
        now = self._clock.monotonic()
        if now < self._kept_until and not self._question.is_under_way:
            return self._was_well
        if not self._question.is_under_way:
            self._asked_at = now
        kept_for = LOOKED_AT_EVERY.get(self._name, EVERY)
        try:
            well = await self._question.answer(within)
        except Exception as fault:  # noqa: BLE001 - whatever it is, the monitor gets its 503
            log.warning("health: %s cannot be told: %s", self._name, str(fault) or type(fault).__name__)
            well, kept_for = False, EVERY
        else:
            if not well:
                log.warning("health: %s is not well", self._name)
        self._was_well, self._kept_until = well, self._asked_at + kept_for
        return well


class Doctor:
    """Asks all rules; those that need the storage only while it works."""

    def __init__(self, ports: Ports) -> None:
        self._parts = {name: _Looked(ports, name, rule) for name, rule in PARTS.items()}
        self._signs = {name: _Looked(ports, name, rule) for name, rule in SIGNS.items()}

    async def degraded(self) -> list[str]:
        """The names of the rules by which something is not well, within PATIENCE."""
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE
        found = await _not_well(self._parts, PATIENCE)
        return found if "storage" in found else found + await _not_well(self._signs, until - loop.time())

    async def storage_works(self) -> bool:
        """Whether the storage reads and writes: a full disk shows here."""
        return await self._parts["storage"].is_well(PATIENCE)


async def _not_well(looked: dict[str, _Looked], within: float) -> list[str]:
    well = await asyncio.gather(*(each.is_well(within) for each in looked.values()))
    return [name for name, is_well in zip(looked, well, strict=True) if not is_well]


async def get_health(ports: Ports, _: None, request: ApiRequest[None]) -> ASGIApp:
    """GET /health, also under /api/v1."""
    degraded = await request.context.degraded()
    view = Health(
        status="degraded" if degraded else "ok",
        timestamp=iso(ports.clock.now()),
        core="degraded" if "storage" in degraded else "ok",
        degraded=degraded,
    )
    return answer(view, status=503 if degraded else 200)


_MEANING = "Whether the service works; needs no key"

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
    """GET /livez and /readyz; neither needs a key. One that `is_leaving` is not ready. They are for whoever runs the
    service, and no part of its description."""

    async def livez(_: Ports, __: None, ___: ApiRequest[None]) -> ASGIApp:
        return answer({"status": "ok"})

    async def readyz(_: Ports, __: None, ___: ApiRequest[None]) -> ASGIApp:
        if is_leaving():
            return answer({"status": "leaving"}, status=503)
        # The storage alone: a balancer that goes by this must not take every process out while Redis is away.
        ready = await doctor.storage_works()
        return answer({"status": "ok" if ready else "degraded"}, status=200 if ready else 503)

    return (
        Operation("live", "get", "/livez", "Health", "Whether the process answers", livez, keyed=False),
        Operation("ready", "get", "/readyz", "Health", "Whether it takes requests", readyz, keyed=False),
    )

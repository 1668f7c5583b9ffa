"""Health: `/health` for monitors, `/livez` and `/readyz` for whatever starts and stops the process."""

import asyncio
import logging
from collections.abc import Callable, Sequence

import msgspec
from litestar.types import ASGIApp

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
from .door.answers import answer
from .door.operation import ApiRequest, Operation

PATIENCE = 1.9
"""Seconds after which a part that does not answer does not work. All that one request asks has no more: monitors and
balancers are told within 2 s, whatever hangs."""
STALE = 60.0
"""Seconds for which a sign's last answer counts while the next one does not come in time."""

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
    """The answer to one rule, kept for a while. Requests at the same time share one question."""

    def __init__(self, ports: Ports, name: str, rule: Rule) -> None:
        self.name = name
        self._clock = ports.clock
        self._question = Question(lambda: rule(ports))
        self._asked_at = 0.0
        self._kept_until = 0.0
        self._well: bool | None = None

    async def is_well(self, within: float) -> bool | None:
        """Whether all is well, by an answer that is kept or comes within so many seconds.

        None: the question failed, or the last answer to it is older than STALE.
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
    """Asks all rules. The signs, which are read from the storage, are asked only while it works."""

    def __init__(self, ports: Ports) -> None:
        self._parts = [_Looked(ports, name, rule) for name, rule in PARTS.items() if name != STORAGE]
        self._signs = [_Looked(ports, name, rule) for name, rule in SIGNS.items()]
        self._storage = _Looked(ports, STORAGE, PARTS[STORAGE])
        self._vault = next(each for each in self._signs if each.name == VAULT)

    async def degraded(self) -> list[str]:
        """Return the names of the rules by which something is not well, within PATIENCE."""
        # A part that gives no answer does not work. Signs are asked beside the other parts, because a part that hangs
        # would leave them no time.
        signs, parts = await asyncio.gather(self._asked_of_the_storage(), _ask(self._parts, PATIENCE))
        if signs is None:
            return [STORAGE, *(name for name, well in parts if not well)]
        known = [name for name, well in (*parts, *signs) if well is False]
        silent = [name for name, well in parts if well is None]
        unknown = [UNKNOWN] if any(well is None for _, well in signs) else []
        return [*(name for name in (*PARTS, *SIGNS) if name in known or name in silent), *unknown]

    async def _asked_of_the_storage(self) -> "list[tuple[str, bool | None]] | None":
        """The signs; None where the storage does not work."""
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE
        if not await self._storage.is_well(PATIENCE):
            return None
        return await _ask(self._signs, until - loop.time())

    async def is_ready(self) -> bool:
        """Whether the storage reads and writes, which a full disk does not, and our keys are those of the database."""
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE
        if not await self._storage.is_well(PATIENCE):
            return False
        return await self._vault.is_well(until - loop.time()) is not False


async def _ask(looked: Sequence[_Looked], within: float) -> "list[tuple[str, bool | None]]":
    well = await asyncio.gather(*(each.is_well(within) for each in looked))
    return [(each.name, is_well) for each, is_well in zip(looked, well, strict=True)]


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
        # Not Redis: a balancer that goes by this must not take every process out while it is away.
        ready = await doctor.is_ready()
        return answer({"status": "ok" if ready else "degraded"}, status=200 if ready else 503)

    return (
        Operation("live", "get", "/livez", "Health", "Whether the process answers", livez, keyed=False),
        Operation("ready", "get", "/readyz", "Health", "Whether it takes requests", readyz, keyed=False),
    )

"""What `/health` goes by: each rule is one word, explained by the same word in docs/operations.md (SPEC "Conventions",
health check; DECISIONS 1)."""

from collections.abc import Awaitable, Callable, Mapping

from ...ports.bundle import Ports
from .holding import read_hold
from .ledger_watch import ledger_faults
from .standing import missing_standing
from .vitals import gateways, lateness, without_gateway

NO_WORKER = 300.0
"""Seconds after which a job that is due and in nobody's hands says that no worker works. Workers look every second, and
a job whose worker died is free after eight."""

Rule = Callable[[Ports], Awaitable[bool]]
"""Whether all is well by it."""


async def _storage(ports: Ports) -> bool:
    await ports.storage.check()
    return True


async def _meter(ports: Ports) -> bool:
    return await ports.meter.works()


async def _queue(ports: Ports) -> bool:
    return await ports.queue.works()


async def _worker(ports: Ports) -> bool:
    return await lateness(ports) < NO_WORKER


async def _standing(ports: Ports) -> bool:
    return not await missing_standing(ports)


async def _gateways(ports: Ports) -> bool:
    return not without_gateway(await gateways(ports))


async def _ledger(ports: Ports) -> bool:
    return not await ledger_faults(ports)


async def _held(ports: Ports) -> bool:
    return await read_hold(ports) is None


PARTS: Mapping[str, Rule] = {"storage": _storage, "meter": _meter, "queue": _queue}
"""What the service stands on."""

SIGNS: Mapping[str, Rule] = {
    "worker": _worker,
    "standing": _standing,
    "gateways": _gateways,
    "ledger": _ledger,
    "held": _held,
}
"""What is read from the storage, and cannot be told without it."""

LOOKED_AT_EVERY: Mapping[str, float] = {"ledger": 60.0}
"""Seconds for which an answer is kept, where that is not one."""
EVERY = 1.0
"""Seconds for which every other answer is kept: however many ask, the storage is asked once a second."""

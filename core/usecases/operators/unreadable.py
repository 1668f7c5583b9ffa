"""Rows that no program here can read (ports/unreadable.py): how many there are, and what is done about them."""

from ....ports.bundle import Ports
from ....ports.storage import AtLeast, Unit
from ....ports.unreadable import SettingAside, UnreadableRow
from ...domain.days import LONG_AGO
from ...domain.errors import Refusal
from ...domain.webhooks.events import Delivery
from ..units import retrying
from ..webhooks.results import resume_delivery

SHOWN = 1000
"""That are listed at most."""


async def count_unreadable(ports: Ports) -> int:
    """How many rows are known that cannot be read."""
    async with ports.storage.unit() as unit:
        return await unit[UnreadableRow].total()


async def list_unreadable(ports: Ports, limit: int = SHOWN) -> list[UnreadableRow]:
    """Which, the first found first."""
    async with ports.storage.unit() as unit:
        return await unit[UnreadableRow].find(found_at=AtLeast(LONG_AGO), order="found_at", limit=limit, readable=True)


async def take_up(ports: Ports) -> int:
    """Try again to read each of them, as after an upgrade: what can be read now is back in its place, and a webhook
    that was passed by is sent. How many are."""

    async def resume(unit: Unit, record: object) -> None:
        if isinstance(record, Delivery):
            await resume_delivery(ports, unit, record)

    return await ports.storage.take_up(resume) if isinstance(ports.storage, SettingAside) else 0


async def forget_unreadable(ports: Ports, row: str) -> UnreadableRow:
    """An operator has seen to it: a job that was set aside is gone for good, and what lies in its table is told of anew
    when somebody meets it. Raises: Refusal NOT_FOUND."""

    async def work(unit: Unit) -> UnreadableRow:
        found = await unit[UnreadableRow].get(row)
        if found is None:
            raise Refusal("NOT_FOUND", "No row of this name cannot be read")
        unit[UnreadableRow].remove(found)
        return found

    return await retrying(ports.storage, work)

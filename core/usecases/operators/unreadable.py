"""Unreadable rows (ports/unreadable.py): their number, and what operators can do about them."""

from ....ports.bundle import Ports
from ....ports.storage import AtLeast, Unit
from ....ports.unreadable import SettingAside, UnreadableRow
from ...domain.days import LONG_AGO
from ...domain.errors import Refusal
from ...domain.webhooks.events import Delivery
from ..common.units import unit_of_work
from ..webhooks.results import resume_delivery

SHOWN = 1000
"""Maximum number of listed rows."""


async def count_unreadable(ports: Ports) -> int:
    """Return the number of rows that are known to be unreadable."""
    async with ports.storage.unit() as unit:
        return await unit[UnreadableRow].total()


async def list_unreadable(ports: Ports, limit: int = SHOWN) -> list[UnreadableRow]:
    """Return the known unreadable rows, oldest finding first."""
    async with ports.storage.unit() as unit:
        return await unit[UnreadableRow].find(found_at=AtLeast(LONG_AGO), order="found_at", limit=limit, readable=True)


async def take_up(ports: Ports) -> int:
    """Try to read each row again, for example after an upgrade, and return how many are readable now. Readable rows
    return to their tables, and a skipped webhook is sent."""

    async def resume(unit: Unit, record: object) -> None:
        if isinstance(record, Delivery):
            await resume_delivery(ports, unit, record)

    return await ports.storage.take_up(resume) if isinstance(ports.storage, SettingAside) else 0


@unit_of_work()
async def forget_unreadable(_: Ports, unit: Unit, row: str) -> UnreadableRow:
    """Forget a row that an operator has handled. A job that was set aside is deleted for good. A row that is still in
    its table is reported again when a program reads it. Raises: Refusal NOT_FOUND."""
    found = await unit[UnreadableRow].get(row)
    if found is None:
        raise Refusal("NOT_FOUND", "No unreadable row has this name")
    unit[UnreadableRow].remove(found)
    return found

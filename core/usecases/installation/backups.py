"""Time of the last reported backup. Alarms depend on it (docs/alarms.md "Backups")."""

from datetime import datetime

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.installation import INSTALLATION, Installation
from ..common.encrypted import tag_hold
from ..common.quarantine import RACES
from ..common.units import unit_of_work


@unit_of_work(again_on=RACES)
async def note_backup(ports: Ports, unit: Unit, made_at: datetime) -> datetime:
    """Record a backup made at this moment. An earlier moment does not replace a later one. Raises: Unavailable;
    Unreadable."""
    present = await unit[Installation].get(INSTALLATION)
    if present is None:
        fresh = Installation(mark=str(ports.ids.uuid()), marked_at=ports.clock.now(), backed_up_at=made_at)
        unit[Installation].add(tag_hold(ports.vault, fresh))
        return made_at
    latest = max(filter(None, (present.backed_up_at, made_at)))
    if latest != present.backed_up_at:
        unit[Installation].save(msgspec.structs.replace(present, backed_up_at=latest))
    return latest

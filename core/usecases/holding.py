"""The hold: while it stands, nothing that sends money in live mode runs (domain/installation.py).

The layer around providers (frontends/holding.py) keeps it, whoever calls. Here it is read and set; resume.py lets go.
"""

from datetime import datetime

from ...ports.bundle import Ports
from ...ports.faults import Unreadable
from ...ports.storage import Storage, Unit
from ..domain.accounts.accounts import Mode
from ..domain.days import LONG_AGO
from ..domain.errors import Refusal
from ..domain.installation import INSTALLATION, Because, Installation, held, lacks_since
from .units import retrying

_UNREADABLE = Installation(
    mark="", marked_at=LONG_AGO, held_since=LONG_AGO, held_because=Because.UNREADABLE, as_of=LONG_AGO
)

RACES = ("installations_id",)

_MEND = (
    "What the database says of itself (`installations`) cannot be read, so it stays held. `cambist unreadable list` "
    "names the field: use the version that wrote it, or set the field right in the database. Then try again"
)


async def read_installation(storage: Storage) -> Installation | None:
    """What the database says of itself; None where it was never marked, which is no hold. A read by id, so that it may
    be asked before every call that sends money: every process sees at once what any of them wrote. A row that cannot be
    read is a hold, and keeps nobody from anything else."""
    try:
        return await storage.get(Installation, INSTALLATION)
    except Unreadable:
        return _UNREADABLE


async def read_hold(ports: Ports) -> Installation | None:
    """The installation while it is held, else None."""
    installation = await read_installation(ports.storage)
    return installation if installation is not None and installation.is_held else None


def require_readable(installation: Installation) -> None:
    """Raises: Refusal INVALID_STATE where the row cannot be read, so that it cannot be written either: whether it is
    held, and as of when, would be lost."""
    if installation.held_because is Because.UNREADABLE:
        raise Refusal("INVALID_STATE", _MEND)


async def is_held(ports: Ports, mode: Mode) -> bool:
    """Whether money of this mode is held. Test mode never is."""
    return mode is Mode.LIVE and await read_hold(ports) is not None


async def forgotten_since(ports: Ports) -> datetime | None:
    """The moment from which on providers may have executed operations that this database has no trace of, because it is
    held, or was let go after a hold; None where it was never held. An unreadable row counts as held."""
    installation = await read_installation(ports.storage)
    return None if installation is None else lacks_since(installation)


async def holds_back(unit: Unit, mode: Mode) -> bool:
    """Whether money of this mode stays for now: who would only take it to be refused by the provider's port asks
    beforehand, and leaves things as they are."""
    if mode is not Mode.LIVE:
        return False
    try:
        installation = await unit[Installation].get(INSTALLATION)
    except Unreadable:
        return True
    return installation is not None and installation.is_held


async def hold(ports: Ports, because: Because, as_of: datetime | None = None) -> Installation:
    """Set the hold; the row as it then stands. `as_of`: a moment that the state is not older than, where one is known
    that is later than its last mark. A row that cannot be read is a hold already, and stays as it is."""
    before = await read_hold(ports)
    if before is not None and before.held_because is Because.UNREADABLE:
        return before

    async def work(unit: Unit) -> Installation:
        now = ports.clock.now()
        present = await unit[Installation].get(INSTALLATION)
        if present is None:
            fresh = Installation(mark=str(ports.ids.uuid()), marked_at=now)
            return unit[Installation].add(held(fresh, because, now, as_of or now))
        return unit[Installation].save(held(present, because, now, as_of or present.marked_at))

    return await retrying(ports.storage, work, again_on=RACES)

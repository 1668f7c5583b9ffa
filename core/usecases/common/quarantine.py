"""Quarantine of the installation: while it lasts, nothing that sends money in live mode runs (domain/installation.py).

The layer around providers (frontends/layers/quarantine.py) enforces it for every caller. This module reads and sets it;
resume.py ends it.
"""

from datetime import datetime

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Unreadable
from ....ports.storage import Located, Storage, Unit
from ....ports.vault import Vault
from ...domain.accounts.accounts import Mode
from ...domain.days import LONG_AGO
from ...domain.errors import Refusal
from ...domain.installation import INSTALLATION, Because, Installation, held, lacks_since, undecided
from .encrypted import hold_fits, tag_hold
from .units import retrying

_UNREADABLE = Installation(
    mark="", marked_at=LONG_AGO, held_since=LONG_AGO, held_because=Because.UNREADABLE, as_of=LONG_AGO
)

RACES = ("installations_id",)

_MEND = (
    "What the database says of itself (`installations`) cannot be read, so it stays held. `cambist unreadable list` "
    "names the field: use the version that wrote it, or set the field right in the database. Then try again"
)


async def read_installation(storage: Storage, vault: Vault) -> Installation | None:
    """Return the installation row. None if the database was never marked, which is not a quarantine. It is one read by
    id, so that it can run before every call that sends money, and every process sees changes at once. A row that is
    unreadable, or that another hand altered, counts as a quarantine, and prevents nothing else."""
    try:
        found = await storage.get(Installation, INSTALLATION)
    except Unreadable:
        return _UNREADABLE
    return None if found is None else _proven(vault, found)


def _proven(vault: Vault, row: Installation) -> Installation:
    """Return the row, quarantined if its tag does not fit. Nothing is known then of its dates."""
    if hold_fits(vault, row):
        return row
    return msgspec.structs.replace(row, held_since=LONG_AGO, held_because=Because.ALTERED, as_of=None)


async def read_hold(ports: Ports) -> Installation | None:
    """Return the installation while it is quarantined, else None."""
    installation = await read_present(ports.storage, ports.vault)
    return installation if installation is not None and installation.is_held else None


async def read_present(storage: Storage, vault: Vault) -> Installation | None:
    """Return the installation row, quarantined also while a promoted server is not known to be complete."""
    found = await read_installation(storage, vault)
    return None if found is None else undecided(found, location(storage))


def location(storage: Storage) -> str | None:
    """Return the location that the storage's newest connection reached; None if the storage does not know."""
    return storage.location() if isinstance(storage, Located) else None


def require_readable(installation: Installation) -> None:
    """Raise Refusal INVALID_STATE if the row is unreadable. It cannot be written either, because its quarantine and
    date would be lost."""
    if installation.held_because is Because.UNREADABLE:
        raise Refusal("INVALID_STATE", _MEND)


async def is_held(ports: Ports, mode: Mode) -> bool:
    """Return whether money of this mode is quarantined. In test mode it never is."""
    return mode is Mode.LIVE and await read_hold(ports) is not None


async def forgotten_since(ports: Ports) -> datetime | None:
    """Return the moment since when providers may have executed operations that this database lacks, because it is or
    was quarantined. None if it never was. An unreadable row counts as a quarantine."""
    installation = await read_installation(ports.storage, ports.vault)
    return None if installation is None else lacks_since(installation)


async def holds_back(ports: Ports, unit: Unit, mode: Mode) -> bool:
    """Return whether a quarantine stops money of this mode, read in the caller's unit. A caller checks it beforehand,
    where the provider's port would only refuse the call later."""
    if mode is not Mode.LIVE:
        return False
    try:
        installation = await unit[Installation].get(INSTALLATION)
    except Unreadable:
        return True
    if installation is None:
        return False
    return undecided(_proven(ports.vault, installation), location(ports.storage)).is_held


async def hold(ports: Ports, because: Because, as_of: datetime | None = None) -> Installation:
    """Start the quarantine and return the row. `as_of`: a moment that the state is not older than, if one later than
    its last fingerprint is known. An unreadable row is a quarantine already, and stays as it is."""
    before = await read_hold(ports)
    if before is not None and before.held_because is Because.UNREADABLE:
        return before

    async def work(unit: Unit) -> Installation:
        now = ports.clock.now()
        present = await unit[Installation].get(INSTALLATION)
        if present is None:
            fresh = Installation(mark=str(ports.ids.uuid()), marked_at=now)
            return unit[Installation].add(tag_hold(ports.vault, held(fresh, because, now, as_of or now)))
        after = held(present, because, now, as_of or present.marked_at)
        return unit[Installation].save(tag_hold(ports.vault, after))

    return await retrying(ports.storage, work, again_on=RACES)

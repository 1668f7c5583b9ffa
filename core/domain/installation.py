"""The single row that identifies a database: the mark that distinguishes it from its copies, and the quarantine.

A copy of a database is older than the real world: it does not know money sent since, and would send it again. So a copy
is quarantined: it does everything except sending money in live mode, until an operator has compared it with the
providers.
"""

from collections.abc import Collection
from datetime import datetime
from enum import StrEnum

import msgspec

from .days import LONG_AGO

INSTALLATION = "installation"
"""Id of the row; at most one exists."""


class Because(StrEnum):
    """Why an installation is quarantined."""

    BACKUP = "backup"
    """It is the result of `cambist backup`."""
    RESTORED = "restored"
    """`cambist restore` put it in place."""
    COPIED = "copied"
    """Its location differs from the recorded one, or its mark is missing: a copy, whoever made it."""
    OLDER = "older"
    """It is older than its mark: somebody restored an earlier state in its place."""
    INCOMPLETE = "incomplete"
    """A promoted server lacks commits that were confirmed, or nothing proves that it has all of them."""
    PROMOTED = "promoted"
    """A server was promoted, and the processes are still finding out whether it lacks anything. Never stored."""
    BY_HAND = "by_hand"
    """An operator set it."""
    ALTERED = "altered"
    """Another hand wrote what its row says of the hold. Never written."""
    UNREADABLE = "unreadable"
    """The quarantine cannot be read, so it is assumed. Never stored."""


TOLD = {
    Because.BACKUP: "it was opened from a backup",
    Because.RESTORED: "it was restored from a backup",
    Because.COPIED: "it is a copy, or lies elsewhere than before",
    Because.OLDER: "it is an older state than the one that was last in its place",
    Because.INCOMPLETE: "a promoted server lacks confirmed commits, or nothing proves that it has them",
    Because.PROMOTED: "a server was promoted, and whether it lacks anything is being found out",
    Because.BY_HAND: "an operator said so",
    Because.ALTERED: "what the database says of its hold was written by another hand than the service's",
    Because.UNREADABLE: "what the database says of itself cannot be read",
}
"""Texts for operators."""


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of a database. A copy contains the same row, and is detected by the fingerprint next to the
    database."""

    id: str = INSTALLATION
    mark: str
    """The newest mark; if it differs from the one next to the database, the two are from different times."""
    marked_at: datetime
    """When it was marked: a copy is not older than that."""
    place: str | None = None
    """Location of the database in its own terms, as far as a copy has a different one."""
    held_since: datetime | None = None
    held_because: Because | None = None
    as_of: datetime | None = None
    """While quarantined: a moment that the state is not older than. It may lack payouts made since then."""
    lacks_since: datetime | None = None
    """The oldest `as_of` of a quarantine that an operator ended. Providers may know operations since then that this
    database has lost, so they are queried first (usecases/common/forgotten.py)."""
    hold_tag: bytes | None = None
    """The vault's tag over the four fields above. Without one that fits the row counts as held."""
    backed_up_at: datetime | None = None
    """Time of the last recorded backup."""
    vault_checks: dict[str, str] = msgspec.field(default_factory=dict)
    """Keyed by `pepper` or the id of a key of the vault: a hex value that only that pepper or key can produce."""
    version: int = 0

    @property
    def is_held(self) -> bool:
        """Whether it is quarantined: nothing that sends money in live mode runs."""
        return self.held_since is not None

    @property
    def told(self) -> str:
        """The reason of the quarantine, for operators."""
        return "it is not held" if self.held_because is None else TOLD[self.held_because]


def recognised(
    installation: Installation | None, place: str | None, marks: Collection[str] | None, *, begun: bool
) -> Because | None:
    """Return why a database counts as a copy, given the fingerprint next to it; None: it is the original.

    `place`: its present location, None if it cannot be determined, which proves nothing; `marks`: the marks that its
    row may have, None if none are stored any more; `begun`: the marks are of a row that was about to be written for the
    first time.

    A database that is already quarantined needs no new check. A database without a row is new, or from a version
    without marks, and counts as the original, unless the fingerprint says that it was marked before.
    """
    if installation is None:
        return None if marks is None or begun else Because.OLDER
    if installation.is_held:
        return None
    is_elsewhere = place is not None and installation.place is not None and place != installation.place
    if marks is None or is_elsewhere:
        return Because.COPIED
    return None if installation.mark in marks or begun else Because.OLDER


def undecided(installation: Installation, location: str | None) -> Installation:
    """Return the row, quarantined while the database lies elsewhere than the row says. `location`: where the newest
    connection found it; None if that is unknown."""
    if installation.is_held or None in (location, installation.place) or location == installation.place:
        return installation
    return msgspec.structs.replace(
        installation, held_since=installation.marked_at, held_because=Because.PROMOTED, as_of=installation.marked_at
    )


def marked(installation: Installation, mark: str, place: str | None, now: datetime) -> Installation:
    """Return the row with a newer mark."""
    return msgspec.structs.replace(installation, mark=mark, place=place, marked_at=now)


def held(installation: Installation, because: Because, now: datetime, as_of: datetime | None) -> Installation:
    """Return the row with the quarantine set. If it is already set, the older `as_of` counts."""
    moments = [moment for moment in (installation.as_of, as_of) if moment is not None]
    return msgspec.structs.replace(
        installation,
        held_since=installation.held_since or now,
        held_because=because,
        as_of=min(moments, default=None),
    )


def let_go(installation: Installation) -> Installation:
    """Return the row without its quarantine."""
    return msgspec.structs.replace(
        installation, held_since=None, held_because=None, as_of=None, lacks_since=lacks_since(installation)
    )


def lacks_since(installation: Installation) -> datetime | None:
    """Return the moment since when the database may lack operations; None if it was never quarantined."""
    moments = [] if installation.lacks_since is None else [installation.lacks_since]
    if installation.is_held:
        moments.append(installation.as_of or LONG_AGO)
    return min(moments, default=None)

"""The one row in which a database knows itself: the mark by which a copy of it is told from it, and the hold.

A copy of a database is older than the world: money that went out since is unknown to it, and would go out again. So a
copy is held: it does everything but send money in live mode, until an operator has compared it with the world.
"""

from collections.abc import Collection
from datetime import datetime
from enum import StrEnum

import msgspec

from .days import LONG_AGO

INSTALLATION = "installation"
"""The id of the row; there is one at most."""


class Because(StrEnum):
    """Why an installation is held."""

    BACKUP = "backup"
    """It is what `cambist backup` wrote."""
    RESTORED = "restored"
    """`cambist restore` put it in place."""
    COPIED = "copied"
    """It was found to lie elsewhere than the database that it was, or without its mark: a copy, by whatever hand."""
    OLDER = "older"
    """It was found to be older than its mark: somebody put a former state in its place."""
    BY_HAND = "by_hand"
    """An operator said so."""
    UNREADABLE = "unreadable"
    """Whether it is held cannot be read, so it is. Never written."""


TOLD = {
    Because.BACKUP: "it was opened from a backup",
    Because.RESTORED: "it was restored from a backup",
    Because.COPIED: "it is a copy, or lies elsewhere than before",
    Because.OLDER: "it is an older state than the one that was last in its place",
    Because.BY_HAND: "an operator said so",
    Because.UNREADABLE: "what the database says of itself cannot be read",
}
"""The same for operators."""


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """What a database says of itself. A copy says the same, and is found out by what stands beside it."""

    id: str = INSTALLATION
    mark: str
    """The newest mark; where it is not the one kept beside the database, the two are of different times."""
    marked_at: datetime
    """When it was marked: a copy is not older than that."""
    place: str | None = None
    """Where the database lies, in its own words, as far as that tells a copy from it."""
    held_since: datetime | None = None
    held_because: Because | None = None
    as_of: datetime | None = None
    """A moment that the state is not older than, where it is held: what went out from then on may be unknown to it."""
    lacks_since: datetime | None = None
    """The oldest moment as of which it was held, once an operator let it go. Providers may know operations of that time
    and later that this database has forgotten, so they are asked first (usecases/forgotten.py)."""
    backed_up_at: datetime | None = None
    """As of when the last backup is, as far as one was noted."""
    vault_checks: dict[str, str] = msgspec.field(default_factory=dict)
    """By `pepper` or the id of a key of the vault: a value in hex that only that pepper or key makes."""
    version: int = 0

    @property
    def is_held(self) -> bool:
        """Nothing that sends money in live mode runs."""
        return self.held_since is not None

    @property
    def told(self) -> str:
        """Why it is held, for operators."""
        return "it is not held" if self.held_because is None else TOLD[self.held_because]


def recognised(
    installation: Installation | None, place: str | None, marks: Collection[str] | None, *, begun: bool
) -> Because | None:
    """Why a database, read together with what is kept beside it, is taken for a copy; None: it is the one that it was.

    `place`: where it lies now, null where that cannot be told, which is no news; `marks`: those that its row may have,
    None where none are kept any more; `begun`: they are of a row that was about to be written for the first time.

    One that is held already is no news. One without a row is of a version that marked none, or new, and taken for what
    it is, unless something beside it says that it was marked before.
    """
    if installation is None:
        return None if marks is None or begun else Because.OLDER
    if installation.is_held:
        return None
    is_elsewhere = place is not None and installation.place is not None and place != installation.place
    if marks is None or is_elsewhere:
        return Because.COPIED
    return None if installation.mark in marks or begun else Because.OLDER


def marked(installation: Installation, mark: str, place: str | None, now: datetime) -> Installation:
    """The row with a newer mark."""
    return msgspec.structs.replace(installation, mark=mark, place=place, marked_at=now)


def held(installation: Installation, because: Because, now: datetime, as_of: datetime | None) -> Installation:
    """The row with the hold set. One that is held already stays so, as of the older moment."""
    moments = [moment for moment in (installation.as_of, as_of) if moment is not None]
    return msgspec.structs.replace(
        installation,
        held_since=installation.held_since or now,
        held_because=because,
        as_of=min(moments, default=None),
    )


def let_go(installation: Installation) -> Installation:
    """Return the row without its hold."""
    return msgspec.structs.replace(
        installation, held_since=None, held_because=None, as_of=None, lacks_since=lacks_since(installation)
    )


def lacks_since(installation: Installation) -> datetime | None:
    """The moment from which on the database may have forgotten operations; None for one that was never held."""
    moments = [] if installation.lacks_since is None else [installation.lacks_since]
    if installation.is_held:
        moments.append(installation.as_of or LONG_AGO)
    return min(moments, default=None)

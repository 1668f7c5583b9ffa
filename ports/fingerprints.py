"""Fingerprints next to a database that distinguish it from its copies: its location, and the last marks of its row."""

from typing import Protocol

import msgspec


class Fingerprints(msgspec.Struct, frozen=True, kw_only=True):
    """Data stored where it is neither copied nor restored together with the database."""

    marks: tuple[str, ...]
    """The newest mark of the row, and during a write also the previous one: the process may die between the two
    writes."""
    begun: bool = False
    """The row is about to be written for the first time."""


class Beside(Protocol):
    """Storage next to a database."""

    @property
    def keeps(self) -> bool:
        """Whether it stores marks; otherwise only the location identifies the database."""
        ...

    async def place(self) -> str | None:
        """Return the present location of the database, as far as every copy has a different one. Raises:
        Unavailable."""
        ...

    async def read(self) -> Fingerprints | None:
        """Return the stored marks; None: there are none. Raises: Unavailable."""
        ...

    async def write(self, marks: Fingerprints) -> None:
        """Replace the stored marks. When it returns they are on disk. Raises: Unavailable."""
        ...

    async def accept(self) -> None:
        """Forget that processes miss commits in this database, because it is accepted as it is. Raises: Unavailable."""
        ...


class Nowhere:
    """A port without storage, for databases whose copies cannot be detected: in memory, or from another package."""

    keeps = False

    async def place(self) -> str | None:
        return None

    async def read(self) -> Fingerprints | None:
        return None

    async def write(self, marks: Fingerprints) -> None:
        """Store nothing."""

    async def accept(self) -> None:
        """Do nothing."""

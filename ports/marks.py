"""What stands beside a database and tells a copy of it from it: where it lies, and the marks that its row had last."""

from typing import Protocol

import msgspec


class Marks(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept where it is neither copied nor set back with the database."""

    marks: tuple[str, ...]
    """The newest mark of the row, and while it is being written the one before: a process may die between the two."""
    begun: bool = False
    """The row is about to be written for the first time."""


class Beside(Protocol):
    """Beside a database."""

    @property
    def keeps(self) -> bool:
        """Whether marks are kept here; else the place alone tells."""
        ...

    async def place(self) -> str | None:
        """Where the database lies just now, as far as that is another place for every copy. Raises: Unavailable."""
        ...

    async def read(self) -> Marks | None:
        """The marks that are kept; None: there are none. Raises: Unavailable."""
        ...

    async def write(self, marks: Marks) -> None:
        """Keep these instead. When it returns they are on disk. Raises: Unavailable."""
        ...


class Nowhere:
    """Fills the port where nothing tells a copy: for storages in memory or from elsewhere."""

    keeps = False

    async def place(self) -> str | None:
        return None

    async def read(self) -> Marks | None:
        return None

    async def write(self, marks: Marks) -> None:
        """Keeps nothing."""

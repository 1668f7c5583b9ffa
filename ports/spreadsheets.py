"""The port that writes a workbook of one sheet, row by row, in memory: on a disk its rows would be unencrypted."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Protocol

import msgspec


class CellKind(Enum):
    """Type of a column's cells."""

    TEXT = "text"
    """Never a formula or a link, whatever its first characters are."""
    NUMBER = "number"
    MOMENT = "moment"


class SheetColumn(msgspec.Struct, frozen=True):
    """A column with its heading."""

    title: str
    kind: CellKind
    decimals: int = 0
    """Decimals of a number that are always shown."""


Cell = str | Decimal | datetime | None
"""Value of a cell, of its column's kind; None: empty. A sheet knows no time zones: the moments are written as the clock
of their zone shows them."""


class Workbook(Protocol):
    """A workbook that is being written."""

    async def write(self, rows: Sequence[Sequence[Cell]], /) -> None:
        """Add rows."""
        ...

    def taken(self) -> bytes:
        """Return the bytes of the file that are finished, and forget them: a large file is sent while it is written."""
        ...

    def parts(self) -> AsyncIterator[bytes]:
        """Finish the workbook, and yield the rest of the file in parts of at most PART bytes."""
        ...


PART = 256 * 1024


class Spreadsheets(Protocol):
    def open(self, sheet: str, columns: Sequence[SheetColumn], /) -> Workbook:
        """Begin a workbook with one sheet of this name."""
        ...

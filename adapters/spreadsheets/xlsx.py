"""Workbooks in the format of Excel, by the package XlsxWriter in its constant_memory mode.

Rows go to a temporary file as they come. The folder of these files belongs to this process alone and is deleted with
the workbook; after the process was killed it stays until the system clears its temporary folder.
"""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from ...ports.faults import Unavailable
from ...ports.spreadsheets import PART, Cell, CellKind, SheetColumn

_MOMENT = "dd.mm.yyyy hh:mm:ss"
_WIDTHS = {CellKind.TEXT: 24, CellKind.NUMBER: 14, CellKind.MOMENT: 19}
_LONGEST = 32_767
"""Characters of a text cell; XlsxWriter would leave out a longer text."""
_OPTIONS = {
    "constant_memory": True,
    "strings_to_formulas": False,
    "strings_to_numbers": False,
    "strings_to_urls": False,
    "remove_timezone": True,
}


class XlsxSpreadsheets:
    """Implements the port Spreadsheets."""

    @asynccontextmanager
    async def open(self, sheet: str, columns: Sequence[SheetColumn], /) -> AsyncIterator["XlsxWorkbook"]:
        """Begin a workbook."""
        try:
            folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="cambist-export-"))
        except OSError as error:
            raise _unavailable(error) from None
        try:
            yield await asyncio.to_thread(XlsxWorkbook, folder, sheet, columns)
        except OSError as error:
            raise _unavailable(error) from None
        finally:
            # Not awaited: a cancelled task would leave the files behind.
            shutil.rmtree(folder, ignore_errors=True)


class XlsxWorkbook:
    """Implements the port Workbook."""

    def __init__(self, folder: Path, sheet: str, columns: Sequence[SheetColumn]) -> None:
        import xlsxwriter

        self._path = folder / "book.xlsx"
        self._book: Any = xlsxwriter.Workbook(str(self._path), {**_OPTIONS, "tmpdir": str(folder)})
        self._sheet: Any = self._book.add_worksheet(sheet)
        self._columns = columns
        self._formats = [self._format(column) for column in columns]
        self._row = 1
        heading = self._book.add_format({"bold": True})
        for index, column in enumerate(columns):
            self._sheet.set_column(index, index, _WIDTHS[column.kind])
            self._sheet.write_string(0, index, column.title, heading)
        self._sheet.freeze_panes(1, 0)

    async def write(self, rows: Sequence[Sequence[Cell]], /) -> None:
        """Add rows. Raises: Unavailable."""
        try:
            await asyncio.to_thread(self._write, rows)
        except OSError as error:
            raise _unavailable(error) from None

    async def parts(self) -> AsyncIterator[bytes]:
        """Finish the workbook and yield its file. Raises: Unavailable."""
        from xlsxwriter.exceptions import XlsxWriterException

        try:
            await asyncio.to_thread(self._book.close)
            with await asyncio.to_thread(self._path.open, "rb") as file:
                while part := await asyncio.to_thread(file.read, PART):
                    yield part
        except (OSError, XlsxWriterException) as error:
            raise _unavailable(error) from None

    def _format(self, column: SheetColumn) -> Any:
        if column.kind is CellKind.MOMENT:
            return self._book.add_format({"num_format": _MOMENT})
        if column.kind is CellKind.NUMBER and column.decimals:
            return self._book.add_format({"num_format": f"0.{'0' * column.decimals}"})
        return None

    def _write(self, rows: Sequence[Sequence[Cell]]) -> None:
        for row in rows:
            for index, cell in enumerate(row):
                self._write_cell(index, cell)
            self._row += 1

    def _write_cell(self, index: int, cell: Cell) -> None:
        match cell:
            case None:
                pass
            case datetime():
                self._sheet.write_datetime(self._row, index, cell, self._formats[index])
            case Decimal():
                self._sheet.write_number(self._row, index, cell, self._formats[index])
            case str():
                self._sheet.write_string(self._row, index, cell[:_LONGEST])


def _unavailable(error: Exception) -> Unavailable:
    return Unavailable(f"a workbook could not be written: {type(error).__name__}")

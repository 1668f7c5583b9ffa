"""Workbooks in the format of Excel (ECMA-376), written by ourselves: one sheet, in a ZIP archive that lies in memory
or is sent while it is written.

Nothing is written to a disk, where payers' data would be unencrypted. Rows are compressed as they come: 100 000 rows of
payments take about 10 MB.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from html import escape
from io import BytesIO
from typing import IO, cast
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from ...ports.spreadsheets import PART, Cell, CellKind, SheetColumn

_WIDTHS = {CellKind.TEXT: 24, CellKind.NUMBER: 14, CellKind.MOMENT: 19}
_LONGEST = 32_767
"""Characters of a text cell."""
_EPOCH = datetime(1899, 12, 30)  # noqa: DTZ001 - sheets know no time zones
_DAY = timedelta(days=1)
_FIRST_YEAR = (1980, 1, 1, 0, 0, 0)
"""Date of the files in the archive: equal content gives equal bytes."""

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'

_TYPES = (
    f'<Types xmlns="{_PACKAGE}/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>'
    f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_TYPE}.worksheet+xml"/>'
    f'<Override PartName="/xl/styles.xml" ContentType="{_TYPE}.styles+xml"/></Types>'
)
_ROOT = (
    f'<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>'
)
_BOOK = (
    f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>'
    '<sheet name="{name}" sheetId="1" r:id="rId1"/></sheets></workbook>'
)
_LINKS = (
    f'<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/>'
    f'<Relationship Id="rId2" Type="{_OFFICE}/styles" Target="styles.xml"/></Relationships>'
)
_FONT = '<sz val="11"/><name val="Calibri"/><family val="2"/>'
_MOMENT = "dd.mm.yyyy hh:mm:ss"
_PLAIN, _BOLD = 0, 1
_OWN_FORMATS = 164
"""Ids of number formats that a workbook defines itself begin here."""

_UNWRITABLE = re.compile("[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
"""Characters that XML forbids or changes, and text that Excel would read as an escape."""


class _Sink:
    """Collects an archive that is written from its beginning to its end, so that it can be sent meanwhile."""

    def __init__(self) -> None:
        self._parts = bytearray()

    def write(self, part: bytes) -> int:
        self._parts += part
        return len(part)

    def flush(self) -> None:
        """Do nothing: there is no buffer."""

    def take(self) -> bytes:
        taken, self._parts = bytes(self._parts), bytearray()
        return taken


class XlsxSpreadsheets:
    """Implements the port Spreadsheets."""

    def open(self, sheet: str, columns: Sequence[SheetColumn], /) -> "XlsxWorkbook":
        """Begin a workbook."""
        return XlsxWorkbook(sheet, columns)


class XlsxWorkbook:
    """Implements the port Workbook."""

    def __init__(self, sheet: str, columns: Sequence[SheetColumn]) -> None:
        self._file = _Sink()
        self._archive = ZipFile(cast("IO[bytes]", self._file), "w")
        self._row = 0
        formats = [f"0.{'0' * each.decimals}" if each.decimals else "General" for each in columns]
        formats = [
            _MOMENT if each.kind is CellKind.MOMENT else code for each, code in zip(columns, formats, strict=True)
        ]
        own = sorted(set(formats) - {"General"})
        self._styles = [_PLAIN if code == "General" else _BOLD + 1 + own.index(code) for code in formats]
        self._add("[Content_Types].xml", _TYPES)
        self._add("_rels/.rels", _ROOT)
        self._add("xl/workbook.xml", _BOOK.format(name=escape(sheet)))
        self._add("xl/_rels/workbook.xml.rels", _LINKS)
        self._add("xl/styles.xml", _styles(own))
        self._sheet = self._archive.open(_entry("xl/worksheets/sheet1.xml"), "w")
        widths = "".join(
            f'<col min="{number}" max="{number}" width="{_WIDTHS[each.kind]}" customWidth="1"/>'
            for number, each in enumerate(columns, 1)
        )
        self._write_text(
            f'{_HEAD}<worksheet xmlns="{_MAIN}"><sheetViews><sheetView workbookViewId="0">'
            '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews>'
            f"<cols>{widths}</cols><sheetData>"
        )
        self._write([[each.title for each in columns]], [_BOLD] * len(columns))

    async def write(self, rows: Sequence[Sequence[Cell]], /) -> None:
        """Add rows."""
        await asyncio.to_thread(self._write, rows, self._styles)

    def taken(self) -> bytes:
        """Return the bytes of the file that are finished, and forget them."""
        return self._file.take()

    async def parts(self) -> AsyncIterator[bytes]:
        """Finish the workbook and yield its file."""
        self._write_text("</sheetData></worksheet>")
        await asyncio.to_thread(self._sheet.close)
        self._archive.close()
        rest = BytesIO(self.taken())
        while part := rest.read(PART):
            yield part

    def _add(self, name: str, text: str) -> None:
        self._archive.writestr(_entry(name), _HEAD + text)

    def _write(self, rows: Sequence[Sequence[Cell]], styles: Sequence[int]) -> None:
        lines = []
        for row in rows:
            self._row += 1
            cells = [
                _cell(f"{_letters(index)}{self._row}", cell, styles[index])
                for index, cell in enumerate(row)
                if cell is not None
            ]
            lines.append(f'<row r="{self._row}">{"".join(cells)}</row>')
        self._write_text("".join(lines))

    def _write_text(self, text: str) -> None:
        self._sheet.write(text.encode())


def _entry(name: str) -> ZipInfo:
    entry = ZipInfo(name, _FIRST_YEAR)
    entry.compress_type = ZIP_DEFLATED
    return entry


def _styles(own: Sequence[str]) -> str:
    """Return the styles: plain, bold, and one for each number format."""
    formats = "".join(f'<numFmt numFmtId="{_OWN_FORMATS + n}" formatCode="{code}"/>' for n, code in enumerate(own))
    listed = f'<numFmts count="{len(own)}">{formats}</numFmts>' if own else ""
    cells = [
        "",
        'fontId="1" applyFont="1" ',
        *(f'numFmtId="{_OWN_FORMATS + n}" applyNumberFormat="1" ' for n in range(len(own))),
    ]
    used = "".join(f'<xf {each}xfId="0"/>' for each in cells)
    return (
        f'<styleSheet xmlns="{_MAIN}">{listed}<fonts count="2"><font>{_FONT}</font><font><b/>{_FONT}</font></fonts>'
        '<fills count="2"><fill><patternFill patternType="none"/></fill>'
        '<fill><patternFill patternType="gray125"/></fill></fills>'
        '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
        f'<cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="{len(cells)}">{used}</cellXfs>'
        '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
    )


def _letters(index: int) -> str:
    """Return the name of a column: A to Z, then AA."""
    text = ""
    index += 1
    while index:
        index, letter = divmod(index - 1, 26)
        text = chr(ord("A") + letter) + text
    return text


def _cell(place: str, cell: Cell, style: int) -> str:
    shown = f' s="{style}"' if style else ""
    if isinstance(cell, str):
        text = escape(_UNWRITABLE.sub(lambda found: f"_x{ord(found[0]):04X}_", cell[:_LONGEST]), quote=False)
        return f'<c r="{place}" t="inlineStr"{shown}><is><t xml:space="preserve">{text}</t></is></c>'
    if isinstance(cell, datetime):
        return f'<c r="{place}"{shown}><v>{(cell.replace(tzinfo=None) - _EPOCH) / _DAY:.10g}</v></c>'
    return f'<c r="{place}"{shown}><v>{cell:f}</v></c>'

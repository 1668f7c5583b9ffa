"""Workbooks: typed cells, no formulas, no file on the disk (ports/spreadsheets.py)."""

import io
import re
import sys
import zipfile
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from cambist.adapters.spreadsheets.xlsx import XlsxSpreadsheets
from cambist.core.domain.days import MOSCOW
from cambist.ports.spreadsheets import PART, Cell, CellKind, SheetColumn
from tests.tables import table

COLUMNS = (
    SheetColumn("text", CellKind.TEXT),
    SheetColumn("number", CellKind.NUMBER, 2),
    SheetColumn("moment", CellKind.MOMENT),
)
NS = {"s": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}


async def written(*rows: tuple[Cell, Cell, Cell]) -> bytes:
    book = XlsxSpreadsheets().open("sheet", COLUMNS)
    await book.write(rows)
    parts = [part async for part in book.parts()]
    assert all(len(part) <= PART for part in parts)
    return b"".join(parts)


def cells(file: bytes) -> list[list[tuple[str, str]]]:
    with zipfile.ZipFile(io.BytesIO(file)) as book:
        assert book.testzip() is None
        tree = ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml"))
    assert tree.find(".//s:f", NS) is None, "there is no formula"
    assert tree.find(".//s:hyperlink", NS) is None
    return [
        [(cell.get("t", "n"), "".join(cell.itertext())) for cell in row.iterfind("s:c", NS)]
        for row in tree.iterfind(".//s:row", NS)
    ]


async def test_workbook_has_cells_of_their_kinds() -> None:
    noon = datetime(2026, 1, 2, 12, tzinfo=MOSCOW)
    heading, row, empty = cells(await written(("Кофе", Decimal("1490.50"), noon), ("x", None, None)))
    assert heading == [("inlineStr", "text"), ("inlineStr", "number"), ("inlineStr", "moment")]
    assert row == [("inlineStr", "Кофе"), ("n", "1490.50"), ("n", "46024.5")], "days since 1900, by Moscow's clock"
    assert empty == [("inlineStr", "x")]


@table("text", ["=1+1", "{=1}", "https://evil.example", "mailto:a@b", "12", "@x", "-1", "\tx", "'"])
async def test_text_is_never_a_formula_a_link_or_a_number(text: str) -> None:
    [_, [(kind, value)]] = cells(await written((text, None, None)))
    assert (kind, value) == ("inlineStr", text)


async def test_long_text_is_cut_at_the_limit_of_a_cell() -> None:
    [_, [(_, value)]] = cells(await written(("x" * 40_000, None, None)))
    assert len(value) == 32_767


async def test_text_survives_whatever_its_characters_are() -> None:
    text = 'a\x00b\x1bc\rd\ne\tf <&> "q" _x0041_ \ufffe \U0001f600'
    [_, [(_, value)]] = cells(await written((text, None, None)))
    assert re.sub("_x([0-9A-F]{4})_", lambda found: chr(int(found[1], 16)), value) == text


async def test_no_file_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows hold payers' data, and a temporary file would not be encrypted."""

    def opened(event: str, args: tuple[Any, ...]) -> None:
        if watches and event in ("open", "os.mkdir", "tempfile.mkstemp"):
            found.append(str(args[0]))

    found: list[str] = []
    watches: list[bool] = []
    sys.addaudithook(opened)
    monkeypatch.chdir(tmp_path)
    watches.append(True)
    await written(*([("x" * 200, Decimal(1), None)] * 20_000))
    watches.clear()
    assert found == []


async def test_equal_rows_give_equal_files() -> None:
    assert await written(("x", Decimal("1.5"), None)) == await written(("x", Decimal("1.5"), None))


async def test_workbook_has_the_parts_that_its_types_name() -> None:
    with zipfile.ZipFile(io.BytesIO(await written(("x", None, None)))) as book:
        names = set(book.namelist())
        trees = {name: ElementTree.fromstring(book.read(name)) for name in names}
    parts = {part for each in trees["[Content_Types].xml"] if (part := each.get("PartName", "").lstrip("/"))}
    assert parts == names - {"[Content_Types].xml", "_rels/.rels", "xl/_rels/workbook.xml.rels"}
    styles = trees["xl/styles.xml"].find("s:cellXfs", NS)
    assert styles is not None
    used = {int(cell.get("s", "0")) for cell in trees["xl/worksheets/sheet1.xml"].iterfind(".//s:c", NS)}
    assert max(used) < len(styles) == int(styles.get("count", "0")) == 4
    formats = {
        each.get("numFmtId"): each.get("formatCode") for each in trees["xl/styles.xml"].iterfind(".//s:numFmt", NS)
    }
    assert set(formats.values()) == {"0.00", "dd.mm.yyyy hh:mm:ss"}
    assert {each.get("numFmtId") for each in styles} - {None} == set(formats)

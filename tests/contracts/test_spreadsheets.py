"""Workbooks: typed cells, no formulas, no files left behind (ports/spreadsheets.py)."""

import io
import zipfile
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from cambist.adapters.spreadsheets.xlsx import XlsxSpreadsheets
from cambist.core.domain.days import MOSCOW
from cambist.ports.faults import Unavailable
from cambist.ports.spreadsheets import PART, Cell, CellKind, SheetColumn

COLUMNS = (
    SheetColumn("text", CellKind.TEXT),
    SheetColumn("number", CellKind.NUMBER, 2),
    SheetColumn("moment", CellKind.MOMENT),
)
NS = {"s": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which the adapter creates its own."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


async def written(*rows: tuple[Cell, Cell, Cell]) -> bytes:
    async with XlsxSpreadsheets().open("sheet", COLUMNS) as book:
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


@pytest.mark.usefixtures("temporary")
async def test_workbook_has_cells_of_their_kinds() -> None:
    noon = datetime(2026, 1, 2, 12, tzinfo=MOSCOW)
    heading, row, empty = cells(await written(("Кофе", Decimal("1490.50"), noon), ("x", None, None)))
    assert heading == [("inlineStr", "text"), ("inlineStr", "number"), ("inlineStr", "moment")]
    assert row == [("inlineStr", "Кофе"), ("n", "1490.50"), ("n", "46024.5")], "days since 1900, by Moscow's clock"
    assert empty == [("inlineStr", "x")]


@pytest.mark.usefixtures("temporary")
@pytest.mark.parametrize("text", ["=1+1", "{=1}", "https://evil.example", "mailto:a@b", "12", "@x", "-1", "\tx", "'"])
async def test_text_is_never_a_formula_a_link_or_a_number(text: str) -> None:
    [_, [(kind, value)]] = cells(await written((text, None, None)))
    assert (kind, value) == ("inlineStr", text)


@pytest.mark.usefixtures("temporary")
async def test_long_text_is_cut_at_the_limit_of_a_cell() -> None:
    [_, [(_, value)]] = cells(await written(("x" * 40_000, None, None)))
    assert len(value) == 32_767


async def test_folder_is_gone_when_the_workbook_is_left(temporary: Path) -> None:
    async with XlsxSpreadsheets().open("sheet", COLUMNS) as book:
        await book.write([("x", None, None)])
        [folder] = temporary.iterdir()
        assert folder.stat().st_mode & 0o077 == 0, "nobody else reads it"
    assert list(temporary.iterdir()) == []
    await written(("x", None, None))
    assert list(temporary.iterdir()) == []


async def test_folder_is_gone_when_the_work_breaks_off(temporary: Path) -> None:
    async def broken() -> None:
        async with XlsxSpreadsheets().open("sheet", COLUMNS):
            raise KeyError

    with pytest.raises(KeyError):
        await broken()
    assert list(temporary.iterdir()) == []


async def test_missing_folder_makes_it_unavailable(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(temporary / "absent"))
    with pytest.raises(Unavailable, match="FileNotFoundError"):
        await written(("x", None, None))


async def test_full_disk_makes_it_unavailable(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    async with XlsxSpreadsheets().open("sheet", COLUMNS) as book:
        monkeypatch.setattr(book._sheet, "write_string", full)
        with pytest.raises(Unavailable, match="OSError"):
            await book.write([("x", None, None)])
    assert list(temporary.iterdir()) == []

"""Documents as PDF, by fpdf2. Its PDF has no tags for screen readers, so the dashboard shows each document as a page,
too. The fonts are DejaVu Sans, reduced to Latin, Cyrillic and common signs (LICENSE-DejaVu.txt)."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ...ports.documents import Document, DocumentTable

if TYPE_CHECKING:
    from fpdf import FPDF

_FONT = "DejaVu"
_FOLDER = Path(__file__).parent
_ALWAYS = datetime(2000, 1, 1, tzinfo=UTC)
"""Creation time of every file: an equal document gives equal bytes."""
_LINE = 5.5
_SIGNATURE = "______________________ / ______________________"
_FIRST = 2.2
"""Width of the first column of a table, in widths of the others."""


class PdfDocuments:
    """Implements the port Documents."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer

    @property
    def issuer(self) -> str:
        """Return the name and details of the operator."""
        return self._issuer

    async def pdf(self, document: Document) -> bytes:
        """Return the document as PDF."""
        return await asyncio.to_thread(_drawn, document)


def _drawn(document: Document) -> bytes:
    from fpdf import FPDF

    pdf = FPDF(format="A4")
    pdf.set_margins(18, 18, 18)
    pdf.set_auto_page_break(auto=True, margin=18)
    pdf.add_font(_FONT, fname=_FOLDER / "DejaVuSans.ttf")
    pdf.add_font(_FONT, style="B", fname=_FOLDER / "DejaVuSans-Bold.ttf")
    pdf.set_title(document.title)
    pdf.set_lang(document.language)
    pdf.set_creation_date(_ALWAYS)
    pdf.add_page()
    pdf.set_font(_FONT, "B", 13)
    pdf.multi_cell(0, 7, document.title, new_x="LMARGIN", new_y="NEXT")
    pdf.ln(2)
    for label, value in document.facts:
        pdf.set_font(_FONT, "", 9)
        pdf.multi_cell(0, _LINE, f"{label}: {value}", new_x="LMARGIN", new_y="NEXT")
    for table in document.tables:
        _draw_table(pdf, table)
    pdf.ln(3)
    pdf.set_font(_FONT, "", 8)
    for note in document.notes:
        pdf.multi_cell(0, 4.5, note, align="L", new_x="LMARGIN", new_y="NEXT")
    pdf.ln(10)
    pdf.set_font(_FONT, "", 9)
    for name in document.signatures:
        pdf.multi_cell(0, _LINE, f"{name}\n\n{_SIGNATURE}", new_x="LMARGIN", new_y="NEXT")
        pdf.ln(6)
    return bytes(pdf.output())


def _draw_table(pdf: "FPDF", table: DocumentTable) -> None:
    pdf.ln(3)
    pdf.set_font(_FONT, "B", 10)
    pdf.multi_cell(0, 6, table.title, new_x="LMARGIN", new_y="NEXT")
    pdf.set_font(_FONT, "", 8)
    numbers = len(table.heads) - 1
    with pdf.table(
        col_widths=(_FIRST, *([1] * numbers)), text_align=("LEFT", *(["RIGHT"] * numbers)), line_height=_LINE
    ) as drawn:
        for row in (table.heads, *table.rows):
            drawn.row(row)

"""Content of export files: CSV text, and cells of a sheet."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec

from ....ports.spreadsheets import Cell, CellKind, SheetColumn
from ...domain.days import MOSCOW
from ...domain.exports.exports import Export, ExportKind
from .rows import MovementRow, PaymentRow, PersonPaymentRow, RefundRow

_ROW_KINDS: Mapping[ExportKind, type[PaymentRow] | type[RefundRow] | type[MovementRow]] = {
    ExportKind.PAYMENTS: PaymentRow,
    ExportKind.REFUNDS: RefundRow,
    ExportKind.STATEMENT: MovementRow,
}

BYTE_ORDER_MARK = "\ufeff"
"""Begins a CSV file for people, because without it Excel misreads Russian letters."""

_DECIMALS = {"_rub": 2, "_usdt": 8}
_RATE = "rate"


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Return lines of CSV. Texts of the rows are guarded already (rows.py: `guarded_rows`)."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue()


def fields_of(export: Export) -> tuple[str, ...]:
    """Return the names of the columns. Only people get the payers' masked phones."""
    is_for_person = export.kind is ExportKind.PAYMENTS and not export.is_by_api
    return (PersonPaymentRow if is_for_person else _ROW_KINDS[export.kind]).__struct_fields__


def columns_of(export: Export) -> list[SheetColumn]:
    """Return the columns of a sheet: amounts and rates are numbers, moments are dates, all others texts."""
    return [_column(name) for name in fields_of(export)]


def _column(name: str) -> SheetColumn:
    if name.endswith("_at"):
        return SheetColumn(f"{name} (UTC+3)", CellKind.MOMENT)
    if name.startswith(_RATE):
        return SheetColumn(name, CellKind.NUMBER)
    decimals = next((number for ending, number in _DECIMALS.items() if name.endswith(ending)), None)
    return SheetColumn(name, CellKind.TEXT) if decimals is None else SheetColumn(name, CellKind.NUMBER, decimals)


def encode_rows(rows: Sequence[msgspec.Struct]) -> bytes:
    """Encode rows for storage until a workbook is built of them."""
    return msgspec.json.encode([msgspec.structs.astuple(row) for row in rows])


def cells_of(columns: Sequence[SheetColumn], encoded: bytes) -> list[list[Cell]]:
    """Return stored rows as cells."""
    rows = msgspec.json.decode(encoded, type=list[list[str | None]])
    return [[_cell(column.kind, value) for column, value in zip(columns, row, strict=True)] for row in rows]


def _cell(kind: CellKind, value: str | None) -> Cell:
    if value is None or kind is CellKind.TEXT:
        return value
    return Decimal(value) if kind is CellKind.NUMBER else datetime.fromisoformat(value).astimezone(MOSCOW)

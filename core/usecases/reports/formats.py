"""Formats of a register, all made of its stored text without reading it whole (docs/reports.md "Formats")."""

import csv
import io
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal

import msgspec

from ....ports.bundle import Ports
from ....ports.spreadsheets import Cell, CellKind, SheetColumn
from ...domain.money import Rub, Usdt
from ...domain.reports.reports import Report, ReportFormat, columns_chosen
from ..exports.files import BYTE_ORDER_MARK, csv_text
from .rows import COLUMNS

HEADS: Mapping[str, str] = {
    "number": "№ движения",
    "kind": "Вид операции",
    "completed_at": "Дата и время (МСК)",
    "operation_id": "Идентификатор операции",
    "payment_id": "Идентификатор платежа",
    "external_id": "Номер заказа",
    "shop_id": "Магазин",
    "shop_name": "Название магазина",
    "amount_rub": "Сумма, руб.",
    "sbp_operation_id": "Номер операции СБП",
    "settlement_id": "Номер расчёта",
    "rate_market": "Курс рынка",
    "rate_merchant": "Курс расчёта",
    "fee_usdt": "Вознаграждение, USDT",
    "fee_rub": "Вознаграждение, руб.",
    "pending_rub": "Изменение: ждёт расчёта, руб.",
    "available_usdt": "Изменение: доступно, USDT",
    "reserved_usdt": "Изменение: в пути, USDT",
    "network": "Сеть",
    "tx_hash": "Хеш транзакции",
    "balance_pending_rub": "Ждёт расчёта после, руб.",
    "balance_available_usdt": "Доступно после, USDT",
    "balance_reserved_usdt": "В пути после, USDT",
    "entry_id": "Запись журнала",
}
KINDS: Mapping[str, str] = {
    "receipt": "Платёж",
    "review_accepted": "Платёж после проверки",
    "settlement": "Расчёт",
    "refund_taken": "Возврат",
    "refund_returned": "Возврат не выполнен",
    "refund_reversed": "Возврат отменён",
    "payout_reserved": "Выплата начата",
    "payout_sent": "Выплата отправлена",
    "payout_released": "Выплата не выполнена",
    "exchange_completed": "Обмен",
    "exchange_failed": "Обмен не выполнен",
    "sandbox_cleared": "Тестовые данные удалены",
}
SUMMED = ("amount_rub", "fee_usdt", "fee_rub", "pending_rub", "available_usdt", "reserved_usdt")
TOTAL = "Итого"


def is_amount(column: str) -> bool:
    """Return whether a column holds amounts or rates."""
    return column.endswith(("_rub", "_usdt")) or column.startswith("rate_")


class Columns(msgspec.Struct, frozen=True):
    """Columns of a file, and their positions in the stored text."""

    names: tuple[str, ...]
    places: tuple[int, ...]

    @classmethod
    def read(cls, text: str | None) -> "Columns":
        """Return the columns that a request names. Raises: Refusal VALIDATION_ERROR."""
        names = columns_chosen(COLUMNS, text)
        return cls(names, tuple(COLUMNS.index(each) for each in names))

    def of(self, row: Sequence[str]) -> list[str]:
        return [row[place] for place in self.places]


async def write_format(
    ports: Ports,
    form: ReportFormat,
    report: Report,
    columns: Columns,
    shops: tuple[str, ...] | None,
    text: AsyncIterator[bytes],
) -> AsyncIterator[bytes]:
    """Yield a file of the stored text, with the rows of these shops; None: all rows."""
    if form is ReportFormat.CSV and columns.names == COLUMNS and shops is None:
        async for part in text:
            yield part
        return
    rows = _rows(text, shops)
    if form is ReportFormat.CSV:
        yield csv_text([columns.names]).encode()
        async for batch in rows:
            yield csv_text(columns.of(row) for row in batch).encode()
    elif form is ReportFormat.ACCOUNTING:
        async for part in _accounting(report, columns, rows, is_whole=shops is None):
            yield part
    else:
        async for part in _workbook(ports, columns, rows):
            yield part


async def _rows(text: AsyncIterator[bytes], shops: tuple[str, ...] | None) -> AsyncIterator[list[list[str]]]:
    """Yield the rows of each part of the text, which begins and ends with whole rows."""
    heading, shop = 1, COLUMNS.index("shop_id")
    async for part in text:
        rows = list(csv.reader(io.StringIO(part.decode(), newline="")))[heading:]
        heading = 0
        yield rows if shops is None else [row for row in rows if row[shop] in shops]


async def _accounting(
    report: Report, columns: Columns, rows: AsyncIterator[list[list[str]]], *, is_whole: bool
) -> AsyncIterator[bytes]:
    """Yield CSV as Russian spreadsheets read it: semicolons, decimal commas, a byte order mark; totals below a blank
    row, and the balances if the file covers all shops."""
    totals: dict[str, list[Decimal]] = {}
    counts: dict[str, int] = {}
    yield (BYTE_ORDER_MARK + _semicolons([[HEADS[each] for each in columns.names]])).encode()
    summed, kind_at = [COLUMNS.index(each) for each in SUMMED], COLUMNS.index("kind")
    async for batch in rows:
        for row in batch:
            kind = row[kind_at]
            before = totals.setdefault(kind, [Decimal(0)] * len(SUMMED))
            totals[kind] = [
                one + Decimal(row[place]) if row[place] else one for one, place in zip(before, summed, strict=True)
            ]
            counts[kind] = counts.get(kind, 0) + 1
        yield _semicolons([_shown(columns, row) for row in batch]).encode()
    lines: list[list[str]] = [[], [TOTAL, "Операций", *(HEADS[each] for each in SUMMED)]]
    for kind, sums in totals.items():
        lines.append([KINDS.get(kind, kind), str(counts[kind]), *(_comma(format(each, "f")) for each in sums)])
    if is_whole:
        for name, balance in (("Остаток на начало", report.opening), ("Остаток на конец", report.closing)):
            parts = Rub(balance.pending), Usdt(balance.available), Usdt(balance.reserved)
            lines.append([name, "", "", "", "", *(_comma(str(each)) for each in parts)])
    yield _semicolons(lines).encode()


def _shown(columns: Columns, row: Sequence[str]) -> list[str]:
    shown = []
    for name, value in zip(columns.names, columns.of(row), strict=True):
        if name == "completed_at":
            value = datetime.fromisoformat(value).strftime("%d.%m.%Y %H:%M:%S")
        elif is_amount(name):
            value = _comma(value)
        shown.append(KINDS.get(value, value) if name == "kind" else value)
    return shown


def _comma(number: str) -> str:
    return number.replace(".", ",")


def _semicolons(rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=";", lineterminator="\r\n").writerows(rows)
    return text.getvalue()


async def _workbook(ports: Ports, columns: Columns, rows: AsyncIterator[list[list[str]]]) -> AsyncIterator[bytes]:
    """Yield a workbook while it is written. USDT amounts and rates are texts, because a sheet keeps 15 digits."""
    sheet = [_column(each) for each in columns.names]
    book = ports.spreadsheets.open("register", sheet)
    async for batch in rows:
        await book.write([_cells(columns, sheet, row) for row in batch])
        if part := book.taken():
            yield part
    async for part in book.parts():
        yield part


def _column(name: str) -> SheetColumn:
    if name == "completed_at":
        return SheetColumn(HEADS[name], CellKind.MOMENT)
    if name.endswith("_rub"):
        return SheetColumn(HEADS[name], CellKind.NUMBER, 2)
    return SheetColumn(HEADS[name], CellKind.TEXT)


def _cells(columns: Columns, sheet: Sequence[SheetColumn], row: Sequence[str]) -> list[Cell]:
    cells: list[Cell] = []
    for name, column, value in zip(columns.names, sheet, columns.of(row), strict=True):
        if not value:
            cells.append(None)
        elif column.kind is CellKind.NUMBER:
            cells.append(Decimal(value))
        elif column.kind is CellKind.MOMENT:
            cells.append(datetime.fromisoformat(value))
        else:
            cells.append(KINDS.get(value, value) if name == "kind" else value)
    return cells

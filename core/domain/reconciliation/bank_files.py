"""Files in which a bank lists its operations: 1CClientBankExchange, CAMT.053 and CSV (docs/reconciliation.md
"A bank's file"). Reading them is pure; a file that cannot be read whole is refused whole."""

import csv
import io
import re
import xml.parsers.expat
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from itertools import pairwise

import msgspec

from ..days import MOSCOW
from ..errors import Refusal

BYTES_MOST = 25 * 1024 * 1024
ROWS_MOST = 200_000
DAYS_MOST = 62
_DEPTH_MOST = 64
_TEXT_MOST = 4000

_FIRST_LINE = "1CClientBankExchange"
_DATE_FORMS = ("%d.%m.%Y", "%Y-%m-%d", "%d.%m.%y", "%d/%m/%Y")
_TIME_FORMS = ("%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%d.%m.%y %H:%M:%S")

COLUMNS: Mapping[str, str] = {
    "date": "day of the operation, with or without its time",
    "amount": "amount; a minus means money out",
    "in": "amount of money in, instead of `amount`",
    "out": "amount of money out, instead of `amount`",
    "text": "purpose or description, in which our ids are looked for",
    "operation": "our id of the operation",
    "reference": "the bank's id of the payment",
    "entry": "the bank's id of the row",
    "fee": "the bank's fee",
}
"""Meanings of the columns of a CSV file."""


class FileColumns(msgspec.Struct, frozen=True, kw_only=True):
    """Mapping of the columns of a bank's CSV files; its id is the bank's name."""

    id: str
    columns: dict[str, str]
    """From meanings to the heads in the file."""
    version: int = 0


class FileRow(msgspec.Struct, frozen=True, kw_only=True):
    """An operation in a bank's file."""

    id: str
    day: date
    moment: datetime | None
    """None: the file gives only the day."""
    kopecks: int
    is_in: bool
    """Whether the money came in."""
    text: str
    """All texts and ids of the row."""
    fee: int | None = None


class BankFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it was read."""

    form: str
    first: date
    last: date
    rows: tuple[FileRow, ...]


def read_bank_file(body: bytes, columns: Mapping[str, str] | None = None) -> BankFile:
    """Read a file. `columns`: the mapping of a CSV file, from meanings to heads. Raises: Refusal VALIDATION_ERROR with
    the first fault."""
    if len(body) > BYTES_MOST:
        raise _refused(f"the file has more than {BYTES_MOST // 1024 // 1024} MB")
    head = body[:400].lstrip(b"\xef\xbb\xbf \r\n\t")
    if head.startswith(_FIRST_LINE.encode()):
        return _checked("1CClientBankExchange", *_exchange(body))
    if head.startswith(b"<") or body[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return _checked("CAMT.053", *_camt(body))
    if not columns:
        raise _refused("a CSV file needs a mapping of its columns, such as date=Дата")
    return _checked("CSV", *_csv(body, columns))


def _refused(why: str) -> Refusal:
    return Refusal("VALIDATION_ERROR", f"The bank's file cannot be used: {why}")


_Drafts = list[tuple[FileRow, str]]
"""Rows with the bank's own ids; "" where a row has none."""


def _checked(form: str, drafts: _Drafts, span: tuple[date, date] | None) -> BankFile:
    if len(drafts) > ROWS_MOST:
        raise _refused(f"it has more than {ROWS_MOST} operations")
    days = [row.day for row, _ in drafts]
    if span is None and not days:
        raise _refused("it has no operations and no period")
    first, last = span or (min(days), max(days))
    if last < first or (last - first).days >= DAYS_MOST:
        raise _refused(f"it covers more than {DAYS_MOST} days, or ends before it begins")
    return BankFile(form=form, first=first, last=last, rows=tuple(_named(drafts)))


def _named(drafts: _Drafts) -> Iterator[FileRow]:
    """Give each row an id that stays the same in another file: the bank's, else its content and its occurrence."""
    seen: Counter[str] = Counter()
    for row, given in drafts:
        name = given or f"{row.day}:{row.kopecks if row.is_in else -row.kopecks}:{row.text}"[:200]
        seen[name] += 1
        yield msgspec.structs.replace(row, id=name if seen[name] == 1 else f"{name}#{seen[name]}")


def _kopecks(text: str) -> int:
    plain = "".join(char for char in text if not char.isspace() and char != "₽").replace(",", ".")
    try:
        kopecks = Decimal(plain) * 100
    except InvalidOperation:
        raise _refused(f"{text[:40]!r} is no amount") from None
    if not kopecks.is_finite() or kopecks != kopecks.to_integral_value() or abs(kopecks) >= 10**15:
        raise _refused(f"{text[:40]!r} is no amount in kopecks")
    return int(kopecks)


def _moment(text: str) -> tuple[date, datetime | None]:
    text = text.strip()
    for form in _TIME_FORMS:
        try:
            moment = datetime.strptime(text[:19], form).replace(tzinfo=MOSCOW)
        except ValueError:
            continue
        return moment.date(), moment
    for form in _DATE_FORMS:
        try:
            return datetime.strptime(text[:10], form).replace(tzinfo=MOSCOW).date(), None
        except ValueError:
            continue
    raise _refused(f"{text[:40]!r} is no date")


def _decoded(body: bytes) -> str:
    if body.startswith(b"\xef\xbb\xbf"):
        return body.decode("utf-8-sig", "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode("cp1251", "replace")


# 1CClientBankExchange


def _exchange(body: bytes) -> tuple[_Drafts, tuple[date, date] | None]:
    encoding = re.search(rb"\r?\n[^\r\n=]*=([A-Za-z0-9-]+)\r?\n", body[:600])
    text = body.decode("cp866", "replace") if encoding and encoding[1].lower() == b"dos" else _decoded(body)
    lines = [line.strip() for line in text.splitlines()]
    if "КонецФайла" not in lines:
        raise _refused("its end is missing")
    top, parts = _sections(lines)
    accounts = {value for name, value in top if name == "РасчСчет"}
    drafts: _Drafts = []
    for kind, fields in parts:
        if kind != "СекцияДокумент":
            continue
        is_in = fields.get("ПолучательСчет", fields.get("ПолучательРасчСчет", "")) in accounts
        executed = fields.get("ДатаПоступило" if is_in else "ДатаСписано") or ""
        if not executed:
            continue  # not executed at the bank
        day, moment = _moment(executed)
        purpose = " ".join(value for name, value in fields.items() if name.startswith("НазначениеПлатежа"))
        texts = f"{purpose} {fields.get('Номер', '')}"[:_TEXT_MOST]
        amount = _kopecks(fields.get("Сумма", ""))
        row = FileRow(id="", day=day, moment=moment, kopecks=amount, is_in=is_in, text=texts)
        drafts.append((row, ""))
    _check_balance(parts, drafts)
    begin, end = dict(top).get("ДатаНачала"), dict(top).get("ДатаКонца")
    return drafts, (_moment(begin)[0], _moment(end)[0]) if begin and end else None


def _sections(lines: list[str]) -> tuple[list[tuple[str, str]], list[tuple[str, dict[str, str]]]]:
    top: list[tuple[str, str]] = []
    parts: list[tuple[str, dict[str, str]]] = []
    inside = False
    for line in lines[1:]:
        name, _, value = line.partition("=")
        if name.startswith("Секция"):
            parts.append((name, {}))
            inside = True
        elif name.startswith("Конец"):
            inside = False
        elif inside and name:
            parts[-1][1].setdefault(name, value)
        elif name:
            top.append((name, value))
    return top, parts


def _check_balance(parts: list[tuple[str, dict[str, str]]], drafts: _Drafts) -> None:
    """Check that the opening balance and the operations give the closing balance, where the file has one account."""
    sections = [fields for kind, fields in parts if kind == "СекцияРасчСчет"]
    if len({each.get("РасчСчет") for each in sections}) != 1:
        return
    opening, closing = sections[0].get("НачальныйОстаток"), sections[-1].get("КонечныйОстаток")
    if opening is None or closing is None:
        return
    moved = sum(row.kopecks if row.is_in else -row.kopecks for row, _ in drafts)
    if _kopecks(opening) + moved != _kopecks(closing):
        raise _refused("its opening balance and its operations do not give its closing balance")


# CAMT.053


class _Node:
    """An XML element: its local name, text and children."""

    __slots__ = ("attributes", "children", "name", "text")

    def __init__(self, name: str, attributes: Mapping[str, str]) -> None:
        self.name, self.attributes, self.text = name, attributes, ""
        self.children: list[_Node] = []

    def all(self, path: str) -> Iterator["_Node"]:
        first, _, rest = path.partition("/")
        for child in self.children:
            if child.name == first:
                if rest:
                    yield from child.all(rest)
                else:
                    yield child

    def get(self, *paths: str) -> str:
        return next((each.text.strip() for path in paths for each in self.all(path) if each.text.strip()), "")

    def words(self) -> Iterator[str]:
        if self.text.strip():
            yield self.text.strip()
        for child in self.children:
            yield from child.words()


def _parsed(body: bytes) -> _Node:
    """Return the document. A document type, and so every entity, is refused."""
    parser = xml.parsers.expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    top = _Node("", {})
    open_nodes = [top]

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(open_nodes) > _DEPTH_MOST:
            raise _refused("it is nested too deep")
        node = _Node(name.rpartition(" ")[2], attributes)
        open_nodes[-1].children.append(node)
        open_nodes.append(node)

    def end(_: str) -> None:
        open_nodes.pop()

    def text(data: str) -> None:
        open_nodes[-1].text += data

    def document_type(*_: object) -> None:
        raise _refused("it declares a document type")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = text, document_type
    try:
        parser.Parse(body, True)
    except (xml.parsers.expat.ExpatError, LookupError, ValueError):
        raise _refused("it is no well-formed XML") from None
    return top


def _camt(body: bytes) -> tuple[_Drafts, tuple[date, date] | None]:
    statements = [*_parsed(body).all("Document/BkToCstmrStmt/Stmt")]
    if not statements:
        raise _refused("it has no statement of CAMT.053")
    drafts: _Drafts = []
    spans: list[date] = []
    for statement in statements:
        before = len(drafts)
        for entry in statement.all("Ntry"):
            # Up to version 6 the status is a text, from version 7 on an element of its own.
            if (entry.get("Sts", "Sts/Cd") or "BOOK") == "BOOK":
                drafts.extend(_entries(entry))
        _check_statement(statement, drafts[before:])
        spans += _span(statement.get("FrToDt/FrDtTm"), statement.get("FrToDt/ToDtTm"))
    return drafts, (min(spans), max(spans)) if spans else None


def _span(begin: str, end: str) -> list[date]:
    if not begin or not end:
        return []
    first, (last, moment) = _xml_moment(begin)[0], _xml_moment(end)
    # Banks end a day at its last second, or at midnight of the next one.
    is_next = moment is None and len(end) > len("2026-11-26") and last > first
    return [first, last - timedelta(days=1) if is_next else last]


def _entries(entry: _Node) -> Iterator[tuple[FileRow, str]]:
    """Yield the operations of an entry: its batch is split into its parts."""
    is_in = entry.get("CdtDbtInd") == "CRDT"
    day, moment = _xml_moment(entry.get("BookgDt/DtTm", "BookgDt/Dt", "ValDt/DtTm", "ValDt/Dt"))
    reference, total = entry.get("AcctSvcrRef", "NtryRef"), _entry_amount(entry)
    parts = [*entry.all("NtryDtls/TxDtls")]
    amounts = [_detail_amount(each) for each in parts]
    if len(parts) > 1 and (None in amounts or sum(each or 0 for each in amounts) != total):
        raise _refused("the parts of a batch do not add up to its amount")
    if len(parts) < 2:
        text = " ".join(word for word in entry.words() if word != "NOTPROVIDED")[:_TEXT_MOST]
        yield FileRow(id="", day=day, moment=moment, kopecks=total, is_in=is_in, text=text), reference
        return
    for number, (part, amount) in enumerate(zip(parts, amounts, strict=True), 1):
        text = " ".join(word for word in part.words() if word != "NOTPROVIDED")[:_TEXT_MOST]
        name = part.get("Refs/AcctSvcrRef") or (f"{reference}/{number}" if reference else "")
        yield FileRow(id="", day=day, moment=moment, kopecks=amount or 0, is_in=is_in, text=text), name


def _entry_amount(node: _Node) -> int:
    amount = next(node.all("Amt"), None)
    if amount is None:
        raise _refused("an entry has no amount")
    if amount.attributes.get("Ccy", "RUB") not in ("RUB", "RUR"):
        raise _refused("an entry is not in roubles")
    return _kopecks(amount.text)


def _detail_amount(part: _Node) -> int | None:
    text = part.get("Amt", "AmtDtls/TxAmt/Amt", "AmtDtls/InstdAmt/Amt")
    return _kopecks(text) if text else None


def _check_statement(statement: _Node, drafts: _Drafts) -> None:
    balances = {}
    for each in statement.all("Bal"):
        sign = 1 if each.get("CdtDbtInd") == "CRDT" else -1
        balances[each.get("Tp/CdOrPrtry/Cd")] = sign * _kopecks(each.get("Amt") or "0")
    if "OPBD" in balances and "CLBD" in balances:
        moved = sum(row.kopecks if row.is_in else -row.kopecks for row, _ in drafts)
        if balances["OPBD"] + moved != balances["CLBD"]:
            raise _refused("its opening balance and its entries do not give its closing balance")


def _xml_moment(text: str) -> tuple[date, datetime | None]:
    try:
        if len(text) == len("2026-11-26"):
            return date.fromisoformat(text), None
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise _refused(f"{text[:40]!r} is no date") from None
    here = moment.replace(tzinfo=MOSCOW) if moment.tzinfo is None else moment.astimezone(MOSCOW)
    # Banks write midnight for a booking day without a time.
    return here.date(), None if here.time() == datetime.min.time() else here


# CSV


def read_columns(texts: Mapping[str, str]) -> dict[str, str]:
    """Return a mapping of columns. Raises: Refusal VALIDATION_ERROR."""
    if unknown := sorted(set(texts) - set(COLUMNS)):
        raise Refusal("VALIDATION_ERROR", f"{', '.join(unknown)}: a column means one of {', '.join(COLUMNS)}")
    if "date" not in texts or not {"amount", "in", "out"} & texts.keys():
        raise Refusal("VALIDATION_ERROR", "Map at least date, and amount or in and out")
    return dict(texts)


def _csv(body: bytes, columns: Mapping[str, str]) -> tuple[_Drafts, tuple[date, date] | None]:
    text = _decoded(body)
    lines = text.splitlines()
    at = next((at for at, line in enumerate(lines[:200]) if all(head in line for head in columns.values())), None)
    if at is None:
        raise _refused(f"no line of it has the heads {', '.join(columns.values())}")
    delimiter = max(";,\t|", key=lines[at].count)
    # Use the text itself and not its lines, because a quoted field may contain a line break.
    table = csv.reader(io.StringIO("\n".join(lines[at:])), delimiter=delimiter)
    drafts: _Drafts = []
    try:
        heads = [head.strip() for head in next(table)]
        where = {meaning: heads.index(head) for meaning, head in columns.items()}
        for values in table:
            if not any(each.strip() for each in values) or len(values) <= max(where.values()):
                break  # totals below the table
            drafts.append(_csv_row({meaning: values[index].strip() for meaning, index in where.items()}))
    except (csv.Error, ValueError):
        raise _refused("its table cannot be read by this mapping") from None
    return drafts, None


def _csv_row(values: Mapping[str, str]) -> tuple[FileRow, str]:
    day, moment = _moment(values["date"])
    amount = _kopecks(values.get("amount") or values.get("in") or "0")
    if not amount and values.get("out"):
        amount = -abs(_kopecks(values["out"]))
    text = " ".join(values.get(name, "") for name in ("operation", "reference", "text", "entry")).strip()
    fee = abs(_kopecks(values["fee"])) if values.get("fee") else None
    row = FileRow(id="", day=day, moment=moment, kopecks=abs(amount), is_in=amount > 0, text=text[:_TEXT_MOST], fee=fee)
    return row, values.get("entry", "")


def days_of(file: BankFile, lag: int) -> list[date]:
    """Return the days that a file can judge: a bank that books `lag` days later has told all about these."""
    count = (file.last - file.first).days + 1 - lag
    return [file.first + timedelta(days=number) for number in range(max(0, count))]


def words_of(text: str) -> Iterator[str]:
    """Yield the words of a row that can be ids."""
    for begin, end in pairwise([0, *(match.end() for match in _BREAK.finditer(text)), len(text)]):
        word = text[begin:end].strip(_AROUND)
        if len(word) >= 4:
            yield word


_AROUND = " \t\r\n,;:()[]\"'№#.«»/"
_BREAK = re.compile(r"[\s,;()]+")

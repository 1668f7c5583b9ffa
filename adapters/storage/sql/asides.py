"""Setting aside: a job that this program cannot read goes out of its table into one beside it, so that no claim meets
it again, and comes back once a program can read it.

What is written here are texts of our own for both databases, because the row is no record: its values are carried as
they are.
"""

import base64
import sqlite3
from datetime import datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import msgspec

from ....ports.faults import Unreadable
from ....ports.unreadable import UnreadableRow
from ..table.codec import Codec, Row, Storing
from ..table.table_map import TableMap
from .statements import Statement

_BYTES, _FLOAT = "bytes", "float"
"""How JSON carries what it has no words for."""


def note_of(mapped: TableMap[Any], row: Row, fault: Unreadable, now: datetime, *, held: bool) -> UnreadableRow:
    """What is told of a row. `held`: with its values."""
    from .revisions import head  # here: what is rarely needed, and reads a folder

    row_id = _shown(row[mapped.codec.index["id"]])
    return UnreadableRow(
        id=note_id(mapped, row),
        source=mapped.name,
        row_id=row_id,
        why=fault.why,
        found_at=now,
        found_by=f"{_version()}, schema {head()}",
        held=packed(row) if held else None,
    )


def note_id(mapped: TableMap[Any], row: Row) -> str:
    """The id of a row's note."""
    return f"{mapped.name}:{_shown(row[mapped.codec.index['id']])}"


def taken_out_of_postgres(mapped: TableMap[Any], row: Row, note: UnreadableRow) -> Statement:
    """Take a row that was read out of its table, unless it moved since, and note it, in one statement."""
    names = _notes().names
    values = ", ".join(
        f"${index}::{'bigint' if column.storing is Storing.INTEGER else 'text'}"
        for index, column in enumerate(_notes().columns, start=4)
    )
    gone = (
        f"DELETE FROM {mapped.name} WHERE id = $1 AND version = $2 AND leased_until IS NOT DISTINCT FROM $3 RETURNING 1"  # noqa: S608 - our own names
    )
    return (
        f"WITH gone AS ({gone}) INSERT INTO unreadable_rows ({', '.join(names)}) SELECT {values} FROM gone {_again()}",  # noqa: S608
        [*_as_read(mapped, row), *_notes().encode(note)],
    )


def take_out_of_sqlite(cursor: sqlite3.Cursor, mapped: TableMap[Any], row: Row, note: UnreadableRow) -> None:
    """The same, in a transaction that the caller began. Text that is no UTF-8 was read as bytes, like bytes."""
    names = _notes().names
    row_id, version, lease = _as_read(mapped, row)
    gone = f"DELETE FROM {mapped.name} WHERE id IN (?, CAST(? AS TEXT)) AND version = ? AND leased_until IS ?"  # noqa: S608 - our own names
    if cursor.execute(gone, (row_id, row_id, version, lease)).rowcount == 1:
        values = ", ".join("?" for _ in names)
        cursor.execute(
            f"INSERT INTO unreadable_rows ({', '.join(names)}) VALUES ({values}) {_again()}",  # noqa: S608 - our own names
            _notes().encode(note),
        )


def _as_read(mapped: TableMap[Any], row: Row) -> list[Any]:
    return [row[mapped.codec.index[name]] for name in ("id", "version", "leased_until")]


def _again() -> str:
    """What becomes of an older note of the same row."""
    fresh = ", ".join(f"{name} = excluded.{name}" for name in _notes().names if name != "id")
    return f"ON CONFLICT (id) DO UPDATE SET {fresh}"


def tolerant(raw: bytes) -> str | bytes:
    """Text as SQLite hands it over. What is no UTF-8 stays bytes, where it would else fail the whole read."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def packed(row: Row) -> str:
    """A row's values as JSON."""

    def plain(value: Any) -> Any:
        if isinstance(value, bytes):
            return {_BYTES: base64.b64encode(value).decode("ascii")}
        return {_FLOAT: repr(value)} if isinstance(value, float) else value

    return msgspec.json.encode([plain(value) for value in row]).decode()


def unpacked(held: str) -> list[Any]:
    """The values again. Raises ValueError for what `packed` never wrote."""

    def value_of(plain: Any) -> Any:
        match plain:
            case {"bytes": str(text)}:
                return base64.b64decode(text)
            case {"float": str(text)}:
                return float(text)
        return plain

    values: list[Any] = msgspec.json.decode(held, type=list)
    return [value_of(plain) for plain in values]


@cache
def _notes() -> Codec[UnreadableRow]:
    return Codec(UnreadableRow)


@cache
def _version() -> str:
    try:
        return version("cambist")
    except PackageNotFoundError:  # a tree that was never installed
        return "unknown"


def _shown(row_id: object) -> str:
    """An id as it can be told, whatever it is."""
    found = row_id.decode(errors="replace") if isinstance(row_id, bytes) else str(row_id)
    return found.replace("\0", "\ufffd")

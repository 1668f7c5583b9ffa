"""Quarantine of unreadable jobs.

A job that this program cannot read moves from its table to another one, so that no claim meets it again. It returns
once a program can read it. The statements here are hand-written for both databases, because such a row is no
record: its values are copied unchanged.
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
"""Keys under which JSON carries values that it has no type for."""


def note_of(mapped: TableMap[Any], row: Row, fault: Unreadable, now: datetime, *, held: bool) -> UnreadableRow:
    """Return the note about a row. With `held` it contains the row's values."""
    from .revisions import head  # here: rarely needed, and slow because it reads a folder

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
    """Return the id of a row's note."""
    return f"{mapped.name}:{_shown(row[mapped.codec.index['id']])}"


def taken_out_of_postgres(mapped: TableMap[Any], row: Row, note: UnreadableRow) -> Statement:
    """Delete a row from its table, unless it changed since it was read, and store its note, in one statement."""
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
    """Do the same in a transaction that the caller began. Text that is not UTF-8 was read as bytes."""
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
    """Return the clause that replaces an older note of the same row."""
    fresh = ", ".join(f"{name} = excluded.{name}" for name in _notes().names if name != "id")
    return f"ON CONFLICT (id) DO UPDATE SET {fresh}"


def tolerant(raw: bytes) -> str | bytes:
    """Decode text from SQLite. Text that is not UTF-8 stays bytes; otherwise it would fail the whole read."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def packed(row: Row) -> str:
    """Return a row's values as JSON."""

    def plain(value: Any) -> Any:
        if isinstance(value, bytes):
            return {_BYTES: base64.b64encode(value).decode("ascii")}
        return {_FLOAT: repr(value)} if isinstance(value, float) else value

    return msgspec.json.encode([plain(value) for value in row]).decode()


def unpacked(held: str) -> list[Any]:
    """Return the values from JSON. Raises ValueError for JSON that `packed` never wrote."""

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
    except PackageNotFoundError:  # a source tree that was never installed
        return "unknown"


def _shown(row_id: object) -> str:
    """Return an id as printable text."""
    found = row_id.decode(errors="replace") if isinstance(row_id, bytes) else str(row_id)
    return found.replace("\0", "\ufffd")

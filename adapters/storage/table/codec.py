"""Records as rows: columns come from the record's type hints, and a row holds plain values that every database can
store.

Time is microseconds since 1970 UTC, money is its smallest unit, an enum is its text, and nested values are JSON
text. So a row means the same in memory, SQLite and Postgres, and no driver rounds or shifts a value. Values that
Postgres would refuse (NUL or half a surrogate pair in text, an integer beyond 64 bits) are refused here for all
storages.
"""

import types
import typing
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum, StrEnum
from functools import cached_property
from typing import Any, Generic, get_args, get_origin, get_type_hints

import msgspec

from ....core.domain.money import Rub, Usdt
from ....ports.faults import Unreadable
from ....ports.storage import R
from .compiled_codec import decoder, encoder

Row = Sequence[Any]
"""Values of a record in the order of its fields."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
_TEXT = "{v}.__class__ is str and {v}.isascii() and '\\0' not in {v}"
_INTEGER = f"{{v}}.__class__ is int and {_LOWEST} <= {{v}} <= {_HIGHEST}"
_SAME_KIND = "{v}.__class__ is {k}"
_IS_TEXT, _IS_INTEGER, _IS_BYTES = (f"{{v}}.__class__ is {name}" for name in ("str", "int", "bytes"))
_IS_FLAG = "{v} in (0, 1)"
_SHOWN = 200
"""Characters of an id in error messages."""
_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)


class Storing(Enum):
    """The five types of column."""

    TEXT = "text"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    BYTES = "bytes"
    JSON = "json"
    """Text for the database. It is never compared or sorted."""


class Column(msgspec.Struct, frozen=True):
    """Column for one field."""

    name: str
    storing: Storing
    nullable: bool
    test: str
    """Expression that is true if `plain` may be stored without calling `encode`: see compiled_codec.py."""
    plain: str
    kind: type[Any] | None
    """The field's type, if the test needs it."""
    encode: Callable[[Any], Any]
    """Converts the field's value (never None) to the plain one. Raises ValueError for a value that cannot be stored."""
    decode: Callable[[Any], Any] | None
    """Converts it back; None if the plain value is the field's value."""
    summable: bool = False
    stored: str = ""
    """Expression that tests whether a plain value fits the field, for columns whose `decode` accepts anything.

    Empty if `decode` refuses by itself.
    """

    def value_of(self, plain: Any) -> Any:
        """Return the field's value for a plain one, which may be null."""
        return plain if plain is None or self.decode is None else self.decode(plain)


def _misfit(column: Column, plain: Any) -> str | None:
    """Return why a plain value does not fit the field; None if it fits."""
    if plain is None:
        return None
    if column.stored and not eval(column.stored.format(v="plain"), {"plain": plain}):  # noqa: S307 - our own text
        return type(plain).__name__
    try:
        column.value_of(plain)
    except Exception as fault:  # noqa: BLE001 - any error means that the value cannot be read
        return type(fault).__name__
    return None


def microseconds(moment: datetime) -> int:
    """Return the microseconds since 1970 UTC.

    Raises ValueError for a moment without a zone, and for one outside the years 1 to 9999 in UTC.
    """
    if moment.tzinfo is not UTC:
        if moment.tzinfo is None:
            raise ValueError("a stored time needs a zone")
        if not _FIRST <= moment <= _LAST:
            raise ValueError("a stored time lies in the years 1 to 9999 of UTC")
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def moment(since: int) -> datetime:
    """Return the moment, in UTC."""
    return _EPOCH + since * _MICROSECOND


def nearest_moment(since: Any) -> datetime:
    """Return the moment; for an invalid value, the nearest end of time.

    Databases sort numbers first, then all other values.
    """
    try:
        return moment(since)
    except (TypeError, ValueError, OverflowError):
        return _FIRST if isinstance(since, (int, float)) and since < 0 else _LAST


def text(value: Any) -> str:
    """Return text in its stored form.

    Raises ValueError for a NUL or half a surrogate pair, TypeError for any other type.
    """
    if not isinstance(value, str):
        raise TypeError(f"text expected, not {type(value).__name__}")
    if "\x00" in value:
        raise ValueError("text with a NUL cannot be stored")
    if not value.isascii():
        _ = value.encode()  # UnicodeEncodeError is a ValueError
    return str(value)


def is_possible(record_id: str) -> bool:
    """Return whether a record could have this id. Ids may come from clients."""
    try:
        text(record_id)
    except ValueError:
        return False
    return True


def integer(value: Any) -> int:
    """Return an integer in its stored form. Raises ValueError beyond 64 bits, TypeError for any other type."""
    if type(value) is not int:
        raise TypeError(f"an integer expected, not {type(value).__name__}")
    if not _LOWEST <= value <= _HIGHEST:
        raise ValueError("an integer beyond 64 bits cannot be stored")
    return value


def _boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise TypeError(f"a boolean expected, not {type(value).__name__}")
    return value


def _bytes(value: Any) -> bytes:
    if type(value) is not bytes:
        raise TypeError(f"bytes expected, not {type(value).__name__}")
    return value


def _enum_column(name: str, kind: type[StrEnum], nullable: bool) -> Column:
    members = {str(member): member for member in kind}

    def encode(value: Any) -> str:
        return str(kind(value))

    return Column(name, Storing.TEXT, nullable, _SAME_KIND, "{v}._value_", kind, encode, members.__getitem__)


def _money_column(name: str, kind: type[Any], part: str, nullable: bool) -> Column:
    def encode(value: Any) -> int:
        if type(value) is not kind:
            raise TypeError(f"{kind.__name__} expected, not {type(value).__name__}")
        return integer(getattr(value, part))

    plain = f"{{v}}.{part}"
    test = f"{_SAME_KIND} and {_INTEGER.replace('{v}', plain)}"
    return Column(
        name, Storing.INTEGER, nullable, test, plain, kind, encode, kind, summable=not nullable, stored=_IS_INTEGER
    )


def _json_column(name: str, hint: Any, nullable: bool) -> Column:
    encoder = msgspec.json.Encoder()
    decoder = msgspec.json.Decoder(hint)

    def encode(value: Any) -> str:
        return encoder.encode(value).decode()

    return Column(name, Storing.JSON, nullable, "", "", None, encode, decoder.decode)


def _column(kind: type[Any], name: str, hint: Any) -> Column:
    nullable = False
    if get_origin(hint) in (typing.Union, types.UnionType):
        rest = [part for part in get_args(hint) if part is not type(None)]
        nullable = len(rest) < len(get_args(hint))
        hint = rest[0] if len(rest) == 1 else None
    if hint is str:
        return Column(name, Storing.TEXT, nullable, _TEXT, "{v}", None, text, None, stored=_IS_TEXT)
    if hint is int:
        return Column(
            name,
            Storing.INTEGER,
            nullable,
            _INTEGER,
            "{v}",
            None,
            integer,
            None,
            summable=not nullable,
            stored=_IS_INTEGER,
        )
    if hint is bool:
        return Column(name, Storing.BOOLEAN, nullable, _SAME_KIND, "{v}", bool, _boolean, bool, stored=_IS_FLAG)
    if hint is bytes:
        return Column(name, Storing.BYTES, nullable, _SAME_KIND, "{v}", bytes, _bytes, None, stored=_IS_BYTES)
    if hint is datetime:
        return Column(name, Storing.INTEGER, nullable, "", "", None, microseconds, moment)
    if hint is Rub:
        return _money_column(name, Rub, "kopecks", nullable)
    if hint is Usdt:
        return _money_column(name, Usdt, "units", nullable)
    plain = get_origin(hint) or hint
    if isinstance(plain, type):
        if issubclass(plain, StrEnum):
            return _enum_column(name, plain, nullable)
        if issubclass(plain, (msgspec.Struct, dict, list, tuple)):
            return _json_column(name, hint, nullable)
    raise TypeError(f"{kind.__name__}.{name}: no column is made of {hint}")


class Codec(Generic[R]):
    """Conversion between the records of one type and rows."""

    def __init__(self, kind: type[R]) -> None:
        names = tuple(kind.__struct_fields__)  # type: ignore[attr-defined]  # Record is a Protocol; all are structs
        if "id" not in names or "version" not in names:
            raise TypeError(f"{kind.__name__} has no id or no version")
        self.kind = kind
        self.names: tuple[str, ...] = names
        self.index = {name: number for number, name in enumerate(names)}

    @cached_property
    def columns(self) -> Sequence[Column]:
        """Columns of all fields, created on first use, because a process uses few of the record types."""
        hints = get_type_hints(self.kind)
        return tuple(_column(self.kind, name, hints[name]) for name in self.names)

    @cached_property
    def encode(self) -> Callable[[R], list[Any]]:
        """Convert a record to a row. Raises ValueError for a value that cannot be stored."""
        return encoder(self.kind, self.columns)

    @cached_property
    def decode(self) -> Callable[[Row], R]:
        """Convert a row to a record. Raises Unreadable."""
        return decoder(self.kind, self.columns, self._unreadable)

    def readable(self, rows: Sequence[Row]) -> tuple[list[R], list[tuple[Row, Unreadable]]]:
        """Return the records of readable rows, in order, and the unreadable rows, each with its error."""
        decode = self.decode
        try:
            return [decode(row) for row in rows], []
        except Unreadable:
            return self._one_by_one(rows)

    def _one_by_one(self, rows: Sequence[Row]) -> tuple[list[R], list[tuple[Row, Unreadable]]]:
        records, unreadable = list[R](), list[tuple[Row, Unreadable]]()
        for row in rows:
            try:
                records.append(self.decode(row))
            except Unreadable as fault:
                unreadable.append((row, fault))
        return records, unreadable

    def _unreadable(self, row: Row, fault: Exception) -> Unreadable:
        """Return the error for a row, naming the first field that does not fit."""
        why = type(fault).__name__
        for column, plain in zip(self.columns, row, strict=False):
            found = _misfit(column, plain)
            if found is not None:
                why = f"{column.name} ({found})"
                break
        record_id = row[self.index["id"]] if len(row) == len(self.columns) else None
        shown = record_id[:_SHOWN] if isinstance(record_id, str) else "of an id that is no text"
        return Unreadable(self.kind.__name__, shown, why)

    def column(self, field: str) -> Column:
        """Return the column of a field. Raises TypeError for an unknown field, which is a bug of the caller."""
        try:
            return self.columns[self.index[field]]
        except KeyError:
            raise TypeError(f"{self.kind.__name__} has no field {field}") from None

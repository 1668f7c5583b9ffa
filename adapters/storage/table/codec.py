"""Records as rows: columns come from the record's type hints, and a row holds plain values that every database keeps.

Time is microseconds since 1970 UTC, money its smallest part, an enum its text, anything nested JSON as text. So the
same row means the same in memory, SQLite and Postgres, and no driver rounds or shifts it.

What Postgres would refuse (NUL or half a surrogate pair in text, an integer beyond 64 bits) is refused here, for all.
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
"""The values of a record in the order of its fields."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
_TEXT = "{v}.__class__ is str and {v}.isascii() and '\\0' not in {v}"
_INTEGER = f"{{v}}.__class__ is int and {_LOWEST} <= {{v}} <= {_HIGHEST}"
_SAME_KIND = "{v}.__class__ is {k}"
_IS_TEXT, _IS_INTEGER, _IS_BYTES = (f"{{v}}.__class__ is {name}" for name in ("str", "int", "bytes"))
_IS_FLAG = "{v} in (0, 1)"
_SHOWN = 200
"""Characters of an id that are told."""
_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)


class Storing(Enum):
    """The five types of column."""

    TEXT = "text"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    BYTES = "bytes"
    JSON = "json"
    """Text to the database; never compared or ordered by."""


class Column(msgspec.Struct, frozen=True):
    """One field as the databases see it."""

    name: str
    storing: Storing
    nullable: bool
    test: str
    """When the value is stored without a call, and as what: compiled_codec.py."""
    plain: str
    kind: type[Any] | None
    """The field's type, where the test asks for it."""
    encode: Callable[[Any], Any]
    """From the field's value (never None) to the plain one. Raises ValueError for what cannot be stored."""
    decode: Callable[[Any], Any] | None
    """Back again; None: the plain value is the field's."""
    summable: bool = False
    stored: str = ""
    """Whether a plain value may be one of the field, where `decode` would take any. Empty: it refuses by itself."""

    def value_of(self, plain: Any) -> Any:
        """The field's value of a plain one, which may be null."""
        return plain if plain is None or self.decode is None else self.decode(plain)


def _misfit(column: Column, plain: Any) -> str | None:
    """What keeps a plain value from being one of the field; None: nothing does."""
    if plain is None:
        return None
    if column.stored and not eval(column.stored.format(v="plain"), {"plain": plain}):  # noqa: S307 - our own text
        return type(plain).__name__
    try:
        column.value_of(plain)
    except Exception as fault:  # noqa: BLE001 - whatever it raises, it cannot be read
        return type(fault).__name__
    return None


def microseconds(moment: datetime) -> int:
    """Microseconds since 1970 UTC. Raises ValueError for a moment without a zone, and for one that its zone puts
    outside the years 1 to 9999 of UTC."""
    if moment.tzinfo is not UTC:
        if moment.tzinfo is None:
            raise ValueError("a stored time needs a zone")
        if not _FIRST <= moment <= _LAST:
            raise ValueError("a stored time lies in the years 1 to 9999 of UTC")
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def moment(since: int) -> datetime:
    """The moment, in UTC."""
    return _EPOCH + since * _MICROSECOND


def nearest_moment(since: Any) -> datetime:
    """The moment; of what is none the nearest end of time, as databases order values: numbers first, then all else."""
    try:
        return moment(since)
    except (TypeError, ValueError, OverflowError):
        return _FIRST if isinstance(since, (int, float)) and since < 0 else _LAST


def text(value: Any) -> str:
    """Text as it is stored. Raises ValueError for a NUL or half a surrogate pair, TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError(f"text expected, not {type(value).__name__}")
    if "\x00" in value:
        raise ValueError("text with a NUL cannot be stored")
    if not value.isascii():
        _ = value.encode()  # UnicodeEncodeError is a ValueError
    return str(value)


def is_possible(record_id: str) -> bool:
    """Whether a record could have this id: they come from outside, too."""
    try:
        text(record_id)
    except ValueError:
        return False
    return True


def integer(value: Any) -> int:
    """An integer as it is stored. Raises ValueError beyond 64 bits, TypeError for anything else."""
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
    """Rows of one record type, there and back."""

    def __init__(self, kind: type[R]) -> None:
        names = tuple(kind.__struct_fields__)  # type: ignore[attr-defined]  # Record is a Protocol; all are structs
        if "id" not in names or "version" not in names:
            raise TypeError(f"{kind.__name__} has no id or no version")
        self.kind = kind
        self.names: tuple[str, ...] = names
        self.index = {name: number for number, name in enumerate(names)}

    @cached_property
    def columns(self) -> Sequence[Column]:
        """One for each field, made when they are first asked for: a process uses few of all kinds of records."""
        hints = get_type_hints(self.kind)
        return tuple(_column(self.kind, name, hints[name]) for name in self.names)

    @cached_property
    def encode(self) -> Callable[[R], list[Any]]:
        """The row of a record. Raises ValueError for a value that cannot be stored."""
        return encoder(self.kind, self.columns)

    @cached_property
    def decode(self) -> Callable[[Row], R]:
        """The record of a row. Raises Unreadable."""
        return decoder(self.kind, self.columns, self._unreadable)

    def readable(self, rows: Sequence[Row]) -> tuple[list[R], list[tuple[Row, Unreadable]]]:
        """The records of those rows that can be read, in their order, and the other rows, each with why not."""
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
        """What is raised for a row whose reading raised `fault`."""
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
        """The column of a field. Raises TypeError when there is no such field: a slip of the caller."""
        try:
            return self.columns[self.index[field]]
        except KeyError:
            raise TypeError(f"{self.kind.__name__} has no field {field}") from None

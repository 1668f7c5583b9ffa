"""Random records of any type that the catalogue declares. Few distinct values, so that ids and unique rules clash and
lists have ties; now and then a value at or beyond the limits of storage."""

import random
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from cambist.adapters.storage.table.table_map import keep
from cambist.core.domain.money import Rub, Usdt
from cambist.frontends.conformance.storage.kit import KIT_CATALOGUE, START
from cambist.ports.jobs import Job

_IDS = ("a", "b", "c", "d", "ё:1", "B")
_JOB_IDS = ("watch:1", "watch:2", "b:1", "ba:1", "b:a:1", "lone")
_TEXTS = ("", "a", "b", "B", "ё", "a'b\"%_\\", "🧾")
_NUMBERS = (0, 0, 1, 1, 2, 3, -1, 7)
_ENDS = (2**63 - 1, -(2**63))
_SPANS = (0.0, 0.0, 0.000001, 1.0, 60.0, -1.0, 86_400.0)
_RARE = 0.004
_CODECS = keep(KIT_CATALOGUE)


def drawn_record(kind: type[Any], chance: random.Random, *, storable: bool = False) -> Any:
    """A new record of this kind. `storable`: none that no storage keeps."""
    while True:
        made = _drawn(kind, chance)
        if not storable or _is_storable(made):
            return made


def _is_storable(record: Any) -> bool:
    try:
        _CODECS[type(record)].codec.encode(record)
    except ValueError:
        return False
    return True


def _drawn(kind: Any, chance: random.Random) -> Any:
    made = {field: drawn_value(hint, chance) for field, hint in _hints(kind) if field not in ("id", "version")}
    made["id"] = drawn_id(kind, chance)
    if kind is Job:
        made |= {"leased_until": None, "attempts": 0, "asked": chance.choice((0, 1))}
        made["due"] = START + timedelta(seconds=chance.choice((-60.0, -1.0, 0.0, 0.0, 1.0, 30.0)))
    return kind(**made)


def drawn_id(kind: type[Any], chance: random.Random) -> str:
    """The id of a record, which may be there or not."""
    return chance.choice(_JOB_IDS if kind is Job else _IDS)


def drawn_field(kind: Any, field: str, chance: random.Random) -> Any:
    """Return a random value for this field, or some text if the type has no such field."""
    return drawn_value(dict(_hints(kind)).get(field, str), chance)


def drawn_value(hint: Any, chance: random.Random) -> Any:
    """A value of this type. Raises: TypeError for a type that nobody has drawn yet."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return drawn_value(chance.choice(parts), chance)
    if origin is Literal:
        return chance.choice(parts)
    if hint in _DRAWERS:
        return _DRAWERS[hint](chance)
    if origin is dict:
        return {f"k{place}": drawn_value(parts[1], chance) for place in range(chance.choice((0, 1, 2)))}
    if origin is tuple and parts[-1] is not Ellipsis:
        return tuple(drawn_value(part, chance) for part in parts)
    if origin in (list, tuple):
        return origin(drawn_value(parts[0], chance) for _ in range(chance.choice((0, 1, 2))))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return chance.choice(list(hint))
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return hint(**{field: drawn_value(each, chance) for field, each in _hints(hint)})
    raise TypeError(f"how is {hint} drawn?")


@cache
def _hints(kind: Any) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(kind)
    return tuple((field, hints[field]) for field in kind.__struct_fields__)


def _text(chance: random.Random) -> str:
    return chance.choice(("a\0", "\ud800")) if chance.random() < _RARE / 4 else chance.choice(_TEXTS)


def _number(chance: random.Random) -> int:
    if chance.random() < _RARE:
        return chance.choice((*_ENDS, 2**63))
    return chance.choice(_NUMBERS)


def _moment(chance: random.Random) -> datetime:
    return START + timedelta(seconds=chance.choice(_SPANS))


_DRAWERS: dict[Any, Any] = {
    NoneType: lambda _: None,
    str: _text,
    int: _number,
    bool: lambda chance: chance.random() < 0.5,
    float: lambda chance: chance.choice((0.0, 0.5, -1.25)),
    bytes: lambda chance: chance.choice((b"", b"\0", b"\xff\0")),
    datetime: _moment,
    Rub: lambda chance: Rub(_number(chance)),
    Usdt: lambda chance: Usdt(_number(chance)),
    Any: lambda chance: chance.choice((None, 1, "ё", [1, None], {"a": {}}, 1.5)),
}

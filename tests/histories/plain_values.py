"""Rules for values of records in the storage plain.py: test whether a value can be stored or matches a criterion."""

from datetime import datetime
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from cambist.core.domain.money import Rub, Usdt
from cambist.ports.storage import AtLeast, AtMost, Below, Between, OneOf


def plain_of(value: Any) -> Any:
    """Return the value in the form that is compared and added."""
    if isinstance(value, Rub):
        return value.kopecks
    if isinstance(value, Usdt):
        return value.units
    return value.value if isinstance(value, Enum) else value


def values_asked(criterion: Any) -> tuple[Any, ...]:
    """The values that a criterion names."""
    match criterion:
        case AtMost(value) | AtLeast(value) | Below(value):
            return (value,)
        case OneOf(values):
            return values
        case Between(low, high):
            return (low, high)
        case _:
            return (criterion,)


def holds(criterion: Any, value: Any) -> bool:
    """Whether a value meets a criterion."""
    if isinstance(criterion, OneOf):
        return any(holds(each, value) for each in criterion.values)
    if criterion is None or criterion == Between():
        return value is None or criterion is not None
    if value is None:
        return False
    found = plain_of(value)
    match criterion:
        case AtMost(most):
            return bool(found <= plain_of(most))
        case AtLeast(least):
            return bool(found >= plain_of(least))
        case Below(end):
            return bool(found < plain_of(end))
        case Between(low, high):
            return (low is None or found >= plain_of(low)) and (high is None or found < plain_of(high))
        case _:
            return bool(found == plain_of(criterion))


@cache
def bare_type(kind: Any, field: str) -> tuple[Any, bool]:
    """Return the type of a field without null, and whether it may be null. Raises: TypeError if there is no such
    field."""
    hint = get_type_hints(kind).get(field)
    if hint is None:
        raise TypeError(f"no field {field}")
    if get_origin(hint) in (Union, UnionType):
        parts = [part for part in get_args(hint) if part is not type(None)]
        return parts[0], len(parts) < len(get_args(hint))
    return hint, False


def require_comparable(kind: Any, field: str) -> None:
    """Raises: TypeError for a field that holds a structure or does not exist."""
    bare, _ = bare_type(kind, field)
    is_structure = get_origin(bare) is not None or bare is dict or issubclass(bare, msgspec.Struct)
    if is_structure and bare not in (Rub, Usdt):
        raise TypeError(f"{field} holds a structure")


def require_storable(record: Any) -> None:
    """Raises: ValueError, where one of its values cannot be kept."""
    for field in record.__struct_fields__:
        require_value(getattr(record, field))


def require_value(value: Any) -> None:
    """Raises: ValueError for a value that no storage keeps."""
    plain = plain_of(value)
    if isinstance(plain, str):
        plain.encode()
        if "\0" in plain:
            raise ValueError("NUL")
    elif isinstance(plain, int) and not -(2**63) <= plain < 2**63:
        raise ValueError("beyond 64 bits")
    elif isinstance(plain, datetime):
        if plain.tzinfo is None:
            raise ValueError("no zone")
    elif isinstance(plain, (msgspec.Struct, dict, list, tuple)):
        msgspec.json.encode(plain)  # refuses half a surrogate pair, wherever it is

"""Validation messages in terms of JSON, because the decoder's own messages name Python types (docs/concepts.md
"Requests in general")."""

import re
from typing import Any, Final, get_args, get_type_hints

import msgspec

from ....core.domain.shapes import nearest

_AT = re.compile(r"(?P<what>.*?)(?: - at `\$(?P<path>[^`]*)`)?\Z", re.DOTALL)
_FIELD = re.compile(r"Object (?P<fault>missing required|contains unknown) field `(?P<name>.*)`\Z", re.DOTALL)
_TYPES = re.compile(r"Expected `(?P<types>[a-z |]+)`(?:, got `[^`]*`)?\Z")
_WORDS: Final = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}
_AMOUNT = re.compile(r"(?:^|\.)(?:[a-z]+_)*amount(?:_[a-z]+)?\Z|_(?:rub|usdt)\Z")


def explain(text: str, shape: Any) -> tuple[str, str]:
    """Return the path and the message for the decoder's error about a body of this shape. The decoder names a missing
    or unknown field only in its text."""
    found = _AT.match(text)
    what = found["what"] if found else text
    path = (found["path"] or "").lstrip(".") if found else ""
    field = _FIELD.match(what)
    if field is None:
        return path or "$", _of_value(what, path)
    name = field["name"]
    message = "is required" if field["fault"] == "missing required" else _unknown(name, _names(shape, path))
    return f"{path}.{name}" if path else name, message


def _of_value(what: str, path: str) -> str:
    found = _TYPES.match(what)
    if found is None:
        return "is out of range" if "out of range" in what else "is not of the documented form"
    words = [_WORDS.get(each, "of the documented type") for each in found["types"].split(" | ")]
    if words[0] == _WORDS["str"] and _AMOUNT.search(path):
        words[0] += ' such as "490.00"'
    return f"must be {' or '.join(words)}"


def _unknown(name: str, known: list[str]) -> str:
    near = nearest(name, known)
    return f"is not a known field{f'; did you mean {near}?' if near else ''}"


def _names(shape: Any, path: str) -> list[str]:
    """Return the names of the fields at a path; empty if the path is not an object with known fields."""
    place = _object(shape)
    for part in path.split(".") if path else ():
        place = None if place is None else _object(_types(place).get(part))
    return [] if place is None else [each.encode_name for each in msgspec.structs.fields(place)]


def _types(place: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the types of an object's fields, without what Annotated says of them."""
    hints = get_type_hints(place)
    return {each.encode_name: hints[each.name] for each in msgspec.structs.fields(place)}


def _object(of: Any) -> type[msgspec.Struct] | None:
    """Return the object type that a type accepts, if any."""
    kinds = (each for each in (of, *get_args(of)) if isinstance(each, type) and issubclass(each, msgspec.Struct))
    return next(kinds, None)

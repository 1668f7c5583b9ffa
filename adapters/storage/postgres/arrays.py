"""Arrays in the text format of Postgres (its manual, 8.15.2).

The driver tests every array element against two abstract classes, to see whether the element is an array itself.
This makes up half the cost of sending a group of units, and a twentieth of the cost of a new payment.
"""

from collections.abc import Sequence
from typing import Any

from ..table.codec import Storing

TYPES = {
    Storing.TEXT: "text::text[]",
    Storing.JSON: "text::text[]",
    Storing.INTEGER: "text::bigint[]",
    Storing.BOOLEAN: "text::boolean[]",
    Storing.BYTES: "bytea[]",
}
"""Type cast of a parameter that holds an array of such values."""


_BYTES = Storing.BYTES
_AS_TEXT = (Storing.TEXT, Storing.JSON)


def array(storing: Storing, values: Sequence[Any]) -> Any:
    """Return the parameter for one array. The driver formats arrays of bytes."""
    if storing in _AS_TEXT:
        return _texts(values)
    if storing is _BYTES:
        return list(values)
    if None in values:
        return f"{{{','.join('NULL' if value is None else str(value) for value in values)}}}"
    return f"{{{','.join(map(str, values))}}}"


def _texts(values: Sequence[str | None]) -> str:
    if None not in values:
        joined = '","'.join(values)  # type: ignore[arg-type] # no element is null
        # Nothing needs escaping: the only quotation marks are the two between each pair of elements.
        if "\\" not in joined and joined.count('"') == 2 * (len(values) - 1):
            return f'{{"{joined}"}}'
    return f"{{{','.join('NULL' if value is None else _quoted(value) for value in values)}}}"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

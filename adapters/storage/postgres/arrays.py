"""Arrays as Postgres reads them from text (its manual, 8.15.2).

The driver asks of every element of an array whether it is an array itself, by two abstract classes: half of what
sending a group of units costs, and a twentieth of what a new payment costs.
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
"""What a parameter is cast to that holds an array of these."""


_BYTES = Storing.BYTES
_AS_TEXT = (Storing.TEXT, Storing.JSON)


def array(storing: Storing, values: Sequence[Any]) -> Any:
    """The parameter for one array; that of bytes is left to the driver."""
    if storing in _AS_TEXT:
        return _texts(values)
    if storing is _BYTES:
        return list(values)
    if None in values:
        return f"{{{','.join('NULL' if value is None else str(value) for value in values)}}}"
    return f"{{{','.join(map(str, values))}}}"


def _texts(values: Sequence[str | None]) -> str:
    if None not in values:
        joined = '","'.join(values)  # type: ignore[arg-type]  # none of them is null
        # Nothing to be escaped: no other quotation marks than those between two.
        if "\\" not in joined and joined.count('"') == 2 * (len(values) - 1):
            return f'{{"{joined}"}}'
    return f"{{{','.join('NULL' if value is None else _quoted(value) for value in values)}}}"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

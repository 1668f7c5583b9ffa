"""Safe output of external texts on a terminal: control characters are escaped.

Every character that Python does not call printable is escaped: C0 and C1 controls, direction marks, line separators,
unassigned characters.
"""

from typing import Any

import msgspec


def escaped(text: str) -> str:
    """Return a text for people, with `\\x1b` or `\\u202e` in place of such a character."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def json_text(document: Any, *, indent: int = 2) -> str:
    """Return JSON of the same value, with such characters as `\\u009b`. `indent` below 0: on one line."""
    written = msgspec.json.encode(document)
    # On one line, the JSON structure has only printable characters: the others are inside strings.
    line = written.decode()
    if not line.isprintable():
        written = "".join(c if c.isprintable() else _unit_escapes(c) for c in line).encode()
    return (msgspec.json.format(written, indent=indent) if indent >= 0 else written).decode()


def _unit_escapes(char: str) -> str:
    """Return a character as a JSON escape. A character beyond the first 65 536 is two UTF-16 units."""
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))

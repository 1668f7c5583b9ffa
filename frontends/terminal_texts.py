"""Texts from outside as a terminal may be given them: what it would obey instead of show is escaped.

That is all but what Python calls printable: C0 and C1 controls, marks that turn the direction of writing, separators of
lines, what is not assigned.
"""

from typing import Any

import msgspec


def escaped(text: str) -> str:
    """A text for people, with `\\x1b` or `\\u202e` in place of such a character."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def json_text(document: Any, *, indent: int = 2) -> str:
    """JSON of the same value, in which such characters are `\\u009b`. `indent` below 0: on one line."""
    written = msgspec.json.encode(document)
    # On one line there is no character of the structure that is not printable: what is left stands in strings.
    line = written.decode()
    if not line.isprintable():
        written = "".join(c if c.isprintable() else _unit_escapes(c) for c in line).encode()
    return (msgspec.json.format(written, indent=indent) if indent >= 0 else written).decode()


def _unit_escapes(char: str) -> str:
    """A character as JSON escapes it: one beyond the first 65 536 is two units of UTF-16."""
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))

"""Texts that a cash register can print: code page 866 (docs/receipts.md "Texts")."""

from ..errors import value_error

_PRINTED = str.maketrans(
    {
        **dict.fromkeys("«»“”„‟″", '"'),
        **dict.fromkeys("‘’‚‛′`", "'"),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u202f", " "),
        "…": "...",
        "×": "x",
    }
)
"""Typographic signs and their replacements."""


def printed(path: str, text: str, longest: int) -> str:
    """Return the text as a register prints it. Raises: Refusal VALIDATION_ERROR (422) for an empty or too long text, or
    a character that code page 866 lacks."""
    found = text.translate(_PRINTED).strip()
    if not 1 <= len(found) <= longest:
        raise value_error(path, f"has 1 to {longest} characters")
    for char in found:
        if not char.isprintable() or not _has_866(char):
            raise value_error(path, f"has U+{ord(char):04X}, which cash registers cannot print")
    return found


def _has_866(char: str) -> bool:
    try:
        char.encode("cp866")
    except UnicodeEncodeError:
        return False
    return True

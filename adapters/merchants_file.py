"""Credentials of several merchants at one provider, from a TOML file (docs/adapters.md "Credentials of several
merchants")."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..ports.faults import NotConfigured
from ..ports.written_files import written_text

_LARGEST = 1024 * 1024


def read_merchants(name: str, path: Path, fields: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
    """Read the file's tables. Each belongs to the id of an account, a shop or a terminal, and has exactly these
    `fields`.

    Raises: NotConfigured, which names the position in the file and quotes only an owner's id.
    """
    named = f"{name}: the file of merchants"
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST + 1)
        written = written_text(text)
    except (OSError, ValueError) as error:
        why = type(error).__name__ if isinstance(error, OSError) else error
        raise NotConfigured(f"{named} cannot be read: {why}") from None
    try:
        tables = tomllib.loads(written)
    except tomllib.TOMLDecodeError as error:
        # The message may quote a secret, so keep only the position at its end.
        _, at, place = str(error).rpartition("(at ")
        raise NotConfigured(f"{named} is no TOML{f' (at {place}' if at else ''}") from None
    if len(text) > _LARGEST:
        raise NotConfigured(f"{named} is of a megabyte at most")
    for owner, table in tables.items():
        if not isinstance(table, dict) or set(table) != set(fields) or not all(map(_is_text, table.values())):
            raise NotConfigured(f"{named}: [{owner[:64]}] must have the texts {', '.join(fields)}, and nothing else")
    return tables


def _is_text(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 1024 and value.isprintable()

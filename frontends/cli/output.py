"""What a command says: one JSON document, or aligned text for people. Both are made here, so that no command forgets
one of them, and nothing but the answer goes to standard output."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click
import msgspec

from ..terminal_texts import escaped, json_text


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A command's answer in both forms."""

    document: Any
    text: str


def printed(document: Any, *, indent: int = 2) -> bytes:
    """JSON in UTF-8, whatever the terminal's encoding is; with nothing in it that a terminal would obey. The one way in
    which a command writes JSON. `indent` below 0: on one line."""
    return json_text(document, indent=indent).encode()


def give(answer: Answer, *, as_json: bool) -> None:
    """Print it to standard output."""
    click.echo(printed(answer.document) if as_json else answer.text)


def complain(
    code: str, lines: Sequence[str], *, as_json: bool, details: Any = None, doc_url: str | None = None
) -> None:
    """Say on standard error what went wrong, and where that is explained; with JSON, the document says it too."""
    if as_json:
        error = {"code": code, "message": "; ".join(lines)} | ({} if details is None else {"details": details})
        click.echo(printed({"error": error}))
    for line in lines:
        click.echo(f"error: {shown(line)}", err=True)
    if doc_url is not None:
        click.echo(f"help: {shown(doc_url)}", err=True)


def shown(value: Any) -> str:
    """One value for people. Characters that a terminal would obey instead of show are escaped."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ", ".join(shown(item) for item in value) or "-"
    return escaped(str(value))


def fields(pairs: Mapping[str, Any]) -> str:
    """`name  value` lines, aligned."""
    width = max((len(name) for name in pairs), default=0)
    return "\n".join(f"{name.ljust(width)}  {shown(value)}".rstrip() for name, value in pairs.items())


def table(titles: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Columns under titles, aligned."""
    lines = [list(titles), *([shown(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(titles))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )

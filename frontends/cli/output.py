"""Output of commands: one JSON document, or aligned text for people. Both are made here, so that no command omits one
of them, and standard output has nothing but the answer."""

import csv
import functools
import io
import os
import select
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click
import msgspec

from ..terminal_texts import escaped, json_text

_REST_OF_LINE = "\x1b[K"
"""Terminal sequence that clears the rest of a line."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A command's answer in both forms."""

    document: Any
    text: str


def printed(document: Any, *, indent: int = 2) -> bytes:
    """Return JSON in UTF-8, whatever the terminal's encoding, with terminal control characters escaped. All commands
    write JSON this way. `indent` below 0: on one line."""
    return json_text(document, indent=indent).encode()


def colours(environ: Mapping[str, str]) -> bool | None:
    """Return whether output has colours: NO_COLOR forbids and FORCE_COLOR demands them. None: on terminals."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return False if environ.get("TERM") == "dumb" else None


def warn(text: str) -> None:
    """Print a warning on standard error."""
    click.echo(f"{click.style('warning:', fg='yellow')} {text}", err=True)


def give(answer: Answer, *, as_json: bool) -> None:
    """Print the answer to standard output."""
    click.echo(printed(answer.document) if as_json else answer.text)


def complain(
    code: str, lines: Sequence[str], *, as_json: bool, details: Any = None, doc_url: str | None = None
) -> None:
    """Print an error and the link to its explanation on standard error; with JSON, also as a document."""
    if as_json:
        error = {"code": code, "message": "; ".join(lines)} | ({} if details is None else {"details": details})
        click.echo(printed({"error": error}))
    for line in lines:
        click.echo(f"{click.style('error:', fg='red', bold=True)} {shown(line)}", err=True)
    if doc_url is not None:
        click.echo(f"help: {shown(doc_url)}", err=True)


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Show progress on standard error: on a terminal in one line that is rewritten, elsewhere only its last state."""
    rewrites = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    last = ""

    def tell(text: str) -> None:
        nonlocal last
        last = shown(text)
        if rewrites:
            click.echo(f"\r{last}{_REST_OF_LINE}", nl=False, err=True, color=True)

    try:
        yield tell
    finally:
        if last:
            click.echo(f"\r{_REST_OF_LINE}" if rewrites else last, nl=not rewrites, err=True, color=True)


def reader_is_gone() -> bool:
    """Return whether standard output is a pipe without a reader, as after `| head`."""
    try:
        polled = select.poll()
        polled.register(sys.stdout.fileno(), select.POLLOUT)
    except (OSError, ValueError):  # not a file of the operating system
        return False
    return any(event & select.POLLERR for _, event in polled.poll(0))


def shown(value: Any) -> str:
    """Return a value as text for people. Terminal control characters are escaped."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ", ".join(shown(item) for item in value) or "-"
    return escaped(str(value))


def fields(pairs: Mapping[str, Any]) -> str:
    """Return aligned `name value` lines."""
    width = max((len(name) for name in pairs), default=0)
    names = {name: click.style(name.ljust(width), fg="cyan") for name in pairs}
    return "\n".join(f"{names[name]}  {shown(value)}".rstrip() for name, value in pairs.items())


class CsvText:
    """Rows as CSV, with the fields of the first row as titles. It takes them in batches, so that a million rows need
    only the memory of their text."""

    def __init__(self) -> None:
        self._text = io.StringIO()
        self._writer = csv.writer(self._text, lineterminator="\n")
        self._begun = False

    def add(self, documents: Iterable[Mapping[str, Any]]) -> None:
        """Add a row for each document."""
        for document in documents:
            if not self._begun:
                self._writer.writerow(document)
                self._begun = True
            self._writer.writerow(document.values())

    def answer(self) -> Answer:
        """Return all rows; an empty text without rows."""
        return Answer(document=None, text=self._text.getvalue().rstrip("\n"))


def csv_option(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--csv` to a command, which prints all rows."""

    @click.option("--csv", "as_csv", is_flag=True, help="Print all rows as CSV.")
    @functools.wraps(command)
    def given_a_form(*, as_csv: bool, **given: Any) -> None:
        if as_csv and given.get("as_json"):
            raise click.UsageError("--csv or --json, not both")
        command(as_csv=as_csv, **given)

    return given_a_form


def table(titles: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return aligned columns under titles."""
    lines = [list(titles), *([shown(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(titles))]
    head, *body = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
    return "\n".join([click.style(head, bold=True), *body])

"""`?`: the keys of the screen in front, of all lists, and of everywhere (docs/console.md "Keys")."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Label, Static

from .asking import AskingDialog

_KEYS = 7
"""Cells of the widest key that is no chord."""

Row = tuple[str, str]
"""A key and what it does."""

MOVING: Sequence[Row] = (
    ("↑ ↓", "one line"),
    ("pgdn", "one page, and read on"),
    ("enter", "open"),
    ("esc", "back"),
)
IN_A_DIALOG: Sequence[Row] = (
    ("tab", "next field"),
    ("^s", "confirm"),
    ("^l", "last reason"),
    ("esc", "close"),
)
_MOUSE = (
    "All of it can be clicked. Text is marked with the mouse and copied with ctrl+c; the terminal's own marking "
    "works with shift held."
)


class HelpDialog(AskingDialog[None]):
    """Closes by any of the keys that open and close."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,enter", "dismiss(None)", "Close"),
    ]

    def __init__(self, title: str, here: Sequence[Row], lists: Sequence[Row], everywhere: Sequence[Row]) -> None:
        super().__init__()
        self._title = title
        self._here = here
        self._lists = lists
        self._everywhere = everywhere

    @property
    def rows(self) -> list[Row]:
        """All that it tells, what is here last."""
        return [*self._lists, *self._everywhere, *self._here]

    def compose(self) -> ComposeResult:
        half = (len(self._lists) + 1) // 2
        columns = (
            (("Here", self._here), ("Everywhere", self._everywhere)),
            (("Lists", self._lists[:half]), ("To move", MOVING)),
            (("", self._lists[half:]), ("In a dialog", IN_A_DIALOG)),
        )
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_row(*(_column(groups) for groups in columns))
        with VerticalScroll(id="dialog"):
            yield Label(f"Keys · {self._title}", id="title", markup=False)
            yield Static(table)
            yield Label(_MOUSE, classes="label", markup=False)


def _column(groups: Iterable[tuple[str, Sequence[Row]]]) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(style="bold", no_wrap=True, min_width=1, max_width=_KEYS)
    table.add_column(overflow="ellipsis", no_wrap=True)
    for title, rows in groups:
        table.add_row(Text(), Text(title, style="bold underline"))
        for key, does in rows:
            table.add_row(Text(key), Text(does))
        table.add_row()
    return table

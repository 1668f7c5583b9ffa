"""`?`: keys of the current screen, of all lists, and of the whole console (docs/console.md "Keys")."""

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Label, Static

from .asking import AskingDialog

_KEYS = 7
"""Cells of the widest single key."""
_WIDEST, _FRAME, _GAP = 76, 5, 2
"""Cells of a dialog (console.tcss), of its frame with the scrollbar, and between two columns."""

Row = tuple[str, str]
"""A key and its effect."""

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
    """Help dialog. Any of the keys that open or close dialogs closes it."""

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
        """All rows of the dialog, those of the current screen last."""
        return [*self._lists, *self._everywhere, *self._here]

    def compose(self) -> ComposeResult:
        half = (len(self._lists) + 1) // 2
        columns = (
            (("Here", self._here), ("Everywhere", self._everywhere)),
            (("Lists", self._lists[:half]), ("To move", MOVING)),
            (("", self._lists[half:]), ("In a dialog", IN_A_DIALOG)),
        )
        with VerticalScroll(id="dialog"):
            yield Label(f"Keys · {self._title}", id="title", markup=False)
            yield Static(_beside([_column(groups) for groups in columns], min(_WIDEST, self.app.size.width) - _FRAME))
            yield Static(_MOUSE, classes="label", markup=False)


def _column(groups: Iterable[tuple[str, Sequence[Row]]]) -> list[Text]:
    """Return the lines of a column: each group with its title, and all descriptions aligned."""
    told = list(groups)
    keys = max((Text(key).cell_len for _, rows in told for key, _ in rows if len(key) <= _KEYS), default=0) + 1
    lines: list[Text] = []
    for title, rows in told:
        lines.append(Text.assemble(" " * keys, (title, "bold underline")))
        lines += [Text.assemble((f"{key} ".ljust(keys), "bold"), does) for key, does in rows]
        lines.append(Text())
    return lines


def _beside(columns: Sequence[list[Text]], room: int) -> Text:
    """Join columns side by side; if they do not fit, the widest is cut. Uses text because a Rich table would be laid
    out and drawn again each time its height is measured."""
    widths = [max(line.cell_len for line in lines) for lines in columns]
    while sum(widths) + _GAP * (len(widths) - 1) > max(room, len(widths) * _KEYS):
        widths[widths.index(max(widths))] -= 1
    rows: list[Text] = []
    for cells in zip_longest(*columns, fillvalue=Text()):
        row = Text()
        for cell, width in zip(cells, widths, strict=True):
            shown = cell.copy()
            shown.truncate(width, overflow="ellipsis", pad=True)
            row.append_text(shown).append(" " * _GAP)
        rows.append(row)
    return Text("\n", no_wrap=True).join(rows)

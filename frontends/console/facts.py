"""Names and values in two columns. A Rich table would be laid out and drawn again each time its height is measured."""

from typing import Any

from rich.text import Text
from textual.geometry import Size
from textual.widget import Widget
from textual.widgets import Static

from .texts import STYLES, plain

_GAP = 2
"""Cells between the widest name and the values."""


def tell(place: Static, content: str | Text) -> None:
    """Update a widget only if the content changed, because every update causes a layout and a repaint."""
    if place.content != content:
        place.update(content)


class Facts(Widget):
    """Names in one column and their values beside them. None values are skipped, and long ones wrap."""

    def __init__(self, words: str = "", *, id: str) -> None:  # noqa: A002 - as widgets are named
        super().__init__(id=id)
        self._pairs: list[tuple[str, Any]] = [("", words)]
        self._laid_out: tuple[int, list[Text]] = 0, []

    def show(self, pairs: list[tuple[str, Any]]) -> None:
        """Replace the names and values."""
        self._pairs, self._laid_out = pairs, (0, [])
        self.refresh(layout=True)

    def say(self, words: str) -> None:
        """Replace the facts with a text."""
        self.show([("", words)])

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the number of lines at this width."""
        del container, viewport
        return len(self._lines(width))

    def render(self) -> Text:
        """Draw all lines."""
        return Text("\n", no_wrap=True).join(self._lines(self.content_size.width))

    def _lines(self, width: int) -> list[Text]:
        if self._laid_out[0] != width:
            self._laid_out = width, self._lay_out(width)
        return self._laid_out[1]

    def _lay_out(self, width: int) -> list[Text]:
        told = [(name, plain(value)) for name, value in self._pairs if value is not None]
        beside = max((Text(name).cell_len + _GAP for name, _ in told if name), default=0)
        found = []
        for name, value in told:
            first = Text(name, style="dim")
            first.pad_right(beside - first.cell_len)
            text = Text(value, style=STYLES.get(value, ""))
            room = max(1, width - beside)
            for place, part in enumerate(text.wrap(self.app.console, room) if text.cell_len > room else [text]):
                found.append(Text.assemble(" " * beside if place else first, part))
        return found

"""Names and values under one another. A table of Rich is laid out, and drawn, at each look at how high it is."""

from typing import Any

from rich.text import Text
from textual.geometry import Size
from textual.widget import Widget
from textual.widgets import Static

from .texts import STYLES, plain

_GAP = 2
"""Cells between a name and its value."""


def tell(place: Static, content: str | Text) -> None:
    """Show it there. The same again is not: it would be laid out and painted for nothing."""
    if place.content != content:
        place.update(content)


class Facts(Widget):
    """Names in a column, and their values beside it, as far as there are any; a long one goes on below itself."""

    def __init__(self, words: str = "", *, id: str) -> None:  # noqa: A002 - as widgets are named
        super().__init__(id=id)
        self._pairs: list[tuple[str, Any]] = [("", words)]
        self._laid_out: tuple[int, list[Text]] = 0, []

    def show(self, pairs: list[tuple[str, Any]]) -> None:
        """Have these names and values."""
        self._pairs, self._laid_out = pairs, (0, [])
        self.refresh(layout=True)

    def say(self, words: str) -> None:
        """Have these words, instead of facts."""
        self.show([("", words)])

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """So many lines as there are in this width."""
        del container, viewport
        return len(self._lines(width))

    def render(self) -> Text:
        """Draw all of them."""
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

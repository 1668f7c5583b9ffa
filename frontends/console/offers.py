"""Bar with the possible actions and their letters. A button for each would be a separate widget, styled and laid out
with every opened object."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rich.text import Text
from textual import events
from textual.message import Message
from textual.widget import Widget

from .kinds.kinds import ConsoleAction

_BESIDE = 1
"""Cells of margin at each side of an offer, and of padding within it."""


class Offer(NamedTuple):
    """An action offered under a letter."""

    title: str
    key: str
    ends: bool = False

    @property
    def label(self) -> str:
        return f"{self.title} [{self.key}]"


def offered(actions: Iterable[ConsoleAction]) -> list[Offer]:
    """Return the offers of these actions, with destructive ones last."""
    return sorted((Offer(each.title, each.key, each.ends) for each in actions), key=lambda each: each.ends)


class Offers(Widget, can_focus=False):
    """Shows the offers in as many lines as they need. Hidden without offers."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {"offers--one", "offers--ends", "offers--hover"}  # noqa: RUF012 - Textual's own way

    class Taken(Message):
        """An offer was clicked."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self, *, id: str) -> None:  # noqa: A002 - as widgets are named
        super().__init__(id=id)
        self.shown: list[Offer] = []
        self._room = 0
        self._hovered: Offer | None = None

    def show(self, offers: list[Offer], room: int) -> None:
        """Show these offers in lines of `room` cells."""
        if (offers, room) != (self.shown, self._room):
            self.shown, self._room, self._hovered = offers, room, None
            self.styles.height = max((line for line, _, _ in self._places()), default=0) + 1
            self.display = bool(offers)
            self.refresh()

    def _places(self) -> Iterator[tuple[int, range, Offer]]:
        """Yield the line and the cells of each offer."""
        line = end = 0
        for offer in self.shown:
            width = Text(offer.label).cell_len + 2 * _BESIDE
            if end and end + width + 2 * _BESIDE > self._room:
                line, end = line + 1, 0
            yield line, range(end + _BESIDE, end + _BESIDE + width), offer
            end += width + 2 * _BESIDE

    def render(self) -> Text:
        """Draw all offers."""
        text, at = Text(no_wrap=True), 0
        for line, cells, offer in self._places():
            if line > at:
                text.append("\n")
            beside = cells.start if line > at or not text else 2 * _BESIDE
            style = "hover" if offer is self._hovered else "ends" if offer.ends else "one"
            text.append(" " * beside)
            text.append(f" {offer.label} ", self.get_component_rich_style(f"offers--{style}"))
            at = line
        return text

    def _at(self, event: events.MouseEvent) -> Offer | None:
        found = (each for line, cells, each in self._places() if line == event.y and event.x in cells)
        return next(found, None)

    def on_click(self, event: events.Click) -> None:
        """Run the clicked offer."""
        offer = self._at(event)
        if offer is not None:
            self.post_message(self.Taken(offer.key))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Highlight the offer under the mouse."""
        self._hover(self._at(event))

    def on_leave(self) -> None:
        """Remove the highlight."""
        self._hover(None)

    def _hover(self, offer: Offer | None) -> None:
        if offer is not self._hovered:
            self._hovered = offer
            self.refresh()

"""Footer with the current keys in one line. Textual's own footer has a widget per key and is laid out again whenever
the focus moves, which was half of the cost of a new screen."""

from rich.text import Text
from textual import events
from textual.binding import Binding
from textual.screen import Screen
from textual.widget import Widget

_HELP, _PALETTE = "question_mark", "Palette"
_GAP = 2


class KeysLine(Widget, can_focus=False):
    """Shows as many keys as fit. Help and the command palette, which list all keys, are always at the right end."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {"keys-line--key", "keys-line--words"}  # noqa: RUF012 - Textual's own way

    def __init__(self) -> None:
        super().__init__()
        self._offered: list[tuple[str, str, str]] = []
        """Key, its display name, and its description."""
        self._places: list[tuple[range, str]] = []

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._look)
        self._look(self.screen)

    def _look(self, screen: "Screen[object]") -> None:
        if not self.is_attached or screen is not self.screen:
            return
        shown: dict[str, Binding] = {}
        for _, binding, _, _ in screen.active_bindings.values():
            if binding.show:
                shown.setdefault(binding.action, binding)
        offered = [(each.key, self.app.get_key_display(each), each.description) for each in shown.values()]
        if offered != self._offered:
            self._offered = offered
            self.refresh()

    def render(self) -> Text:
        """Draw the keys that fit."""
        key_style = self.get_component_rich_style("keys-line--key")
        words_style = self.get_component_rich_style("keys-line--words")
        line = Text(no_wrap=True)
        self._places = []

        def put(key: str, shown: str, words: str) -> None:
            start = line.cell_len
            line.append(shown, style=key_style)
            line.append(f" {words}", style=words_style)
            self._places.append((range(start, line.cell_len), key))
            line.append(" " * _GAP)

        palette = [(self.app.COMMAND_PALETTE_BINDING, "^p", _PALETTE)] if self.app.ENABLE_COMMAND_PALETTE else []
        last = [each for each in self._offered if each[0] == _HELP] + palette
        room = self.size.width - sum(len(shown) + 1 + len(words) + _GAP for _, shown, words in last) + _GAP - 1
        line.append(" ")
        for key, shown, words in self._offered:
            if key == _HELP:
                continue
            if line.cell_len + len(shown) + 1 + len(words) + _GAP > room:
                break
            put(key, shown, words)
        line.append(" " * max(0, room - line.cell_len))
        for each in last:
            put(*each)
        return line

    def on_click(self, event: events.Click) -> None:
        """Simulate the key that was clicked."""
        key = next((key for place, key in self._places if event.x in place), None)
        if key is not None:
            self.app.simulate_key(key)

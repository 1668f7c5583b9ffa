"""A table of lines with a cursor, of which those that are seen are drawn. Textual's own measures each cell and draws it
as a document of its own: that was most of what a list of a hundred lines cost."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.cache import FIFOCache
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

_GAP = 1
"""Cells at each side of a column."""
_DRAWN = 512
"""Lines that are kept as they were drawn: more than a terminal has, in each of their styles."""


class Rows(ScrollView, can_focus=True):
    """Lines of cells below a head that stays. The cursor is at -1 where there are none."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {"rows--head", "rows--even", "rows--odd", "rows--cursor", "rows--hover"}  # noqa: RUF012 - Textual's own way
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "take", "Open", show=False),
        Binding("up", "move(-1)", "Up", show=False),
        Binding("down", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("ctrl+home", "move_to(0)", "Top", show=False),
        Binding("ctrl+end", "move_to(-1)", "Bottom", show=False),
    ]

    cursor_row: reactive[int] = reactive(-1, repaint=False)

    class Highlighted(Message):
        """The cursor is at another line, or the line at it is another."""

        def __init__(self, rows: "Rows", cursor_row: int) -> None:
            super().__init__()
            self.rows = rows
            self.cursor_row = cursor_row

        @property
        def control(self) -> "Rows":
            return self.rows

    class Selected(Highlighted):
        """The line at the cursor is to be opened."""

    def __init__(self, *, id: str) -> None:  # noqa: A002 - as widgets are named
        super().__init__(id=id)
        self._columns: list[tuple[Text, int]] = []
        """Title and width of each."""
        self._lines: list[Sequence[Text]] = []
        self._hovered = -1
        self._drawn: FIFOCache[tuple[int, Style], Strip] = FIFOCache(_DRAWN)

    def on_unmount(self) -> None:
        """Let go of what was drawn, as its screen does of what was painted (asking.py)."""
        self._drawn.clear()

    @property
    def row_count(self) -> int:
        return len(self._lines)

    def rule(self, columns: Iterable[tuple[Text, int]]) -> None:
        """Have these columns, by title and width in cells. Others have no lines yet; the cursor stays for those."""
        ruled = list(columns)
        if ruled != self._columns:
            self._columns, self._lines = ruled, []
            self._measure()

    def show(self, lines: Iterable[Sequence[Text]], cursor: int | None = None) -> None:
        """Have these lines and no others, with the cursor where it was, or at this one, as near as there is a line."""
        self._lines = list(lines)
        self._measure()
        before = self.cursor_row
        self.cursor_row = before if cursor is None else cursor
        if before == self.cursor_row:
            self._highlight()

    def add(self, lines: Iterable[Sequence[Text]]) -> None:
        """Have these lines below the others."""
        self._lines += lines
        self._measure()

    def put(self, row: int, line: Sequence[Text]) -> None:
        """Have this line instead of the one there."""
        self._lines[row] = line
        self._drawn.clear()
        self.refresh_line(row + 1)

    def line(self, row: int) -> Sequence[Text]:
        """The cells of a line."""
        return self._lines[row]

    def _measure(self) -> None:
        self._drawn.clear()
        self.virtual_size = Size(sum(width + 2 * _GAP for _, width in self._columns), len(self._lines) + 1)
        self.refresh()

    def validate_cursor_row(self, row: int) -> int:
        """As near as there is a line."""
        return min(max(0, row), len(self._lines) - 1)

    def watch_cursor_row(self, before: int, _now: int) -> None:
        """Draw both lines, and see to it that the cursor is seen. With one argument it were told the new row alone."""
        self.refresh_line(before + 1)
        self._highlight()

    def _highlight(self) -> None:
        self.refresh_line(self.cursor_row + 1)
        self._see_cursor()
        if self._lines:
            self.post_message(self.Highlighted(self, self.cursor_row))

    @property
    def _page(self) -> int:
        """Lines that are seen at a time."""
        return max(1, self.scrollable_content_region.height - 1)

    def _see_cursor(self) -> None:
        first, row = round(self.scroll_y), max(0, self.cursor_row)
        seen = min(max(first, row - self._page + 1), row)
        if seen != first and self.size.height:
            self.scroll_to(y=seen, animate=False, force=True)

    def on_resize(self) -> None:
        """Fewer lines may be seen."""
        self._see_cursor()

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        self._hover(-1)
        self.cursor_row += by

    def action_move_to(self, row: int) -> None:
        """Move the cursor to the first line, or with -1 to the last."""
        self._hover(-1)
        self.cursor_row = row % max(1, len(self._lines))

    def action_page(self, by: int) -> None:
        """Move the cursor with what is seen."""
        self._hover(-1)
        self.scroll_relative(y=by * self._page, animate=False, force=True)
        self.cursor_row += by * self._page

    def action_scroll_home(self) -> None:
        """See the first column."""
        self.scroll_to(x=0, animate=False)

    def action_scroll_end(self) -> None:
        """See the last column."""
        self.scroll_to(x=self.max_scroll_x, animate=False)

    def action_take(self) -> None:
        """Open the line at the cursor."""
        self._hover(-1)
        if self._lines:
            self.post_message(self.Selected(self, self.cursor_row))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to a line; open the one at which it is."""
        row = self._row_at(event.y)
        if row < 0:
            return
        event.stop()
        if row == self.cursor_row:
            self.action_take()
        else:
            self.cursor_row = row

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Lighten the line below the mouse."""
        self._hover(self._row_at(event.y))

    def on_leave(self) -> None:
        """No line is below the mouse."""
        self._hover(-1)

    def _hover(self, row: int) -> None:
        if row != self._hovered:
            for each in (self._hovered, row):
                self.refresh_line(each + 1)
            self._hovered = row

    def _row_at(self, y: int) -> int:
        """The line at this height; -1: none."""
        row = round(self.scroll_y) + y - 1
        return row if y > 0 and row < len(self._lines) else -1

    def render_line(self, y: int) -> Strip:
        """Draw a line of what is seen."""
        x, top = self.scroll_offset
        row = top + y - 1 if y else -1
        if row >= len(self._lines):
            return Strip.blank(self.size.width, self.rich_style)
        style = self.get_component_rich_style(self._component(row))
        drawn = self._drawn.get((row, style))
        if drawn is None:
            cells = [title for title, _ in self._columns] if row < 0 else self._lines[row]
            drawn = self._drawn[row, style] = self._draw(cells, style, ours=row == self.cursor_row)
        return drawn.crop_extend(x, x + self.size.width, style)

    def _component(self, row: int) -> str:
        if row < 0:
            return "rows--head"
        if row == self.cursor_row:
            return "rows--cursor"
        if row == self._hovered:
            return "rows--hover"
        return "rows--odd" if row % 2 else "rows--even"

    def _draw(self, cells: Sequence[Text], style: Style, *, ours: bool) -> Strip:
        """The cells beside one another. The cursor's colours are stronger than theirs."""
        segments, blank, console = list[Segment](), _GAP, self.app.console
        for cell, (_, width) in zip(cells, self._columns, strict=True):
            if cell.cell_len > width:
                cell = cell.copy()
                cell.truncate(width, overflow="ellipsis")
            rest = width - cell.cell_len
            before = rest if cell.justify == "right" else 0
            segments.append(Segment(" " * (blank + before), style))
            whole = console.get_style(cell.style)
            for text, part, _ in cell.render(console):
                own = whole if part is None else whole + part
                segments.append(Segment(text, own + style if ours else style + own))
            blank = rest - before + 2 * _GAP
        segments.append(Segment(" " * (blank - _GAP), style))
        return Strip(segments)

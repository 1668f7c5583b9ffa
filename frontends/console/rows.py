"""A table with a cursor that draws only visible lines. Textual's own table measures each cell and renders it as a
separate document, which was most of the cost of a list of a hundred lines."""

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
"""Size of the cache of drawn lines: more than a terminal has, in each of their styles."""


class Rows(ScrollView, can_focus=True):
    """Lines of cells below a fixed header. The cursor is -1 if the table is empty."""

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
        """The cursor moved, or the line under it changed."""

        def __init__(self, rows: "Rows", cursor_row: int) -> None:
            super().__init__()
            self.rows = rows
            self.cursor_row = cursor_row

        @property
        def control(self) -> "Rows":
            return self.rows

    class Selected(Highlighted):
        """The operator opened the line under the cursor."""

    def __init__(self, *, id: str) -> None:  # noqa: A002 - as widgets are named
        super().__init__(id=id)
        self._columns: list[tuple[Text, int]] = []
        """Title and width of each column."""
        self._lines: list[Sequence[Text]] = []
        self._hovered = -1
        self._drawn: FIFOCache[tuple[int, Style], Strip] = FIFOCache(_DRAWN)

    def on_unmount(self) -> None:
        """Free the drawn lines, as the screen does with its painted ones (asking.py)."""
        self._drawn.clear()

    @property
    def row_count(self) -> int:
        return len(self._lines)

    def rule(self, columns: Iterable[tuple[Text, int]]) -> None:
        """Set the columns by title and width in cells. Changed columns remove all lines, but the cursor stays."""
        ruled = list(columns)
        if ruled != self._columns:
            self._columns, self._lines = ruled, []
            self._measure()

    def show(self, lines: Iterable[Sequence[Text]], cursor: int | None = None) -> None:
        """Replace all lines. The cursor stays, or moves to `cursor`, or to the nearest line that exists."""
        self._lines = list(lines)
        self._measure()
        before = self.cursor_row
        self.cursor_row = before if cursor is None else cursor
        if before == self.cursor_row:
            self._highlight()

    def add(self, lines: Iterable[Sequence[Text]]) -> None:
        """Append lines."""
        self._lines += lines
        self._measure()

    def put(self, row: int, line: Sequence[Text]) -> None:
        """Replace one line."""
        self._lines[row] = line
        self._drawn.clear()
        self.refresh_line(row + 1)

    def line(self, row: int) -> Sequence[Text]:
        """Return the cells of a line."""
        return self._lines[row]

    def _measure(self) -> None:
        self._drawn.clear()
        self.virtual_size = Size(sum(width + 2 * _GAP for _, width in self._columns), len(self._lines) + 1)
        self.refresh()

    def validate_cursor_row(self, row: int) -> int:
        """Return the nearest row that exists."""
        return min(max(0, row), len(self._lines) - 1)

    def watch_cursor_row(self, before: int, _now: int) -> None:
        """Redraw both lines and scroll to the cursor. Textual passes the old row only to a watcher with two
        parameters."""
        self.refresh_line(before + 1)
        self._highlight()

    def _highlight(self) -> None:
        self.refresh_line(self.cursor_row + 1)
        self._see_cursor()
        if self._lines:
            self.post_message(self.Highlighted(self, self.cursor_row))

    @property
    def _page(self) -> int:
        """Number of visible lines."""
        return max(1, self.scrollable_content_region.height - 1)

    def _see_cursor(self) -> None:
        first, row = round(self.scroll_y), max(0, self.cursor_row)
        seen = min(max(first, row - self._page + 1), row)
        if seen != first and self.size.height:
            self.scroll_to(y=seen, animate=False, force=True)

    def on_resize(self) -> None:
        """Scroll to the cursor, because fewer lines may be visible."""
        self._see_cursor()

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        self._hover(-1)
        self.cursor_row += by

    def action_move_to(self, row: int) -> None:
        """Move the cursor to the first line, or to the last for -1."""
        self._hover(-1)
        self.cursor_row = row % max(1, len(self._lines))

    def action_page(self, by: int) -> None:
        """Scroll by a page and move the cursor along."""
        self._hover(-1)
        self.scroll_relative(y=by * self._page, animate=False, force=True)
        self.cursor_row += by * self._page

    def action_scroll_home(self) -> None:
        """Scroll to the first column."""
        self.scroll_to(x=0, animate=False)

    def action_scroll_end(self) -> None:
        """Scroll to the last column."""
        self.scroll_to(x=self.max_scroll_x, animate=False)

    def action_take(self) -> None:
        """Open the line under the cursor."""
        self._hover(-1)
        if self._lines:
            self.post_message(self.Selected(self, self.cursor_row))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the clicked line, or open it if the cursor is already there."""
        row = self._row_at(event.y)
        if row < 0:
            return
        event.stop()
        if row == self.cursor_row:
            self.action_take()
        else:
            self.cursor_row = row

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Highlight the line under the mouse."""
        self._hover(self._row_at(event.y))

    def on_leave(self) -> None:
        """Remove the highlight."""
        self._hover(-1)

    def _hover(self, row: int) -> None:
        if row != self._hovered:
            for each in (self._hovered, row):
                self.refresh_line(each + 1)
            self._hovered = row

    def _row_at(self, y: int) -> int:
        """Return the row at this height, or -1."""
        row = round(self.scroll_y) + y - 1
        return row if y > 0 and row < len(self._lines) else -1

    def render_line(self, y: int) -> Strip:
        """Draw one visible line."""
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
        """Join the cells of a line. In the cursor's line its colours override those of the cells."""
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

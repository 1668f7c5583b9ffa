"""List screen of any kind. It reads page by page as the operator scrolls down, never the whole list."""

from datetime import datetime
from typing import Any, ClassVar

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Label

from ...core.usecases.browse.leaves import Leaf, counted
from .asking import background
from .columns import Column, chosen
from .context import ConsoleContext, row_at
from .detail import DetailScreen
from .facts import tell
from .kinds.kinds import ConsoleAction, Kind, Wish
from .marks import MarkingScreen
from .offers import Offer, Offers
from .pages import PAGE, Pages
from .rows import Rows
from .split import SplitScreen
from .texts import plain, styled

_AHEAD = 40
"""Rows to have loaded below the cursor and below the visible part."""
_REFRESH = 3.0
_FURTHER = "x"
"""Letter that continues a scan. No action uses it."""


class ListScreen(SplitScreen):
    """A list with filters, an order, and a detail for each record."""

    AUTO_FOCUS = "#list"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back"),
        *MarkingScreen.MARKING,
        Binding("f", "filter", "Filter"),
        Binding("m", "mode", "Mode"),
        Binding("o", "order", "Order"),
        Binding("y", "copy_id", "Copy", show=False),
        Binding("w", "whose", "Whose"),
        Binding("p", "private", "Personal data"),
        Binding("r", "reload", "Reload", show=False),
    ]

    def __init__(self, shared: ConsoleContext, kind: Kind, wish: Wish | None = None) -> None:
        super().__init__(shared, kind, wish)
        self.pages = Pages()
        self._shown: list[tuple[Column, int]] = []
        """Columns that fit, with their widths."""
        self._reading = False

    def compose(self) -> ComposeResult:
        yield from self.frame(self._body())

    def _body(self) -> ComposeResult:
        with Horizontal(id="sides"):
            with Vertical(id="list-side"):
                yield Offers(id="actions")
                yield Label("", id="wish", markup=False)
                if self.kind.headline is not None:
                    yield Label("", id="headline", markup=False)
                yield Label("", id="empty", markup=False)
                yield Rows(id="list")
            yield from self.compose_beside()

    @property
    def records(self) -> list[Any]:
        """Records read so far."""
        return self.pages.records

    @property
    def table(self) -> Rows:
        return self.query_one("#list", Rows)

    def on_mount(self) -> None:
        self.tell_marks()
        self.watch(self.table, "scroll_y", self._look_ahead, init=False)
        self.set_interval(_REFRESH, self._refresh)

    def on_resize(self, event: events.Resize) -> None:
        """Choose the columns for the new size. The first size arrives here too."""
        columns = chosen(self.kind.columns, self.split(event.size.width))
        self.tell_marks()
        if columns == self._shown:
            return
        self._shown = columns
        self.table.rule((Text(each.title, justify="right" if each.right else "left"), width) for each, width in columns)
        if self.records:
            self.table.show(map(self._cells, self.records))
        else:
            self.action_reload()

    def _cells(self, record: Any) -> list[Text]:
        first, *others = (self._cell(each, record, width) for each, width in self._shown)
        return [self._marked(record, first), *others]

    def _marked(self, record: Any, first: Text) -> Text:
        """Return the first cell of a row with its mark, which replaces the century of a time."""
        if (self.kind.name, record.id) not in self.marks:
            return first
        isa_moment = isinstance(self._shown[0][0].cell(record), datetime)
        return Text(f"● {first.plain[2:] if isa_moment else first.plain}"[: self._shown[0][1]], style="bold")

    def show_marks(self) -> None:
        """Redraw the marks of all rows."""
        if self._shown:
            column, width = self._shown[0]
            for row, record in enumerate(self.records):
                shown = self._marked(record, self._cell(column, record, width))
                before, *others = self.table.line(row)
                if before != shown:
                    self.table.put(row, [shown, *others])

    def in_hand(self) -> tuple[Kind, str] | None:
        """Return the object at the cursor."""
        record = row_at(self.records, self.table.cursor_row)
        return None if record is None else (self.kind, record.id)

    def _cell(self, column: Column, record: Any, width: int) -> Text:
        value = column.cell(record)
        shown = self.shared.names.of(value) if column.names else value
        return styled(shown, right=column.right, width=width, ends=column.ends)

    async def _read(self, after: Any, limit: int = PAGE) -> list[Any] | None:
        """Read the page after a record and the names of its merchants. Return None after a fault."""
        found = await self.ask(self.kind.read(self.shared.ports, self.wish, after, limit))
        named = [each for each in self.kind.columns if each.names]
        if found and named:
            owners = {each.cell(record) for each in named for record in found}
            await self.ask(self.shared.names.learn(self.shared.ports, owners))
        return found

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide keys that have no effect here."""
        if action == "mark":
            return any(not (each.entries or each.reads) for each in self.kind.actions)
        filters = {each.name for each in self.kind.filters}
        idle = {"filter": not filters, "mode": "mode" not in filters, "order": len(self.kind.orders) == 1}
        return not idle.get(action, False) and super().check_action(action, parameters)

    def action_reload(self) -> None:
        """Read the list again from the top."""
        self.pages.renew()
        self.tell_wish()
        self._read_first()
        self.refresh_beside()

    @background("read", exclusive=True)
    async def _read_first(self) -> None:
        await self.ask(self.shared.names.learn(self.shared.ports, [self.wish.of("account")]))
        self.tell_wish()
        if self.kind.headline is not None:
            headline = await self.ask(self.kind.headline(self.shared.ports))
            tell(self.query_one("#headline", Label), headline or "")
        found = await self._read(None)
        if found is not None:
            self._begin_with(found)

    def _begin_with(self, found: list[Any], chosen_id: str = "") -> None:
        """Show these records, with the cursor at the chosen one or at the top."""
        self.pages.begin(found)
        self._tell_end()
        self.marks.keep((self.kind.name, each.id) for each in found)
        chosen = next((row for row, each in enumerate(found) if each.id == chosen_id), 0)
        self.table.show(map(self._cells, found), chosen)
        self.tell_marks()
        self.follow()
        if isinstance(found, Leaf) and self.pages.may_be_counted(found):
            self._count(found)

    def _tell_end(self) -> None:
        """Show how many records there are after the last page read."""
        self.head(f"{self.kind.title} · {self.pages.told}")
        empty = self.query_one("#empty", Label)
        empty.display = not self.records
        asked = any(self.wish.filters.values())
        words = "Nothing fits these filters: f changes them." if asked else "There is nothing yet."
        if self.pages.onward is not None:
            words = f"Nothing fits of what was looked at so far: {_FURTHER} goes on."
        tell(empty, words)

    def _refresh(self) -> None:
        """Add new records at the top, but only while the operator is there."""
        self.refresh_beside()
        if self.is_active and self._at_top() and not (self.is_asking("refresh") or self.is_asking("read")):
            self._refresh_top()

    def _at_top(self) -> bool:
        """Return whether the top of the list is in view. With a detail beside the list the cursor may be on any line,
        because the refresh keeps it at its object."""
        isa_top = self.table.cursor_row <= 0 or self.beside is not None
        return isa_top and self.table.scroll_y <= 0 and len(self.records) <= PAGE and not self.pages.looked_at

    @background("refresh", exclusive=True)
    async def _refresh_top(self) -> None:
        wish = self.wish
        found = await self._read(None)
        if found is not None and found != self.records and wish is self.wish and self._at_top():
            self._begin_with(found, "" if self.beside is None else self.beside.object_id)

    @on(Rows.Highlighted, "#list")
    def _moved(self) -> None:
        self._look_ahead()
        self.follow()

    def _look_ahead(self) -> None:
        seen = max(self.table.cursor_row, int(self.table.scroll_y) + self.table.size.height)
        if not self.pages.complete and self.records and seen + _AHEAD >= len(self.records):
            self._read_more()

    @background("read")
    async def _read_more(self) -> None:
        if not self.pages.complete:
            await self._go_on(self.records[-1])

    @background("read")
    async def _look_further(self) -> None:
        if self.pages.onward is not None:
            await self._go_on(self.pages.onward)

    async def _go_on(self, after: Any) -> None:
        """Append the next page."""
        if self._reading:
            return
        self._reading, wish, records, count = True, self.wish, self.records, len(self.records)
        try:
            found = await self._read(after)
        finally:
            self._reading = False
        if found is None or wish is not self.wish or records is not self.records or count != len(records):
            return
        self.pages.add(found)
        if count:
            self.table.add(map(self._cells, found))
        else:  # the cursor moves to the first row
            self.table.show(map(self._cells, found))
        self._tell_end()
        if self.pages.looked_at:
            self.tell_marks()
        self._look_ahead()

    async def renew(self, object_id: str) -> None:
        """Redraw the row of a changed object, if it still matches the filters."""
        row = next((row for row, each in enumerate(self.records) if each.id == object_id), None)
        if row is None:
            return
        after, wish = self.records[row - 1] if row else None, self.wish
        found = await self._read(after, 1)
        if found and wish is self.wish and found[0].id == object_id == getattr(row_at(self.records, row), "id", None):
            self.records[row] = found[0]
            self.table.put(row, self._cells(found[0]))

    @background("count", exclusive=True)
    async def _count(self, leaf: Leaf[Any]) -> None:
        """Show the total count. Starts after the first page and ends with the screen."""
        wish = self.wish
        count = await self.ask(counted(self.shared.ports, leaf))
        if count is not None and wish is self.wish:
            self.pages.counted = count
            self._tell_end()

    def own_offers(self) -> list[Offer]:
        """Offer to continue the scan, if it covered only a part of the records."""
        pages = self.pages
        if pages.onward is None:
            return []
        return [Offer(f"{pages.looked_at:,} looked at, as far as {plain(pages.onward.created_at)}: the next", _FURTHER)]

    def begin(self, key: str) -> bool:
        """Run the action of this key."""
        if key == _FURTHER and self.pages.onward is not None:
            self._look_further()
            return True
        return super().begin(key)

    @on(Rows.Selected, "#list")
    def _selected(self) -> None:
        record = row_at(self.records, self.table.cursor_row)
        if record is not None:
            trail = [(self.kind, each.id) for each in self.records]
            self.app.push_screen(DetailScreen(self.shared, self.kind, record.id, trail, self.pages.told))

    def own_actions(self) -> list[ConsoleAction]:
        """Return the actions without an object."""
        return list(self.kind.list_actions)

    def action_copy_id(self) -> None:
        """Copy the id to the clipboard, if the terminal supports it."""
        record = row_at(self.records, self.table.cursor_row)
        if record is not None:
            self.app.copy_to_clipboard(record.id)
            self.notify(f"Copied {plain(record.id)}")

    def action_back(self) -> None:
        self.leave()

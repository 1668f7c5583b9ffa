"""Home: what needs a person now, the next settlement, and how the service does. It refreshes by itself."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.widgets import DataTable, Label, Sparkline, Static

from ...core.usecases.operators.action_item import ActionItem
from ...core.usecases.operators.action_items import ActionItems, read_action_items
from ...core.usecases.operators.dashboard import Dashboard, read_dashboard
from .asking import background
from .catalogue import KINDS, kind_of
from .context import ConsoleContext, ConsoleScreen, row_at
from .detail import DetailScreen
from .texts import left, plain, short, styled

_ACTION_ITEMS = 5.0
_DASHBOARD = 2.0
_ROOM_FOR_IDS = 157
"""Cells of a terminal beside whose numbers whole ids fit, too."""
_LIVE = 60
"""Looks in a live sparkline: two minutes."""
_LINES = {
    "payments": "payments, 2 min",
    "letters": "deliveries, 2 min",
    "hits": "limits hit, hour",
    "days": "payments, 30 days",
}
"""The sparklines; the last one where there is room."""


class HomeScreen(ConsoleScreen):
    """The first screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "app.search", "Find", key_display="/"),
        Binding("g", "app.go", "Go"),
        Binding("question_mark", "app.help", "Help", key_display="?"),
        Binding("r", "reload", "Reload", show=False),
        *(Binding(kind.key, f"app.open('{kind.name}')", kind.title) for kind in KINDS if kind.key),
    ]

    def __init__(self, shared: ConsoleContext) -> None:
        super().__init__(shared, "cambist")
        self.items: list[ActionItem] = []
        self.dashboard: Dashboard | None = None
        self._shows_ids = False
        self._payments: list[float] = []
        self._webhooks: list[tuple[int, int]] = []

    def compose(self) -> ComposeResult:
        yield from self.frame(self._body())

    def _body(self) -> ComposeResult:
        with Container(id="home"):
            with Vertical(id="action-items-box"):
                yield DataTable[Any](id="action-items", cursor_type="row", zebra_stripes=True)
            with Container(id="side"):
                yield Static("", id="settlement")
                with Vertical(id="dashboard"):
                    yield Static("", id="today")
                    for name, title in _LINES.items():
                        with Container(id=name, classes="line"):
                            yield Label(title)
                            yield Sparkline([], summary_function=max)

    def on_mount(self) -> None:
        self.query_one("#action-items-box").border_title = "Needs you now"
        self.query_one("#settlement").border_title = "Next settlement"
        self.query_one("#dashboard").border_title = "Today, both modes"
        self._rule()
        self.query_one("#action-items", DataTable).focus()
        self.action_reload()
        self.set_interval(_ACTION_ITEMS, lambda: self._unless_looking("action items", self.look_for_action_items))
        self.set_interval(_DASHBOARD, lambda: self._unless_looking("dashboard", self.refresh_dashboard))

    def _unless_looking(self, group: str, look: Callable[[], object]) -> None:
        if not self.is_asking(group):
            look()

    def action_reload(self) -> None:
        """Read all of it anew."""
        self.look_for_action_items()
        self.refresh_dashboard()

    def on_screen_resume(self) -> None:
        """Back from a detail, where something may have been decided."""
        if self.is_mounted:
            self.look_for_action_items()

    @background("action items", exclusive=True)
    async def look_for_action_items(self) -> None:
        """Read what waits; nothing is looked for while another screen is in front."""
        if not self.is_current:
            return
        found = await self.ask(read_action_items(self.shared.ports))
        if found is not None:
            self._show_action_items(found)

    def _show_action_items(self, found: ActionItems) -> None:
        box = self.query_one("#action-items-box")
        count = f"{len(found.found)}{'' if found.complete else '+'}"
        box.border_title = f"Needs you now · {count}" if found.found else "Nothing waits for you"
        if found.found != self.items:
            self.items = found.found
            self._fill()

    def on_resize(self) -> None:
        """Another terminal: the ids are shown where there is room for whole ones."""
        if self.is_mounted and self._has_room() is not self._shows_ids:
            self._rule()
            self._fill()

    def _has_room(self) -> bool:
        return self.app.size.width >= _ROOM_FOR_IDS

    def _rule(self) -> None:
        self._shows_ids = self._has_room()
        table = self.query_one("#action-items", DataTable)
        table.clear(columns=True)
        why = (("why", 36), ("object", 40)) if self._shows_ids else (("why", 40),)
        for title, width in (("since (UTC)", 15), ("what", 9), ("mode", 4), *why):
            table.add_column(title, width=width)

    def _fill(self) -> None:
        table = self.query_one("#action-items", DataTable)
        row = table.cursor_row
        table.clear()
        for item in self.items:
            cells = [
                "now" if item.since is None else short(item.since),
                styled(item.kind),
                styled(item.mode),
                styled(item.text),
                styled(item.object_id or None),
            ]
            table.add_row(*cells[: len(table.columns)])
        table.move_cursor(row=row)

    @on(DataTable.RowSelected, "#action-items")
    def _selected(self) -> None:
        item = row_at(self.items, self.query_one("#action-items", DataTable).cursor_row)
        if item is None:
            return
        kind = kind_of(item.of)
        if kind is None:
            self.notify(f"No screen shows a {item.of} yet: {plain(item.object_id)}")
        else:
            self.app.push_screen(DetailScreen(self.shared, kind, item.object_id))

    @background("dashboard", exclusive=True)
    async def refresh_dashboard(self) -> None:
        """Look how the service does."""
        if not self.is_current:
            return
        dashboard = await self.ask(read_dashboard(self.shared.ports, self.dashboard))
        if dashboard is None:
            return
        if self.dashboard is not None:
            self._payments = [*self._payments, float(dashboard.payments_since)][-_LIVE:]
            self._webhooks = [*self._webhooks, (dashboard.delivered_since, dashboard.refused_since)][-_LIVE:]
        self.dashboard = dashboard
        self.query_one("#settlement", Static).update(_settlement(dashboard))
        self.query_one("#today", Static).update(_today(dashboard))
        self._draw("payments", self._payments)
        refused = sum(failed for _, failed in self._webhooks)
        self._draw(
            "letters", [sum(each) for each in self._webhooks], f"deliveries: {refused} refused" if refused else ""
        )
        self._draw("hits", dashboard.hits.hour, f"limits hit, hour: {sum(dashboard.hits.hour)}")
        self._draw("days", dashboard.days)

    def _draw(self, name: str, values: Sequence[float], title: str = "") -> None:
        line = self.query_one(f"#{name}")
        line.query_one(Sparkline).data = [float(value) for value in values]
        line.query_one(Label).update(title or _LINES[name])


def _settlement(dashboard: Dashboard) -> Text:
    text = Text().append(f"in {left((dashboard.next_run - dashboard.at).total_seconds())}", "bold")
    text.append(f"  {dashboard.next_run:%d %b %H:%M} UTC\n", style="dim")
    for due in dashboard.due:
        text.append(f"{due.mode.value:5}", style="dim")
        text.append(f"{due.expected} RUB")
        about = "no rate yet" if due.about_usdt is None else f"≈ {due.about_usdt} USDT"
        text.append(f"  {about}\n", style="dim")
    text.rstrip()
    return text


def _today(dashboard: Dashboard) -> Text:
    text = Text().append(f"{dashboard.today} payments", "bold")
    text.append(f", {dashboard.paid_today} paid\n{dashboard.taken_today} RUB came\n")
    hits = dashboard.hits.today
    text.append(f"{sum(hits.values())} limits hit")
    if any(hits.values()):
        text.append(f" {hits['key']} key, {hits['ip']} IP", style="dim")
    return text

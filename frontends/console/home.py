"""Home screen: action items for an operator, the next settlement, and the service's figures. Refreshes by itself."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.widgets import Label, Sparkline, Static

from ...core.domain.accounts.accounts import Mode
from ...core.usecases.operators.action_item import ActionItem
from ...core.usecases.operators.action_items import ActionItems, read_action_items
from ...core.usecases.operators.dashboard import Dashboard, read_dashboard
from .asking import background
from .catalogue import KINDS, kind_of
from .context import ConsoleContext, row_at
from .detail import DetailScreen
from .facts import tell
from .kinds.kinds import Kind
from .marks import MarkingScreen
from .offers import Offers
from .rows import Rows
from .texts import age, left, many, plain, styled

_ACTION_ITEMS = 5.0
_DASHBOARD = 2.0
_WIDE, _SIDE = 110, 40
"""Terminal width from which the figures stand beside the action items, and their width then (console.tcss)."""
_FRAME, _GAP = 3, 2
"""Cells of the box's frame with the scrollbar, and between two columns."""
_NAME, _NAME_LONG = 12, 18
"""Cells of a merchant's name at least, and if the reasons have enough room."""
_WHY, _ID, _ID_WHOLE = 40, 14, 40
"""Minimum cells of a reason beside an id, minimum cells of an id, and cells of a whole id."""
_LIVE = 60
"""Samples in a live sparkline: two minutes."""
_LINES = {
    "payments": "payments, 2 min",
    "letters": "deliveries, 2 min",
    "hits": "limits hit, hour",
    "days": "payments, 30 days",
}
"""The sparklines. The last one is shown only if there is room."""


class HomeScreen(MarkingScreen):
    """The first screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *MarkingScreen.MARKING,
        Binding("m", "mode", "Mode", show=False),
        Binding("slash", "app.search", "Find", key_display="/"),
        Binding("g", "app.go", "Go"),
        Binding("question_mark", "app.help", "Help", key_display="?"),
        Binding("r", "reload", "Reload", show=False),
        *(Binding(kind.key, f"app.open('{kind.name}')", kind.title) for kind in KINDS if kind.key),
    ]

    def __init__(self, shared: ConsoleContext) -> None:
        super().__init__(shared, "cambist")
        self.items: list[ActionItem] = []
        """Shown action items, live mode first; only those of one mode if it was chosen."""
        self.dashboard: Dashboard | None = None
        self._found = ActionItems(found=[], complete=True)
        self._mode: Mode | None = None
        self._widths: dict[str, int] = {}
        self._rows: list[list[Text]] = []
        self._payments: list[float] = []
        self._webhooks: list[tuple[int, int]] = []

    def compose(self) -> ComposeResult:
        yield from self.frame(self._body())

    def _body(self) -> ComposeResult:
        with Container(id="home"):
            with Vertical(id="action-items-box"):
                yield Offers(id="actions")
                yield Rows(id="action-items")
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
        self.query_one("#action-items", Rows).focus()
        self.action_reload()
        self.set_interval(_ACTION_ITEMS, lambda: self._unless_looking("action items", self.look_for_action_items))
        self.set_interval(_DASHBOARD, lambda: self._unless_looking("dashboard", self.refresh_dashboard))

    def _unless_looking(self, group: str, look: Callable[[], object]) -> None:
        if not self.is_asking(group):
            look()

    def action_reload(self) -> None:
        """Read everything again."""
        self.look_for_action_items()
        self.refresh_dashboard()

    def came_back(self) -> None:
        """Refresh, because something may have been decided meanwhile."""
        self.look_for_action_items()

    @background("action items", exclusive=True)
    async def look_for_action_items(self) -> None:
        """Read the action items. Does nothing while another screen is in front."""
        if not self.is_active:
            return
        found = await self.ask(read_action_items(self.shared.ports))
        if found is not None:
            await self.ask(self.shared.names.learn(self.shared.ports, [each.account_id for each in found.found]))
            self._found = found
            self._show_action_items()

    def _show_action_items(self) -> None:
        found = self._found.found
        shown = [each for each in found if self._mode is None or each.mode in (None, self._mode)]
        self.items = sorted(shown, key=lambda each: each.mode is Mode.TEST)
        box = self.query_one("#action-items-box")
        count = f"{len(shown)}{'' if self._found.complete else '+'}{f' · {self._mode} mode' if self._mode else ''}"
        box.border_title = f"Needs you now · {count}" if found else "Nothing waits for you"
        self.marks.keep((each.of, each.object_id) for each in self.items)
        self.tell_marks()

    def action_mode(self) -> None:
        """Switch from both modes to live, to test, and back to both."""
        modes = (None, *Mode)
        self._mode = modes[(modes.index(self._mode) + 1) % len(modes)]
        self._show_action_items()

    def on_resize(self) -> None:
        """Adapt the columns to the terminal's width."""
        if self.is_mounted and self._fitting() != self._widths:
            self._rule()
            self.show_marks()

    def _fitting(self) -> dict[str, int]:
        """Return the columns that fit, with their widths."""
        wide = self.app.size.width >= _WIDE
        widths = {"": 1, "age": 6, "what": 10, "mode": 4, "merchant": _NAME}
        room = self.app.size.width - _FRAME - (_SIDE if wide else 0) - sum(each + _GAP for each in widths.values())
        longer = max(0, min(_NAME_LONG - _NAME, room - _WHY - _GAP))
        widths["merchant"] += longer
        room -= longer
        beside = room - _WHY - 2 * _GAP
        if beside >= _ID:
            whole = min(_ID_WHOLE, beside)
            return {**widths, "why": _WHY + beside - whole, "object": whole}
        return {**widths, "why": room - _GAP}

    def _rule(self) -> None:
        self._widths = self._fitting()
        self._rows = []
        self.query_one("#action-items", Rows).rule((Text(title), width) for title, width in self._widths.items())

    def show_marks(self) -> None:
        """Redraw the items if they changed, aged, or were marked."""
        rows = [self._cells(item) for item in self.items]
        if rows == self._rows:
            return
        self._rows = rows
        self.query_one("#action-items", Rows).show(rows)

    def _cells(self, item: ActionItem) -> list[Text]:
        now = self.shared.ports.clock.now()
        merchant = self.shared.names.of(item.account_id)
        told = {
            "": Text("●" if (item.of, item.object_id) in self.marks else " ", style="bold"),
            "age": Text("now" if item.since is None else age((now - item.since).total_seconds())),
            "what": styled(item.kind),
            "mode": styled(item.mode),
            "merchant": styled(merchant, width=self._widths["merchant"]),
            "why": styled(item.text, width=self._widths["why"]),
            "object": styled(item.object_id or None, width=self._widths.get("object"), ends=True),
        }
        return [told[each] for each in self._widths]

    def in_hand(self) -> tuple[Kind, str] | None:
        """Return the object at the cursor."""
        item = row_at(self.items, self.query_one("#action-items", Rows).cursor_row)
        kind = None if item is None else kind_of(item.of)
        return None if item is None or kind is None else (kind, item.object_id)

    @on(Rows.Selected, "#action-items")
    def _selected(self) -> None:
        item = row_at(self.items, self.query_one("#action-items", Rows).cursor_row)
        if item is None:
            return
        kind = kind_of(item.of)
        if kind is None:
            self.notify(f"No screen shows a {item.of} yet: {plain(item.object_id)}")
            return
        shown = {(each.of, each.object_id): kind_of(each.of) for each in self.items}
        trail = [(of, object_id) for (_, object_id), of in shown.items() if of is not None]
        self.app.push_screen(DetailScreen(self.shared, kind, item.object_id, trail))

    @background("dashboard", exclusive=True)
    async def refresh_dashboard(self) -> None:
        """Read the service's figures."""
        if not self.is_active:
            return
        dashboard = await self.ask(read_dashboard(self.shared.ports, self.dashboard))
        if dashboard is None:
            return
        if self.dashboard is not None:
            self._payments = [*self._payments, float(dashboard.payments_since)][-_LIVE:]
            self._webhooks = [*self._webhooks, (dashboard.delivered_since, dashboard.refused_since)][-_LIVE:]
        self.dashboard = dashboard
        tell(self.query_one("#settlement", Static), _settlement(dashboard))
        tell(self.query_one("#today", Static), _today(dashboard))
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
        tell(line.query_one(Label), title or _LINES[name])


def _settlement(dashboard: Dashboard) -> Text:
    text = Text().append(f"in {left((dashboard.next_run - dashboard.at).total_seconds())}", "bold")
    text.append(f"  {dashboard.next_run:%d %b %H:%M} UTC\n", style="dim")
    for due in dashboard.due:
        text.append(f"{due.mode.value:5}", style="dim")
        text.append(plain(f"{due.expected} RUB"))
        about = "rate: asked then" if due.about_usdt is None else plain(f"≈ {due.about_usdt} USDT")
        text.append(f"  {about}\n" if due.expected.kopecks else "\n", style="dim")
    text.rstrip()
    return text


def _today(dashboard: Dashboard) -> Text:
    text = Text().append(many(dashboard.today, "payment"), "bold")
    text.append(f", {dashboard.paid_today:,} paid\n{plain(f'{dashboard.taken_today} RUB')} came\n")
    hits = dashboard.hits.today
    text.append(f"{sum(hits.values())} limits hit")
    if any(hits.values()):
        text.append(f" {hits['key']} key, {hits['ip']} IP", style="dim")
    return text

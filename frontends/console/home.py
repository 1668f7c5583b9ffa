"""Home: what needs a person now, the next settlement, and how the service does. It refreshes by itself."""

from typing import Any, ClassVar

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.widgets import DataTable, Label, Sparkline, Static

from ...core.usecases.needs import Need, Needs, read_needs
from ...core.usecases.pulse import Pulse, read_pulse
from .catalogue import KINDS, kind_of
from .desk import Desk, DeskScreen
from .detail import DetailScreen
from .texts import left, plain, short, styled

_NEEDS = 5.0
_PULSE = 2.0
_LIVE = 60
"""Looks in a live sparkline: two minutes."""


class HomeScreen(DeskScreen):
    """The first screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "app.search", "Find", key_display="/"),
        Binding("g", "app.go", "Go"),
        Binding("question_mark", "app.help", "Help", key_display="?"),
        *(Binding(kind.key, f"app.open('{kind.name}')", kind.title) for kind in KINDS if kind.key),
    ]

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk, "cambist")
        self.needs: list[Need] = []
        self.pulse: Pulse | None = None
        self._payments: list[float] = []
        self._letters: list[tuple[int, int]] = []

    def compose(self) -> ComposeResult:
        yield from self.frame(self._body())

    def _body(self) -> ComposeResult:
        with Container(id="home"):
            with Vertical(id="needs-box"):
                yield DataTable[Any](id="needs", cursor_type="row", zebra_stripes=True)
            with Container(id="side"):
                yield Static("", id="settlement")
                with Vertical(id="pulse"):
                    yield Static("", id="today")
                    yield Label("payments, live", classes="spark-title")
                    yield Sparkline([], id="live-payments", summary_function=max)
                    yield Label("deliveries, live", classes="spark-title", id="letters")
                    yield Sparkline([], id="live-letters", summary_function=max)
                    yield Label("payments, 30 days", classes="spark-title wide-only")
                    yield Sparkline([], id="days", summary_function=max, classes="wide-only")

    def on_mount(self) -> None:
        self.query_one("#needs-box").border_title = "Needs you now"
        self.query_one("#settlement").border_title = "Next settlement"
        self.query_one("#pulse").border_title = "Today"
        table = self.query_one("#needs", DataTable)
        for title, width in (("since (UTC)", 15), ("what", 9), ("mode", 4), ("why", 36), ("object", 40)):
            table.add_column(title, width=width)
        table.focus()
        self.look_for_needs()
        self.take_pulse()
        self.set_interval(_NEEDS, self.look_for_needs)
        self.set_interval(_PULSE, self.take_pulse)

    def on_screen_resume(self) -> None:
        """Back from a detail, where something may have been decided."""
        if self.is_mounted:
            self.look_for_needs()

    @work(exclusive=True, group="needs")
    async def look_for_needs(self) -> None:
        """Read what waits; nothing is looked for while another screen is in front."""
        if not self.is_current:
            return
        found = await self.ask(read_needs(self.desk.ports))
        if found is not None:
            self._show_needs(found)

    def _show_needs(self, found: Needs) -> None:
        box = self.query_one("#needs-box")
        count = f"{len(found.found)}{'' if found.complete else '+'}"
        box.border_title = f"Needs you now · {count}" if found.found else "Nothing waits for you"
        if found.found == self.needs:
            return
        table = self.query_one("#needs", DataTable)
        row = table.cursor_row
        self.needs = found.found
        table.clear()
        for need in self.needs:
            table.add_row(
                "now" if need.since is None else short(need.since),
                styled(need.kind),
                styled(need.mode),
                styled(need.text),
                styled(need.object_id or None),
            )
        table.move_cursor(row=row)

    @on(DataTable.RowSelected, "#needs")
    def _selected(self) -> None:
        row = self.query_one("#needs", DataTable).cursor_row
        if row >= len(self.needs):
            return
        need = self.needs[row]
        kind = kind_of(need.of)
        if kind is None:
            self.notify(f"No screen shows a {need.of} yet: {plain(need.object_id)}")
        else:
            self.app.push_screen(DetailScreen(self.desk, kind, need.object_id))

    @work(exclusive=True, group="pulse")
    async def take_pulse(self) -> None:
        """Look how the service does."""
        if not self.is_current:
            return
        pulse = await self.ask(read_pulse(self.desk.ports, self.pulse))
        if pulse is None:
            return
        if self.pulse is not None:
            self._payments = [*self._payments, float(pulse.payments_since)][-_LIVE:]
            self._letters = [*self._letters, (pulse.delivered_since, pulse.refused_since)][-_LIVE:]
        self.pulse = pulse
        self.query_one("#settlement", Static).update(_settlement(pulse))
        self.query_one("#today", Static).update(_today(pulse))
        self.query_one("#live-payments", Sparkline).data = self._payments
        self.query_one("#live-letters", Sparkline).data = [float(sum(each)) for each in self._letters]
        refused = sum(failed for _, failed in self._letters)
        self.query_one("#letters", Label).update(f"deliveries, live{f': {refused} refused' if refused else ''}")
        self.query_one("#days", Sparkline).data = [float(count) for count in pulse.days]


def _settlement(pulse: Pulse) -> Text:
    text = Text(f"in {left((pulse.next_run - pulse.at).total_seconds())}", style="bold")
    text.append(f"  {pulse.next_run:%d %b %H:%M} UTC\n", style="dim")
    for due in pulse.due:
        text.append(f"{due.mode.value:5}", style="dim")
        text.append(f"{due.expected} RUB")
        about = "no rate yet" if due.about_usdt is None else f"≈ {due.about_usdt} USDT"
        text.append(f"  {about}\n", style="dim")
    text.rstrip()
    return text


def _today(pulse: Pulse) -> Text:
    text = Text(f"{pulse.today} payments", style="bold")
    text.append(f", {pulse.paid_today} paid\n{pulse.taken_today} RUB came\n")
    # Counted by each API process for itself, which is another one than this.
    text.append("limits hit: code 429 in /metrics", style="dim")
    return text

"""One object: its facts, its timeline, and what can be done with it."""

from typing import Any, ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, VerticalScroll
from textual.widgets import Button, DataTable, Static

from ...core.usecases.timeline import Moment
from .act_dialog import ActDialog
from .desk import Desk, DeskScreen
from .kinds import Change, ConsoleAct, Doing, Kind
from .texts import SOURCES, lines, plain, short, styled

_REFRESH = 3.0


class DetailScreen(DeskScreen):
    """The detail of any kind."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back"),
        Binding("y", "copy_id", "Copy id"),
        Binding("p", "private", "Personal data"),
        Binding("r", "reload", "Reload", show=False),
    ]

    def __init__(self, desk: Desk, kind: Kind, object_id: str) -> None:
        super().__init__(desk, f"{kind.title} · {object_id}")
        self._kind = kind
        self._object_id = object_id
        self.record: Any = None
        self.moments: list[Moment] = []

    def compose(self) -> ComposeResult:
        yield from self.frame(self._body())

    def _body(self) -> ComposeResult:
        yield Horizontal(id="acts")
        with Container(id="detail"):
            with VerticalScroll(id="facts"):
                yield Static("", id="fact-lines")
            yield DataTable[Any](id="timeline", cursor_type="row", zebra_stripes=True)

    def on_mount(self) -> None:
        table = self.query_one("#timeline", DataTable)
        for title, width in (("when (UTC)", 15), ("what", 9), ("", 46), ("detail", 60)):
            table.add_column(title, width=width)
        table.focus()
        self.action_reload()
        self.set_interval(_REFRESH, self.action_reload)

    @work(exclusive=True)
    async def action_reload(self) -> None:
        """Read it anew; what stands stays on the screen."""
        record = await self.ask(self._kind.get(self.desk.ports, self._object_id))
        if record is None:
            if not self._away and self.record is None:
                self.query_one("#fact-lines", Static).update("There is no such object (any more).")
            return
        moments = await self.ask(self._kind.timeline(self.desk.ports, record))
        if moments is None or (self.record, self.moments) == (record, moments):
            return
        self.record, self.moments = record, moments
        self.query_one("#fact-lines", Static).update(lines(self._kind.facts(record)))
        table = self.query_one("#timeline", DataTable)
        row = table.cursor_row
        table.clear()
        for each in moments:
            source = styled(each.source, styles=SOURCES)
            table.add_row(short(each.at), source, styled(each.text, width=46), styled(each.detail))
        table.move_cursor(row=row)
        self._offer()

    def acts(self) -> list[ConsoleAct]:
        """What can be done with it as it stands."""
        return [] if self.record is None else [act for act in self._kind.acts if act.allowed(self.record)]

    def _offer(self) -> None:
        bar = self.query_one("#acts", Horizontal)
        bar.remove_children()
        acts = self.acts()
        bar.mount_all(
            Button(f"{act.title} [{act.key}]".replace("[", r"\["), name=act.key, compact=True) for act in acts
        )
        bar.display = bool(acts)

    @on(Button.Pressed, "#acts Button")
    def _pressed(self, event: Button.Pressed) -> None:
        self.begin(event.button.name or "")

    def on_key(self, event: events.Key) -> None:
        """The letters of the acts."""
        if self.begin(event.key):
            event.stop()

    def begin(self, key: str) -> bool:
        """Open the confirmation of the act of this key, if there is one now."""
        act = next((act for act in self.acts() if act.key == key), None)
        if act is not None:
            self.app.push_screen(ActDialog(self.desk, act, self.record), self._done)
        return act is not None

    def _done(self, tried: bool | None) -> None:
        if tried:
            self.action_reload()

    def action_private(self) -> None:
        """Ask for the personal data; asking is an act, too."""
        private = self._kind.private
        if private is None or self.record is None:
            self.notify("There is no personal data here.")
            return
        show = private

        async def read(doing: Doing) -> str:
            found = show(self.desk.ports, doing.record)
            return "\n".join(f"{name}: {plain(value)}" for name, value in found.items()) or "There is none."

        act = ConsoleAct(
            name="private.show",
            title="Show personal data",
            key="p",
            run=read,
            changes=lambda _: [Change("personal data", "masked", "shown here; your name and reason are kept")],
            reads=True,
        )
        self.app.push_screen(ActDialog(self.desk, act, self.record), self._done)

    def action_copy_id(self) -> None:
        """To the clipboard, as far as the terminal has one."""
        self.app.copy_to_clipboard(self._object_id)
        self.notify(f"Copied {plain(self._object_id)}")

    def action_back(self) -> None:
        self.app.pop_screen()

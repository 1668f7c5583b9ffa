"""One object: its facts, its timeline, and what can be done with it."""

from typing import Any, ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, VerticalScroll
from textual.message import Message
from textual.widgets import Button, DataTable, Static

from ...core.usecases.timeline import Moment
from .act_dialog import ActDialog
from .desk import Desk, DeskScreen
from .kinds import Change, ConsoleAct, Doing, Kind
from .texts import SOURCES, lines, plain, short, styled

_REFRESH = 3.0


class OpenObject(Message):
    """Asks the application for the detail of another object."""

    def __init__(self, kind: str, object_id: str) -> None:
        super().__init__()
        self.kind = kind
        self.object_id = object_id


class OpenList(Message):
    """Asks the application for the list of a kind, as far as the filters let it through."""

    def __init__(self, kind: str, filters: dict[str, str]) -> None:
        super().__init__()
        self.kind = kind
        self.filters = filters


class DetailScreen(DeskScreen):
    """The detail of any kind."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back"),
        Binding("y", "copy_id", "Copy"),
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
        yield Horizontal(id="parts")
        with Container(id="detail"):
            with VerticalScroll(id="facts"):
                yield Static("", id="fact-lines")
                yield Static("", id="body", markup=False)
            yield DataTable[Any](id="timeline", cursor_type="row", zebra_stripes=True)

    def on_mount(self) -> None:
        table = self.query_one("#timeline", DataTable)
        for title, width in (("when (UTC)", 15), ("what", 9), ("", 46), ("detail", 60)):
            table.add_column(title, width=width)
        table.focus()
        self.action_reload()
        self.set_interval(_REFRESH, self._refresh)

    def _refresh(self) -> None:
        """Read what one looks at; what lies under another screen is read when it is in front again."""
        if self.is_current:
            self.action_reload()

    def on_screen_resume(self) -> None:
        """Back from a dialog or another object."""
        if self.is_mounted and self.record is not None:
            self.action_reload()

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
        if self._kind.body is not None:
            self.query_one("#body", Static).update("\n".join(map(plain, self._kind.body(record).splitlines())))
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
        self._fill("#acts", [(each.title, each.key) for each in self.acts()])
        self._fill("#parts", [(each.title, each.key) for each in self._kind.parts])

    def _fill(self, bar_id: str, offered: list[tuple[str, str]]) -> None:
        bar = self.query_one(bar_id, Horizontal)
        bar.remove_children()
        bar.mount_all(Button(f"{title} [{key}]".replace("[", r"\["), name=key, compact=True) for title, key in offered)
        bar.display = bool(offered)

    @on(DataTable.RowSelected, "#timeline")
    def _selected(self) -> None:
        """Open the other object that the line tells of."""
        row = self.query_one("#timeline", DataTable).cursor_row
        moment = self.moments[row] if row < len(self.moments) else None
        if moment is not None and moment.of and moment.object_id != self._object_id:
            self.app.post_message(OpenObject(moment.of, moment.object_id))

    @on(Button.Pressed, "#acts Button, #parts Button")
    def _pressed(self, event: Button.Pressed) -> None:
        self.begin(event.button.name or "")

    def on_key(self, event: events.Key) -> None:
        """The letters of the acts."""
        if self.begin(event.key):
            event.stop()

    def begin(self, key: str) -> bool:
        """Open the confirmation of the act of this key, or the list, if there is one now."""
        part = next((part for part in self._kind.parts if part.key == key), None)
        if part is not None and self.record is not None:
            self.app.post_message(OpenList(part.of, {part.by: self._object_id}))
            return True
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
            told = [f"{name}:\n{value}" if "\n" in value else f"{name}: {value}" for name, value in found.items()]
            return "\n".join(plain(line) for each in told for line in each.splitlines()) or "There is none."

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

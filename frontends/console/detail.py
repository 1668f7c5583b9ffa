"""One object: its facts, its timeline, and what can be done with it."""

from collections.abc import Sequence
from typing import Any, ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical, VerticalScroll
from textual.message import Message
from textual.widgets import DataTable, Static
from textual.widgets.data_table import ColumnKey

from ...core.usecases.browse.timeline import Moment
from .act_dialog import ActDialog
from .asking import background
from .context import ConsoleContext, ConsoleScreen, Offer, offered, row_at
from .kinds.kinds import Change, ConsoleAct, Doing, Kind, Told
from .texts import SOURCES, lines, plain, short, styled

_REFRESH = 3.0
_AT, _WHAT, _TEXT, _GAPS = 15, 12, 30, 7
"""Widths of a timeline's columns; the text has at least so much, and the gaps include the scrollbar."""


def _words(moment: Moment, width: int) -> Text:
    """What a line tells, and in what is left its detail."""
    text = styled(moment.text, width=width)
    if moment.detail and text.cell_len + 2 < width:
        text.append(f"  {plain(moment.detail)}", style="dim")
        text.truncate(width, overflow="ellipsis")
    return text


Trail = Sequence[tuple[Kind, str]]
"""Objects that are looked at one after the other."""


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


class DetailScreen(ConsoleScreen):
    """The detail of any kind."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (140, "-wide")]  # noqa: RUF012 - Textual's own way
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back"),
        Binding("y", "copy_id", "Copy"),
        Binding("w", "whose", "Whose"),
        Binding("p", "private", "Personal data"),
        Binding("n", "step(1)", "Next"),
        Binding("N", "step(-1)", "Previous", show=False),
        Binding("r", "reload", "Reload", show=False),
    ]

    def __init__(self, shared: ConsoleContext, kind: Kind, object_id: str, trail: Trail = ()) -> None:
        """`trail`: what it was opened from, itself included."""
        place = next((place for place, each in enumerate(trail) if each[0] is kind and each[1] == object_id), None)
        told = "" if place is None or len(trail) == 1 else f" · {place + 1} of {len(trail)}"
        super().__init__(shared, f"{kind.title} · {object_id}{told}")
        self._kind = kind
        self._object_id = object_id
        self._trail = trail
        self._place = place
        self.record: Any = None
        self.moments: list[Moment] = []
        self._figures: Told | None = None

    def compose(self) -> ComposeResult:
        yield from self.frame(self._body())

    def _body(self) -> ComposeResult:
        yield Vertical(id="acts", classes="offers")
        yield Vertical(id="parts", classes="offers")
        with Container(id="detail"):
            with VerticalScroll(id="facts"):
                yield Static("", id="fact-lines")
                yield Static("", id="body", markup=False)
            with Container(id="story"):
                yield DataTable[Any](id="timeline", cursor_type="row", zebra_stripes=True)
                yield Static("", id="told", markup=False)

    def on_mount(self) -> None:
        table = self.query_one("#timeline", DataTable)
        table.add_column("when (UTC)", width=_AT)
        table.add_column("what", width=_WHAT)
        table.add_column("", width=_TEXT, key="text")
        table.focus()
        self.action_reload()
        self.set_interval(_REFRESH, self._refresh)

    def _refresh(self) -> None:
        """Read what one looks at; what lies under another screen is read when it is in front again."""
        if self.is_current and not self.is_asking("read"):
            self.action_reload()

    def on_screen_resume(self) -> None:
        """Back from a dialog or another object."""
        if self.is_mounted and self.record is not None:
            self.action_reload()

    @background("read", exclusive=True)
    async def action_reload(self) -> None:
        """Read it anew; what stands stays on the screen."""
        record = await self.ask(self._kind.get(self.shared.ports, self._object_id))
        if record is None:
            if not self.went_wrong():
                self._empty()
            return
        moments = await self.ask(self._kind.timeline(self.shared.ports, record))
        read = self._kind.figures
        figures = None if read is None else await self.ask(read(self.shared.ports, record))
        if moments is None or (self.record, self.moments, self._figures) == (record, moments, figures):
            return
        await self.ask(self.shared.names.learn(self.shared.ports, [getattr(record, "account_id", None)]))
        self.record, self.moments, self._figures = record, moments, figures
        facts = [(name, self.shared.names.told(value)) for name, value in [*(figures or []), *self._kind.facts(record)]]
        self.query_one("#fact-lines", Static).update(lines(facts))
        if self._kind.body is not None:
            self.query_one("#body", Static).display = True
            self.query_one("#body", Static).update("\n".join(map(plain, self._kind.body(record).splitlines())))
        self._tell()
        self._offer()
        self.refresh_bindings()

    def _empty(self) -> None:
        """There is no such object; what was shown of one that was forgotten goes, too."""
        self.record, self.moments = None, []
        self.query_one("#fact-lines", Static).update("There is no such object (any more).")
        self.query_one("#body", Static).update("")
        self._tell()
        self._offer()
        self.refresh_bindings()

    def on_resize(self) -> None:
        """The text of a moment takes what its other columns leave."""
        self.later(self._tell)
        self._offer()

    def _tell(self) -> None:
        table = self.query_one("#timeline", DataTable)
        width = max(_TEXT, table.size.width - _AT - _WHAT - _GAPS)
        table.columns[ColumnKey("text")].width = width
        row = table.cursor_row
        table.clear()
        for each in self.moments:
            table.add_row(short(each.at), styled(each.source, styles=SOURCES), _words(each, width))
        table.move_cursor(row=row)
        if self.record is not None and not self.moments:
            self.query_one("#told", Static).update("Nothing is told of it.")

    @on(DataTable.RowHighlighted, "#timeline")
    def _highlighted(self, event: DataTable.RowHighlighted) -> None:
        """The whole of the line, which may be cut above."""
        moment = row_at(self.moments, event.cursor_row)
        if moment is not None:
            opens = f"  (enter opens the {moment.of})" if self._leads(moment) else ""
            text = " · ".join(plain(part) for part in (moment.text, moment.detail) if part)
            self.query_one("#told", Static).update(f"{text}{opens}")

    def _leads(self, moment: Moment) -> bool:
        return bool(moment.of) and moment.object_id != self._object_id

    def acts(self) -> list[ConsoleAct]:
        """What can be done with it as it stands."""
        return [] if self.record is None else [act for act in self._kind.acts if act.allowed(self.record)]

    def _offer(self) -> None:
        self.offer("#acts", offered(self.acts()))
        self.offer("#parts", [Offer(each.title, each.key) for each in self._kind.parts])

    @on(DataTable.RowSelected, "#timeline")
    def _selected(self) -> None:
        """Open the other object that the line tells of."""
        moment = row_at(self.moments, self.query_one("#timeline", DataTable).cursor_row)
        if moment is not None and self._leads(moment):
            self.app.post_message(OpenObject(moment.of, moment.object_id))

    def begin(self, key: str) -> bool:
        """Open the confirmation of the act of this key, or the list, if there is one now."""
        part = next((part for part in self._kind.parts if part.key == key), None)
        if part is not None and self.record is not None:
            self.app.post_message(OpenList(part.of, {part.by: self._object_id}))
            return True
        act = next((act for act in self.acts() if act.key == key), None)
        if act is not None:
            self.app.push_screen(ActDialog(self.shared, act, self.record), self._done)
        return act is not None

    def _done(self, tried: bool | None) -> None:
        if tried:
            self.action_reload()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys for which there is nothing to do here are not offered."""
        if action == "step":
            return self._place is not None and 0 <= self._place + int(str(parameters[0])) < len(self._trail)
        return not (
            (action == "private" and self._kind.private is None) or (action == "whose" and self._owner() is None)
        )

    def _owner(self) -> str | None:
        owner = getattr(self.record, "account_id", None)
        return owner if isinstance(owner, str) and owner != self._object_id else None

    def action_whose(self) -> None:
        """Open the merchant's account."""
        owner = self._owner()
        if owner is not None:
            self.app.post_message(OpenObject("account", owner))

    def action_step(self, by: int) -> None:
        """Open the next of those among which this one was opened, in its place."""
        if self.is_current and self._place is not None:
            kind, object_id = self._trail[self._place + by]
            self.app.switch_screen(DetailScreen(self.shared, kind, object_id, self._trail))

    def action_private(self) -> None:
        """Ask for the personal data; asking is an act, too."""
        private = self._kind.private
        if private is None or self.record is None:
            return
        show = private

        async def read(doing: Doing) -> str:
            found = show(self.shared.ports, doing.record)
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
        self.app.push_screen(ActDialog(self.shared, act, self.record), self._done)

    def action_copy_id(self) -> None:
        """To the clipboard, as far as the terminal has one."""
        self.app.copy_to_clipboard(self._object_id)
        self.notify(f"Copied {plain(self._object_id)}")

    def action_back(self) -> None:
        self.leave()

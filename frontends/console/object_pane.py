"""One object: facts, timeline and actions. It fills a screen of its own (detail.py) or stands beside a list
(split.py)."""

from collections.abc import Callable
from typing import Any

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Container, VerticalScroll
from textual.message import Message
from textual.widgets import Label, Static

from ...core.usecases.browse.timeline import Moment
from .action_dialog import ActionDialog
from .context import ConsoleScreen, row_at
from .facts import Facts, tell
from .kinds.kinds import Change, ConsoleAction, Doing, Kind, Told
from .offers import Offer, Offers, offered
from .rows import Rows
from .texts import SOURCES, plain, short, styled

_AT, _WHAT, _TEXT, _GAPS = 15, 12, 30, 7
"""Widths of a timeline's columns. The text gets at least `_TEXT`; the gaps include the scrollbar."""

Done = Callable[[bool | None], None]
"""Called with whether an action was tried."""


class OpenObject(Message):
    """Requests the detail of another object from the application."""

    def __init__(self, kind: str, object_id: str) -> None:
        super().__init__()
        self.kind = kind
        self.object_id = object_id


class OpenList(Message):
    """Requests the list of a kind with these filters from the application."""

    def __init__(self, kind: str, filters: dict[str, str]) -> None:
        super().__init__()
        self.kind = kind
        self.filters = filters


class ObjectPane(Container):
    """Shows the object that it points at, once it is read. Its screen decides when to read."""

    class Ready(Message):
        """The pane is laid out and can show data."""

    def __init__(self, above: ConsoleScreen, kind: Kind, object_id: str = "") -> None:
        super().__init__(id="object")
        self.kind = kind
        self.object_id = object_id
        """Empty if the pane shows no object."""
        self.record: Any = None
        """The record as last read, or None if it has not been read or does not exist."""
        self.moments: list[Moment] = []
        self._laid_out = False
        self._above = above
        self._shared = above.shared
        self._figures: Told | None = None
        self._withheld = False

    def compose(self) -> ComposeResult:
        yield Label(self.object_id, id="object-id", markup=False)
        yield Offers(id="object-actions")
        yield Offers(id="parts")
        with Container(id="detail"):
            with VerticalScroll(id="facts"):
                yield Facts(id="fact-lines")
                yield Static("", id="body", markup=False)
            with Container(id="story"):
                yield Rows(id="timeline")
                yield Static("", id="told", markup=False)

    @property
    def timeline(self) -> Rows:
        return self.query_one("#timeline", Rows)

    @property
    def is_ready(self) -> bool:
        """Whether the child widgets exist: after the layout, and until the screen is closed."""
        return self._laid_out and bool(self.query("#timeline"))

    def on_mount(self) -> None:
        if not self.query("#timeline"):  # the screen was closed before this event arrived
            return
        self._laid_out = True
        self.post_message(self.Ready())

    def on_resize(self, _event: events.Resize) -> None:
        """Adapt the text column of the timeline to the new width."""
        self._above.later(self._tell)
        if self.record is not None and self.is_ready:
            self._offer()

    def forget(self) -> None:
        """Show no object."""
        self.object_id = ""
        if self.is_ready:
            self._show_id()
            self._show_none("")

    def withhold(self, withheld: bool) -> None:
        """Hide or show the actions of the object."""
        self._withheld, was = withheld, self._withheld
        if withheld is not was and self.is_ready:
            self._offer()

    def point_at(self, object_id: str) -> None:
        """Point at an object. The old content is dimmed and no action is possible until the object is read."""
        self.object_id, self.record = object_id, None
        self._show_id()
        self._dim(True)

    def _dim(self, isa_guess: bool) -> None:
        """Dim the content while it belongs to another object."""
        self.query_one("#detail").styles.text_opacity = 0.5 if isa_guess else 1.0

    def _show_id(self) -> None:
        tell(self.query_one("#object-id", Label), plain(self.object_id) if self.object_id else "")

    async def read(self) -> None:
        """Read the object again. The old data stays on the screen meanwhile. Raises: Left."""
        ask, ports, object_id = self._above.ask, self._shared.ports, self.object_id
        record = await ask(self.kind.get(ports, object_id))
        if self.object_id != object_id:
            return
        if record is None:
            if not self._above.went_wrong():
                self._show_none("There is no such object (any more).")
            return
        moments = await ask(self.kind.timeline(ports, record))
        read = self.kind.figures
        figures = None if read is None or moments is None else await ask(read(ports, record))
        if moments is None or (self.record, self.moments, self._figures) == (record, moments, figures):
            return
        await ask(self._shared.names.learn(ports, [getattr(record, "account_id", None)]))
        if self.object_id == object_id:
            self._show(record, moments, figures)

    def _show(self, record: Any, moments: list[Moment], figures: Told | None) -> None:
        is_other = self.record is None
        self.record, self.moments, self._figures = record, moments, figures
        self._show_facts()
        self._tell(from_top=is_other)
        if is_other:
            self.query_one("#facts").scroll_home(animate=False)
        self._settled()

    def _show_facts(self) -> None:
        told = [*(self._figures or []), *self.kind.facts(self.record)]
        facts = [(name, self._shared.names.told(value)) for name, value in told]
        self.query_one("#fact-lines", Facts).show(facts)
        if self.kind.body is not None:
            self.query_one("#body", Static).display = True
            tell(self.query_one("#body", Static), "\n".join(map(plain, self.kind.body(self.record).splitlines())))

    def _show_none(self, words: str) -> None:
        self.record, self.moments = None, []
        self.query_one("#fact-lines", Facts).say(words)
        tell(self.query_one("#body", Static), "")
        self._tell()
        self._settled()

    def _settled(self) -> None:
        self._dim(False)
        self._offer()
        self._above.refresh_bindings()

    def _tell(self, *, from_top: bool = False) -> None:
        if not self.is_ready:
            return
        table = self.timeline
        width = max(_TEXT, table.size.width - _AT - _WHAT - _GAPS)
        table.rule([(Text("when (UTC)"), _AT), (Text("what"), _WHAT), (Text(""), width)])
        table.show((_line(each, width) for each in self.moments), 0 if from_top else None)
        if not self.moments:
            tell(self.query_one("#told", Static), "" if self.record is None else "Nothing is told of it.")

    @on(Rows.Highlighted, "#timeline")
    def _highlighted(self, event: Rows.Highlighted) -> None:
        """Show the full text of the line, which may be cut in the table."""
        moment = row_at(self.moments, event.cursor_row)
        if moment is not None:
            opens = f"  (enter opens the {moment.of})" if self._leads(moment) else ""
            text = " · ".join(plain(part) for part in (moment.text, moment.detail) if part)
            tell(self.query_one("#told", Static), f"{text}{opens}")

    @on(Rows.Selected, "#timeline")
    def _selected(self) -> None:
        """Open the object that the line refers to."""
        moment = row_at(self.moments, self.timeline.cursor_row)
        if moment is not None and self._leads(moment):
            self.app.post_message(OpenObject(moment.of, moment.object_id))

    def _leads(self, moment: Moment) -> bool:
        return bool(moment.of) and moment.object_id != self.object_id

    def actions(self) -> list[ConsoleAction]:
        """Return the actions that are possible in the object's current state."""
        return [] if self.record is None else [action for action in self.kind.actions if action.allowed(self.record)]

    def _offer(self) -> None:
        """Show the actions and the lists that belong to the object."""
        has_any = bool(self.object_id) and not self._withheld
        room = self.size.width or self.app.size.width
        self._above.offer("#object-actions", offered(self.actions()) if has_any else [], room)
        parts = [Offer(each.title, each.key) for each in self.kind.parts]
        self._above.offer("#parts", parts if has_any else [], room)

    def begin(self, key: str, done: Done) -> bool:
        """Open the confirmation or the list of this key, if there is one now."""
        part = next((part for part in self.kind.parts if part.key == key), None)
        if part is not None and self.record is not None:
            self.app.post_message(OpenList(part.of, {part.by: self.object_id}))
            return True
        action = next((action for action in self.actions() if action.key == key), None)
        if action is not None:
            self.app.push_screen(ActionDialog(self._shared, action, self.record), done)
        return action is not None

    def can(self, action: str) -> bool:
        """Return whether the object has personal data to show (`private`) or a merchant to open (`whose`)."""
        return self.kind.private is not None if action == "private" else self._owner() is not None

    def _owner(self) -> str | None:
        owner = getattr(self.record, "account_id", None)
        return owner if isinstance(owner, str) and owner != self.object_id else None

    def open_owner(self) -> None:
        """Open the merchant's account."""
        owner = self._owner()
        if owner is not None:
            self.app.post_message(OpenObject("account", owner))

    def ask_private(self, done: Done) -> None:
        """Open the confirmation to show personal data. Showing it is an audited action."""
        private = self.kind.private
        if private is None or self.record is None:
            return
        show = private

        async def read(doing: Doing) -> str:
            found = show(self._shared.ports, doing.record)
            told = [f"{name}:\n{value}" if "\n" in value else f"{name}: {value}" for name, value in found.items()]
            return "\n".join(plain(line) for each in told for line in each.splitlines()) or "There is none."

        action = ConsoleAction(
            name="private.show",
            title="Show personal data",
            key="p",
            run=read,
            changes=lambda _: [Change("personal data", "masked", "shown here; your name and reason are kept")],
            reads=True,
        )
        self.app.push_screen(ActionDialog(self._shared, action, self.record), done)


def _line(moment: Moment, width: int) -> list[Text]:
    """Return the cells of a timeline line: the text, and its detail in the remaining width."""
    text = styled(moment.text, width=width)
    if moment.detail and text.cell_len + 2 < width:
        text.append(f"  {plain(moment.detail)}", style="dim")
        text.truncate(width, overflow="ellipsis")
    return [Text(short(moment.at)), styled(moment.source, styles=SOURCES), text]

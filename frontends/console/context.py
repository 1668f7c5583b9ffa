"""What every screen works with, and how it asks the storage without ever standing still or falling over."""

from collections.abc import Awaitable, Coroutine, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Label
from textual.worker import get_current_worker

from ...core.usecases.browse.browse import account_names
from ...ports.bundle import Ports
from .asking import NO_ANSWER, Asking, words
from .keys_line import KeysLine
from .kinds.kinds import ConsoleAct

T = TypeVar("T")

_AROUND = 4
"""Cells around the words of a button."""
_PATIENCE = 0.3
"""Seconds after which an answer that has not come is shown to be awaited."""


class Names:
    """The names of accounts, as far as they were met: an operator knows merchants by them, and not by ids."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    async def learn(self, ports: Ports, account_ids: Iterable[object]) -> None:
        """Read those that are not known yet. Raises: Unavailable."""
        missing = {each for each in account_ids if isinstance(each, str) and each not in self._known}
        if missing:
            self._known |= await account_names(ports, missing)

    def of(self, value: object) -> object:
        """An account's name; anything else as it is."""
        return self._known.get(value, value) if isinstance(value, str) else value

    def told(self, value: object) -> object:
        """An account's id with its name; anything else as it is."""
        return f"{value}  {self._known[value]}" if isinstance(value, str) and value in self._known else value


class ConsoleContext(msgspec.Struct, frozen=True, kw_only=True):
    """The service, and who sits before it."""

    ports: Ports
    operator: str
    demo: bool = False
    names: Names = msgspec.field(default_factory=Names)
    reasons: dict[str, str] = msgspec.field(default_factory=dict)
    """The last reason that was given for each act, as long as the console is open."""


def row_at(rows: Sequence[T], place: int) -> T | None:
    """The row at a table's cursor; None where there is none: a table without rows has its cursor at -1."""
    return rows[place] if 0 <= place < len(rows) else None


class Offer(NamedTuple):
    """Something that can be done here, by its letter."""

    title: str
    key: str
    ends: bool = False

    @property
    def label(self) -> str:
        return f"{self.title} [{self.key}]"


def offered(acts: Iterable[ConsoleAct]) -> list[Offer]:
    """Acts as they are offered, those apart that end something."""
    return sorted((Offer(each.title, each.key, each.ends) for each in acts), key=lambda each: each.ends)


class ConsoleScreen(Asking[None]):
    """A screen with a bar at its top: title, what the storage does, the operator's name."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012 - Textual's own way

    def __init__(self, shared: ConsoleContext, title: str) -> None:
        super().__init__()
        self.shared = shared
        self._heading = title
        self._asking = 0
        self._away: dict[str, str] = {}
        """What went wrong in the last work of a group."""
        self._again: set[str] = set()
        """Groups in whose present work something went wrong."""
        self._offered: dict[str, tuple[int, list[Offer]]] = {}

    def frame(self, body: ComposeResult) -> ComposeResult:
        """The bar, what is between, and the footer."""
        with Horizontal(id="bar"):
            yield Label(self._heading, id="heading", markup=False)
            yield Label("", id="state", markup=False)
            yield Label(f"{'demo · ' if self.shared.demo else ''}{self.shared.operator}", id="operator", markup=False)
        yield from body
        yield KeysLine()

    def acts(self) -> list[ConsoleAct]:
        """What can be done here now."""
        return []

    def begin(self, key: str) -> bool:
        """Do what this letter is for here; whether it is for anything."""
        del key
        return False

    def on_key(self, event: events.Key) -> None:
        """The letters of the acts."""
        if self.begin(event.key):
            event.stop()

    @on(Button.Pressed, ".offers Button")
    def _pressed(self, event: Button.Pressed) -> None:
        self.begin(event.button.name or "")

    def offer(self, bar_id: str, offers: list[Offer], room: int = 0) -> None:
        """Show these titles with their letters in a bar of as many lines as they need; without any there is no bar.
        `room`: cells of a line, where they are not the terminal's."""
        room = room or self.app.size.width
        if self._offered.get(bar_id) == (room, offers):
            return
        self._offered[bar_id] = room, offers
        bar = self.query_one(bar_id, Vertical)
        bar.remove_children()
        rows: list[list[Offer]] = [[]]
        for each in offers:
            if rows[-1] and sum(len(one.label) + _AROUND for one in (*rows[-1], each)) > room:
                rows.append([])
            rows[-1].append(each)
        bar.mount_all(Horizontal(*map(_button, row)) for row in rows if row)
        bar.display = bool(offers)

    def letters(self) -> list[tuple[str, str]]:
        """The letters of what can be done here now, with what they do."""
        return [(each.key, each.title) for _, offers in self._offered.values() for each in offers]

    @property
    def heading(self) -> str:
        """What the bar calls this screen."""
        return self._heading

    def head(self, title: str) -> None:
        """Show another title."""
        self._heading = title
        self.query_one("#heading", Label).update(title)

    async def ask(self, question: Awaitable[T]) -> T | None:
        """The answer; None where there was none, which the bar then says until this work is done well. Raises: Left."""
        self._asking += 1
        timer = self.set_timer(_PATIENCE, self._show)
        try:
            return await self.answer(question)
        except NO_ANSWER as fault:
            self.fail(fault)
            return None
        finally:
            timer.stop()
            self._asking -= 1
            self._show()

    async def keep(self, work: Coroutine[Any, Any, None]) -> None:
        """Work to its end; what went wrong before is over when all of it goes well."""
        group = get_current_worker().group
        before = self._away.get(group)
        self._again.discard(group)
        await super().keep(work)
        if before is not None and group not in self._again:
            self._away.pop(group, None)
            self._show()

    def fail(self, fault: Exception) -> None:
        """In the bar, until the same is done well."""
        group = get_current_worker().group
        self._again.add(group)
        self._away[group] = f"r: try again · {words(fault)}"
        self._show()

    def went_wrong(self) -> bool:
        """Whether the present work had no answer to something."""
        return get_current_worker().group in self._again

    def _show(self) -> None:
        away = next(iter(self._away.values()), "")
        for state in self.query("#state").results(Label):  # there is none when the screen was left
            state.set_class(bool(away), "away")
            state.update(away or ("working…" if self._asking else ""))


def _button(offer: Offer) -> Button:
    button = Button(offer.label.replace("[", r"\["), name=offer.key, compact=True)
    return button.add_class("ends") if offer.ends else button

"""What every screen works with, and how it asks the storage without ever standing still or falling over."""

from collections.abc import Awaitable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

import msgspec
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Label
from textual.worker import get_current_worker

from ...core.usecases.browse.browse import account_names
from ...ports.bundle import Ports
from .asking import NO_ANSWER, Asking, words
from .facts import tell
from .keys_line import KeysLine
from .kinds.kinds import ConsoleAct
from .offers import Offer, Offers

T = TypeVar("T")

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

    def frame(self, body: ComposeResult) -> ComposeResult:
        """The bar, what is between, and the footer."""
        fitting = [name for width, name in self.HORIZONTAL_BREAKPOINTS or () if width <= self.app.size.width][-1:]
        self.add_class(*fitting, update=False)  # else it comes with the first size, and all is styled twice
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

    @on(Offers.Taken)
    def _taken(self, message: Offers.Taken) -> None:
        self.begin(message.key)

    def offer(self, bar_id: str, offers: list[Offer], room: int = 0) -> None:
        """Show these titles with their letters in a bar. `room`: cells of a line, where they are not the terminal's."""
        self.query_one(bar_id, Offers).show(offers, room or self.app.size.width)

    def letters(self) -> list[tuple[str, str]]:
        """The letters of what can be done here now, with what they do."""
        return [(each.key, each.title) for bar in self.query(Offers) for each in bar.shown]

    @property
    def heading(self) -> str:
        """What the bar calls this screen."""
        return self._heading

    def head(self, title: str) -> None:
        """Show another title."""
        self._heading = title
        tell(self.query_one("#heading", Label), title)

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
        self.later(self.reveal)
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
            tell(state, away or ("working…" if self._asking else ""))

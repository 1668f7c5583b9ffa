"""Shared context of all screens, and reads that neither block nor crash the console."""

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
from .kinds.kinds import ConsoleAction
from .offers import Offer, Offers

T = TypeVar("T")

_PATIENCE = 0.3
"""Seconds after which a pending read is shown as such."""


class Names:
    """Cache of account names, because operators know merchants by name and not by id."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    async def learn(self, ports: Ports, account_ids: Iterable[object]) -> None:
        """Read the names that are not cached yet. Raises: Unavailable."""
        missing = {each for each in account_ids if isinstance(each, str) and each not in self._known}
        if missing:
            self._known |= await account_names(ports, missing)

    def of(self, value: object) -> object:
        """Return the account's name for an account id, and any other value unchanged."""
        return self._known.get(value, value) if isinstance(value, str) else value

    def told(self, value: object) -> object:
        """Return an account id together with its name, and any other value unchanged."""
        return f"{value}  {self._known[value]}" if isinstance(value, str) and value in self._known else value


class ConsoleContext(msgspec.Struct, frozen=True, kw_only=True):
    """The service and the operator of this console."""

    ports: Ports
    operator: str
    demo: bool = False
    names: Names = msgspec.field(default_factory=Names)
    reasons: dict[str, str] = msgspec.field(default_factory=dict)
    """Last reason entered for each action since the console was opened."""


def row_at(rows: Sequence[T], place: int) -> T | None:
    """Return the row at a table's cursor, or None for an empty table, whose cursor is -1."""
    return rows[place] if 0 <= place < len(rows) else None


class ConsoleScreen(Asking[None]):
    """A screen with a bar at the top: title, state of the storage, name of the operator."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012 - Textual's own way

    def __init__(self, shared: ConsoleContext, title: str) -> None:
        super().__init__()
        self.shared = shared
        self._heading = title
        self._asking = 0
        self._away: dict[str, str] = {}
        """Last fault of each group of background work."""
        self._again: set[str] = set()
        """Groups whose current work had a fault."""

    def frame(self, body: ComposeResult) -> ComposeResult:
        """Yield the bar, the body and the footer."""
        fitting = [name for width, name in self.HORIZONTAL_BREAKPOINTS or () if width <= self.app.size.width][-1:]
        self.add_class(*fitting, update=False)  # otherwise the first resize would style everything again
        with Horizontal(id="bar"):
            yield Label(self._heading, id="heading", markup=False)
            yield Label("", id="state", markup=False)
            yield Label(f"{'demo · ' if self.shared.demo else ''}{self.shared.operator}", id="operator", markup=False)
        yield from body
        yield KeysLine()

    def actions(self) -> list[ConsoleAction]:
        """Return the actions that are possible here now."""
        return []

    def begin(self, key: str) -> bool:
        """Run the action of this key. Return whether there is one."""
        del key
        return False

    def on_key(self, event: events.Key) -> None:
        """Handle the letters of the actions."""
        if self.begin(event.key):
            event.stop()

    @on(Offers.Taken)
    def _taken(self, message: Offers.Taken) -> None:
        self.begin(message.key)

    def offer(self, bar_id: str, offers: list[Offer], room: int = 0) -> None:
        """Show these titles with their letters in a bar. `room`: width of a line in cells, if it is not the
        terminal's."""
        self.query_one(bar_id, Offers).show(offers, room or self.app.size.width)

    def letters(self) -> list[tuple[str, str]]:
        """Return the letters of the actions possible now, with their titles."""
        return [(each.key, each.title) for bar in self.query(Offers) for each in bar.shown]

    @property
    def heading(self) -> str:
        """Title of the screen in the bar."""
        return self._heading

    def head(self, title: str) -> None:
        """Change the title."""
        self._heading = title
        tell(self.query_one("#heading", Label), title)

    async def ask(self, question: Awaitable[T]) -> T | None:
        """Return the result, or None after a fault, which the bar shows until the same work succeeds. Raises: Left."""
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
        """Run the work to its end. Clear the group's earlier fault if all of it succeeds."""
        group = get_current_worker().group
        before = self._away.get(group)
        self._again.discard(group)
        await super().keep(work)
        self.later(self.reveal)
        if before is not None and group not in self._again:
            self._away.pop(group, None)
            self._show()

    def fail(self, fault: Exception) -> None:
        """Show the fault in the bar until the same work succeeds."""
        group = get_current_worker().group
        self._again.add(group)
        self._away[group] = f"r: try again · {words(fault)}"
        self._show()

    def went_wrong(self) -> bool:
        """Return whether the current work had a fault."""
        return get_current_worker().group in self._again

    def _show(self) -> None:
        away = next(iter(self._away.values()), "")
        for state in self.query("#state").results(Label):  # the label is gone once the screen is closed
            state.set_class(bool(away), "away")
            tell(state, away or ("working…" if self._asking else ""))

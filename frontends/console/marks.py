"""Objects that an operator has marked to run one action on all of them (docs/console.md "Keys")."""

from collections.abc import Iterable
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from .action_dialog import ActionDialog
from .asking import background
from .context import ConsoleContext, ConsoleScreen
from .kinds.kinds import ConsoleAction, Kind
from .offers import Offer, offered
from .rows import Rows

MOST = 50
"""Maximum number of objects for one action. Each is a separate commit, and one dialog shows them all."""

Key = tuple[str, str]
"""Name of a kind, and an object's id."""


class Marks:
    """Marked objects in the order of marking, with their records as the operator saw them."""

    def __init__(self) -> None:
        self._found: dict[Key, tuple[Kind, Any]] = {}

    def __len__(self) -> int:
        return len(self._found)

    @property
    def full(self) -> bool:
        return len(self._found) >= MOST

    def __contains__(self, key: Key) -> bool:
        return key in self._found

    @property
    def records(self) -> list[Any]:
        return [record for _, record in self._found.values()]

    def put(self, kind: Kind, record: Any) -> None:
        """Mark an object, or unmark it if it was marked."""
        key = (kind.name, str(record.id))
        if self._found.pop(key, None) is None and not self.full:
            self._found[key] = (kind, record)

    def keep(self, there: Iterable[Key]) -> None:
        """Unmark objects that are no longer in the list."""
        present = set(there)
        self._found = {key: each for key, each in self._found.items() if key in present}

    def clear(self) -> None:
        self._found.clear()

    def actions(self) -> list[ConsoleAction]:
        """Return the actions possible on all marked objects: those that need no entry but a reason."""
        pairs = list(self._found.values())
        if not pairs:
            return []
        return [
            action
            for action in pairs[0][0].actions
            if not (action.entries or action.reads)
            and all(any(action is each for each in kind.actions) and action.allowed(record) for kind, record in pairs)
        ]


class MarkingScreen(ConsoleScreen):
    """A screen whose rows can be marked, with the actions for all marked objects."""

    MARKING: ClassVar[list[BindingType]] = [Binding("space", "mark", "Mark"), Binding("u", "unmark", show=False)]

    def __init__(self, shared: ConsoleContext, title: str) -> None:
        super().__init__(shared, title)
        self.marks = Marks()

    def in_hand(self) -> tuple[Kind, str] | None:
        """Return the kind and id of the object at the cursor, or None if no screen shows it."""
        raise NotImplementedError

    def show_marks(self) -> None:
        """Redraw the marks of the rows."""
        raise NotImplementedError

    def action_reload(self) -> None:
        """Read everything again."""
        raise NotImplementedError

    def own_actions(self) -> list[ConsoleAction]:
        """Return the actions offered while nothing is marked."""
        return []

    def own_offers(self) -> list[Offer]:
        """Return further offers for the bar of actions."""
        return []

    def actions(self) -> list[ConsoleAction]:
        """Return the actions for the marked objects, or those of the list if nothing is marked."""
        return self.marks.actions() if self.marks else self.own_actions()

    def action_mark(self) -> None:
        """Mark or unmark the object at the cursor, and move to the next."""
        found = self.in_hand()
        if found is not None:
            self._mark(*found)
            self.query(Rows).first().action_move(1)

    @background("mark")
    async def _mark(self, kind: Kind, object_id: str) -> None:
        if self.marks.full and (kind.name, object_id) not in self.marks:
            self.notify(f"{MOST} are marked, and no more can be.")
            return
        record = await self.ask(kind.get(self.shared.ports, object_id))
        if record is not None:
            self.marks.put(kind, record)
            self.tell_marks()

    def action_unmark(self) -> None:
        """Unmark everything."""
        self.marks.clear()
        self.tell_marks()

    def tell_marks(self) -> None:
        """Show the marks and the actions for the marked objects."""
        self.show_marks()
        offers = offered(self.marks.actions() if self.marks else self.own_actions())
        if self.marks:
            lacking = "" if offers else ", nothing can be done with all of them"
            offers.insert(0, Offer(f"{len(self.marks)} marked{lacking}: unmark", "u"))
        self.offer("#actions", [*offers, *self.own_offers()])

    def begin(self, key: str) -> bool:
        """Open the confirmation of this key's action, if there is one."""
        if key == "u" and self.marks:  # reached by a mouse click
            self.action_unmark()
            return True
        actions = self.marks.actions() if self.marks else self.own_actions()
        action = next((action for action in actions if action.key == key), None)
        if action is not None:
            self.app.push_screen(ActionDialog(self.shared, action, *(self.marks.records or (None,))), self._done)
        return action is not None

    def _done(self, tried: bool | None) -> None:
        if tried:
            self.action_unmark()
            self.action_reload()

"""What an operator has marked to do one thing with all of it (docs/console.md "Keys")."""

from collections.abc import Iterable
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from .act_dialog import ActDialog
from .asking import background
from .context import ConsoleContext, ConsoleScreen
from .kinds.kinds import ConsoleAct, Kind
from .offers import Offer, offered
from .rows import Rows

MOST = 50
"""Objects that one act may be done with: each is a commit of its own, and all stand in one dialog."""

Key = tuple[str, str]
"""The name of a kind and an object's id."""


class Marks:
    """Objects that were marked, in the order in which they were, with their records as the operator saw them."""

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
        """Mark it; it is not marked any more where it was."""
        key = (kind.name, str(record.id))
        if self._found.pop(key, None) is None and not self.full:
            self._found[key] = (kind, record)

    def keep(self, there: Iterable[Key]) -> None:
        """Forget those that are not there any more."""
        present = set(there)
        self._found = {key: each for key, each in self._found.items() if key in present}

    def clear(self) -> None:
        self._found.clear()

    def acts(self) -> list[ConsoleAct]:
        """The acts that can be done with all of them alike: those that ask for nothing but a reason."""
        pairs = list(self._found.values())
        if not pairs:
            return []
        return [
            act
            for act in pairs[0][0].acts
            if not (act.entries or act.reads)
            and all(any(act is each for each in kind.acts) and act.allowed(record) for kind, record in pairs)
        ]


class MarkingScreen(ConsoleScreen):
    """A screen with rows that can be marked, and the acts that can be done with all that are."""

    MARKING: ClassVar[list[BindingType]] = [Binding("space", "mark", "Mark"), Binding("u", "unmark", show=False)]

    def __init__(self, shared: ConsoleContext, title: str) -> None:
        super().__init__(shared, title)
        self.marks = Marks()

    def in_hand(self) -> tuple[Kind, str] | None:
        """The kind and id of the object at the cursor; None where there is none that a screen shows."""
        raise NotImplementedError

    def show_marks(self) -> None:
        """Draw which rows are marked."""
        raise NotImplementedError

    def action_reload(self) -> None:
        """Read all of it anew."""
        raise NotImplementedError

    def own_acts(self) -> list[ConsoleAct]:
        """The acts while nothing is marked."""
        return []

    def own_offers(self) -> list[Offer]:
        """What else is offered in the bar of the acts."""
        return []

    def acts(self) -> list[ConsoleAct]:
        """What can be done with all that is marked; where nothing is, on no object."""
        return self.marks.acts() if self.marks else self.own_acts()

    def action_mark(self) -> None:
        """Mark the object at the cursor, or take its mark away, and go on to the next."""
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
        """Take all marks away."""
        self.marks.clear()
        self.tell_marks()

    def tell_marks(self) -> None:
        """Show what is marked, and what can be done with it."""
        self.show_marks()
        offers = offered(self.marks.acts() if self.marks else self.own_acts())
        if self.marks:
            lacking = "" if offers else ", nothing can be done with all of them"
            offers.insert(0, Offer(f"{len(self.marks)} marked{lacking}: unmark", "u"))
        self.offer("#acts", [*offers, *self.own_offers()])

    def begin(self, key: str) -> bool:
        """Open the confirmation of the act of this key, if there is one."""
        if key == "u" and self.marks:  # by the mouse
            self.action_unmark()
            return True
        acts = self.marks.acts() if self.marks else self.own_acts()
        act = next((act for act in acts if act.key == key), None)
        if act is not None:
            self.app.push_screen(ActDialog(self.shared, act, *(self.marks.records or (None,))), self._done)
        return act is not None

    def _done(self, tried: bool | None) -> None:
        if tried:
            self.action_unmark()
            self.action_reload()

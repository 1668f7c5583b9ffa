"""A list on a wide terminal: at its right stands the object at the cursor, with all that can be done with it."""

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal

from .asking import background
from .filtering import FilteringScreen
from .kinds.kinds import ConsoleAct
from .object_pane import ObjectPane
from .rows import Rows

SPLIT = 160
"""From which width on."""
LIST, BESIDE = 80, 104
"""Cells that the list takes at least, and what stands beside it at most."""


class SplitScreen(FilteringScreen):
    """A list and, where there is room, the object at its cursor."""

    beside: ObjectPane | None = None
    """What stands beside the list; None where there is no room."""
    _pane: ObjectPane | None = None
    """The same, hidden where there is no room any more."""

    async def renew(self, object_id: str) -> None:
        """Draw anew the row of an object that was changed."""
        raise NotImplementedError

    def compose_beside(self) -> ComposeResult:
        """What stands beside the list from the start."""
        if self._beside(self.app.size.width):
            self.beside = self._pane = ObjectPane(self, self.kind)
            yield self._pane

    def _beside(self, width: int) -> int:
        """How many cells of so many what stands beside the list has."""
        return min(BESIDE, width - LIST) if width >= SPLIT else 0

    def split(self, width: int) -> int:
        """Divide so many cells between the list and what stands beside it; how many the list has of them."""
        beside = self._beside(width)
        if beside and self._pane is None:
            self._pane = ObjectPane(self, self.kind)
            self.query_one("#sides", Horizontal).mount(self._pane)
        if self._pane is not None:
            self._pane.styles.width = beside
            self._pane.display = bool(beside)
        if (self.beside is None) == bool(beside):
            self.beside = self._pane if beside else None
            if self.beside is None and self._pane is not None:
                self._pane.forget()
                self.query_one("#list", Rows).focus()
            self.follow()
            self.refresh_bindings()
        return width - beside

    @on(ObjectPane.Ready)
    def follow(self) -> None:
        """Show the object at the cursor. One is read at a time: whoever runs down a list asks for few of them."""
        pane, chosen = self.beside, self.in_hand()
        if pane is None or not pane.is_ready:
            return
        if chosen is None:
            pane.forget()
            return
        if chosen[1] != pane.object_id:
            pane.point_at(chosen[1])
        if pane.record is None and not self.is_asking("beside"):
            self._read_beside()

    def refresh_beside(self) -> None:
        """Read anew what stands beside the list, unless that is being done."""
        if self.is_active and self.beside is not None and self.beside.object_id and not self.is_asking("beside"):
            self._read_beside()

    @background("beside", exclusive=True)
    async def _read_beside(self) -> None:
        pane = self.beside
        while pane is not None and pane is self.beside and pane.object_id:
            object_id, before = pane.object_id, pane.record
            await pane.read()
            if before is not None and pane.record not in (None, before):
                await self.renew(object_id)
            if pane.object_id == object_id:
                return

    def came_back(self) -> None:
        """From a dialog, or another object."""
        self.refresh_beside()

    def acts(self) -> list[ConsoleAct]:
        """The list's, and while nothing is marked those of the object beside it."""
        return [*super().acts(), *([] if self.marks or self.beside is None else self.beside.acts())]

    def tell_marks(self) -> None:
        """Show what is marked and what can be done with it; with one object there is nothing to do meanwhile."""
        super().tell_marks()
        if self.beside is not None:
            self.beside.withhold(bool(self.marks))

    def begin(self, key: str) -> bool:
        """Open the confirmation of the act of this key, the list's first."""
        if super().begin(key):
            return True
        return self.beside is not None and not self.marks and self.beside.begin(key, self._object_done)

    def _object_done(self, tried: bool | None) -> None:
        if tried:
            self._read_beside()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What is asked of one object is offered where one stands beside the list."""
        del parameters
        return action not in ("private", "whose") or (self.beside is not None and self.beside.can(action))

    def action_whose(self) -> None:
        """Open the merchant's account."""
        if self.beside is not None:
            self.beside.open_owner()

    def action_private(self) -> None:
        """Ask for the personal data."""
        if self.beside is not None:
            self.beside.ask_private(self._object_done)

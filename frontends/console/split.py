"""List for wide terminals, with the object at the cursor and its actions on the right."""

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal

from .asking import background
from .filtering import FilteringScreen
from .kinds.kinds import ConsoleAction
from .object_pane import ObjectPane
from .rows import Rows

SPLIT = 160
"""Terminal width from which the split is used."""
LIST, BESIDE = 80, 104
"""Minimum cells of the list, and maximum cells of the object beside it."""


class SplitScreen(FilteringScreen):
    """A list and, if there is room, the object at its cursor."""

    beside: ObjectPane | None = None
    """Pane beside the list, or None if there is no room."""
    _pane: ObjectPane | None = None
    """The same pane, which stays hidden if the terminal became too narrow."""

    async def renew(self, object_id: str) -> None:
        """Redraw the row of a changed object."""
        raise NotImplementedError

    def compose_beside(self) -> ComposeResult:
        """Yield the pane if there is room at the start."""
        if self._beside(self.app.size.width):
            self.beside = self._pane = ObjectPane(self, self.kind)
            yield self._pane

    def _beside(self, width: int) -> int:
        """Return the width of the pane on a terminal of this width, 0 if it does not fit."""
        return min(BESIDE, width - LIST) if width >= SPLIT else 0

    def split(self, width: int) -> int:
        """Divide the width between the list and the pane, and return the list's share."""
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
        """Show the object at the cursor. Only one read runs at a time, so scrolling through a list reads few
        objects."""
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
        """Read the object beside the list again, unless a read is already running."""
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
        """Refresh after a dialog or another object was closed."""
        self.refresh_beside()

    def actions(self) -> list[ConsoleAction]:
        """Return the list's actions and, while nothing is marked, those of the object beside it."""
        return [*super().actions(), *([] if self.marks or self.beside is None else self.beside.actions())]

    def tell_marks(self) -> None:
        """Show the marks and their actions. The actions of the single object are hidden meanwhile."""
        super().tell_marks()
        if self.beside is not None:
            self.beside.withhold(bool(self.marks))

    def begin(self, key: str) -> bool:
        """Open the confirmation of this key's action, of the list first."""
        if super().begin(key):
            return True
        return self.beside is not None and not self.marks and self.beside.begin(key, self._object_done)

    def _object_done(self, tried: bool | None) -> None:
        if tried:
            self._read_beside()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the keys of an object only if one is shown beside the list."""
        del parameters
        return action not in ("private", "whose") or (self.beside is not None and self.beside.can(action))

    def action_whose(self) -> None:
        """Open the merchant's account."""
        if self.beside is not None:
            self.beside.open_owner()

    def action_private(self) -> None:
        """Open the confirmation to show personal data."""
        if self.beside is not None:
            self.beside.ask_private(self._object_done)

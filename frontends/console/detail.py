"""Screen of one object, with steps to its neighbours if it was opened from a list."""

from collections.abc import Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from ...core.usecases.browse.timeline import Moment
from .asking import background
from .context import ConsoleContext, ConsoleScreen
from .kinds.kinds import ConsoleAction, Kind
from .object_pane import ObjectPane
from .texts import plain

_REFRESH = 3.0

Trail = Sequence[tuple[Kind, str]]
"""Objects to step through, each with its kind."""


class DetailScreen(ConsoleScreen):
    """The detail screen of any kind."""

    AUTO_FOCUS = "#timeline"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (140, "-across")]  # noqa: RUF012 - Textual's own way
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back"),
        Binding("y", "copy_id", "Copy"),
        Binding("w", "whose", "Whose"),
        Binding("p", "private", "Personal data"),
        Binding("n", "step(1)", "Next"),
        Binding("N", "step(-1)", "Previous", show=False),
        Binding("r", "reload", "Reload", show=False),
    ]

    def __init__(self, shared: ConsoleContext, kind: Kind, object_id: str, trail: Trail = (), of: str = "") -> None:
        """`trail`: objects to step through, including this one. `of`: total number of objects, if the trail is only a
        part."""
        place = next((place for place, each in enumerate(trail) if each[0] is kind and each[1] == object_id), None)
        told = "" if place is None or len(trail) == 1 else f" · {place + 1} of {of or len(trail)}"
        super().__init__(shared, f"{kind.title}{told} · {object_id}")
        self.kind = kind
        self.pane = ObjectPane(self, kind, object_id)
        self._object_id = object_id
        self._trail = trail
        self._of = of
        self._place = place

    @property
    def record(self) -> Any:
        """The shown record, or None if it has not been read or does not exist."""
        return self.pane.record

    @property
    def moments(self) -> list[Moment]:
        return self.pane.moments

    def compose(self) -> ComposeResult:
        yield from self.frame(iter([self.pane]))

    def on_mount(self) -> None:
        self.action_reload()
        self.set_interval(_REFRESH, self._refresh)

    def _refresh(self) -> None:
        """Refresh while in front. A covered screen refreshes when it returns to the front."""
        if self.is_active and not self.is_asking("read"):
            self.action_reload()

    def came_back(self) -> None:
        """Refresh after a dialog or another object was closed."""
        self.action_reload()

    @background("read", exclusive=True)
    async def action_reload(self) -> None:
        """Read the object again. The old data stays on the screen meanwhile."""
        await self.pane.read()

    def actions(self) -> list[ConsoleAction]:
        """Return the actions that are possible in the object's current state."""
        return self.pane.actions()

    def begin(self, key: str) -> bool:
        """Open the confirmation or the list of this key, if there is one now."""
        return self.pane.begin(key, self._done)

    def _done(self, tried: bool | None) -> None:
        if tried:
            self.action_reload()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide keys that have no effect here."""
        if action == "step":
            return self._place is not None and 0 <= self._place + int(str(parameters[0])) < len(self._trail)
        return action not in ("private", "whose") or self.pane.can(action)

    def action_whose(self) -> None:
        """Open the merchant's account."""
        self.pane.open_owner()

    def action_private(self) -> None:
        """Open the confirmation to show personal data."""
        self.pane.ask_private(self._done)

    def action_step(self, by: int) -> None:
        """Replace the screen with the next or previous object of the trail."""
        if self.is_active and self._place is not None:
            kind, object_id = self._trail[self._place + by]
            self.app.switch_screen(DetailScreen(self.shared, kind, object_id, self._trail, self._of))

    def action_copy_id(self) -> None:
        """Copy the id to the clipboard, if the terminal supports it."""
        self.app.copy_to_clipboard(self._object_id)
        self.notify(f"Copied {plain(self._object_id)}")

    def action_back(self) -> None:
        self.leave()

"""The console application, which calls the same use cases as the command line and HTTP."""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from rich.text import Text
from textual import events, on
from textual.actions import ActionParseResult
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.screen import Screen
from textual.timer import Timer

from ...core.usecases.browse.search import Hit
from ..process.gc_pause import collect_in_full
from .asking import log, note_slip, whereabouts, words
from .catalogue import KINDS, kind_of
from .choose_dialog import ChooseDialog
from .context import ConsoleContext, ConsoleScreen
from .detail import DetailScreen
from .help_dialog import HelpDialog
from .home import HomeScreen
from .kinds.kinds import Kind, Wish
from .listing import ListScreen
from .object_pane import OpenList, OpenObject
from .search_dialog import SearchDialog
from .texts import INK, plain

_DARK, _LIGHT = "textual-dark", "textual-light"
_ENDED = (
    "The console ended by a fault of its own. The service goes on, and what was being done is done wholly or "
    "not at all: start it again, look, and report these lines, which hold nothing of what was on the screen."
)
_LISTED = tuple(kind for kind in KINDS if kind.key)
_IDLE = 0.5
"""Seconds without input after which a full garbage collection may run."""


class Console(App[None]):
    """The application behind `cambist console`."""

    TITLE = "cambist"
    CSS_PATH = "console.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Find", key_display="/"),
        Binding("g", "go", "Go"),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("q", "quit", "Quit"),
        # Only the footer of home shows these. A footer with twenty keys would be laid out again with every screen.
        *(Binding(kind.key, f"open('{kind.name}')", kind.title, show=False) for kind in KINDS if kind.key),
        Binding("0", "home", "Home"),
        Binding("ctrl+t", "shade", "Light or dark", show=False),
    ]

    def __init__(self, shared: ConsoleContext, *, owns_process: bool = False) -> None:
        """`owns_process`: nothing else runs in this process, so the console may control its garbage collection."""
        super().__init__()
        self.shared = shared
        self.ansi_theme_light = INK
        self._owns_process = owns_process
        self._idle: Timer | None = None

    def on_mount(self) -> None:
        """Collect the garbage of closed screens while the operator is idle. At any other time the collection would
        delay a key by up to 100 ms."""
        if self._owns_process:
            self._idle = self.set_interval(_IDLE, collect_in_full)

    async def on_event(self, event: events.Event) -> None:
        """Restart the idle timer on every input event."""
        if self._idle is not None and isinstance(event, events.InputEvent):
            self._idle.reset()
        await super().on_event(event)

    def get_default_screen(self) -> Screen[None]:
        """Return home, which stays below all other screens."""
        return HomeScreen(self.shared)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Yield the palette's commands: every list, every action of the current screen, and Textual's own."""
        yield from super().get_system_commands(screen)
        yield SystemCommand("Find", "Any id, external id, phone, transaction hash, merchant", self.action_search)
        for kind in _LISTED:
            yield SystemCommand(kind.title, f"The list ({kind.key})", lambda kind=kind: self.show(kind))
        if isinstance(screen, ConsoleScreen):
            for action in screen.actions():
                yield SystemCommand(action.title, action.name, lambda action=action, on=screen: on.begin(action.key))

    def show(self, kind: Kind) -> None:
        """Show a list directly above home, and close everything that was open."""
        if self._has_dialog():
            return
        self.action_home()
        self.push_screen(ListScreen(self.shared, kind))

    def action_open(self, name: str) -> None:
        kind = kind_of(name)
        if kind is not None:
            self.show(kind)

    def action_home(self) -> None:
        """Close every screen except home."""
        while len(self.screen_stack) > 1 and not self._has_dialog():
            self.pop_screen()

    def action_go(self) -> None:
        """Let the operator choose a screen from a list."""
        if not self._has_dialog():
            titles = [f"{kind.key}  {kind.title}" for kind in _LISTED]
            self.push_screen(ChooseDialog("Go to", ["0  Home", *titles]), self._go)

    def _go(self, chosen: int | None) -> None:
        if chosen == 0:
            self.action_home()
        elif chosen is not None:
            self.show(_LISTED[chosen - 1])

    def action_search(self) -> None:
        if not self._has_dialog():
            self.push_screen(SearchDialog(self.shared), self._found)

    def _found(self, hit: Hit | None) -> None:
        if hit is not None:
            self._detail(hit.kind, hit.object_id)

    @on(OpenObject)
    def _open_object(self, message: OpenObject) -> None:
        self._detail(message.kind, message.object_id)

    @on(OpenList)
    def _open_list(self, message: OpenList) -> None:
        """Open the list above the current screen, so that closing it returns there."""
        kind = kind_of(message.kind)
        if kind is not None:
            wish = Wish(filters=message.filters, order=kind.orders[0])
            self.push_screen(ListScreen(self.shared, kind, wish))

    def _detail(self, name: str, object_id: str) -> None:
        kind = kind_of(name)
        if kind is None:
            self.notify(f"No screen shows a {name} yet: {plain(object_id)}")
        else:
            self.push_screen(DetailScreen(self.shared, kind, object_id))

    def action_help(self) -> None:
        """Show the keys of the current screen."""
        screen = self.screen
        if not self._has_dialog() and isinstance(screen, ConsoleScreen):
            lists = [(kind.key, kind.title) for kind in _LISTED]
            everywhere = [row for row in self._bound(self) if row not in lists]
            everywhere.append(("^p", "Command palette"))
            self.push_screen(HelpDialog(screen.heading, [*self._bound(screen), *screen.letters()], lists, everywhere))

    def _bound(self, node: DOMNode) -> list[tuple[str, str]]:
        """Return the keys that the node itself binds and that work now, with their descriptions."""
        enabled = {each.binding.key for each in self.screen.active_bindings.values() if each.enabled}
        found = [each for each in node.BINDINGS if isinstance(each, Binding) and each.description]
        shown = {each.key: each for each in found if not each.action.startswith("app.") and each.key in enabled}
        return [(self.get_key_display(each), each.description) for each in shown.values()]

    def action_shade(self) -> None:
        self.theme = _LIGHT if self.theme == _DARK else _DARK

    async def run_action(
        self,
        action: "str | ActionParseResult",
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Run the action of a key or a widget. An exception is shown and logged, and does not end the console."""
        try:
            return await super().run_action(action, default_namespace, namespaces)
        except Exception as fault:  # noqa: BLE001 - a slip is told and logged; it is no reason to end the console
            note_slip(str(action), fault)
            self.notify(words(fault), severity="error", markup=False)
            return True

    def _fatal_error(self) -> None:
        """Print a crash report without the contents of the screen: Textual's own would print the values of every
        frame."""
        told = "" if self._exception is None else whereabouts(self._exception)
        log.error("the console ended: %s", told)
        self.bell()
        self.panic(Text(f"{_ENDED}\n\n{told}\n"))

    def _has_dialog(self) -> bool:
        return self.screen.is_modal

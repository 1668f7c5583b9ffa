"""`/`: one box for any id, external id, phone or its last digits, and transaction hash."""

from typing import ClassVar

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Label, OptionList
from textual.widgets.option_list import Option

from ...core.usecases.browse.search import Hit, search
from .context import NO_ANSWER, ConsoleContext, words
from .texts import brief, plain

_ID = 20


class SearchDialog(ModalScreen[Hit | None]):
    """Answers what was chosen of what was found."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Close"),
        Binding("down", "list", "To the list", show=False),
    ]

    def __init__(self, shared: ConsoleContext) -> None:
        super().__init__()
        self._shared = shared
        self._hits: list[Hit] = []

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Label("Find", id="title")
            yield Input(placeholder="id, external id, +phone, last 4 digits, hash, merchant", id="wanted", compact=True)
            yield Label("", id="outcome", markup=False)
            yield OptionList(id="hits")

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        self.query_one("#outcome", Label).update("looking…")
        self._look(event.value)

    @work(exclusive=True)
    async def _look(self, text: str) -> None:
        try:
            self._hits = await search(self._shared.ports, text)
        except NO_ANSWER as fault:
            self.query_one("#outcome", Label).update(words(fault))
            return
        if len(self._hits) == 1:
            self.dismiss(self._hits[0])
            return
        self.query_one("#outcome", Label).update(f"{len(self._hits)} found" if self._hits else "Nothing found")
        hits = self.query_one("#hits", OptionList)
        hits.clear_options()
        hits.add_options([Option(_line(hit)) for hit in self._hits])
        if self._hits:
            hits.focus()

    def action_list(self) -> None:
        """Go down to what was found."""
        self.query_one("#hits", OptionList).focus()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._hits[event.option_index])


def _line(hit: Hit) -> Text:
    text = Text(f"{hit.kind:12} ", style="bold", no_wrap=True, overflow="ellipsis")
    text.append(brief(plain(hit.object_id), _ID).ljust(_ID))
    text.append(f"  {hit.mode or '':4} {plain(hit.text)}", style="dim")
    return text

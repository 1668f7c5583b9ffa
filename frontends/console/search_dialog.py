"""`/`: search by id, external id, phone number or its last digits, and transaction hash."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Label, OptionList
from textual.widgets.option_list import Option

from ...core.usecases.browse.search import MOST, Hit, search
from .asking import AskingDialog, background, words
from .context import ConsoleContext
from .texts import brief, moment, plain

_ID = 20


class SearchDialog(AskingDialog[Hit | None]):
    """Dialog that returns the chosen hit, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Close"),
        Binding("down", "list", "To the list", show=False),
    ]

    def __init__(self, shared: ConsoleContext) -> None:
        super().__init__()
        self._shared = shared

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

    @background(exclusive=True)
    async def _look(self, text: str) -> None:
        found = await self.answer(search(self._shared.ports, text))
        await self.answer(self._shared.names.learn(self._shared.ports, [each.account_id for each in found]))
        if len(found) == 1 and not found[0].begins and self.is_active:
            self.dismiss(found[0])
            return
        self.query_one("#outcome", Label).update(_outcome(found))
        hits = self.query_one("#hits", OptionList)
        hits.clear_options()
        hits.add_options([_Found(hit, plain(self._shared.names.of(hit.account_id))) for hit in found])
        if found:
            hits.highlighted = 0
            hits.focus()

    def fail(self, fault: Exception) -> None:
        """Show the fault below the search text."""
        self.query_one("#outcome", Label).update(f"enter: try again · {words(fault)}")

    def action_list(self) -> None:
        """Move the focus to the hits."""
        self.query_one("#hits", OptionList).focus()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        if isinstance(event.option, _Found):
            self.dismiss(event.option.hit)


class _Found(Option):
    """A line that stores its hit, because the list may have changed when a key event arrives."""

    def __init__(self, hit: Hit, merchant: str) -> None:
        super().__init__(_lines(hit, merchant))
        self.hit = hit


def _outcome(found: Sequence[Hit]) -> str:
    """Return the number of hits, and whether they match only by prefix."""
    count = f"{len(found)}{'' if len(found) < MOST else ' or more'}"
    if found and all(each.begins for each in found):
        return f"No order is named so; {count} that begin with it"
    return f"{count} found" if found else "Nothing found"


def _lines(hit: Hit, merchant: str) -> Text:
    """Return the hit's kind and id, and a second line with merchant, external id and time."""
    text = Text(f"{hit.kind:12} ", style="bold", no_wrap=True, overflow="ellipsis")
    text.append(brief(plain(hit.object_id), _ID).ljust(_ID))
    text.append(f"  {hit.mode or '':4} {plain(hit.text)}", style="dim")
    whose = (
        None if hit.account_id is None else merchant,
        None if hit.external_id is None else f"order {plain(hit.external_id)}",
        None if hit.at is None else f"{moment(hit.at)} UTC",
    )
    told = " · ".join(each for each in whose if each is not None)
    return text.append(f"\n{'':13}{told}", style="dim") if told else text

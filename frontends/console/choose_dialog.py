"""Dialogs to choose one of several values, such as accounts and filters, or to enter a text."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Label, OptionList
from textual.widgets.option_list import Option

from .asking import AskingDialog

_MANY = 24
"""Above this number of choices the dialog offers a text filter. The list of all screens stays below it."""


class ChooseDialog(AskingDialog[int | None]):
    """Dialog that returns the index in `choices`, or None if it was closed. Long lists can be narrowed by typing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Close"),
        Binding("down", "list", "To the list", show=False),
    ]

    def __init__(self, title: str, choices: Sequence[str]) -> None:
        super().__init__()
        self._title = title
        self._choices = choices
        self._offered = list(range(len(choices)))

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Label(self._title, id="title", markup=False)
            if len(self._choices) > _MANY:
                yield Input(placeholder="a part of it", id="part", compact=True)
            yield OptionList(*self._options())

    def _options(self) -> list[Option]:
        return [Option(Text(self._choices[place]), id=str(place)) for place in self._offered]

    @on(Input.Changed)
    def _narrow(self, event: Input.Changed) -> None:
        part = event.value.casefold()
        self._offered = [place for place, each in enumerate(self._choices) if part in each.casefold()]
        found = self.query_one(OptionList)
        found.clear_options()
        found.add_options(self._options())

    @on(Input.Submitted)
    def _first(self) -> None:
        if self._offered:
            self.dismiss(self._offered[0])

    def on_key(self, event: events.Key) -> None:
        """Move to the next choice that begins with this letter."""
        offered = self.query_one(OptionList)
        if self.focused is not offered or not event.character or not event.character.isprintable():
            return
        first = 0 if offered.highlighted is None else offered.highlighted + 1
        round_about = [*range(first, len(self._offered)), *range(first)]
        begins = (at for at in round_about if self._begins(self._offered[at], event.character))
        offered.highlighted = next(begins, offered.highlighted)

    def _begins(self, place: int, letter: str) -> bool:
        return self._choices[place].lstrip().casefold().startswith(letter.casefold())

    def action_list(self) -> None:
        """Move the focus to the choices."""
        self.query_one(OptionList).focus()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(int(event.option.id or 0))


class AskDialog(AskingDialog[str | None]):
    """Dialog that returns the entered text, or None if it was closed."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Close")]

    def __init__(self, title: str, hint: str, present: str) -> None:
        super().__init__()
        self._title = title
        self._hint = hint
        self._present = present

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Label(f"{self._title}: {self._hint}; empty for all", id="title", markup=False)
            yield Input(self._present, compact=True)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)

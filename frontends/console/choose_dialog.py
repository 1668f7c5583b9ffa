"""Choosing one of a few, such as accounts and filters, or any text."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Label, OptionList
from textual.widgets.option_list import Option


class ChooseDialog(ModalScreen[int | None]):
    """Answers which of `choices` was taken; None: none of them."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Close")]

    def __init__(self, title: str, choices: Sequence[str | Text]) -> None:
        super().__init__()
        self._title = title
        self._choices = choices

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Label(self._title, id="title", markup=False)
            yield OptionList(*(Option(Text(each) if isinstance(each, str) else each) for each in self._choices))

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_index)


class AskDialog(ModalScreen[str | None]):
    """Answers with the text that was entered; None: nothing was decided."""

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

"""What every screen works with, and how it asks the storage without ever standing still or falling over."""

from collections.abc import Awaitable
from typing import TypeVar

import msgspec
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widgets import Footer, Label

from ...core.domain.errors import Refusal
from ...ports.bundle import Ports
from ...ports.faults import Fault
from ...ports.vault import VaultError

T = TypeVar("T")

_PATIENCE = 0.3
"""Seconds after which an answer that has not come is shown to be awaited."""


class Desk(msgspec.Struct, frozen=True, kw_only=True):
    """The service, and who sits before it."""

    ports: Ports
    operator: str
    demo: bool = False


def words(fault: Exception) -> str:
    """What went wrong, for an operator."""
    if isinstance(fault, Refusal):
        return f"{fault.code}: {fault.message}"
    return str(fault) or type(fault).__name__


NO_ANSWER = (Refusal, Fault, VaultError, OSError)
"""What a use case may raise that is no slip of ours."""


class DeskScreen(Screen[None]):
    """A screen with a bar at its top: title, what the storage does, the operator's name."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012 - Textual's own way

    def __init__(self, desk: Desk, title: str) -> None:
        super().__init__()
        self.desk = desk
        self._heading = title
        self._asking = 0
        self._away = ""

    def frame(self, body: ComposeResult) -> ComposeResult:
        """The bar, what is between, and the footer."""
        with Horizontal(id="bar"):
            yield Label(self._heading, id="heading", markup=False)
            yield Label("", id="state", markup=False)
            yield Label(f"{'demo · ' if self.desk.demo else ''}{self.desk.operator}", id="operator", markup=False)
        yield from body
        yield Footer()

    def head(self, title: str) -> None:
        """Show another title."""
        self._heading = title
        self.query_one("#heading", Label).update(title)

    async def ask(self, question: Awaitable[T]) -> T | None:
        """The answer; None where there was none, which the bar then says until one comes."""
        self._asking += 1
        timer = self.set_timer(_PATIENCE, self._show)
        try:
            answer = await question
        except NO_ANSWER as fault:
            self._away = words(fault)
            return None
        else:
            self._away = ""
            return answer
        finally:
            timer.stop()
            self._asking -= 1
            self._show()

    def _show(self) -> None:
        if not self.is_mounted:
            return
        state = self.query_one("#state", Label)
        state.set_class(bool(self._away), "away")
        state.update(self._away or ("working…" if self._asking else ""))

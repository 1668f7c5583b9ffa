"""The single layer through which screens and dialogs read and act.

A screen may close while it waits, and a call may fail in ways that no port promises. Background work therefore starts
only with `background`, whose failure never ends the console, and results arrive only through `Asking.answer`, which
delivers them to screens that are still open.
"""

import logging
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from textual import events
from textual._styles_cache import StylesCache
from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, Screen, ScreenResultType
from textual.widget import Widget
from textual.worker import WorkType

from ...core.domain.errors import Refusal
from ...ports.faults import Fault
from ...ports.vault import VaultError

T = TypeVar("T")
P = ParamSpec("P")
S = TypeVar("S", bound="Asking[Any]")

log = logging.getLogger("cambist.console")

NO_ANSWER = (Refusal, Fault, VaultError, OSError)
"""Exceptions that a use case may raise without a bug on our side."""

_BLANK = 0.2
"""Seconds after which a new screen is painted even if its data has not arrived."""
_FRAMES = 8
_APP = Path(__file__).resolve().parents[2]


class Left(Exception):
    """The screen was closed meanwhile, so the result is dropped."""


def words(fault: Exception) -> str:
    """Return the fault's text for an operator. A bug shows only its type, because its text may contain the data it
    failed on."""
    if isinstance(fault, Refusal):
        return f"{fault.code}: {fault.message}"
    if isinstance(fault, (*NO_ANSWER, ValueError)):
        return str(fault) or type(fault).__name__
    return f"a fault of the console ({type(fault).__name__})"


def whereabouts(fault: BaseException) -> str:
    """Return the type and frames of a fault, innermost last. Neither values nor the fault's own text appear: both may
    contain data."""
    frames = traceback.extract_tb(fault.__traceback__)[-_FRAMES:]
    told = [f"  {_short(each.filename)}:{each.lineno} in {each.name}" for each in frames]
    return "\n".join([type(fault).__name__, *told])


def note_slip(doing: str, fault: BaseException) -> None:
    """Log a bug of the console without its text."""
    log.error("%s failed: %s", doing, whereabouts(fault))


def _short(filename: str) -> str:
    path = Path(filename).resolve()
    return str(path.relative_to(_APP)) if path.is_relative_to(_APP) else "/".join(path.parts[-2:])


def background(
    group: str = "default", *, exclusive: bool = False
) -> Callable[[Callable[Concatenate[S, P], Coroutine[Any, Any, None]]], Callable[Concatenate[S, P], None]]:
    """Turn a coroutine method into one that starts in the background. The work ends with its screen; `exclusive` also
    cancels earlier work of the screen in the same group. The screen's `fail` reports exceptions."""

    def make(work: Callable[Concatenate[S, P], Coroutine[Any, Any, None]]) -> Callable[Concatenate[S, P], None]:
        @wraps(work)
        def begin(self: S, /, *args: P.args, **named: P.kwargs) -> None:
            async def keep() -> None:
                await self.keep(work(self, *args, **named))

            doing: WorkType[None] = (
                keep  # not a coroutine yet, because work cancelled before its first step would leave it never awaited
            )
            if self.is_running:
                self.run_worker(doing, work.__name__, group, exit_on_error=False, exclusive=exclusive)

        return begin

    return make


class Asking(Screen[ScreenResultType]):
    """A screen or dialog that may close at any moment, and whose first painting already shows its data."""

    _is_new = True
    _is_blank = True

    def on_mount(self) -> None:
        """Limit how long the first painting waits for data."""
        self.set_timer(_BLANK, self.reveal)

    def on_screen_suspend(self) -> None:
        """Free the painted lines once the screen is closed. They are most of a screen's memory, and otherwise wait for
        a full collection, which delays a key."""
        if self not in self.app.screen_stack:
            for each in self.query(Widget):
                each._styles_cache.clear()  # noqa: SLF001 - Textual does it where it paints anew, and nowhere else

    def on_unmount(self) -> None:
        """Clear Textual's cache: it keeps the last thousand widgets alive as arguments of a cached method."""
        StylesCache.get_inner_outer.cache_clear()

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        """Refresh styles only if the screen returns to the front: a new screen was styled when it was created."""
        event.refresh_styles, self._is_new = not self._is_new, False
        if event.refresh_styles:
            self.came_back()

    def came_back(self) -> None:
        """Read data that may have changed while another screen was in front."""

    def _compositor_refresh(self) -> None:
        """Paint, but not before the data of a new screen has arrived; otherwise it would be painted empty and again for
        each part. If Textual renames this method, screens are painted more often and nothing breaks."""
        if not self._is_blank:
            super()._compositor_refresh()

    def reveal(self) -> None:
        """Allow painting from now on."""
        if self._is_blank:
            self._is_blank = False
            self.refresh(repaint=False, layout=True)

    async def answer(self, question: Awaitable[T]) -> T:
        """Await a result. Raises: exceptions of the call; Left, if the screen was closed meanwhile."""
        try:
            answer = await question
        except Exception as fault:
            if not self.is_running:
                raise Left from fault
            raise
        if not self.is_running:
            raise Left
        return answer

    async def keep(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the work to its end, and report its exceptions."""
        try:
            await work
        except Left:
            return
        except Exception as fault:  # noqa: BLE001 - a slip is told and logged; it is no reason to end the console
            if not isinstance(fault, NO_ANSWER):
                note_slip(getattr(work, "__qualname__", "work"), fault)
            if self.is_running:
                self.fail(fault)

    def fail(self, fault: Exception) -> None:
        """Show the operator what went wrong."""
        self.notify(words(fault), severity="error", markup=False)

    def is_asking(self, group: str) -> bool:
        """Return whether work of this group is running. Callers then wait: restarting a read on a slow storage would
        mean that it never finishes."""
        return any(each.group == group and each.node is self and not each.is_finished for each in self.workers)

    def later(self, do: Callable[[], object]) -> None:
        """Call `do` after the next layout, unless the screen was closed before."""
        self.call_after_refresh(lambda: do() if self.is_running else None)

    def leave(self) -> None:
        """Close this screen once and no other, because a second key press may already be queued."""
        if self.is_active and len(self.app.screen_stack) > 1:
            self.app.pop_screen()


class AskingDialog(ModalScreen[ScreenResultType], Asking[ScreenResultType]):
    """A dialog that returns a result to the screen that opened it."""

    def on_resize(self) -> None:
        """Paint at once: a dialog needs nothing but its size."""
        self.reveal()

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Return the result and close, once. Does nothing while another dialog covers this one."""
        if self.is_active and self.is_running:
            return super().dismiss(result)
        done: AwaitComplete = AwaitComplete.nothing()  # type: ignore[no-untyped-call]  # Textual gives it no types
        return done

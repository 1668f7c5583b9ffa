"""The one room through which screens and dialogs read and act.

A screen may be left while it waits, and whatever it asked may fail in ways that no port promised. So work is begun by
`background` alone, whose end is never the console's; and an answer comes from `Asking.answer` alone, which gives it to
a screen that is still there, and to no other.
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
"""What a use case may raise that is no slip of ours."""

_BLANK = 0.2
"""Seconds after which a new screen is painted without what it has read, where that has not come."""
_FRAMES = 8
_HOUSE = Path(__file__).resolve().parents[2]


class Left(Exception):
    """The screen that asked was left meanwhile: what came is dropped."""


def words(fault: Exception) -> str:
    """What went wrong, for an operator. Of a slip only its type is told: its text may hold what it stumbled on."""
    if isinstance(fault, Refusal):
        return f"{fault.code}: {fault.message}"
    if isinstance(fault, (*NO_ANSWER, ValueError)):
        return str(fault) or type(fault).__name__
    return f"a fault of the console ({type(fault).__name__})"


def whereabouts(fault: BaseException) -> str:
    """Type and frames of a fault, the innermost last: no values, and no text of its own, which may hold some."""
    frames = traceback.extract_tb(fault.__traceback__)[-_FRAMES:]
    told = [f"  {_short(each.filename)}:{each.lineno} in {each.name}" for each in frames]
    return "\n".join([type(fault).__name__, *told])


def note_slip(doing: str, fault: BaseException) -> None:
    """Log a fault of our own, without its text."""
    log.error("%s failed: %s", doing, whereabouts(fault))


def _short(filename: str) -> str:
    path = Path(filename).resolve()
    return str(path.relative_to(_HOUSE)) if path.is_relative_to(_HOUSE) else "/".join(path.parts[-2:])


def background(
    group: str = "default", *, exclusive: bool = False
) -> Callable[[Callable[Concatenate[S, P], Coroutine[Any, Any, None]]], Callable[Concatenate[S, P], None]]:
    """Make a coroutine method one that is begun and not awaited. It ends with its screen; `exclusive` ends what the
    screen began in the group before. Whatever it raises is told by the screen's `fail`."""

    def make(work: Callable[Concatenate[S, P], Coroutine[Any, Any, None]]) -> Callable[Concatenate[S, P], None]:
        @wraps(work)
        def begin(self: S, /, *args: P.args, **named: P.kwargs) -> None:
            async def keep() -> None:
                await self.keep(work(self, *args, **named))

            doing: WorkType[None] = keep  # no coroutine yet: what is ended before its first step was never begun
            if self.is_running:
                self.run_worker(doing, work.__name__, group, exit_on_error=False, exclusive=exclusive)

        return begin

    return make


class Asking(Screen[ScreenResultType]):
    """A screen or dialog that may be left at any moment, and is first painted with all that there is to see."""

    _is_new = True
    _is_blank = True

    def on_mount(self) -> None:
        """Be painted in time, whatever is still awaited."""
        self.set_timer(_BLANK, self.reveal)

    def on_screen_suspend(self) -> None:
        """Once it was left, let go of what was painted. It is most of what a screen is, and waits for a full collection
        else, which holds up a key."""
        if self not in self.app.screen_stack:
            for each in self.query(Widget):
                each._styles_cache.clear()  # noqa: SLF001 - Textual does it where it paints anew, and nowhere else

    def on_unmount(self) -> None:
        """Textual keeps that of the last thousand widgets with the arguments of a cached method."""
        StylesCache.get_inner_outer.cache_clear()

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        """A new screen was styled when it was made; any other is in front again."""
        event.refresh_styles, self._is_new = not self._is_new, False
        if event.refresh_styles:
            self.came_back()

    def came_back(self) -> None:
        """Look at what may have changed while another screen was in front."""

    def _compositor_refresh(self) -> None:
        """Paint. A new screen is not painted empty, and then again with each part that it reads: where Textual calls
        this by another name it is, and costs more."""
        if not self._is_blank:
            super()._compositor_refresh()

    def reveal(self) -> None:
        """Be painted from now on."""
        if self._is_blank:
            self._is_blank = False
            self.refresh(repaint=False, layout=True)

    async def answer(self, question: Awaitable[T]) -> T:
        """What was asked for. Raises: what the question raises; Left, when nobody is there to see it."""
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
        """Work to its end, whatever that is."""
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
        """Tell what went wrong where the operator looks."""
        self.notify(words(fault), severity="error", markup=False)

    def is_asking(self, group: str) -> bool:
        """Whether work of this group is under way. A storage that is slow is waited for: asked anew each time, it would
        never have answered."""
        return any(each.group == group and each.node is self and not each.is_finished for each in self.workers)

    def later(self, do: Callable[[], object]) -> None:
        """Do it once all is laid out; the application may come to it when the screen was left."""
        self.call_after_refresh(lambda: do() if self.is_running else None)

    def leave(self) -> None:
        """Close this screen, once, and no other: a second key may be on its way already."""
        if self.is_active and len(self.app.screen_stack) > 1:
            self.app.pop_screen()


class AskingDialog(ModalScreen[ScreenResultType], Asking[ScreenResultType]):
    """A dialog, which answers whoever opened it."""

    def on_resize(self) -> None:
        """Its first size is the last that it waits for, to be painted."""
        self.reveal()

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Answer and close, once; while another dialog lies over this one nothing is closed."""
        if self.is_active and self.is_running:
            return super().dismiss(result)
        done: AwaitComplete = AwaitComplete.nothing()  # type: ignore[no-untyped-call]  # Textual gives it no types
        return done

"""Processes as the loop sees them: each has its own queue of ready callbacks, and a task belongs to the process that
started it."""

from collections.abc import Callable
from contextvars import Context, ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.loop import SimHandle


class Strand:
    """A process as the loop sees it."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.ready: list[SimHandle] = []
        self.is_dead = False
        self.is_stopped = False
        self.fuse: int | None = None
        """The process is killed after so many further steps."""
        self.on_fuse: Callable[[], None] | None = None
        self.steps = 0

    def __repr__(self) -> str:
        return f"<strand {self.name}>"


WORLD = Strand("world", 0)
"""Whatever belongs to no process: merchants, payers, banks, the network."""

_strand: ContextVar[Strand] = ContextVar("strand", default=WORLD)


def enter(strand: Strand) -> None:
    """Assign tasks that start in this context to this strand."""
    _strand.set(strand)


def strand_of(context: Context) -> Strand:
    """The process that a context belongs to."""
    return context.get(_strand, WORLD)


def present_strand() -> Strand:
    """The process that runs just now."""
    return _strand.get()

"""Cyclic garbage collection during and after the start of a process."""

import gc
import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the collector while modules are imported and objects built. They live to the end, and the collector would
    scan them again and again, for a fifth of the start time."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # Move all objects to the oldest generation at once, or the next young collection would scan them all. Skip this
        # if the program has frozen objects, which would thaw.
        if gc.get_freeze_count() == 0:
            gc.freeze()
            gc.unfreeze()
        if running:
            gc.enable()


_YOUNG = 5_000
"""New containers between two young collections. The interpreter's default of 700 is about one request's worth, most of
it still in use; it cost a tenth of a new payment's time."""


_FULL_AFTER = 10
"""Middle collections between two full ones."""


def keep_for_good(full_after: int = _FULL_AFTER) -> None:
    """Exclude the present objects from collection, and collect less often. Call it in a process of our own that has
    started: a full collection, which delays every request, then takes a few milliseconds instead of a hundred. Data
    used only by imports is dropped first, 0.4 MB: folder listings, which a later import reads again, and the source of
    generated methods. Set `full_after` higher in a process that runs full collections when idle."""
    sys.path_importer_cache.clear()
    linecache.clearcache()
    gc.freeze()
    gc.set_threshold(_YOUNG, 10, full_after)


def collect_in_full() -> None:
    """Run a full collection while the process is idle, if enough has accumulated since the last one."""
    if gc.get_count()[2]:
        gc.collect()

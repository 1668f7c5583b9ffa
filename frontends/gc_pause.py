"""The cyclic garbage collector while a process starts, and what of starting is let go."""

import gc
import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """For importing and building: what comes of it stays to the end, and the collector would walk over all of it again
    and again, for a fifth of the time that starting takes."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # All of it is old at once, else the next collection of what is young would be one more walk. Not where the
        # program keeps something frozen, which would thaw.
        if gc.get_freeze_count() == 0:
            gc.freeze()
            gc.unfreeze()
        if running:
            gc.enable()


_YOUNG = 5_000
"""Containers that come before the young among them are looked at; the interpreter's own 700 are those of one request,
most of which are still in use then: by measurement, a tenth of what a new payment cost."""


_FULL_AFTER = 10
"""Collections of what is not so young any more that come before one of all."""


def keep_for_good(full_after: int = _FULL_AFTER) -> None:
    """The collector passes over what is there by now, and comes less often. For a process of our own that has started:
    a full collection, which holds up every request, then takes a few milliseconds instead of a hundred. What only
    imports needed goes before, 0.4 MB: the lists of the folders, which a later import makes anew, and the source of
    methods that libraries wrote. `full_after`: more of them, in a process that collects in full when nobody waits."""
    sys.path_importer_cache.clear()
    linecache.clearcache()
    gc.freeze()
    gc.set_threshold(_YOUNG, 10, full_after)


def collect_in_full() -> None:
    """Do it while nobody waits, where enough has come since the last time to be worth it."""
    if gc.get_count()[2]:
        gc.collect()

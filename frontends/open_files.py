"""How many files and connections a process may have open, and who gets them."""

import logging
import sys
from typing import NamedTuple

from ..core.usecases.webhooks.dispatcher import WEBHOOKS

WANTED = 65_536
"""More is not asked for, however much is allowed."""

CONNECTIONS = 8192
"""Connections of clients to one process, at most: each costs some ten kilobytes."""

log = logging.getLogger("cambist.serve")


class FileBudget(NamedTuple):
    """Who may have how many at once, so that none takes what another needs."""

    webhooks: int
    """Webhooks under way: a half of the files at most."""
    connections: int
    """Connections of clients: three quarters of what webhooks leave; databases and logs have the rest."""
    of_an_address: int
    """Of these from one address: a quarter of all files, whatever is set."""


def file_budget(allowed: int) -> FileBudget:
    """How so many files are shared."""
    webhooks = max(min(WEBHOOKS, allowed // 2), 1)
    connections = max(min(CONNECTIONS, (allowed - webhooks) * 3 // 4), 1)
    return FileBudget(webhooks, connections, max(min(connections, allowed // 4), 1))


def raise_limit() -> None:
    """Let this process have as many files open as it is allowed to: what shells and units give at first is a few for
    one that serves. Says so where it stays too low for all webhooks."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    aim = WANTED if hard == resource.RLIM_INFINITY else min(hard, WANTED)
    # Where it is as high, it is not asked for: a unit may forbid the call.
    if soft != resource.RLIM_INFINITY and soft < aim:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (aim, hard))
        except (OSError, ValueError):
            aim = soft
    else:
        aim = soft
    if aim != resource.RLIM_INFINITY and aim < 2 * WEBHOOKS:
        log.warning(
            "this process may have %d files open (ulimit -n): %d webhooks under way at most, instead of %d",
            aim,
            file_budget(aim).webhooks,
            WEBHOOKS,
        )


def allowed() -> int:
    """How many files this process may have open by now."""
    if sys.platform == "win32":
        return WANTED
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return WANTED if soft == resource.RLIM_INFINITY else min(soft, WANTED)

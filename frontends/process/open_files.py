"""Limits on open files and connections of a process, and their distribution."""

import logging
import sys
from typing import NamedTuple

from ...core.usecases.webhooks.dispatcher import WEBHOOKS

WANTED = 65_536
"""Largest limit requested, even if more is allowed."""

CONNECTIONS = 8192
"""Largest number of client connections of one process: each costs some ten kilobytes."""

log = logging.getLogger("cambist.serve")


class FileBudget(NamedTuple):
    """Share of each use in the open files, so that none takes the files of another."""

    webhooks: int
    """Webhooks under way: at most half of the files."""
    connections: int
    """Client connections: three quarters of the rest; databases and logs get the remainder."""
    of_an_address: int
    """Client connections from one address: at most a quarter of all files, whatever the settings say."""


def file_budget(allowed: int) -> FileBudget:
    """Return the shares of `allowed` files."""
    webhooks = max(min(WEBHOOKS, allowed // 2), 1)
    connections = max(min(CONNECTIONS, (allowed - webhooks) * 3 // 4), 1)
    return FileBudget(webhooks, connections, max(min(connections, allowed // 4), 1))


def raise_limit() -> None:
    """Raise this process's limit of open files to its maximum: the default of shells and units is low for a service.
    Log a warning if it stays too low for all webhooks."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    aim = WANTED if hard == resource.RLIM_INFINITY else min(hard, WANTED)
    # Do not call it if the limit is high already: a unit may forbid the call.
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
    """Return how many files this process may have open now."""
    if sys.platform == "win32":
        return WANTED
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return WANTED if soft == resource.RLIM_INFINITY else min(soft, WANTED)

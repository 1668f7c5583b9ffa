"""How many files and connections this process may have open."""

import logging
import sys

from ...core.usecases.webhooks.dispatcher import LETTERS

_WANTED = 8192
"""Letters under way, requests, databases, and some to spare."""

log = logging.getLogger("cambist.worker")


def room_for_letters() -> int:
    """How many letters may be under way: as many as wanted, but no more than half of what may be open, so that they
    never take what requests and storage need. The limit is raised first where the process is allowed to: what shells
    and units give by default is too low."""
    allowed = _raised(_WANTED)
    if allowed >= 2 * LETTERS:
        return LETTERS
    log.warning(
        "this process may have %d files open (ulimit -n): %d letters under way at most, instead of %d",
        allowed,
        allowed // 2,
        LETTERS,
    )
    return max(allowed // 2, 1)


def _raised(wanted: int) -> int:
    if sys.platform == "win32":
        return wanted
    import resource

    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY or allowed >= wanted:
        return wanted
    aim = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    # Where it is enough, it is not asked for: a unit may forbid the call.
    if allowed < 2 * LETTERS and aim > allowed:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (aim, most))
        except (OSError, ValueError):
            return allowed
        return aim
    return allowed

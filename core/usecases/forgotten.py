"""Whether providers may know more of something than the database does: it may have been restored from a backup, which
has forgotten what was done since. A restore needs a start, so only what is older than the process is suspect, and what
arises while it runs costs no further question."""

from datetime import datetime

from ...ports.bundle import Ports


def may_be_forgotten(ports: Ports, since: datetime) -> bool:
    """Whether what has been there `since` then, by the test clock in force, is older than the process:
    then its provider is asked what it did, before anything is sent."""
    return since < ports.started + (ports.clock.now() - ports.clock.real())

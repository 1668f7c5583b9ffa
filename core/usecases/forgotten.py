"""Whether providers may know more of an operation than the database does, because it was restored from a backup and has
forgotten what was done since.

Two signs tell it. The database was held, or was let go after a hold: then any operation may be older than its row. Or
the operation is older than the process: a restore needs a start, so this covers a copy that nothing recognised.
"""

from datetime import datetime

from ...ports.bundle import Ports
from .holding import forgotten_since


async def may_be_forgotten(ports: Ports, since: datetime) -> bool:
    """Whether to ask the provider what it did before anything is sent, for an operation of `since` by the test clock in
    force."""
    is_older_than_process = since < ports.started + (ports.clock.now() - ports.clock.real())
    return is_older_than_process or await forgotten_since(ports) is not None


async def sent_at_earliest(ports: Ports, created_at: datetime) -> datetime:
    """Return the moment before which an operation of `created_at` was certainly not sent, for providers that search by
    time. The row may be younger than the operation, where a restored database was asked for it again."""
    since = await forgotten_since(ports)
    return created_at if since is None else min(created_at, since)

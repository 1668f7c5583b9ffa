"""Detection of operations that providers know better than the database, because it was restored from a backup and lacks
later changes.

There are two signs. Either the database was quarantined at some time: then any operation may be older than its row. Or
the operation is older than the process: a restore needs a start, so this covers a copy that was not recognised.
"""

from datetime import datetime

from ....ports.bundle import Ports
from .quarantine import forgotten_since


async def may_be_forgotten(ports: Ports, since: datetime) -> bool:
    """Return whether to query the provider about earlier attempts before sending anything, for an operation begun at
    `since` by the current test clock."""
    is_older_than_process = since < ports.started + (ports.clock.now() - ports.clock.real())
    return is_older_than_process or await forgotten_since(ports) is not None


async def sent_at_earliest(ports: Ports, created_at: datetime) -> datetime:
    """Return the earliest moment at which an operation created at `created_at` may have been sent, for providers that
    search by time. The row may be younger than the operation, if a restored database received its request again."""
    since = await forgotten_since(ports)
    return created_at if since is None else min(created_at, since)

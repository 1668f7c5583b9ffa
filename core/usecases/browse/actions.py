"""Lists of pending operator actions, for operators."""

from typing import Any

from ....ports.bundle import Ports
from ....ports.storage import AtLeast
from ...domain.operators.pending_actions import ActionStatus, PendingAction
from .browse import merged
from .leaves import Leaf, Way


async def browse_actions(
    ports: Ports, status: ActionStatus | None, after: PendingAction | None, limit: int, *, newest_first: bool = True
) -> Leaf[PendingAction]:
    """Return a page of pending actions with this status, starting after `after`. An expired action does not count as
    waiting."""
    criteria: dict[str, Any] = {} if status is None else {"status": status}
    if status is ActionStatus.WAITING:
        criteria["expires_at"] = AtLeast(ports.clock.now())
    by = "id" if status is None else "created_at"
    async with ports.storage.unit() as unit:
        return await merged(unit, [Way(PendingAction, criteria)], after, limit, by=by, newest_first=newest_first)

"""How operators leaf through differences from banks' lists: those that are open, or those that are closed."""

from typing import Any

from ....ports.bundle import Ports
from ....ports.storage import AtLeast
from ...domain.days import LONG_AGO
from ...domain.reconciliation.reconciliation import Discrepancy
from .browse import Wanted, merged
from .leaves import Leaf, Way


async def browse_differences(
    ports: Ports, wanted: Wanted, after: Discrepancy | None, limit: int, *, closed: bool = False
) -> Leaf[Discrepancy]:
    """What is open and follows `after`, by when it was found; or, `closed`, what is not, by when that was."""
    criteria: dict[str, Any] = {"closed_at": AtLeast(LONG_AGO) if closed else None}
    if wanted.account_id is not None:
        criteria["account_id"] = wanted.account_id
    by = "closed_at" if closed else "found_at"
    async with ports.storage.unit() as unit:
        return await merged(unit, [Way(Discrepancy, criteria)], after, limit, by=by, newest_first=wanted.newest_first)

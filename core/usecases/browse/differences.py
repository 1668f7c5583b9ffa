"""Lists of differences from banks' lists, for operators: the open ones or the closed ones."""

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
    """Return a page of open differences, starting after `after`, by the time they were found. With `closed`, return the
    closed ones, by the time they were closed."""
    criteria: dict[str, Any] = {"closed_at": AtLeast(LONG_AGO) if closed else None}
    if wanted.account_id is not None:
        criteria["account_id"] = wanted.account_id
    by = "closed_at" if closed else "found_at"
    async with ports.storage.unit() as unit:
        return await merged(unit, [Way(Discrepancy, criteria)], after, limit, by=by, newest_first=wanted.newest_first)

"""Lists of suspended transfers, for operators: payments' and exchanges' in one list."""

from typing import Any

from ....ports.bundle import Ports
from ....ports.storage import AtLeast
from ...domain.days import LONG_AGO
from ...domain.exchanges.funds import SUSPENDED_FOR, ExchangeTransfer
from ...domain.payments.suspense import SUSPENSE, Suspense
from .browse import Wanted, merged
from .leaves import Leaf, Way

Suspended = Suspense | ExchangeTransfer


async def browse_suspense(
    ports: Ports, wanted: Wanted, after: Suspended | None, limit: int, *, returned: bool = False
) -> Leaf[Suspended]:
    """Return a page of suspended transfers, starting after `after`, in the order of arrival. With `returned`, list the
    transfers that were sent back, in the order in which that happened."""
    criteria: dict[str, Any] = {"resolved_at": AtLeast(LONG_AGO) if returned else None}
    if wanted.account_id is not None:
        criteria["account_id"] = wanted.account_id
    if wanted.mode is not None:
        criteria["mode"] = wanted.mode
    ways = [
        Way(Suspense, criteria),
        *(Way(ExchangeTransfer, {**criteria, "reason": reason}) for reason in SUSPENDED_FOR),
    ]
    by = "resolved_at" if returned else "received_at"
    async with ports.storage.unit() as unit:
        return await merged(unit, ways, after, limit, by=by, newest_first=wanted.newest_first)


async def find_suspended(ports: Ports, record_id: str) -> Suspended | None:
    """Return the suspended transfer with this id, of a payment or of an exchange."""
    async with ports.storage.unit() as unit:
        if record_id.startswith(SUSPENSE):
            return await unit[Suspense].get(record_id)
        return await unit[ExchangeTransfer].get(record_id)

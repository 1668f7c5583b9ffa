"""Our operations at a bank, read by time span for a comparison, or by operation id (docs/reconciliation.md "What is
compared").
"""

from collections.abc import AsyncIterator, Collection
from datetime import datetime

from ....ports.bundle import Ports
from ...domain.reconciliation.comparing import Counted
from .exchanges import exchange_returns_between, exchanges_between, known_exchanges, known_returns, payouts_between
from .payments import known_payments, money_between, unapplied_payments_between
from .refunds import known_refunds, known_suspense, refunds_between, returns_between
from .scope import Scope

_LONGEST = 600
"""Longest operation id of ours, in characters."""


async def others_between(ports: Ports, scope: Scope, begin: datetime, end: datetime) -> AsyncIterator[Counted]:
    """Iterate over all operations of this time span except payments with money: unapplied transfers, refunds, returns
    from suspense, and invoices, payouts and returns of exchanges. They are few compared with payments, so a whole day
    is read at once.
    """
    for read in (
        unapplied_payments_between,
        refunds_between,
        returns_between,
        exchanges_between,
        payouts_between,
        exchange_returns_between,
    ):
        async for each in read(ports, scope, begin, end):
            yield each


async def counted_between(ports: Ports, scope: Scope, begin: datetime, end: datetime) -> int:
    """Return how many operations of this time span the bank must have by now. When a later outcome or report changes
    the number, the day is compared again.
    """
    others = [each.is_counted async for each in others_between(ports, scope, begin, end)]
    return await money_between(ports, scope, begin, end) + sum(others)


async def known(ports: Ports, scope: Scope, operations: Collection[str]) -> dict[str, Counted]:
    """Return our records of these operations at the scope's bank, in any state and with all their money."""
    wanted = [each for each in operations if each.isascii() and each.isprintable() and len(each) <= _LONGEST]
    found: dict[str, Counted] = {}
    async with ports.storage.unit() as unit:
        for read in (known_payments, known_refunds, known_suspense, known_exchanges, known_returns):
            found |= await read(unit, scope, wanted)
    return found

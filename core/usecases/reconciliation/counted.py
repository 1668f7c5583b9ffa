"""What we count at a bank: read by stretches of time for a comparison, or by the ids of operations
(docs/reconciliation.md "What is compared")."""

from collections.abc import AsyncIterator, Collection
from datetime import datetime

from ....ports.bundle import Ports
from ...domain.reconciliation.comparing import Counted
from .exchanges import exchange_returns_between, exchanges_between, known_exchanges, known_returns, payouts_between
from .payments import known_payments, money_between, stray_payments_between
from .refunds import known_refunds, known_suspense, refunds_between, returns_between
from .scope import Scope

_LONGEST = 600
"""Characters of an operation of ours."""


async def others_between(ports: Ports, scope: Scope, begin: datetime, end: datetime) -> AsyncIterator[Counted]:
    """What else than payments with money the bank may have been asked for in this time and must have: refunds, money
    sent back from suspense, exchanges' invoices and payouts. Few beside the payments: read at once for a day."""
    for read in (
        stray_payments_between,
        refunds_between,
        returns_between,
        exchanges_between,
        payouts_between,
        exchange_returns_between,
    ):
        async for each in read(ports, scope, begin, end):
            yield each


async def counted_between(ports: Ports, scope: Scope, begin: datetime, end: datetime) -> int:
    """How many operations of this time the bank must have by now. What ends later, or is heard of later, changes it:
    then the time is compared anew."""
    others = [each.is_counted async for each in others_between(ports, scope, begin, end)]
    return await money_between(ports, scope, begin, end) + sum(others)


async def known(ports: Ports, scope: Scope, operations: Collection[str]) -> dict[str, Counted]:
    """What we know of these operations of the scope's bank, whatever became of them, all their money counted: by the
    names that were asked for, which may be those of an earlier version."""
    wanted = [each for each in operations if each.isascii() and each.isprintable() and len(each) <= _LONGEST]
    found: dict[str, Counted] = {}
    async with ports.storage.unit() as unit:
        for read in (known_payments, known_refunds, known_suspense, known_exchanges, known_returns):
            found |= await read(unit, scope, wanted)
    return found

"""Which operations at banks have an unknown outcome: kept beside the payments, in the units that move these, so that
monitors and operators read a few rows. A creation that goes well writes none and asks for none."""

from datetime import datetime, timedelta

import msgspec

from ....ports.storage import AtLeast, OneOf, Unit
from ...domain.days import LONG_AGO
from ...domain.payments.outcomes import Operation, UnknownOutcome, is_outcome_unknown, unknown_outcome
from ...domain.payments.payments import Opening, Payment

TOLD_FOR = timedelta(days=3)
"""From creation: how long an expired payment of unknown outcome is told of. Its payer never had a way to pay it."""


async def save_unknown(unit: Unit, payment: Payment) -> Payment:
    """Write down that the bank may have the operation by now. Returns the payment as it will stand."""
    after = msgspec.structs.replace(payment, opening=Opening.UNKNOWN)
    await follow_outcome(unit, payment, after)
    return unit[Payment].save(after)


async def follow_outcome(unit: Unit, before: Payment, after: Payment | None) -> None:
    """Write or remove the row of a payment's operation, in the caller's unit, which moves the payment; None: it is
    removed. Of nearly every payment it does nothing."""
    awaited = after is not None and is_outcome_unknown(after)
    if not awaited and not is_outcome_unknown(before):
        return
    known = await unit[UnknownOutcome].get(before.id)
    if awaited and known is None:
        unit[UnknownOutcome].add(unknown_outcome(before))
    elif known is not None and not awaited:
        unit[UnknownOutcome].remove(known)


def told_from(operation: Operation, now: datetime) -> datetime:
    """From which creation on operations are told of. A charge is, however old: it holds its period."""
    return LONG_AGO if operation is Operation.CHARGE else now - TOLD_FOR


async def drop_known(unit: Unit, after: str, limit: int) -> str | None:
    """Remove rows whose payment has an outcome, or is gone: a process of a version that knows no such rows moved it,
    while the others were being replaced. Looks at `limit` rows with ids above `after`; the last of these, None at the
    end."""
    rows = await unit[UnknownOutcome].find(id=AtLeast(f"{after}!"), limit=limit)
    payments = await unit[Payment].find(id=OneOf(tuple(row.id for row in rows)), limit=limit) if rows else []
    awaited = {payment.id for payment in payments if is_outcome_unknown(payment)}
    for row in rows:
        if row.id not in awaited:
            unit[UnknownOutcome].remove(row)
    return rows[-1].id if len(rows) == limit else None

"""Operations at banks whose outcome is unknown. Their rows are written in the units that move the payments, so monitors
and operators read only a few rows. A creation without a fault writes no row and reads none.
"""

from datetime import datetime, timedelta

import msgspec

from ....ports.storage import AtLeast, OneOf, Unit
from ...domain.days import LONG_AGO
from ...domain.payments.outcomes import Operation, UnknownOutcome, is_outcome_unknown, unknown_outcome
from ...domain.payments.payments import Opening, Payment

TOLD_FOR = timedelta(days=3)
"""Period from creation in which an expired payment with an unknown outcome is reported. Its payer never had a way to
pay it.
"""


async def save_unknown(unit: Unit, payment: Payment) -> Payment:
    """Record that the bank may have the operation by now. Return the payment as saved."""
    after = msgspec.structs.replace(payment, opening=Opening.UNKNOWN)
    await follow_outcome(unit, payment, after)
    return unit[Payment].save(after)


async def follow_outcome(unit: Unit, before: Payment, after: Payment | None) -> None:
    """Write or remove the row of a payment's operation, in the caller's unit that moves the payment; `after` None means
    that the payment is removed. For nearly every payment it does nothing.
    """
    awaited = after is not None and is_outcome_unknown(after)
    if not awaited and not is_outcome_unknown(before):
        return
    known = await unit[UnknownOutcome].get(before.id)
    if awaited and known is None:
        unit[UnknownOutcome].add(unknown_outcome(before))
    elif known is not None and not awaited:
        unit[UnknownOutcome].remove(known)


def told_from(operation: Operation, now: datetime) -> datetime:
    """Return the earliest creation time of reported operations. A charge is reported at any age, because it occupies
    its period.
    """
    return LONG_AGO if operation is Operation.CHARGE else now - TOLD_FOR


async def drop_known(unit: Unit, after: str, limit: int) -> str | None:
    """Remove rows whose payment has an outcome or is gone; an older version without such rows may have moved it during
    an upgrade. Check `limit` rows with ids above `after`; return the last id, or None at the end.
    """
    rows = await unit[UnknownOutcome].find(id=AtLeast(f"{after}!"), limit=limit)
    payments = await unit[Payment].find(id=OneOf(tuple(row.id for row in rows)), limit=limit) if rows else []
    awaited = {payment.id for payment in payments if is_outcome_unknown(payment)}
    for row in rows:
        if row.id not in awaited:
            unit[UnknownOutcome].remove(row)
    return rows[-1].id if len(rows) == limit else None

"""Attempts of one order: a payment, and the payments that its payer made on its page after it failed or expired
(docs/window.md "Another attempt"). Each names the one before it in `retry_of`, and the one after it in `retried_by`."""

from collections.abc import Sequence

import msgspec

from ....ports.storage import Snapshot, Unit
from ...domain.payments.payments import RETRIES_MOST, Payment, PaymentStatus

_HAS_MONEY = frozenset(
    (PaymentStatus.PROCESSING, PaymentStatus.AMOUNT_MISMATCH, PaymentStatus.PAID, PaymentStatus.SETTLED)
)


def has_money(payment: Payment) -> bool:
    """Return whether money for the order arrived or is on its way with this payment, and was not returned."""
    return payment.status in _HAS_MONEY


async def attempts_of(seen: Unit | Snapshot, payment: Payment) -> Sequence[Payment]:
    """Return all attempts of the payment's order, in the order in which they were made."""
    found = [payment]
    while found[0].retry_of is not None and len(found) <= RETRIES_MOST:
        before = await seen[Payment].get(found[0].retry_of)
        if before is None:
            break
        found.insert(0, before)
    while found[-1].retried_by is not None and len(found) <= RETRIES_MOST:
        after = await seen[Payment].get(found[-1].retried_by)
        if after is None:
            break
        found.append(after)
    return found


async def has_other_money(seen: Unit | Snapshot, payment: Payment) -> bool:
    """Return whether money for the order is with another attempt, so that nobody should pay this one."""
    if payment.retry_of is None and payment.retried_by is None:
        return False
    return any(has_money(each) for each in await attempts_of(seen, payment) if each.id != payment.id)


async def unlink_retry(unit: Unit, payment: Payment) -> None:
    """Forget a payment that is removed because no bank has an invoice, so that its order can be tried again."""
    before = None if payment.retry_of is None else await unit[Payment].get(payment.retry_of)
    if before is not None and before.retried_by == payment.id:
        unit[Payment].save(msgspec.structs.replace(before, retried_by=None))

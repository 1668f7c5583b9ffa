"""Sums of a merchant's movements within a period, for daily notifications (docs/dashboard.md "Notifications")."""

from datetime import datetime

import msgspec

from ....ports.bundle import Ports
from ...domain.accounts.accounts import Mode
from ...domain.ledger import EntryKind
from ...domain.money import Rub, Usdt
from .listing import last_movement, list_fresh
from .movements import Span, batches_of


class DaySums(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of a period, and the balance at its end."""

    payments: int
    taken: Rub
    """Money that came for payments; refunds are not deducted."""
    refunds: int
    """Refunds whose money was taken from the balance."""
    payouts: int
    paid_out: Usdt
    available: Usdt
    pending: Rub


async def day_sums(ports: Ports, account_id: str, mode: Mode, begin: datetime, end: datetime) -> DaySums | None:
    """Return the sums from `begin` to before `end`; None if the balance did not move. Memory does not grow with the
    number of movements. Raises: Unreadable, Unavailable."""
    await list_fresh(ports, account_id, mode)
    async with ports.storage.unit() as unit:
        last = await last_movement(unit, account_id, mode)
        high = 1 if last is None else last.number + 1
        whole = Span(unit=unit, account_id=account_id, mode=mode, low=1, high=high)
        firsts = await whole.first_where({begin, end}, lambda movement, moment: movement.at >= moment)
    payments = taken = refunds = payouts = paid_out = 0
    after = None
    span = msgspec.structs.replace(whole, low=firsts[begin], high=max(firsts[begin], firsts[end]))
    async for batch in batches_of(ports, span, lambda _: True):
        for each in batch:
            after = each
            if each.kind in (EntryKind.RECEIPT, EntryKind.REVIEW_ACCEPTED):
                payments += 1
                taken += each.pending.kopecks
            elif each.kind is EntryKind.REFUND_TAKEN:
                refunds += 1
            elif each.kind is EntryKind.PAYOUT_SENT:
                payouts += 1
                paid_out -= each.reserved.units
    if after is None:
        return None
    return DaySums(
        payments=payments,
        taken=Rub(taken),
        refunds=refunds,
        payouts=payouts,
        paid_out=Usdt(paid_out),
        available=after.available_after,
        pending=after.pending_after,
    )

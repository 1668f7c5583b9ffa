"""Refunds that wait for money (docs/refunds.md "The money"): tried again when there may be some."""

import logging

from ....ports.bundle import Ports
from ....ports.faults import Stale, Unavailable
from ...domain.accounts.accounts import Mode
from ...domain.refunds.refunds import PendingReason, Refund, RefundStatus
from ..operations.engine import begin
from .progress import REFUNDS

_PAGE = 1000

log = logging.getLogger("cambist.refunds")


async def retry_waiting(ports: Ports, account_id: str, mode: Mode) -> None:
    """Try the refunds again that wait for money, the oldest first: after a settlement, before its payout.

    One that is still not covered keeps none behind it waiting: what it leaves would only be paid out.
    """
    waiting: list[str] = []
    while True:
        async with ports.storage.unit() as unit:
            found = await unit[Refund].find(
                account_id=account_id,
                mode=mode,
                status=RefundStatus.PENDING,
                pending_reason=PendingReason.INSUFFICIENT_BALANCE,
                order="created_at",
                offset=len(waiting),
                limit=_PAGE,
            )
        waiting += [refund.id for refund in found]
        if len(found) < _PAGE:
            break
    for refund_id in waiting:
        try:
            await begin(REFUNDS, ports, refund_id)
        except (Stale, Unavailable):
            raise
        except Exception:
            # One that cannot be read keeps neither the others nor the payout waiting.
            log.exception("refund %s could not be tried again", refund_id)

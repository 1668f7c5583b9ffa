"""Refunds that wait for money (docs/refunds.md "The money"): tried again when there may be some."""

import logging

from ....ports.bundle import Ports
from ....ports.faults import Stale, Unavailable
from ....ports.storage import Unit
from ...domain.accounts.accounts import Account, Mode
from ...domain.money import Usdt
from ...domain.refunds.refunds import PendingReason, Refund, RefundStatus
from ..operations.engine import begin
from .money import market_value
from .progress import REFUNDS
from .steps import payment_of

_PAGE = 1000

log = logging.getLogger("cambist.refunds")


async def retry_waiting(ports: Ports, account_id: str, mode: Mode) -> None:
    """Try the refunds again that wait for money, the oldest first: after a settlement, before its payout.

    One that is still not covered keeps none behind it waiting: what it leaves would only be paid out.
    """
    async with ports.storage.unit() as unit:
        waiting = await _waiting(unit, account_id, mode)
    for refund_id in [refund.id for refund in waiting]:
        try:
            await begin(REFUNDS, ports, refund_id)
        except (Stale, Unavailable):
            raise
        except Exception:
            # One that cannot be read keeps neither the others nor the payout waiting.
            log.exception("refund %s could not be tried again", refund_id)


async def kept_for_refunds(unit: Unit, account: Account, mode: Mode) -> Usdt:
    """What of the available USDT a payout leaves for the refunds that wait for money, where the account is set so."""
    if not account.settings.refund_reserve:
        return Usdt(0)
    lacking = Usdt(0)
    for refund in await _waiting(unit, account.id, mode):
        lacking += await market_value(unit, await payment_of(unit, refund), refund)
    return max(Usdt(0), lacking - account.settings.refund_overdraft_usdt)


async def _waiting(unit: Unit, account_id: str, mode: Mode) -> list[Refund]:
    """The oldest first."""
    waiting: list[Refund] = []
    while True:
        found = await unit[Refund].find(
            account_id=account_id,
            mode=mode,
            status=RefundStatus.PENDING,
            pending_reason=PendingReason.INSUFFICIENT_BALANCE,
            order="created_at",
            offset=len(waiting),
            limit=_PAGE,
        )
        waiting += found
        if len(found) < _PAGE:
            return waiting

"""Approved refunds whose money is not taken yet (docs/refunds.md "The money"): tried again after a settlement."""

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
    """Try the refunds that wait for money, and in live mode the approved ones that nobody tried yet, such as those that
    a hold put off, the oldest first: after a settlement, before its payout.

    A refund that is still not covered does not keep later ones waiting, because the rest would only be paid out. Where
    a bank has to be asked first and gives no answer, the other untried refunds are left to their own jobs.
    """
    async with ports.storage.unit() as unit:
        waiting = await _pending(unit, account_id, mode, PendingReason.INSUFFICIENT_BALANCE)
        untried = await _pending(unit, account_id, mode, None) if mode is Mode.LIVE else []
    for refund in (*waiting, *untried):
        try:
            begun = await begin(REFUNDS, ports, refund.id)
        except (Stale, Unavailable):
            raise
        except Exception:
            # One that cannot be read keeps neither the others nor the payout waiting.
            log.exception("refund %s could not be tried again", refund.id)
        else:
            if begun.fault is not None:
                return


async def kept_for_refunds(unit: Unit, account: Account, mode: Mode) -> Usdt:
    """What of the available USDT a payout leaves for the refunds that wait for money, where the account is set so."""
    if not account.settings.refund_reserve:
        return Usdt(0)
    lacking = Usdt(0)
    for refund in await _pending(unit, account.id, mode, PendingReason.INSUFFICIENT_BALANCE):
        lacking += await market_value(unit, await payment_of(unit, refund), refund)
    return max(Usdt(0), lacking - account.settings.refund_overdraft_usdt)


async def _pending(unit: Unit, account_id: str, mode: Mode, reason: PendingReason | None) -> list[Refund]:
    """Pending refunds of one reason, the oldest first."""
    waiting: list[Refund] = []
    while True:
        found = await unit[Refund].find(
            account_id=account_id,
            mode=mode,
            status=RefundStatus.PENDING,
            pending_reason=reason,
            order="created_at",
            offset=len(waiting),
            limit=_PAGE,
        )
        waiting += found
        if len(found) < _PAGE:
            return waiting

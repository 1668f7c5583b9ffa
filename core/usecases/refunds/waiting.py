"""Approved refunds whose money is not taken yet, retried after a settlement (docs/refunds.md "The money")."""

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
    """Retry the refunds that wait for money, oldest first, after a settlement and before its payout. In live mode, also
    try approved refunds that were never tried, such as those postponed by a quarantine.

    A refund that is still not covered does not block later ones, because the remaining balance would only be paid out.
    If a bank must be polled first and gives no answer, the other untried refunds are left to their own jobs.
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
            # An unreadable refund must block neither the others nor the payout.
            log.exception("refund %s could not be tried again", refund.id)
        else:
            if begun.fault is not None:
                return


async def kept_for_refunds(unit: Unit, account: Account, mode: Mode) -> Usdt:
    """Return the part of the available USDT that a payout leaves for refunds that wait for money; zero unless the
    account has this setting.
    """
    if not account.settings.refund_reserve:
        return Usdt(0)
    lacking = Usdt(0)
    for refund in await _pending(unit, account.id, mode, PendingReason.INSUFFICIENT_BALANCE):
        lacking += await market_value(unit, await payment_of(unit, refund), refund)
    return max(Usdt(0), lacking - account.settings.refund_overdraft_usdt)


async def _pending(unit: Unit, account_id: str, mode: Mode, reason: PendingReason | None) -> list[Refund]:
    """Return pending refunds with this reason, oldest first."""
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

"""Recording of operations that providers sent and a quarantined copy lacks, before its quarantine ends (comparison.py).

Each payout and refund gets its row under the provider's id, in its own unit of work with an audit row. An interrupted
run can simply be repeated.
"""

from collections.abc import Collection

import msgspec

from ....ports.bank import SentRefund
from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.payouts import SentTransfer
from ....ports.storage import Unit
from ...domain.accounts.accounts import Mode
from ...domain.errors import Refusal
from ...domain.ledger import BalanceType, EntryKind
from ...domain.money import Rub, Usdt
from ...domain.payments.payments import Payment
from ...domain.refunds.refunds import Refund, RefundStatus
from ...domain.settlement.withdrawals import Withdrawal, WithdrawalStatus
from ..actions.audit import note_outside, on, unaudited
from ..common.encrypted import tag_withdrawal
from ..common.units import retrying, unit_of_work
from ..ledger.ledger import LEDGER_RULES
from ..refunds.executed import book_executed
from ..settlement.withdrawal_progress import EXECUTE, announce_withdrawal, book_payout
from ..settlement.withdrawals import cancel_withdrawal, every_withdrawal
from .comparison import Comparison

CALLED_OFF = "the balance that it was made of lacked payouts that were made since"

_RACES = (*LEDGER_RULES, "withdrawals_id", "jobs_id", "journal_id", "refunds_id")


async def bring_in(ports: Ports, comparison: Comparison) -> list[Withdrawal]:
    """Write the payouts and refunds of a comparison and return the payouts.

    If a payout's amount is not yet credited here, it becomes a debt, and the next settlement pays that much less. The
    payout's job takes over the transfer that the wallet sent and follows it to its end. The merchant's pending payouts
    that were never sent are cancelled, because their balance did not include these payouts. Refunds come first. A
    transfer that an operator leaves out of the books gets an audit row.

    Raises: Refusal INVALID_STATE for a payout that another operator assigned to another account meanwhile; Unavailable.
    """
    for each in comparison.lacking:
        if not each.is_ours:
            await note_outside(ports, each.operation)
        elif each.refund is not None and each.payment_id is not None:
            await _write_refund(ports, each.refund, each.payment_id)
    name = ports.senders.modes.get(Mode.LIVE.value, "")
    brought = [
        await _write_payout(on(ports, each.operation), each.sent, each.account_id, name)
        for each in comparison.lacking
        if each.sent is not None and each.account_id is not None
    ]
    for account_id in sorted({each.account_id for each in brought}):
        await _call_off_pending(ports, account_id, {each.id for each in brought})
    return brought


async def _call_off_pending(ports: Ports, account_id: str, but: Collection[str]) -> None:
    for each in await every_withdrawal(ports, account_id=account_id, status=WithdrawalStatus.PENDING):
        if each.mode is not Mode.LIVE or each.id in but:
            continue
        try:
            await cancel_withdrawal(on(ports, each.id), each.id, CALLED_OFF)
        except Refusal as refusal:
            if refusal.code != "INVALID_STATE":
                raise
            # The wallet has sent it. Its job takes the transfer over.


@unit_of_work(again_on=_RACES)
async def _write_payout(ports: Ports, unit: Unit, sent: SentTransfer, account_id: str, sender: str) -> Withdrawal:
    present = await unit[Withdrawal].get(sent.signed.operation)
    if present is not None:
        if present.account_id != account_id:
            raise Refusal("INVALID_STATE", f"{present.id} was already assigned to account {present.account_id}")
        return present
    withdrawal = Withdrawal(
        id=sent.signed.operation,
        account_id=account_id,
        mode=Mode.LIVE,
        status=WithdrawalStatus.PENDING,
        amount=Usdt(sent.units),
        wallet=sent.address,
        sender=sender,
        network=ports.senders.named(sender).capabilities.network.value,
        created_at=ports.clock.now(),
        sequence=1,
    )
    withdrawal = tag_withdrawal(ports.vault, withdrawal)
    book_payout(ports, unit, withdrawal, EntryKind.PAYOUT_RESERVED, BalanceType.AVAILABLE, BalanceType.RESERVED)
    await announce_withdrawal(ports, unit, withdrawal, None)
    unit[Withdrawal].add(withdrawal)
    unit[Job].add(EXECUTE.first(withdrawal.id, withdrawal.created_at, withdrawal.created_at))
    return withdrawal


async def _write_refund(ports: Ports, sent: SentRefund, payment_id: str) -> None:
    """Write the refund as a pending request, then book that its bank executed it. The merchant receives it when
    repeating the request with its Idempotency-Key (usecases/refunds/refunds.py)."""

    async def work(unit: Unit) -> None:
        payment = await unit[Payment].get(payment_id)
        if payment is None or await unit[Refund].get(sent.operation) is not None:
            return
        unit[Payment].save(msgspec.structs.replace(payment, refund_pending=True))
        unit[Refund].add(
            Refund(
                id=sent.operation,
                account_id=payment.account_id,
                mode=payment.mode,
                payment_id=payment.id,
                shop_id=payment.shop_id,
                status=RefundStatus.PENDING,
                amount=Rub(sent.amount_kopecks),
                created_at=ports.clock.now(),
            )
        )

    await retrying(unaudited(ports).storage, work, again_on=_RACES)
    await book_executed(ports, sent.operation)

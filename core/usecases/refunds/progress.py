"""What becomes of an approved refund: money taken, sent back by the bank, given back, reversed
(docs/refunds.md "How it ends").

The money is taken and the refund is `processing` in one unit, before the bank hears of it. From then on only the bank's
word moves it: while nobody knows, nothing is given back, and only the same operation is repeated.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from ....ports.bank import RefundRequest, RefundState
from ....ports.bank import RefundStatus as AtBank
from ....ports.bundle import Ports
from ....ports.faults import Stale, Unavailable
from ....ports.jobs import Job
from ....ports.storage import Unit
from ...domain.accounts.accounts import Mode
from ...domain.payments.payments import Payment
from ...domain.refunds.refunds import PendingReason, Refund, RefundStatus, RefundTrigger, moved_to
from ..forgotten import may_be_forgotten
from ..holding import holds_back
from ..schedule import reschedule
from ..simulated import is_advanced_over
from ..units import retrying
from .bank_refunds import look_up, next_look, next_reversal_look, read_refund, send_back
from .contradictions import heard_of_failed
from .money import take
from .steps import CARRY_OUT, RACES, move, payment_of

_S = RefundStatus
_T = RefundTrigger

NOT_SUPPORTED = "not_supported"
"""Why a rule rejects: the payment's bank sends no money back."""

_STEPS: Mapping[tuple[RefundStatus, AtBank], Sequence[RefundTrigger]] = {
    (_S.PROCESSING, AtBank.DONE): (_T.PAID,),
    (_S.PROCESSING, AtBank.FAILED): (_T.REFUSED,),
    # It went before it came back, and who looks seldom sees only the end.
    (_S.PROCESSING, AtBank.REVERSED): (_T.PAID, _T.CAME_BACK),
    (_S.COMPLETED, AtBank.REVERSED): (_T.CAME_BACK,),
}
"""What the bank's word means for a refund; all else is no news."""

_PAGE = 1000

log = logging.getLogger("cambist.refunds")


async def carry_out(ports: Ports, job: Job) -> None:
    """The job that follows a refund. It takes the money, asks the bank, and looks again until there is an end."""
    refund, is_fresh = await begin(ports, job.argument)
    state = None
    if refund is not None:
        state = await _ask(ports, refund, is_fresh=is_fresh)
    if state is not None:
        await conclude(ports, job.argument, state)

    async def next_due(unit: Unit) -> datetime | None:
        refund = await unit[Refund].get(job.argument)
        if refund is None:
            return None
        advanced = refund.status is _S.COMPLETED and is_advanced_over(ports, (await payment_of(unit, refund)).bank)
        return _next(refund, state, job.attempts, ports.clock.now(), advanced=advanced)

    await reschedule(ports, job, next_due)


async def begin(ports: Ports, refund_id: str) -> tuple[Refund | None, bool]:
    """Take the money of an approved refund and put it on its way; the refund, and whether it began just now.

    Not covered, it waits without a job for `retry_waiting`. Where the bank sends no money back it is rejected. A bank
    that is not wired leaves it as it is.
    """
    refund, is_fresh = await _begin(ports, refund_id)
    if refund is not None and refund.pending_reason is PendingReason.INSUFFICIENT_BALANCE:
        # A settlement that ended before the mark was written found nobody waiting: look once more, after it.
        return await _begin(ports, refund_id)
    return refund, is_fresh


async def _begin(ports: Ports, refund_id: str) -> tuple[Refund | None, bool]:
    async def work(unit: Unit) -> tuple[Refund | None, bool]:
        refund = await unit[Refund].get(refund_id)
        if refund is None or refund.status is not _S.PENDING or refund.approved_at is None:
            return refund, False
        if await holds_back(unit, refund.mode):
            # It stays pending and nothing is taken for it, until the copy was compared with the world.
            return refund, False
        payment = await payment_of(unit, refund)
        bank = ports.banks.capabilities_of(payment.bank)
        if bank is None and payment.bank_reference is not None:
            return refund, False
        if bank is None or payment.bank_reference is None or not bank.refunds:
            await CARRY_OUT.drop(unit, refund.id)
            return await move(ports, unit, refund, (_T.REJECTED,), failure=NOT_SUPPORTED), False
        taken = await take(ports, unit, payment, refund)
        if taken is None:
            await CARRY_OUT.drop(unit, refund.id)
            waiting = msgspec.structs.replace(refund, pending_reason=PendingReason.INSUFFICIENT_BALANCE)
            return unit[Refund].save(waiting), False
        payment, refund = taken
        unit[Payment].save(payment)
        now = ports.clock.now()
        await CARRY_OUT.keep(unit, refund.id, now, now)
        return unit[Refund].save(moved_to(refund, _T.SENT, executing_since=now)), True

    return await retrying(ports.storage, work, again_on=RACES)


async def _ask(ports: Ports, refund: Refund, *, is_fresh: bool) -> RefundState | None:
    """The bank's state of a refund that is on its way or was done; None when nothing is asked, or nobody knows."""
    if refund.status not in (_S.PROCESSING, _S.COMPLETED):
        return None
    async with ports.storage.unit() as unit:
        payment = await payment_of(unit, refund)
    if refund.status is _S.COMPLETED:
        return await look_up(ports, payment, refund.id)
    request = RefundRequest(
        operation=refund.id,
        reference=payment.bank_reference or "",
        amount_kopecks=refund.amount.kopecks,
        transfer=payment.transfer_id,
    )
    asked_before = not is_fresh or may_be_forgotten(ports, refund.created_at)
    return await send_back(ports, payment, request, asked_before=asked_before)


async def send(ports: Ports, refund_id: str) -> Refund | None:
    """Begin the refund and ask the bank once, here and now, as the job would. Returns the refund as it then stands."""
    refund, is_fresh = await begin(ports, refund_id)
    if refund is None:
        return None
    state = await _ask(ports, refund, is_fresh=is_fresh)
    return refund if state is None else await conclude(ports, refund_id, state)


async def conclude(ports: Ports, refund_id: str, state: RefundState) -> Refund | None:
    """Apply the bank's word in one unit: refund, money, payment, events. Returns None when there is no such refund. The
    word may come late, twice, or by a notice and our own question at once."""

    async def work(unit: Unit) -> Refund | None:
        refund = await unit[Refund].get(refund_id)
        if refund is not None and refund.status is _S.FAILED:
            return heard_of_failed(ports, unit, refund, state)
        steps = () if refund is None else _STEPS.get((refund.status, state.status), ())
        if refund is None or not steps:
            return refund
        return await move(ports, unit, refund, steps, failure=state.failure or "unknown")

    return await retrying(ports.storage, work, again_on=RACES)


async def on_notice(ports: Ports, refund_id: str) -> Refund | None:
    """The bank says that something happened to a refund. Only a hint: what counts is what it answers when asked.

    Raises: what the bank port raises.
    """
    async with ports.storage.unit() as unit:
        refund = await unit[Refund].get(refund_id)
        if refund is None or refund.status not in (_S.PROCESSING, _S.COMPLETED, _S.FAILED):
            return refund
        payment = await payment_of(unit, refund)
    state = await read_refund(ports, payment, refund.id)
    return refund if state is None else await conclude(ports, refund.id, state)


def _next(refund: Refund, state: RefundState | None, asked: int, now: datetime, *, advanced: bool) -> datetime | None:
    """The next moment for the refund's job; None when there is nothing left to do."""
    if refund.status is _S.PENDING:
        ready = refund.approved_at is not None and refund.pending_reason is None
        return next_look(None, asked, now) if ready else None
    if refund.status is _S.PROCESSING:
        return next_look(state, asked, now)
    if refund.status is _S.COMPLETED and refund.completed_at is not None:
        return next_reversal_look(refund.completed_at, now, advanced=advanced)
    return None


async def retry_waiting(ports: Ports, account_id: str, mode: Mode) -> None:
    """Try the refunds again that wait for money, the oldest first: after a settlement, before its payout
    (docs/refunds.md "The money").

    One that is still not covered keeps none behind it waiting: what it leaves would only be paid out.
    """
    waiting: list[str] = []
    while True:
        async with ports.storage.unit() as unit:
            found = await unit[Refund].find(
                account_id=account_id,
                mode=mode,
                status=_S.PENDING,
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
            await begin(ports, refund_id)
        except (Stale, Unavailable):
            raise
        except Exception:
            # One that cannot be read keeps neither the others nor the payout waiting.
            log.exception("refund %s could not be tried again", refund_id)

"""Operator's decision to return money in suspense (docs/payments.md "Money that cannot count"). Its progress is in
suspense_progress.py.
"""

import msgspec

from ....ports.bank import RefundStatus as AtBank
from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.errors import Refusal
from ...domain.payments.suspense import RETURN_ENDED, RETURN_FAILED, RETURNED_ANEW, Suspense
from ...domain.refunds.suspense_returns import MOST_TRIES
from ..actions.audit import unaudited
from ..actions.four_eyes import gated
from ..common.account_time import in_test_time
from ..common.units import retrying
from ..operations.engine import look_up, settle
from .suspense_progress import RETURN, SUSPENSE_RETURNS


async def plan_return(ports: Ports, unit: Unit, suspense_id: str, *, anew: bool = False) -> None:
    """Plan the return of money in suspense, in the caller's unit. With `anew` it uses a new operation, which the bank
    has never seen.
    """
    now = ports.clock.now()
    await RETURN.plan(unit, suspense_id, now, now, anew=anew)


@in_test_time(Suspense)
async def return_suspense(ports: Ports, suspense_id: str) -> Suspense:
    """Decide to return money in suspense, as an operator; the worker sends it. If the last attempt failed or was
    reversed, this begins another.

    Raises: Refusal SUSPENSE_NOT_FOUND; INVALID_STATE when the money is gone already, its bank sends no money back or is
    still processing it, or after too many attempts; Waits when two operators are needed.
    """
    # The bank's answer is not an operator action, so it is not audited.
    await _ask_once_more(unaudited(ports), suspense_id)
    ports = gated(ports, "return_suspense", suspense_id)

    async def work(unit: Unit) -> Suspense:
        found = await SUSPENSE_RETURNS.load(ports, unit, suspense_id)
        if found is None:
            raise Refusal("SUSPENSE_NOT_FOUND", "No money in suspense of this id")
        suspense = found.suspense
        if suspense.resolved_at is not None:
            raise Refusal("INVALID_STATE", "The money is not in suspense any more")
        bank = ports.banks.capabilities_of(found.payment.bank)
        if bank is None or found.payment.bank_reference is None or not bank.refunds:
            raise Refusal("INVALID_STATE", "The bank of this money sends none back")
        is_over = suspense.reason in RETURN_ENDED
        if is_over and suspense.attempt >= MOST_TRIES:
            raise Refusal("INVALID_STATE", f"The return was tried {MOST_TRIES} times: settle it with the bank")
        await plan_return(ports, unit, suspense.id, anew=is_over)
        if is_over:
            suspense = msgspec.structs.replace(
                suspense, attempt=suspense.attempt + 1, reason=RETURNED_ANEW, sending_since=None, operation=None
            )
        # Save in any case, so that of two concurrent operators one is stale and sees the other's attempt.
        return unit[Suspense].save(suspense)

    return await retrying(ports.storage, work, again_on=("jobs_id",))


async def _ask_once_more(ports: Ports, suspense_id: str) -> None:
    """Poll the bank for the failed attempt before a new one: if it was executed after all, a new attempt would send the
    money twice. A bank that does not answer does not block the new attempt.
    """
    async with ports.storage.unit() as unit:
        found = await SUSPENSE_RETURNS.load(ports, unit, suspense_id)
    if found is None or found.suspense.resolved_at is not None or found.suspense.reason != RETURN_FAILED:
        return
    told = await look_up(SUSPENSE_RETURNS, ports, found)
    if told.word is not None and told.word.status is AtBank.PROCESSING:
        raise Refusal("INVALID_STATE", "The bank is executing the last attempt after all")
    if told.word is not None and told.word.status is not AtBank.FAILED:
        await settle(SUSPENSE_RETURNS, ports, told)

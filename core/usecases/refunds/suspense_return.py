"""The operator's decision to send money in suspense back (docs/payments.md "Money that cannot count"). What becomes of
it is in suspense_progress.py."""

import msgspec

from ....ports.bank import RefundStatus as AtBank
from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.errors import Refusal
from ...domain.payments.suspense import RETURN_ENDED, RETURN_FAILED, RETURNED_ANEW, Suspense
from ...domain.refunds.suspense_returns import MOST_TRIES
from ..acts.audit import unaudited
from ..acts.four_eyes import gated
from ..operations.engine import look_up, settle
from ..test_clock import in_test_time
from ..units import retrying
from .suspense_progress import RETURN, SUSPENSE_RETURNS
from .suspense_takeover import FORMER_RETURN


async def plan_return(ports: Ports, unit: Unit, suspense_id: str, *, anew: bool = False) -> None:
    """Have money in suspense sent back, once the caller's unit is committed. `anew`: by another operation, of which the
    bank was never asked."""
    now = ports.clock.now()
    await FORMER_RETURN.drop(unit, suspense_id)
    await RETURN.plan(unit, suspense_id, now, now, anew=anew)


@in_test_time(Suspense)
async def return_suspense(ports: Ports, suspense_id: str) -> Suspense:
    """The operator's decision to send money in suspense back; the worker does it. Where the last attempt is over, the
    bank could not send it or it came back, this begins another.

    Raises: Refusal SUSPENSE_NOT_FOUND; INVALID_STATE when it went already, its bank sends no money back or has it under
    way, or after too many attempts; Waits where two operators are needed.
    """
    # What the bank says is nobody's decision.
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
            raise Refusal("INVALID_STATE", "The bank of this money does not send any back")
        is_over = suspense.reason in RETURN_ENDED
        if is_over and suspense.attempt >= MOST_TRIES:
            raise Refusal("INVALID_STATE", f"It was tried {MOST_TRIES} times: settle it with the bank")
        await plan_return(ports, unit, suspense.id, anew=is_over)
        if is_over:
            suspense = msgspec.structs.replace(
                suspense, attempt=suspense.attempt + 1, reason=RETURNED_ANEW, sending_since=None, operation=None
            )
        # Saved in any case: of two operators at once one is stale, and finds what the other began.
        return unit[Suspense].save(suspense)

    return await retrying(ports.storage, work, again_on=("jobs_id",))


async def _ask_once_more(ports: Ports, suspense_id: str) -> None:
    """Before another attempt, how the bank sees the one that it had failed now: were it done after all, another would
    send the money twice. A bank that is silent keeps nobody from trying."""
    async with ports.storage.unit() as unit:
        found = await SUSPENSE_RETURNS.load(ports, unit, suspense_id)
    if found is None or found.suspense.resolved_at is not None or found.suspense.reason != RETURN_FAILED:
        return
    told = await look_up(SUSPENSE_RETURNS, ports, found)
    if told.word is not None and told.word.status is AtBank.PROCESSING:
        raise Refusal("INVALID_STATE", "The bank has the last attempt under way again")
    if told.word is not None and told.word.status is not AtBank.FAILED:
        await settle(SUSPENSE_RETURNS, ports, told)

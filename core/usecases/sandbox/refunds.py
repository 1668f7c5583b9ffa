"""Simulation of a refund's operator and bank in test mode (docs/sandbox.md "The calls")."""

from collections.abc import Callable, Mapping
from typing import Annotated

import msgspec

from ....ports.bank import RefundStatus as AtBank
from ....ports.bank_simulator import BankSimulator
from ....ports.bundle import Ports
from ....ports.faults import NotConfigured, Refused
from ....ports.storage import Unit
from ...domain import shared_fields as shared
from ...domain.accounts.accounts import Caller
from ...domain.errors import Refusal, shape_error
from ...domain.refunds.refunds import PendingReason, Refund, RefundStatus
from ..common.units import retrying, unit_of_work
from ..operations.engine import bring, receive
from ..refunds.progress import REFUNDS
from ..refunds.refunds import approve, get_refund, reject_refund
from ..refunds.steps import CARRY_OUT, RACES, payment_of

_S = RefundStatus

_AT_BANK: Mapping[RefundStatus, AtBank] = {
    _S.COMPLETED: AtBank.DONE,
    _S.FAILED: AtBank.FAILED,
    _S.REVERSED: AtBank.REVERSED,
}
WAITS = PendingReason.AWAITING_APPROVAL.value
"""An outcome that is no status: the refund waits for manual approval."""
OUTCOMES: tuple[str, ...] = (WAITS, _S.PROCESSING, _S.COMPLETED, _S.REJECTED, _S.FAILED, _S.REVERSED)
_FROM: Mapping[RefundStatus, tuple[RefundStatus, ...]] = {
    _S.PROCESSING: (_S.PENDING,),
    _S.COMPLETED: (_S.PENDING, _S.PROCESSING),
    _S.REJECTED: (_S.PENDING,),
    _S.FAILED: (_S.PENDING, _S.PROCESSING),
    _S.REVERSED: (_S.COMPLETED,),
}
"""Statuses from which each outcome can be simulated; from pending, the refund is first approved and sent to the
bank.
"""

REJECTED_BY_SANDBOX = "rejected in the sandbox"


class RefundSimulation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /sandbox/refunds/{id}/simulate."""

    outcome: Annotated[str, shared.OUTCOME, shared.among(("completed", "rejected", "failed", "reversed"))]


async def simulate_refund(
    ports: Ports, caller: Caller, refund_id: str, read_wish: Callable[[], RefundSimulation]
) -> Refund:
    """Bring the refund to `outcome`, and return it as saved. A refund that has the outcome already stays unchanged.

    Raises: Refusal NOT_FOUND, REFUND_NOT_FOUND, VALIDATION_ERROR; INVALID_STATE if the outcome cannot be reached, or
    the balance does not cover the refund; PROVIDER_UNAVAILABLE while the bank has not answered.
    """
    refund = await get_refund(ports, caller, refund_id)
    text = read_wish().outcome
    if text not in OUTCOMES:
        raise shape_error("outcome", f"must be one of: {', '.join(OUTCOMES)}")
    if text == WAITS:
        return await _made_to_wait(ports, refund)
    outcome = RefundStatus(text)
    if refund.status is outcome:
        return refund
    if refund.status not in _FROM[outcome]:
        raise _no_way(refund, outcome)
    if outcome is _S.REJECTED:
        return await reject_refund(ports, refund.id, REJECTED_BY_SANDBOX)
    if refund.status is _S.PENDING:
        refund = await _to_the_bank(ports, refund)
    if refund.status is _S.PENDING:
        raise Refusal("INVALID_STATE", "The available balance does not cover the refund")
    if refund.status is not outcome and refund.status in _FROM[outcome]:
        refund = await _at_bank(ports, refund, _AT_BANK[outcome])
    if refund.status is not outcome:
        raise _no_way(refund, outcome)
    return refund


@unit_of_work()
async def _made_to_wait(_: Ports, unit: Unit, refund: Refund) -> Refund:
    """Let the refund wait for approval, as for an account with manual approval."""
    present = await unit[Refund].get(refund.id) or refund
    if present.status is not _S.PENDING:
        raise Refusal("INVALID_STATE", f"The refund is {present.status}; it cannot wait for approval any more")
    await CARRY_OUT.drop(unit, present.id)
    waits = PendingReason.AWAITING_APPROVAL
    return unit[Refund].save(msgspec.structs.replace(present, pending_reason=waits, approved_at=None))


def _no_way(refund: Refund, outcome: RefundStatus) -> Refusal:
    return Refusal("INVALID_STATE", f"The refund is {refund.status}; it cannot become {outcome} from there")


async def _to_the_bank(ports: Ports, refund: Refund) -> Refund:
    """Approve the refund as an operator would, and run its job at once."""

    async def work(unit: Unit) -> None:
        present = await unit[Refund].get(refund.id)
        if present is not None and present.status is _S.PENDING:
            await approve(ports, unit, present, ports.clock.now())

    if refund.approved_at is None or refund.pending_reason is PendingReason.INSUFFICIENT_BALANCE:
        await retrying(ports.storage, work, again_on=RACES)
    sent = (await bring(REFUNDS, ports, refund.id)).subject
    return refund if sent is None else sent.refund


async def _at_bank(ports: Ports, refund: Refund, status: AtBank) -> Refund:
    """Set the outcome at the payment's simulated bank, and handle its notifications."""
    async with ports.storage.unit() as unit:
        payment = await payment_of(unit, refund)
    try:
        bank = ports.banks.named(payment.bank or "")
    except NotConfigured:
        bank = None
    if not isinstance(bank, BankSimulator) or not bank.capabilities.simulated:
        raise Refusal("NOT_FOUND", "Endpoint not found")
    try:
        notifications = await bank.simulate_refund(refund.id, status)
    except Refused:
        raise Refusal("PROVIDER_UNAVAILABLE", "The bank has no such refund yet", retry_after=10) from None
    for notification in notifications:
        heard = (await receive(REFUNDS, ports, notification.operation)).subject
        refund = refund if heard is None else heard.refund
    return refund

"""Simulation of a payout's network and operator in test mode (docs/sandbox.md "The calls")."""

from collections.abc import Callable, Mapping
from typing import Annotated

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Fault, NotConfigured
from ....ports.jobs import Job
from ....ports.payouts import SenderSimulator, TransferState
from ...domain import shared_fields as shared
from ...domain.accounts.accounts import Caller
from ...domain.errors import Refusal, shape_error
from ...domain.settlement.withdrawals import Withdrawal, WithdrawalStatus
from ..settlement.withdrawal_progress import EXECUTE, PAYOUTS, execute
from ..settlement.withdrawals import cancel_withdrawal, get_withdrawal
from ..signed_transfers.engine import sign_only

_S = WithdrawalStatus

_ON_CHAIN: Mapping[WithdrawalStatus, TransferState] = {
    _S.SENT: TransferState.IN_BLOCK,
    _S.COMPLETED: TransferState.FINAL,
    _S.FAILED: TransferState.FAILED,
}
OUTCOMES = tuple(status.value for status in (_S.PROCESSING, *_ON_CHAIN, _S.CANCELLED))
CANCELLED_BY_SANDBOX = "called off in the sandbox"


class WithdrawalSimulation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /sandbox/withdrawals/{id}/simulate."""

    outcome: Annotated[str, shared.OUTCOME]


async def simulate_withdrawal(
    ports: Ports, caller: Caller, withdrawal_id: str, read_wish: Callable[[], WithdrawalSimulation]
) -> Withdrawal:
    """Bring the payout to `outcome`, and return it as saved. A payout that has the outcome already stays unchanged.

    Raises: Refusal WITHDRAWAL_NOT_FOUND, VALIDATION_ERROR; INVALID_STATE if the outcome cannot be reached;
    PROVIDER_UNAVAILABLE while its wallet does not sign.
    """
    withdrawal = await get_withdrawal(ports, caller, withdrawal_id)
    text = read_wish().outcome
    if text not in OUTCOMES:
        raise shape_error("outcome", f"must be one of: {', '.join(OUTCOMES)}")
    outcome = _S(text)
    if withdrawal.status is outcome:
        return withdrawal
    if outcome is _S.CANCELLED:
        return await cancel_withdrawal(ports, withdrawal.id, CANCELLED_BY_SANDBOX)
    if outcome is _S.PROCESSING:
        return await _signed(ports, withdrawal)
    if withdrawal.status is _S.PENDING:
        withdrawal = await _go_on(ports, caller, withdrawal)
    if withdrawal.status is _S.PENDING:
        raise _no_signature()
    await _simulate(ports, withdrawal, outcome)
    withdrawal = await _go_on(ports, caller, withdrawal)
    if withdrawal.status is not outcome:
        raise Refusal("INVALID_STATE", f"The payout is {withdrawal.status}; it cannot become {outcome} from there")
    return withdrawal


async def _signed(ports: Ports, withdrawal: Withdrawal) -> Withdrawal:
    """Sign the payout without sending it: the network can then fail a transfer that it never received, or the job sends
    it.
    """
    if withdrawal.status is _S.PENDING:
        try:
            withdrawal = await sign_only(PAYOUTS, ports, withdrawal)
        except Fault:
            raise _no_signature() from None
    if withdrawal.status is not _S.PROCESSING:
        raise Refusal("INVALID_STATE", f"The payout is {withdrawal.status}; it cannot become processing from there")
    return withdrawal


def _no_signature() -> Refusal:
    return Refusal("PROVIDER_UNAVAILABLE", "The wallet does not sign at the moment", retry_after=10)


async def _simulate(ports: Ports, withdrawal: Withdrawal, outcome: WithdrawalStatus) -> None:
    try:
        sender = ports.senders.named(withdrawal.sender)
    except NotConfigured:
        return
    is_open = withdrawal.status in (_S.PROCESSING, _S.SENT)
    if is_open and isinstance(sender, SenderSimulator) and withdrawal.tx_hash is not None:
        await sender.simulate(withdrawal.tx_hash, _ON_CHAIN[outcome])


async def _go_on(ports: Ports, caller: Caller, withdrawal: Withdrawal) -> Withdrawal:
    """Run the payout's job at once."""
    job = await ports.storage.get(Job, EXECUTE.id_of(withdrawal.id))
    if job is not None:
        await execute(ports, job)
    return await get_withdrawal(ports, caller, withdrawal.id)

"""Progress of a payout: its one signed transfer (signed_transfers/), its money and its events (docs/settlement.md
"Payouts").

A payout has one signed transfer in its life. Its amount is released only when the network proved that the transfer will
never take effect. A failed payout is not signed again: the next payout includes its amount.
"""

from datetime import datetime

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.payouts import SignedTransfer
from ....ports.storage import Unit
from ....ports.vault import Vault
from ...domain.days import iso
from ...domain.ledger import BalanceType, EntryKind
from ...domain.payloads import WithdrawalPayload
from ...domain.people.notifications import NotificationKind
from ...domain.settlement.withdrawals import (
    GIVEN_BACK,
    WITHDRAWAL_MOVES,
    Withdrawal,
    WithdrawalStatus,
    WithdrawalTrigger,
    moved,
    shown_hash,
    signed,
    signed_anew,
    way,
)
from ...domain.webhooks.events import EventType
from ..common.encrypted import withdrawal_fits
from ..common.schedule import FollowUp
from ..ledger.ledger import book
from ..person_events import note_for_people
from ..signed_transfers.engine import follow
from ..signed_transfers.row import Sending, SignedTransfers, stored
from ..webhooks.outbox import announce_of

EXECUTE = FollowUp("payout.execute")
"""The one job that executes a payout."""

PROVEN_NOT_SENT = "the network proved that the transfer did not move the USDT and never will"

_S = WithdrawalStatus
_T = WithdrawalTrigger


class _Payouts(SignedTransfers[Withdrawal]):
    """Transfers of payouts, and the effects of their outcomes on the money. A payout whose transfer never moved is
    over."""

    record = Withdrawal
    races = ("journal_id",)

    def sending(self, withdrawal: Withdrawal) -> Sending | None:
        if WITHDRAWAL_MOVES.is_final(withdrawal.status):
            return None
        return Sending(
            operation=withdrawal.id,
            sender=withdrawal.sender,
            network=withdrawal.network,
            address=withdrawal.wallet,
            units=withdrawal.amount.units,
            signed=stored(withdrawal.id, withdrawal),
            awaits_taken=withdrawal.status is _S.PROCESSING,
        )

    def is_as_decided(self, vault: Vault, withdrawal: Withdrawal) -> bool:
        return withdrawal_fits(vault, withdrawal)

    async def store(self, ports: Ports, unit: Unit, pending: Withdrawal, by: SignedTransfer) -> Withdrawal:
        """Save the signed payout and write its event."""
        after = signed(pending, by.tx_hash, by.blob, by.expires_at)
        await announce_withdrawal(ports, unit, after, pending.status)
        return unit[Withdrawal].save(after)

    def replaced(self, withdrawal: Withdrawal, by: SignedTransfer) -> Withdrawal:
        return signed_anew(withdrawal, by.tx_hash, by.blob, by.expires_at)

    async def taken(self, ports: Ports, unit: Unit, withdrawal: Withdrawal) -> Withdrawal:
        return await advance(ports, unit, withdrawal, _T.TAKEN)

    async def final(self, ports: Ports, unit: Unit, withdrawal: Withdrawal) -> Withdrawal:
        return await advance(ports, unit, withdrawal, _T.FINAL)

    async def never(self, ports: Ports, unit: Unit, withdrawal: Withdrawal) -> Withdrawal:
        return await advance(ports, unit, withdrawal, _T.DISPROVED, PROVEN_NOT_SENT)

    async def refused(self, ports: Ports, unit: Unit, withdrawal: Withdrawal, failure: str) -> Withdrawal:
        return await advance(ports, unit, withdrawal, _T.CALLED_OFF, failure)


PAYOUTS = _Payouts()


async def execute(ports: Ports, job: Job) -> None:
    """Take the next step of the job's payout, as far as the network allows."""
    await follow(PAYOUTS, ports, job)


async def advance(
    ports: Ports, unit: Unit, withdrawal: Withdrawal, trigger: WithdrawalTrigger, failure: str | None = None
) -> Withdrawal:
    """Save the payout's state after `trigger`, with an event for each move on the way, and book the outcome.

    If the payout has already made this move, nothing is written. Raises: IllegalMove.
    """
    now = ports.clock.now()
    last = withdrawal
    for each in way(withdrawal.status, trigger):
        after = moved(last, each, now, failure)
        await announce_withdrawal(ports, unit, after, last.status)
        last = after
    if last is withdrawal:
        return withdrawal
    if last.status in GIVEN_BACK:
        book_payout(ports, unit, last, EntryKind.PAYOUT_RELEASED, BalanceType.RESERVED, BalanceType.AVAILABLE)
    elif last.status is _S.COMPLETED:
        book_payout(ports, unit, last, EntryKind.PAYOUT_SENT, BalanceType.RESERVED, BalanceType.PAID_OUT)
        note_for_people(ports, unit, NotificationKind.PAYOUT_SENT, last.id)
    return unit[Withdrawal].save(last)


def book_payout(
    ports: Ports,
    unit: Unit,
    withdrawal: Withdrawal,
    kind: EntryKind,
    source: BalanceType,
    target: BalanceType,
    *,
    corrected: int | None = None,
) -> None:
    """Book the payout's amount from one ledger account of its merchant to another. With `corrected`, book a correction
    of these units instead, which may be negative."""
    units = withdrawal.amount.units if corrected is None else corrected
    book(ports, unit, kind, withdrawal, {source: -units, target: units}, revision=1 if corrected is None else 2)


async def announce_withdrawal(
    ports: Ports, unit: Unit, withdrawal: Withdrawal, previous: WithdrawalStatus | None
) -> None:
    """Write `withdrawal.status_changed` for the same unit's change, whose `sequence` was raised for this event.
    `previous` is None for a new payout."""

    def payload(now: datetime) -> WithdrawalPayload:
        return WithdrawalPayload(
            event="withdrawal.status_changed",
            withdrawal_id=withdrawal.id,
            status=withdrawal.status,
            previous_status=previous,
            amount_usdt=str(withdrawal.amount),
            wallet_address=withdrawal.wallet,
            tx_hash=shown_hash(withdrawal),
            timestamp=iso(now),
        )

    await announce_of(ports, unit, withdrawal, EventType.WITHDRAWAL_STATUS_CHANGED, payload)

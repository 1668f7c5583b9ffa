"""Payouts to merchants on chain: the record, its states, and the effect of the network's state on it
(docs/settlement.md "Payouts"; docs/payloads.md "Payout")."""

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from ..accounts.accounts import Mode
from ..machine import IllegalMove, Move, Moves
from ..money import Usdt


class WithdrawalStatus(StrEnum):
    """See docs/settlement.md "Payouts"."""

    PENDING = "pending"
    """The amount is reserved; nothing is signed."""
    PROCESSING = "processing"
    """Signed and stored. It may have been broadcast, under the stored hash."""
    SENT = "sent"
    """The network accepted it."""
    COMPLETED = "completed"
    """Final on chain: paid out."""
    FAILED = "failed"
    """It is proven that it never took effect and never will: the amount is available again."""
    CANCELLED = "cancelled"
    """Cancelled by an operator before anything was signed: the amount is available again."""


class WithdrawalTrigger(StrEnum):
    """Cause of a withdrawal's move."""

    SIGNED = "signed, and its hash stored"
    CALLED_OFF = "called off by the operator, or not signed"
    TAKEN = "the network took it"
    FINAL = "final on chain"
    DISPROVED = "proven that it never takes effect"


_S = WithdrawalStatus
_T = WithdrawalTrigger

WITHDRAWAL_MOVES: Moves[WithdrawalStatus, WithdrawalTrigger] = Moves(
    (
        Move(_S.PENDING, _S.PROCESSING, _T.SIGNED),
        Move(_S.PENDING, _S.CANCELLED, _T.CALLED_OFF),
        Move(_S.PROCESSING, _S.SENT, _T.TAKEN),
        Move(_S.PROCESSING, _S.FAILED, _T.DISPROVED),
        Move(_S.SENT, _S.COMPLETED, _T.FINAL),
        Move(_S.SENT, _S.FAILED, _T.DISPROVED),
    )
)
"""The moves (docs/states.md "Payout"). From `processing` on it cannot be cancelled, because anybody with the signed
transfer can send it."""

GIVEN_BACK = frozenset((_S.FAILED, _S.CANCELLED))
"""Final statuses after which the reserved amount is available again; after COMPLETED it is gone."""


class Withdrawal(msgspec.Struct, frozen=True, kw_only=True):
    """One payout: an amount of USDT from a merchant's balance to the wallet that was set when the payout was
    created."""

    id: str
    account_id: str
    mode: Mode
    status: WithdrawalStatus
    amount: Usdt
    wallet: str
    """An address of `network`. A later change of the merchant's wallet has no effect."""
    sender: str
    """Name of the service's wallet that sends it."""
    network: str
    created_at: datetime
    settlement_id: str | None = None
    """The settlement before it."""
    tx_hash: str | None = None
    """Hash of the signed transfer; merchants see it from `sent` on (`shown_hash`)."""
    blob: bytes | None = None
    """The signed transfer, while it may have to be broadcast again. Anybody who has it can send it."""
    signed_until: datetime | None = None
    """No block made at or after this time includes the signed transfer; None: it never expires, or nothing is
    signed."""
    sent_at: datetime | None = None
    completed_at: datetime | None = None
    """When it reached a final status."""
    failure: str | None = None
    """Why it failed or was cancelled, for operators."""
    tag: bytes | None = None
    """The vault's tag of recipient, amount and wallet; without it nothing is signed."""
    sequence: int = 0
    """Rises by one with every event about it; the webhook header X-Webhook-Sequence."""
    version: int = 0

    def __repr__(self) -> str:
        return f"<{self.status} withdrawal {self.id} of {self.amount}>"


def shown_hash(withdrawal: Withdrawal) -> str | None:
    """Return the hash shown to merchants: from `sent` on (docs/settlement.md "Payouts"), and also after a later
    failure."""
    return None if withdrawal.sent_at is None else withdrawal.tx_hash


def payable(available: Usdt, step: int) -> Usdt:
    """Return how much of `available` can be paid on a network whose smallest amount is `step` units (100 on TRON):
    rounded down, and zero for a debt. The rest stays available."""
    return Usdt(max(0, available.units) // step * step)


def moved_to(withdrawal: Withdrawal, trigger: WithdrawalTrigger, **changes: Any) -> Withdrawal:
    """Return the withdrawal after the trigger, with the other changes of the move. Nothing else writes its status;
    every move has an event, so the sequence rises. Raises: IllegalMove."""
    status = WITHDRAWAL_MOVES.move(withdrawal.status, trigger)
    return msgspec.structs.replace(withdrawal, status=status, sequence=withdrawal.sequence + 1, **changes)


def signed(withdrawal: Withdrawal, tx_hash: str, blob: bytes, until: datetime | None) -> Withdrawal:
    """Return the withdrawal with its signed transfer, which must be stored before the first broadcast.

    Raises: IllegalMove if it already has one: a second signed transfer would be a second payout.
    """
    return moved_to(withdrawal, _T.SIGNED, tx_hash=tx_hash, blob=blob, signed_until=until)


def signed_anew(withdrawal: Withdrawal, tx_hash: str, blob: bytes, until: datetime | None) -> Withdrawal:
    """Return the withdrawal with the wallet's replacement of the signed transfer: only one of the two can ever take
    effect."""
    return msgspec.structs.replace(withdrawal, tx_hash=tx_hash, blob=blob, signed_until=until)


def way(before: WithdrawalStatus, trigger: WithdrawalTrigger) -> tuple[WithdrawalTrigger, ...]:
    """Return the triggers to apply, none if this one was already applied. A transfer may be final when it is first
    seen: then `sent` is applied on the way, with its event, because merchants wait for it.

    Raises: IllegalMove.
    """
    if WITHDRAWAL_MOVES.has_led(trigger, before):
        return ()
    if (before, trigger) == (_S.PROCESSING, _T.FINAL):
        return (_T.TAKEN, _T.FINAL)
    WITHDRAWAL_MOVES.move(before, trigger)
    return (trigger,)


def moved(withdrawal: Withdrawal, trigger: WithdrawalTrigger, now: datetime, failure: str | None = None) -> Withdrawal:
    """Return the withdrawal after one move. In a final status the signed transfer is deleted: it is never sent again.

    Raises: IllegalMove, also for SIGNED, which needs the signed transfer.
    """
    if trigger is _T.SIGNED:
        raise IllegalMove("a withdrawal is processing once it is signed")
    after = moved_to(withdrawal, trigger, completed_at=None, failure=failure)
    if WITHDRAWAL_MOVES.is_final(after.status):
        return msgspec.structs.replace(after, blob=None, completed_at=now)
    return msgspec.structs.replace(after, sent_at=now)

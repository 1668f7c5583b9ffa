"""Payouts to merchants on chain: the record, its states, and what a look at the network makes of it
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
    """Signed and stored. It may have been broadcast, and its hash names it."""
    SENT = "sent"
    """The network took it."""
    COMPLETED = "completed"
    """Final on chain: paid out."""
    FAILED = "failed"
    """Proven that it never took effect and never will: the amount is available again."""
    CANCELLED = "cancelled"
    """Called off by an operator before anything was signed: the amount is available again."""


class WithdrawalTrigger(StrEnum):
    """What moves a withdrawal."""

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
"""The moves (docs/states.md "Payout"). From `processing` on nobody can call it off, because whoever has the signed
transfer can send it."""

GIVEN_BACK = frozenset((_S.FAILED, _S.CANCELLED))
"""The ends after which the reserved amount is available again; COMPLETED is the end after which it is gone."""


class Withdrawal(msgspec.Struct, frozen=True, kw_only=True):
    """One payout: an amount of USDT from a merchant's balance to the wallet that was set when it was made."""

    id: str
    account_id: str
    mode: Mode
    status: WithdrawalStatus
    amount: Usdt
    wallet: str
    """An address of `network`. A wallet that the merchant sets later does not change it."""
    sender: str
    """The name of the service's wallet that it goes by."""
    network: str
    created_at: datetime
    settlement_id: str | None = None
    """The settlement that it followed."""
    tx_hash: str | None = None
    """Of the signed transfer; merchants see it from `sent` on (`shown_hash`)."""
    blob: bytes | None = None
    """The signed transfer itself, while it may have to be broadcast again. Whoever has it can send it."""
    signed_until: datetime | None = None
    """No block made from then on takes the signed transfer; None: it never expires, or nothing is signed."""
    sent_at: datetime | None = None
    completed_at: datetime | None = None
    """When it came to its end, whichever it was."""
    failure: str | None = None
    """Why it failed or was called off, for operators."""
    tag: bytes | None = None
    """The vault's over whom is paid what, and by what; without it nothing is signed."""
    sequence: int = 0
    """Rises by one with every event about it; the webhook header X-Webhook-Sequence."""
    version: int = 0

    def __repr__(self) -> str:
        return f"<{self.status} withdrawal {self.id} of {self.amount}>"


def shown_hash(withdrawal: Withdrawal) -> str | None:
    """The hash as merchants see it: from `sent` on (docs/settlement.md "Payouts"), also after a failure that
    followed."""
    return None if withdrawal.sent_at is None else withdrawal.tx_hash


def payable(available: Usdt, step: int) -> Usdt:
    """How much of `available` a network can move whose smallest part is `step` units (100 on TRON): rounded down, and
    zero for a debt. The rest stays available."""
    return Usdt(max(0, available.units) // step * step)


def moved_to(withdrawal: Withdrawal, trigger: WithdrawalTrigger, **changes: Any) -> Withdrawal:
    """The withdrawal after the trigger, with what else the move changes. Nobody else writes its status; every move has
    an event, so its sequence rises. Raises: IllegalMove."""
    status = WITHDRAWAL_MOVES.move(withdrawal.status, trigger)
    return msgspec.structs.replace(withdrawal, status=status, sequence=withdrawal.sequence + 1, **changes)


def signed(withdrawal: Withdrawal, tx_hash: str, blob: bytes, until: datetime | None) -> Withdrawal:
    """The withdrawal with its signed transfer, as it must be stored before the first broadcast.

    Raises: IllegalMove: for one that has a signed transfer, a second would be a second payout.
    """
    return moved_to(withdrawal, _T.SIGNED, tx_hash=tx_hash, blob=blob, signed_until=until)


def signed_anew(withdrawal: Withdrawal, tx_hash: str, blob: bytes, until: datetime | None) -> Withdrawal:
    """The withdrawal whose wallet put another transfer in the place of the signed one: of both one alone can move."""
    return msgspec.structs.replace(withdrawal, tx_hash=tx_hash, blob=blob, signed_until=until)


def way(before: WithdrawalStatus, trigger: WithdrawalTrigger) -> tuple[WithdrawalTrigger, ...]:
    """The triggers that lead on, none where this one has led there already. A transfer may be final when it is first
    seen: then `sent` comes on the way, with its event, because merchants wait for it.

    Raises: IllegalMove.
    """
    if WITHDRAWAL_MOVES.has_led(trigger, before):
        return ()
    if (before, trigger) == (_S.PROCESSING, _T.FINAL):
        return (_T.TAKEN, _T.FINAL)
    WITHDRAWAL_MOVES.move(before, trigger)
    return (trigger,)


def moved(withdrawal: Withdrawal, trigger: WithdrawalTrigger, now: datetime, failure: str | None = None) -> Withdrawal:
    """The withdrawal one move further. At an end the signed transfer is forgotten: nobody needs to send it again.

    Raises: IllegalMove, also for SIGNED, which needs the signed transfer.
    """
    if trigger is _T.SIGNED:
        raise IllegalMove("a withdrawal is processing once it is signed")
    after = moved_to(withdrawal, trigger, completed_at=None, failure=failure)
    if WITHDRAWAL_MOVES.is_final(after.status):
        return msgspec.structs.replace(after, blob=None, completed_at=now)
    return msgspec.structs.replace(after, sent_at=now)

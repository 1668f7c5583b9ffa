"""The check of a delivery proof (docs/decisions.md "Delivery proofs").

Pure functions: they take the state of the chain and the payment's amount, and return the new state of the proof and the
time of the next poll.
"""

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from ..money import Usdt
from .payments import Payment
from .proofs import PROVABLE, DeliveryProof, ProofStatus, ProofTrigger, RejectionReason, moved_to

_S = ProofStatus
_T = ProofTrigger

POLLS = (
    timedelta(seconds=10),
    timedelta(seconds=20),
    timedelta(seconds=30),
    timedelta(minutes=1),
    timedelta(minutes=2),
    timedelta(minutes=5),
    timedelta(minutes=10),
    timedelta(minutes=20),
    timedelta(minutes=30),
    timedelta(hours=1),
    timedelta(hours=2),
    timedelta(hours=2),
)
"""Pauses between polls for a transaction that is missing or not final; the 13th poll, after some 6 hours, is the last.
The schedule restarts once, when the transaction is first seen in a block."""

CHAIN_AWAY = timedelta(minutes=5)
"""Pause when the chain did not answer. Such a poll is not counted: an outage of the chain rejects no proof."""
SETTLEMENT_POLL = timedelta(hours=1)
"""How often a final transfer is compared again with a payment that is not settled yet."""
TOLERANCE_PERCENT = 1
"""Largest difference, in either direction, between a transfer and the payment's credit in USDT that still counts as
equal."""


class Seen(StrEnum):
    """State of a transaction on the chain."""

    MISSING = "missing"
    IN_BLOCK = "in_block"
    REVERTED = "reverted"
    FINAL = "final"


class Look(msgspec.Struct, frozen=True):
    """One answer of the chain. With FINAL, `amounts` contains every transfer of USDT in the transaction."""

    seen: Seen
    amounts: tuple[Usdt, ...] = ()


class Next(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a poll: the proof to store, and the time of the next poll; None: no further poll."""

    proof: DeliveryProof
    again_at: datetime | None


def after_poll(proof: DeliveryProof, look: Look, payment: Payment, now: datetime) -> Next:
    """Apply an answer of the chain to the proof."""
    if look.seen in (Seen.MISSING, Seen.IN_BLOCK):
        return _later(proof, look.seen, now)
    if look.seen is Seen.REVERTED or not look.amounts:
        return rejected(proof, RejectionReason.INVALID, now)
    proof = msgspec.structs.replace(proof, final_at=proof.final_at or now)
    if payment.amount_usdt is None:
        return until_settled(proof, payment, now)
    fits = any(_fits(amount, payment.amount_usdt) for amount in look.amounts)
    return Next(proof=moved_to(proof, _T.FITS if fits else _T.DIFFERS, now), again_at=None)


def without_answer(proof: DeliveryProof, now: datetime) -> Next:
    """Apply a failed poll: nothing is known, and the poll is not counted."""
    if proof.status is _S.ACCEPTED:
        proof = moved_to(proof, _T.UNDECIDED, now)
    return Next(proof=proof, again_at=now + CHAIN_AWAY)


def waits_for_settlement(proof: DeliveryProof, payment: Payment) -> bool:
    """Return whether the chain has given its final answer and only the payment's amount in USDT is missing."""
    return proof.final_at is not None and payment.amount_usdt is None


def until_settled(proof: DeliveryProof, payment: Payment, now: datetime) -> Next:
    """Keep the proof in review until the payment has an amount in USDT. A payment that was refunded before settlement
    will never get one: its check then ends, and the merchant may restart it after a day."""
    again_at = now + SETTLEMENT_POLL if payment.status in PROVABLE else None
    return Next(proof=moved_to(proof, _T.UNDECIDED, now), again_at=again_at)


def rejected(proof: DeliveryProof, reason: RejectionReason, now: datetime) -> Next:
    """Reject the proof, and release its transaction, which may prove another payment."""
    return Next(proof=moved_to(proof, _T.DISPROVED, now, reason=reason, claim=None), again_at=None)


def _later(proof: DeliveryProof, seen: Seen, now: datetime) -> Next:
    """Handle a transaction that is not final. A transaction that was in a block and disappeared is still awaited until
    its polls are used up."""
    after, polls = proof, proof.polls
    if seen is Seen.IN_BLOCK and proof.status is not _S.AWAITING_CONFIRMATIONS:
        after, polls = moved_to(proof, _T.IN_BLOCK, now), 0
    elif seen is Seen.MISSING and proof.status is _S.ACCEPTED:
        after = moved_to(proof, _T.UNDECIDED, now)
    if polls >= len(POLLS):
        return rejected(proof, RejectionReason.NOT_FOUND_OR_UNCONFIRMED, now)
    return Next(proof=msgspec.structs.replace(after, polls=polls + 1), again_at=now + POLLS[polls])


def _fits(amount: Usdt, expected: Usdt) -> bool:
    return abs(amount.units - expected.units) * 100 <= expected.units * TOLERANCE_PERCENT

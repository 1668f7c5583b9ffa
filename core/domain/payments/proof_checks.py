"""How the check of a delivery proof goes (docs/decisions.md "Delivery proofs").

Decided purely: what the chain shows and what the payment is worth come in; the proof as it then stands goes out, and
when to look again.
"""

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from ..money import Usdt
from .payments import Payment
from .proofs import PROVABLE, DeliveryProof, ProofStatus, ProofTrigger, RejectionReason, moved_to

_S = ProofStatus
_T = ProofTrigger

LOOKS = (
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
"""The pauses between the looks for a transaction that is not there, or not final; the 13th look, after some 6 hours,
is the last. The ladder begins again once, when the transaction is first seen in a block."""

CHAIN_AWAY = timedelta(minutes=5)
"""Until the next look when the chain gave no answer. Such a look counts for nothing: a chain that is away rejects
nobody."""
SETTLEMENT_LOOK = timedelta(hours=1)
"""How often a final transfer is compared anew with a payment that is not settled yet."""
TOLERANCE_PERCENT = 1
"""How far a transfer may be from the payment's credit in USDT, either way, and still fit it."""


class Seen(StrEnum):
    """How the chain has a transaction."""

    MISSING = "missing"
    IN_BLOCK = "in_block"
    REVERTED = "reverted"
    FINAL = "final"


class Look(msgspec.Struct, frozen=True):
    """One answer of the chain. `amounts`, with FINAL: of every transfer of USDT in the transaction."""

    seen: Seen
    amounts: tuple[Usdt, ...] = ()


class Next(msgspec.Struct, frozen=True, kw_only=True):
    """What a look led to: the proof as it is to be stored, and when to look again; None: never."""

    proof: DeliveryProof
    again_at: datetime | None


def after_look(proof: DeliveryProof, look: Look, payment: Payment, now: datetime) -> Next:
    """What follows from an answer of the chain."""
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
    """The chain is away: nothing is known, and nothing counts."""
    if proof.status is _S.ACCEPTED:
        proof = moved_to(proof, _T.UNDECIDED, now)
    return Next(proof=proof, again_at=now + CHAIN_AWAY)


def waits_for_settlement(proof: DeliveryProof, payment: Payment) -> bool:
    """The chain has said its last word; what is missing is the payment's amount in USDT."""
    return proof.final_at is not None and payment.amount_usdt is None


def until_settled(proof: DeliveryProof, payment: Payment, now: datetime) -> Next:
    """In review until the payment is worth an amount in USDT. One that was refunded before will never be: its check
    ends where it stands, and the merchant may start it anew after a day."""
    again_at = now + SETTLEMENT_LOOK if payment.status in PROVABLE else None
    return Next(proof=moved_to(proof, _T.UNDECIDED, now), again_at=again_at)


def rejected(proof: DeliveryProof, reason: RejectionReason, now: datetime) -> Next:
    """It proves nothing, and lets go of the transaction, which may prove another payment."""
    return Next(proof=moved_to(proof, _T.DISPROVED, now, reason=reason, claim=None), again_at=None)


def _later(proof: DeliveryProof, seen: Seen, now: datetime) -> Next:
    """Not final yet. One that was in a block and is gone again stays awaited until its looks are used up."""
    after, looks = proof, proof.looks
    if seen is Seen.IN_BLOCK and proof.status is not _S.AWAITING_CONFIRMATIONS:
        after, looks = moved_to(proof, _T.IN_BLOCK, now), 0
    elif seen is Seen.MISSING and proof.status is _S.ACCEPTED:
        after = moved_to(proof, _T.UNDECIDED, now)
    if looks >= len(LOOKS):
        return rejected(proof, RejectionReason.NOT_FOUND_OR_UNCONFIRMED, now)
    return Next(proof=msgspec.structs.replace(after, looks=looks + 1), again_at=now + LOOKS[looks])


def _fits(amount: Usdt, expected: Usdt) -> bool:
    return abs(amount.units - expected.units) * 100 <= expected.units * TOLERANCE_PERCENT

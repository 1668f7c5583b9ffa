"""Delivery proofs: the hash of the USDT transfer to the client, its states, and what a merchant may do with it
(docs/payments.md "Delivery proofs"). No status of a proof changes a payment, its settlement or its payout."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from ..accounts.accounts import Mode
from ..accounts.terminals import Terminal
from ..errors import Refusal, shape_error
from ..machine import Move, Moves
from .payments import Payment, PaymentStatus


class ProofNetwork(StrEnum):
    """The networks as merchants name them: by their token standard."""

    TRC20 = "TRC20"
    ERC20 = "ERC20"
    BEP20 = "BEP20"


class ProofStatus(StrEnum):
    """See docs/payments.md "Delivery proofs"."""

    WAITING = "waiting"
    """No hash was submitted yet: there is no record."""
    ACCEPTED = "accepted"
    """Taken, and not looked at yet."""
    IN_REVIEW = "in_review"
    """Looked at without an end: not seen on the chain yet, the chain is away, or the payment has no amount in USDT to
    compare with before its settlement."""
    AWAITING_CONFIRMATIONS = "awaiting_confirmations"
    CONFIRMED = "confirmed"
    CONFIRMED_AMOUNT_DIFFERS = "confirmed_amount_differs"
    REJECTED = "rejected"


class RejectionReason(StrEnum):
    """Why a hash proves nothing."""

    NOT_FOUND_OR_UNCONFIRMED = "not_found_or_unconfirmed"
    ALREADY_USED = "already_used"
    INVALID = "invalid"


class ProofTrigger(StrEnum):
    """What moves a delivery proof."""

    SUBMITTED = "a hash is submitted"
    UNDECIDED = "looked at without an end"
    IN_BLOCK = "seen in a block that is not final"
    FITS = "final, and the amount fits"
    DIFFERS = "final, and the amount does not fit"
    DISPROVED = "used already, without effect on the chain, or not final for too long"


_S = ProofStatus
_T = ProofTrigger

PROOF_MOVES: Moves[ProofStatus, ProofTrigger] = Moves(
    (
        Move(_S.WAITING, _S.ACCEPTED, _T.SUBMITTED),
        Move(_S.ACCEPTED, _S.ACCEPTED, _T.SUBMITTED),
        Move(_S.ACCEPTED, _S.IN_REVIEW, _T.UNDECIDED),
        Move(_S.ACCEPTED, _S.AWAITING_CONFIRMATIONS, _T.IN_BLOCK),
        Move(_S.ACCEPTED, _S.CONFIRMED, _T.FITS),
        Move(_S.ACCEPTED, _S.CONFIRMED_AMOUNT_DIFFERS, _T.DIFFERS),
        Move(_S.ACCEPTED, _S.REJECTED, _T.DISPROVED),
        Move(_S.IN_REVIEW, _S.ACCEPTED, _T.SUBMITTED),
        Move(_S.IN_REVIEW, _S.AWAITING_CONFIRMATIONS, _T.IN_BLOCK),
        Move(_S.IN_REVIEW, _S.CONFIRMED, _T.FITS),
        Move(_S.IN_REVIEW, _S.CONFIRMED_AMOUNT_DIFFERS, _T.DIFFERS),
        Move(_S.IN_REVIEW, _S.REJECTED, _T.DISPROVED),
        Move(_S.AWAITING_CONFIRMATIONS, _S.ACCEPTED, _T.SUBMITTED),
        Move(_S.AWAITING_CONFIRMATIONS, _S.IN_REVIEW, _T.UNDECIDED),
        Move(_S.AWAITING_CONFIRMATIONS, _S.CONFIRMED, _T.FITS),
        Move(_S.AWAITING_CONFIRMATIONS, _S.CONFIRMED_AMOUNT_DIFFERS, _T.DIFFERS),
        Move(_S.AWAITING_CONFIRMATIONS, _S.REJECTED, _T.DISPROVED),
        Move(_S.REJECTED, _S.ACCEPTED, _T.SUBMITTED),
    )
)
"""The moves (docs/states.md "Delivery proof"). `confirmed` and `confirmed_amount_differs` are final: the hash is
locked."""

PROVABLE = (PaymentStatus.PAID, PaymentStatus.SETTLED)
"""A hash is taken, and reminded of, for a payment that stands here."""

STUCK = timedelta(days=1)
"""`in_review` for longer: the same hash again starts the check anew (docs/payments.md "Delivery proofs")."""
HASH_LENGTH = 200

_VISIBLE = re.compile(r"[!-~]+\Z")
_HASH = re.compile(r"(?:0x)?([0-9a-f]{64})\Z")
_MAY_END_OTHERWISE = (RejectionReason.NOT_FOUND_OR_UNCONFIRMED, RejectionReason.ALREADY_USED)
"""The transaction may be there by now, the other payment may have let go of it; `invalid` stays invalid."""


class DeliveryProof(msgspec.Struct, frozen=True, kw_only=True):
    """The hash that stands for a payment; its id is the payment's. A replaced one leaves no trace here."""

    id: str
    network: ProofNetwork
    tx_hash: str
    """As the merchant gave it, in lower case."""
    status: ProofStatus
    status_at: datetime
    """Since when it stands there."""
    submitted_at: datetime
    submission: int = 1
    """Counts the merchant's submissions: what changed it otherwise is the check."""
    reason: RejectionReason | None = None
    claim: str | None = None
    """The transaction that this proof holds, unique over all accounts; None: it holds none (yet, or any more)."""
    looks: int = 0
    """Answers of the chain that led nowhere: how far the ladder of proof_checks.py was climbed."""
    final_at: datetime | None = None
    """When the chain was first seen to have it for good."""
    version: int = 0

    @property
    def is_open(self) -> bool:
        """Its check goes on."""
        return self.status in (_S.ACCEPTED, _S.IN_REVIEW, _S.AWAITING_CONFIRMATIONS)

    @property
    def is_locked(self) -> bool:
        """The transfer is confirmed: the hash is never replaced again."""
        return PROOF_MOVES.is_final(self.status)


class ProofOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /payments/{id}/delivery-proof."""

    network: str
    tx_hash: str


ReadProofOrder = Callable[[], ProofOrder]
"""Reads the body when it is needed: what refuses the payment comes first."""


class ProofWish(msgspec.Struct, frozen=True):
    """A checked body."""

    network: ProofNetwork
    tx_hash: str

    def is_of(self, proof: DeliveryProof) -> bool:
        """Whether the proof names the same transaction already; `0x` before a hash makes no difference."""
        return self.network is proof.network and _bare(self.tx_hash) == _bare(proof.tx_hash)

    @property
    def claim(self) -> str | None:
        """What must be unique; None for what is no transaction hash."""
        bare = transaction_hash(self.tx_hash)
        return None if bare is None else f"{self.network.value}:{bare}"


def wish_of(proof: DeliveryProof) -> ProofWish:
    """What the proof was submitted for."""
    return ProofWish(proof.network, proof.tx_hash)


def takes_proof(payment: Payment, terminal: Terminal | None) -> bool:
    """Whether a hash is accepted for this payment at all: live mode, by a terminal of the exchange kind."""
    return (
        payment.mode is Mode.LIVE
        and terminal is not None
        and terminal.account_id == payment.account_id
        and terminal.is_exchange
    )


def check_taking(payment: Payment) -> None:
    """Raises: Refusal INVALID_STATUS for a payment that is neither paid nor settled."""
    if payment.status not in PROVABLE:
        raise Refusal("INVALID_STATUS", "A delivery proof is taken for a paid or settled payment")


def check_order(order: ProofOrder) -> ProofWish:
    """The wish in a body. Whether the hash is one of its network is the check's to say, not the request's.

    Raises: Refusal VALIDATION_ERROR for a network not listed, and for a hash that is empty, too long, or holds anything
    but visible ASCII.
    """
    if order.network not in tuple(ProofNetwork):
        raise shape_error("network", f"must be one of: {', '.join(ProofNetwork)}")
    tx_hash = order.tx_hash.strip()
    if len(tx_hash) > HASH_LENGTH or not _VISIBLE.match(tx_hash):
        raise shape_error("tx_hash", f"has 1 to {HASH_LENGTH} visible ASCII characters")
    return ProofWish(ProofNetwork(order.network), tx_hash.lower())


def transaction_hash(tx_hash: str) -> str | None:
    """The 64 hex digits of a hash in lower case, however it was written; None when it is none."""
    found = _HASH.match(tx_hash)
    return None if found is None else found[1]


def _bare(tx_hash: str) -> str:
    return transaction_hash(tx_hash) or tx_hash


def changes_nothing(proof: DeliveryProof, wish: ProofWish, now: datetime) -> bool:
    """Whether the wish repeats the proof, so that the answer is the proof as it stands.

    Raises: Refusal DELIVERY_PROOF_LOCKED for another hash after a confirmation.
    """
    is_same = wish.is_of(proof)
    if proof.is_locked:
        if is_same:
            return True
        raise Refusal("DELIVERY_PROOF_LOCKED", "The transfer is confirmed; its hash cannot be replaced")
    if not is_same:
        return False
    if proof.status is _S.REJECTED:
        return proof.reason not in _MAY_END_OTHERWISE
    return proof.status is not _S.IN_REVIEW or now - proof.status_at <= STUCK


def moved_to(proof: DeliveryProof, trigger: ProofTrigger, now: datetime, **changes: Any) -> DeliveryProof:
    """The proof after its trigger, with what else the move changes; where the trigger has led there already the status
    stands since then. Nobody else writes its status. Raises: IllegalMove."""
    if not PROOF_MOVES.has_led(trigger, proof.status):
        changes |= {"status": PROOF_MOVES.move(proof.status, trigger), "status_at": now}
    return msgspec.structs.replace(proof, **changes)


def submitted(
    payment_id: str, before: DeliveryProof | None, wish: ProofWish, now: datetime, *, holds: bool
) -> DeliveryProof:
    """The proof after a submission; `holds`: it takes the transaction for itself. Raises: IllegalMove."""
    return DeliveryProof(
        id=payment_id,
        network=wish.network,
        tx_hash=wish.tx_hash,
        status=PROOF_MOVES.move(_S.WAITING if before is None else before.status, _T.SUBMITTED),
        status_at=now,
        submitted_at=now,
        submission=1 if before is None else before.submission + 1,
        claim=wish.claim if holds else None,
        version=0 if before is None else before.version,
    )

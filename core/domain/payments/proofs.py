"""Delivery proofs: the hash of the USDT transfer to the client, its states, and the merchant's actions on it
(docs/payments.md "Delivery proofs"). No status of a proof changes a payment, its settlement or its payout."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from .. import shared_fields as shared
from ..accounts.accounts import Mode
from ..accounts.terminals import Terminal
from ..errors import Refusal, shape_error
from ..machine import Move, Moves
from .payments import Payment, PaymentStatus


class ProofNetwork(StrEnum):
    """Networks by the names that merchants use: their token standards."""

    TRC20 = "TRC20"
    ERC20 = "ERC20"
    BEP20 = "BEP20"


class ProofStatus(StrEnum):
    """See docs/payments.md "Delivery proofs"."""

    WAITING = "waiting"
    """No hash was submitted yet: there is no record."""
    ACCEPTED = "accepted"
    """Submitted, and not checked yet."""
    IN_REVIEW = "in_review"
    """Checked without a result: not seen on the chain yet, the chain did not answer, or the payment has no amount in
    USDT before its settlement."""
    AWAITING_CONFIRMATIONS = "awaiting_confirmations"
    CONFIRMED = "confirmed"
    CONFIRMED_AMOUNT_DIFFERS = "confirmed_amount_differs"
    REJECTED = "rejected"


class RejectionReason(StrEnum):
    """Why a hash was rejected."""

    NOT_FOUND_OR_UNCONFIRMED = "not_found_or_unconfirmed"
    ALREADY_USED = "already_used"
    INVALID = "invalid"


class ProofTrigger(StrEnum):
    """Cause of a proof's move."""

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
"""Statuses of a payment in which it accepts a hash, and reminders are sent."""

STUCK = timedelta(days=1)
"""After this time `in_review`, submitting the same hash restarts the check (docs/payments.md "Delivery proofs")."""
HASH_LENGTH = 200

_VISIBLE = re.compile(r"[!-~]+\Z")
_HASH = re.compile(r"(?:0x)?([0-9a-f]{64})\Z")
_MAY_END_OTHERWISE = (RejectionReason.NOT_FOUND_OR_UNCONFIRMED, RejectionReason.ALREADY_USED)
"""Reasons that can change: the transaction may exist by now, or the other payment may have released it. `invalid` stays
invalid."""


class DeliveryProof(msgspec.Struct, frozen=True, kw_only=True):
    """The transaction hash submitted for a payment; its id is the payment's. A replaced hash is not stored."""

    id: str
    network: ProofNetwork
    tx_hash: str
    """As the merchant submitted it, in lower case."""
    status: ProofStatus
    status_at: datetime
    """Time of the last change of status."""
    submitted_at: datetime
    submission: int = 1
    """Number of submissions by the merchant. A version change with the same number comes from the check."""
    reason: RejectionReason | None = None
    claim: str | None = None
    """The transaction claimed by this proof, unique over all accounts; None: it claims none (yet, or any more)."""
    polls: int = 0
    """Number of polls without a result: the position in the schedule of proof_checks.py."""
    final_at: datetime | None = None
    """When the transaction was first seen as final."""
    version: int = 0

    @property
    def is_open(self) -> bool:
        """Whether its check continues."""
        return self.status in (_S.ACCEPTED, _S.IN_REVIEW, _S.AWAITING_CONFIRMATIONS)

    @property
    def is_locked(self) -> bool:
        """Whether the transfer is confirmed: the hash can never be replaced."""
        return PROOF_MOVES.is_final(self.status)


class ProofOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /payments/{id}/delivery-proof."""

    network: Annotated[str, shared.NETWORK, shared.among(ProofNetwork)]
    tx_hash: Annotated[str, shared.TX_HASH, shared.limits(minLength=1, maxLength=200)]


ReadProofOrder = Callable[[], ProofOrder]
"""Reads the body on demand: refusals that concern the payment come first."""


class ProofWish(msgspec.Struct, frozen=True):
    """A validated body."""

    network: ProofNetwork
    tx_hash: str

    def is_of(self, proof: DeliveryProof) -> bool:
        """Return whether the proof already has the same transaction; a `0x` before the hash makes no difference."""
        return self.network is proof.network and _bare(self.tx_hash) == _bare(proof.tx_hash)

    @property
    def claim(self) -> str | None:
        """The unique key of the transaction; None for an invalid hash."""
        bare = transaction_hash(self.tx_hash)
        return None if bare is None else f"{self.network.value}:{bare}"


def wish_of(proof: DeliveryProof) -> ProofWish:
    """Return the submission that led to the proof."""
    return ProofWish(proof.network, proof.tx_hash)


def takes_proof(payment: Payment, terminal: Terminal | None) -> bool:
    """Return whether this payment can have a proof at all: live mode, through a terminal of the exchange kind."""
    return (
        payment.mode is Mode.LIVE
        and terminal is not None
        and terminal.account_id == payment.account_id
        and terminal.is_exchange
    )


def check_taking(payment: Payment) -> None:
    """Raises: Refusal INVALID_STATUS for a payment that is neither paid nor settled."""
    if payment.status not in PROVABLE:
        raise Refusal("INVALID_STATUS", "Only paid and settled payments accept a delivery proof")


def check_order(order: ProofOrder) -> ProofWish:
    """Validate the body. Whether the hash exists on its network is decided by the check, not by the request.

    Raises: Refusal VALIDATION_ERROR for an unlisted network, and for a hash that is empty, too long, or contains
    anything but visible ASCII.
    """
    if order.network not in tuple(ProofNetwork):
        raise shape_error("network", f"must be one of: {', '.join(ProofNetwork)}")
    tx_hash = order.tx_hash.strip()
    if len(tx_hash) > HASH_LENGTH or not _VISIBLE.match(tx_hash):
        raise shape_error("tx_hash", f"has 1 to {HASH_LENGTH} visible ASCII characters")
    return ProofWish(ProofNetwork(order.network), tx_hash.lower())


def transaction_hash(tx_hash: str) -> str | None:
    """Return the 64 hex digits of a hash in lower case, with or without `0x` in the input; None for any other text."""
    found = _HASH.match(tx_hash)
    return None if found is None else found[1]


def _bare(tx_hash: str) -> str:
    return transaction_hash(tx_hash) or tx_hash


def changes_nothing(proof: DeliveryProof, wish: ProofWish, now: datetime) -> bool:
    """Return whether the submission repeats the proof, so that the answer is the proof unchanged.

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
    """Return the proof after the trigger, with the other changes of the move; if the trigger has already led to the
    present status, `status_at` stays. Nothing else writes its status. Raises: IllegalMove."""
    if not PROOF_MOVES.has_led(trigger, proof.status):
        changes |= {"status": PROOF_MOVES.move(proof.status, trigger), "status_at": now}
    return msgspec.structs.replace(proof, **changes)


def submitted(
    payment_id: str, before: DeliveryProof | None, wish: ProofWish, now: datetime, *, holds: bool
) -> DeliveryProof:
    """Return the proof after a submission; `holds`: it claims the transaction. Raises: IllegalMove."""
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

"""Delivery proofs for merchants: submit the hash of a transfer, and read the state of its check (docs/payments.md
"Delivery proofs"). The check itself is a job: proof_checks.py.
"""

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.accounts.accounts import Caller
from ...domain.errors import Refusal
from ...domain.payments.payments import Payment
from ...domain.payments.proofs import (
    DeliveryProof,
    ProofWish,
    ReadProofOrder,
    changes_nothing,
    check_order,
    check_taking,
    submitted,
    takes_proof,
)
from ..accounts.terminals import terminal_of
from ..common.schedule import FollowUp
from ..common.units import retrying
from .payments import get_payment

CHECK = FollowUp("proof.check")
"""The job that checks a payment's proof; one job per payment, whichever hash is current."""
CLAIM_TAKEN = "delivery_proofs_claim"
"""The storage's unique rule: one transaction proves one payment, over all accounts."""

_WRITTEN_BY_ANOTHER = (CLAIM_TAKEN, "delivery_proofs_id", "jobs_id")


async def submit_proof(ports: Ports, caller: Caller, payment_id: str, read_order: ReadProofOrder) -> DeliveryProof:
    """Accept a hash, replacing the previous one, and start its check. A repeat returns the current proof.

    A transaction that proves another payment is accepted as well: the check rejects it unless the other payment has
    released it by then. So every submission gets the same answer.

    Raises: Refusal PAYMENT_NOT_FOUND, FEATURE_NOT_ENABLED, INVALID_STATUS, VALIDATION_ERROR, DELIVERY_PROOF_LOCKED,
    DELIVERY_PROOF_CONFLICT (another request changed the hash since this one read it), in this order.
    """
    payment = await _payment(ports, caller, payment_id)
    check_taking(payment)
    wish = check_order(read_order())
    read_at: int | None = None

    async def work(unit: Unit) -> DeliveryProof:
        nonlocal read_at
        proof = await unit[DeliveryProof].get(payment.id)
        count = 0 if proof is None else proof.submission
        if read_at is None:
            read_at = count
        now = ports.clock.now()
        if proof is not None and changes_nothing(proof, wish, now):
            return proof
        if count != read_at:
            raise Refusal("DELIVERY_PROOF_CONFLICT", "Another request changed the hash meanwhile; read it and repeat")
        holds = await is_free(unit, wish, payment.id)
        after = submitted(payment.id, proof, wish, now, holds=holds)
        saved = unit[DeliveryProof].add(after) if proof is None else unit[DeliveryProof].save(after)
        await _check_now(ports, unit, payment.id)
        return saved

    return await retrying(ports.storage, work, again_on=_WRITTEN_BY_ANOTHER)


async def read_proof(ports: Ports, caller: Caller, payment_id: str) -> DeliveryProof | None:
    """Return the current proof; None before the first. Raises: Refusal PAYMENT_NOT_FOUND, FEATURE_NOT_ENABLED."""
    payment = await _payment(ports, caller, payment_id)
    return await ports.storage.get(DeliveryProof, payment.id)


async def is_free(unit: Unit, wish: ProofWish, payment_id: str) -> bool:
    """Return whether no proof of another payment claims the transaction."""
    if wish.claim is None:
        return True
    holders = await unit[DeliveryProof].find(claim=wish.claim, limit=1)
    return all(holder.id == payment_id for holder in holders)


async def _payment(ports: Ports, caller: Caller, payment_id: str) -> Payment:
    payment = await get_payment(ports, caller, payment_id)
    async with ports.storage.unit() as unit:
        terminal = await terminal_of(unit, payment)
    if not takes_proof(payment, terminal):
        raise Refusal("FEATURE_NOT_ENABLED", "This payment accepts no delivery proof")
    return payment


async def _check_now(ports: Ports, unit: Unit, payment_id: str) -> None:
    """Restart the check. A worker that still checks the previous hash cannot save its result, because the job has
    moved.
    """
    now = ports.clock.now()
    await CHECK.plan(unit, payment_id, now, now, anew=True)

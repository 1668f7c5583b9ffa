"""The job that checks a delivery proof: read the chain and apply the answer (domain/payments/proof_checks.py)."""

from collections.abc import Mapping

import msgspec

from ....ports.bundle import Ports
from ....ports.chain import Final, InBlock, Network, NotFound, Reverted, Sighting
from ....ports.faults import NO_ANSWER
from ....ports.jobs import Job
from ....ports.storage import Unit
from ...domain.money import Usdt
from ...domain.payments.payments import Payment
from ...domain.payments.proof_checks import (
    Look,
    Next,
    Seen,
    after_poll,
    rejected,
    until_settled,
    waits_for_settlement,
    without_answer,
)
from ...domain.payments.proofs import DeliveryProof, ProofNetwork, RejectionReason, transaction_hash, wish_of
from ..common.schedule import set_due
from ..common.units import retrying
from .proofs import CLAIM_TAKEN, is_free

_NETWORKS: Mapping[ProofNetwork, Network] = {
    ProofNetwork.TRC20: Network.TRON,
    ProofNetwork.ERC20: Network.ETHEREUM,
    ProofNetwork.BEP20: Network.BSC,
}


async def check(ports: Ports, job: Job) -> None:
    """Check the proof that the job names once.

    Raises: Stale when the merchant sent another hash in the meantime, or another worker took the job; nothing is
    written.
    """
    async with ports.storage.unit() as unit:
        proof = await unit[DeliveryProof].get(job.argument)
        payment = await unit[Payment].get(job.argument)
        if proof is None or payment is None or not proof.is_open:
            unit[Job].remove(job)
            await unit.commit()
            return
    held = await _hold(ports, proof)
    await _enter(ports, job, held, await _judge(ports, held, payment))


async def _hold(ports: Ports, proof: DeliveryProof) -> DeliveryProof:
    """Claim the transaction for the proof if it is free; its former claim may have ended since the submission."""
    wish = wish_of(proof)
    if proof.claim is not None or wish.claim is None:
        return proof

    async def work(unit: Unit) -> DeliveryProof:
        present = await unit[DeliveryProof].get(proof.id)
        if present is None or present.version != proof.version or not await is_free(unit, wish, proof.id):
            return proof
        return unit[DeliveryProof].save(msgspec.structs.replace(present, claim=wish.claim))

    return await retrying(ports.storage, work, again_on=(CLAIM_TAKEN,))


async def _judge(ports: Ports, proof: DeliveryProof, payment: Payment) -> Next:
    tx_hash = transaction_hash(proof.tx_hash)
    if tx_hash is None:
        return rejected(proof, RejectionReason.INVALID, ports.clock.now())
    if proof.claim is None:
        return rejected(proof, RejectionReason.ALREADY_USED, ports.clock.now())
    if waits_for_settlement(proof, payment):
        return until_settled(proof, payment, ports.clock.now())
    try:
        sighting = await ports.chain.lookup(_NETWORKS[proof.network], tx_hash)
    except NO_ANSWER:
        return without_answer(proof, ports.clock.now())
    return after_poll(proof, _look(sighting), payment, ports.clock.now())


def _look(sighting: Sighting) -> Look:
    match sighting:
        case NotFound():
            return Look(Seen.MISSING)
        case InBlock():
            return Look(Seen.IN_BLOCK)
        case Reverted():
            return Look(Seen.REVERTED)
        case Final(transfers):
            return Look(Seen.FINAL, tuple(Usdt(transfer.units) for transfer in transfers))


async def _enter(ports: Ports, job: Job, before: DeliveryProof, after: Next) -> None:
    """Save the result. The versions read at the start of the check guard it, so a hash that the merchant sent since
    then stays.
    """
    async with ports.storage.unit() as unit:
        if after.proof != before:
            unit[DeliveryProof].save(after.proof)
        set_due(unit, job, after.again_at)
        await unit.commit()

"""Delivery proofs over HTTP. No rule lives here (docs/payments.md "Delivery proofs")."""

import msgspec
from litestar import Response, get, post
from litestar.params import FromPath
from msgspec import UNSET, UnsetType

from ...core.domain.payments.proofs import DeliveryProof, ProofOrder, ProofStatus
from ...core.usecases.payments.proofs import read_proof, submit_proof
from ...ports.bundle import Ports
from .door.access import ApiRequest
from .door.answers import answer
from .door.bodies import body_reader
from .door.routing import Router


class ProofView(msgspec.Struct, frozen=True, kw_only=True):
    """See docs/payments.md "Delivery proofs"."""

    network: str | None
    tx_hash: str | None
    status: str
    reason: str | UnsetType = UNSET


def proof_view(proof: DeliveryProof | None) -> ProofView:
    """The delivery proof object; None: nothing was submitted yet."""
    if proof is None:
        return ProofView(network=None, tx_hash=None, status=ProofStatus.WAITING.value)
    return ProofView(
        network=proof.network.value,
        tx_hash=proof.tx_hash,
        status=proof.status.value,
        reason=UNSET if proof.reason is None else proof.reason.value,
    )


def proofs_router(ports: Ports) -> Router:
    """POST and GET /payments/{id}/delivery-proof. It makes no resource, so it takes no Idempotency-Key."""

    @post("/", status_code=200)
    async def submit(request: ApiRequest, payment_id: FromPath[str]) -> Response[bytes]:
        proof = await submit_proof(ports, request.auth, payment_id, await body_reader(request, ProofOrder))
        return answer(proof_view(proof))

    @get("/")
    async def read(request: ApiRequest, payment_id: FromPath[str]) -> Response[bytes]:
        return answer(proof_view(await read_proof(ports, request.auth, payment_id)))

    return Router("/payments/{payment_id:str}/delivery-proof", route_handlers=[submit, read])

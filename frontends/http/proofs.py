"""HTTP API of delivery proofs, without business rules (docs/payments.md "Delivery proofs")."""

from typing import Annotated

import msgspec
from litestar.types import ASGIApp
from msgspec import UNSET, Meta, UnsetType

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller
from ...core.domain.accounts.key_terms import Right
from ...core.domain.payments.proofs import DeliveryProof, ProofOrder, ProofStatus, RejectionReason
from ...core.usecases.payments.proofs import read_proof, submit_proof
from ...ports.bundle import Ports
from .edge.answers import answer
from .edge.operation import ApiRequest, Operation


class ProofView(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery proof (docs/payments.md "Delivery proofs")."""

    network: Annotated[str | None, shared.NETWORK]
    tx_hash: Annotated[str | None, shared.TX_HASH]
    status: Annotated[str, shared.STATUS, shared.among(ProofStatus)]
    reason: Annotated[
        Annotated[str, shared.among(RejectionReason)] | UnsetType,
        Meta(description="Reason of the rejection; only on rejected proofs"),
    ] = UNSET


def proof_view(proof: DeliveryProof | None) -> ProofView:
    """Return the delivery proof object; None: nothing was submitted yet."""
    if proof is None:
        return ProofView(network=None, tx_hash=None, status=ProofStatus.WAITING.value)
    return ProofView(
        network=proof.network.value,
        tx_hash=proof.tx_hash,
        status=proof.status.value,
        reason=UNSET if proof.reason is None else proof.reason.value,
    )


async def submit(ports: Ports, caller: Caller, request: ApiRequest[ProofOrder]) -> ASGIApp:
    """Handle POST /payments/{id}/delivery-proof. It creates no resource, so it takes no Idempotency-Key."""
    return answer(proof_view(await submit_proof(ports, caller, request.id, request.read)))


async def read(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(proof_view(await read_proof(ports, caller, request.id)))


PROOFS = (
    Operation(
        "submit_delivery_proof",
        "post",
        "/api/v1/payments/{payment_id}/delivery-proof",
        "Payments",
        "Submit the hash of the USDT transfer to the client",
        submit,
        body=ProofOrder,
        answer=ProofView,
        refusals={
            400: ("FEATURE_NOT_ENABLED",),
            404: ("PAYMENT_NOT_FOUND",),
            409: ("INVALID_STATUS", "DELIVERY_PROOF_LOCKED", "DELIVERY_PROOF_CONFLICT"),
        },
        right=Right.PAYMENTS,
    ),
    Operation(
        "get_delivery_proof",
        "get",
        "/api/v1/payments/{payment_id}/delivery-proof",
        "Payments",
        "Get the status of the delivery proof",
        read,
        answer=ProofView,
        refusals={400: ("FEATURE_NOT_ENABLED",), 404: ("PAYMENT_NOT_FOUND",)},
    ),
)

"""Links by which a client verifies itself, made by a person (docs/dashboard.md "Clients")."""

from ....ports.bundle import Ports
from ...domain.errors import Refusal
from ...domain.kyc.clients import Client, KycStatus
from ...domain.kyc.kyc import require_kyc
from ...domain.operators.audit import OperatorAction
from ...domain.people.roles import PersonRight
from ..actions.audit import note
from ..kyc.clients import get_client
from ..kyc.links import hosted_url
from ..kyc.verifiers import require_verifier
from .sessions import Actor, require


def needs_verification(client: Client) -> bool:
    """Return whether a link lets the client continue: it is neither verified nor blocked."""
    return not client.blocked and client.kyc is not KycStatus.VERIFIED


async def new_client_link(ports: Ports, actor: Actor, client_id: str) -> str:
    """Return a link to the hosted page on which the client verifies itself; it lives for an hour. The audit log records
    who made it.

    Raises: Refusal PERSON_RIGHT_MISSING, CLIENT_NOT_FOUND, PROVIDER_DISABLED, SANDBOX_NOT_SUPPORTED, KYC_NOT_REQUIRED,
    KYC_UNAVAILABLE; INVALID_STATE for a client who is verified or blocked.
    """
    require(actor, PersonRight.KYC)
    found = await get_client(ports, actor.caller, client_id)
    require_kyc(actor.caller)
    require_verifier(ports)
    if not needs_verification(found.client):
        raise Refusal("INVALID_STATE", "The client is verified or blocked: a link would change nothing")
    action = OperatorAction(operator=actor.user.id, name="client.link", object_id=found.client.id)
    await note(ports, action, account_id=actor.account.id)
    return hosted_url(ports, actor.account.id, found.phone)

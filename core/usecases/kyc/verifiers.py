"""Whose a check is: who began it is asked about it, also where another one verifies clients by now
(docs/kyc.md "Another verifier")."""

from ....ports.bundle import Ports
from ....ports.kyc import KycVerifier
from ...domain.errors import Refusal
from ...domain.kyc.clients import IN_PROGRESS, Client
from ...domain.kyc.kyc import needs_check


def require_verifier(ports: Ports) -> None:
    """Raises: Refusal KYC_UNAVAILABLE while live mode has no verifier, so that nobody uploads documents in vain."""
    if not ports.has_verifier:
        raise unavailable()


def unavailable() -> Refusal:
    """The verifier is away or not set; KYC is required all the same."""
    return Refusal("KYC_UNAVAILABLE", "KYC is required and away for the moment; try again later", retry_after=60)


def verifier_of(ports: Ports, client: Client) -> KycVerifier | None:
    """Who has the client's present check; None: nobody who is set."""
    if client.verifier is None or client.verifier == ports.kyc.name:
        return ports.kyc
    return ports.former_kyc.get(client.verifier)


def is_left_behind(ports: Ports, client: Client) -> bool:
    """Whether the client's check is under way at a verifier that is not set any more: it counts as none, and is gone on
    with where the verifier is set again before somebody registers."""
    return not client.blocked and client.kyc in IN_PROGRESS and verifier_of(ports, client) is None


def may_begin(ports: Ports, client: Client) -> bool:
    """Whether registering begins a new check; else the stored result is the answer."""
    return needs_check(client) or is_left_behind(ports, client)

"""Verifiers of checks. A check stays with the verifier that began it, even if another verifier is configured now
(docs/kyc.md "Another verifier").
"""

from ....ports.bundle import Ports
from ....ports.kyc import KycVerifier
from ...domain.errors import Refusal
from ...domain.kyc.clients import IN_PROGRESS, Client
from ...domain.kyc.kyc import needs_check


def require_verifier(ports: Ports) -> None:
    """Require a verifier in live mode, so that no client uploads documents in vain. Raises: Refusal KYC_UNAVAILABLE."""
    if not ports.has_verifier:
        raise unavailable()


def unavailable() -> Refusal:
    """Return the refusal when the verifier is unavailable or not configured while KYC is required."""
    return Refusal("KYC_UNAVAILABLE", "KYC is required and unavailable at the moment; try again later", retry_after=60)


def verifier_of(ports: Ports, client: Client) -> KycVerifier | None:
    """Return the verifier of the client's current check; None if it is no longer configured."""
    if client.verifier is None or client.verifier == ports.kyc.name:
        return ports.kyc
    return ports.former_kyc.get(client.verifier)


def is_left_behind(ports: Ports, client: Client) -> bool:
    """Return whether the client's check is pending at a verifier that is no longer configured. Such a check does not
    count, but continues if that verifier is configured again before the client registers anew.
    """
    return not client.blocked and client.kyc in IN_PROGRESS and verifier_of(ports, client) is None


def may_begin(ports: Ports, client: Client) -> bool:
    """Return whether registering begins a new check; if not, the stored result is the answer."""
    return needs_check(client) or is_left_behind(ports, client)

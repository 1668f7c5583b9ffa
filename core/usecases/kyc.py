"""Verification of end clients: so far the gate before a new payment (SPEC "Payment creation rules", 8)."""

import msgspec

from ...ports.bundle import Ports
from ...ports.faults import NotConfigured, Refused, Unavailable
from ...ports.kyc import CheckStatus
from ...ports.storage import Unit
from ..domain.accounts import Caller, KycDemand, Mode
from ..domain.clients import Client, KycStatus, is_verified_for_tests, require_verified
from .units import retrying

_KNOWN = {
    CheckStatus.PROCESSING: KycStatus.PROCESSING,
    CheckStatus.VERIFIED: KycStatus.VERIFIED,
    CheckStatus.FAILED: KycStatus.FAILED,
}


def client_id(ports: Ports, account_id: str, mode: Mode, phone: str) -> bytes:
    """The digest by which a client of an account and mode is found."""
    return ports.vault.fingerprint(f"client:{account_id}:{mode}:{phone}")


async def find_client(ports: Ports, unit: Unit, account_id: str, mode: Mode, phone: str) -> Client | None:
    """The client with this phone (E.164), or None."""
    found = await unit[Client].find(phone_digest=client_id(ports, account_id, mode, phone), limit=1)
    return found[0] if found else None


async def pass_gate(ports: Ports, caller: Caller, phone: str | None) -> None:
    """Let a new payment through, or say what its client lacks. Without a phone there is no client.

    A check that was in progress is asked for anew, so that nobody waits for a notice that was lost.
    Raises: Refusal KYC_REQUIRED, KYC_PROCESSING, KYC_FAILED.
    """
    if caller.account.settings.kyc is not KycDemand.REQUIRED:
        return
    client = None
    if phone is not None:
        if is_verified_for_tests(caller.mode, phone):
            return
        async with ports.storage.unit() as unit:
            client = await find_client(ports, unit, caller.account_id, caller.mode, phone)
    if client is not None and client.kyc is KycStatus.PROCESSING:
        client = await refresh(ports, client)
    require_verified(client)


async def refresh(ports: Ports, client: Client) -> Client:
    """Ask the verifier where the client's check stands, and keep the answer. Unchanged where it does not say."""
    if client.check_reference is None:
        return client
    try:
        check = await ports.kyc.check_state(client.check_reference)
    except (Unavailable, Refused, NotConfigured):
        return client

    async def work(unit: Unit) -> Client:
        present = await unit[Client].get(client.id) or client
        status = _KNOWN[check.status]
        if present.kyc is not KycStatus.PROCESSING or status is present.kyc:
            return present
        verified_at = ports.clock.now() if status is KycStatus.VERIFIED else None
        return unit[Client].save(msgspec.structs.replace(present, kyc=status, verified_at=verified_at))

    return await retrying(ports.storage, work)

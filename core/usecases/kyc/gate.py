"""The gate that lets only verified clients make payments and subscriptions (docs/kyc.md "In payments").

Exchanges have a rule of their own (domain/exchanges/orders.py). check.py, register.py and results.py verify clients.
"""

from ....ports.bundle import Ports
from ....ports.faults import NO_ANSWER
from ....ports.storage import Unit
from ...domain.accounts.accounts import KYC_REQUIRED, Caller, Mode
from ...domain.kyc.clients import IN_PROGRESS, Client, is_verified_for_tests, require_verified
from .results import look
from .verifiers import is_left_behind


def client_id(ports: Ports, account_id: str, mode: Mode, phone: str) -> bytes:
    """Return the digest under which a client of an account and mode is found."""
    return ports.vault.fingerprint(f"client:{account_id}:{mode}:{phone}")


async def find_client(ports: Ports, unit: Unit, account_id: str, mode: Mode, phone: str) -> Client | None:
    """Return the client with this phone (E.164), or None."""
    found = await unit[Client].find(phone_digest=client_id(ports, account_id, mode, phone), limit=1)
    return found[0] if found else None


async def pass_gate(ports: Ports, caller: Caller, phone: str | None) -> None:
    """Accept a new payment or subscription, or refuse it for its client's missing verification. An order without a
    phone has no client.

    A check in progress is polled at the verifier, in case its notification was lost. Raises: Refusal KYC_REQUIRED,
    KYC_PROCESSING, KYC_FAILED.
    """
    if caller.account.settings.kyc is not KYC_REQUIRED:
        return
    client = None
    if phone is not None:
        if is_verified_for_tests(caller.mode, phone):
            return
        client = await present_client(ports, caller, phone)
    require_verified(client)


async def present_client(ports: Ports, caller: Caller, phone: str) -> Client | None:
    """Return the client, with the verifier's answer for a check in progress, if it answers. Return None also if that
    verifier is no longer configured.
    """
    async with ports.storage.unit() as unit:
        client = await find_client(ports, unit, caller.account_id, caller.mode, phone)
    if client is None or client.blocked or client.kyc not in IN_PROGRESS:
        return client
    if is_left_behind(ports, client):
        return None
    try:
        return await look(ports, client)
    except NO_ANSWER:
        return client

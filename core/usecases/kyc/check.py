"""POST /kyc/check: the state of a client's verification, for merchants and for the hosted page (docs/kyc.md "In live
mode").
"""

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import NO_ANSWER, Refused
from ....ports.kyc import NoAnswer
from ...domain.accounts.accounts import Caller, KycDemand, Mode
from ...domain.errors import Refusal
from ...domain.kyc.clients import IN_PROGRESS, Client, KycStatus, refusal_text
from ...domain.kyc.kyc import ReadCheck, check_phone, require_kyc
from ..common.encrypted import open_client_phone
from .gate import find_client
from .links import hosted_url
from .results import look
from .verifiers import is_left_behind, require_verifier, unavailable

NOT_REQUIRED = "not_required"


class KycAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer's status (docs/kyc.md "In live mode") and its details."""

    status: str
    account_number: str | None = None
    """Set with `verified`."""
    url: str | None = None
    """Set with `required`: the page on which the client continues."""
    error: str | None = None
    """Set with `failed`."""


def silent() -> Refusal:
    """Return the refusal for a verifier that did not answer."""
    return Refusal("PROVIDER_ERROR", "The verifier did not answer; try again in a minute", retry_after=30)


async def check(ports: Ports, caller: Caller, read_order: ReadCheck) -> KycAnswer:
    """Return the state of the client with this phone; for a check in progress, ask the verifier.

    Raises: Refusal PROVIDER_DISABLED, SANDBOX_NOT_SUPPORTED, VALIDATION_ERROR, PROVIDER_ERROR, KYC_UNAVAILABLE, in this
    order.
    """
    require_kyc(caller, answers_off=True)
    phone = check_phone(read_order().phone)
    if caller.account.settings.kyc is KycDemand.OFF:
        return KycAnswer(status=NOT_REQUIRED)
    return await check_client(ports, caller.account_id, caller.mode, phone)


async def check_client(ports: Ports, account_id: str, mode: Mode, phone: str) -> KycAnswer:
    """Return the state of a client of a known account.

    Raises: Refusal PROVIDER_ERROR, KYC_UNAVAILABLE; the latter for every client who is not verified while live mode has
    no verifier.
    """
    async with ports.storage.unit() as unit:
        client = await find_client(ports, unit, account_id, mode, phone)
    if client is None or client.kyc is not KycStatus.VERIFIED:
        require_verifier(ports)
    if client is None or is_left_behind(ports, client):
        return KycAnswer(status="required", url=hosted_url(ports, account_id, phone))
    if not client.blocked and client.kyc in IN_PROGRESS:
        client = await _asked(ports, client)
    return answer_of(ports, client)


async def _asked(ports: Ports, client: Client) -> Client:
    try:
        return await look(ports, client)
    except (NoAnswer, Refused):
        raise silent() from None
    except NO_ANSWER:
        raise unavailable() from None


def answer_of(ports: Ports, client: Client) -> KycAnswer:
    """Return the answer for a client as stored."""
    if client.blocked or client.kyc is KycStatus.FAILED:
        return KycAnswer(status="failed", error=refusal_text(client))
    if client.kyc is KycStatus.VERIFIED:
        return KycAnswer(status="verified", account_number=client.account_number or client.id)
    if client.kyc is KycStatus.REQUIRED:
        phone = open_client_phone(ports.vault, client)
        return KycAnswer(status="required", url=client.form_url or hosted_url(ports, client.account_id, phone))
    return KycAnswer(status="processing")

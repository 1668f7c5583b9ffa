"""POST /kyc/register: begin a client's check, once (docs/kyc.md "In live mode", "Answers and errors").

The intent is saved in the client's record before the verifier is called. A second request for the same phone, at the
same time or after a lost answer, sends the same operation, so both make one check.
"""

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import OutcomeUnknown, Refused, Unavailable
from ....ports.kyc import CheckRequest
from ....ports.storage import Unit
from ...domain.accounts.accounts import Account, Caller, KycFlow, Mode
from ...domain.errors import Refusal
from ...domain.kyc.clients import Client, KycStatus, operation_of
from ...domain.kyc.kyc import ReadRegister, RegisterOrder, check_register, registering, require_kyc
from ..common.encrypted import client_phone_aad
from ..common.units import retrying
from ..operations.engine import send, settle
from .check import KycAnswer, answer_of, silent
from .gate import client_id, find_client
from .results import CHECKS, encrypt_request, plan_follow
from .uploads import missing_files, use_uploads
from .verifiers import may_begin, require_verifier, unavailable

_BEGUN_BY_ANOTHER = ("clients_phone", "jobs_id")


async def register(ports: Ports, caller: Caller, read_order: ReadRegister) -> KycAnswer:
    """Begin a client's check, or return the stored result of an existing one.

    Raises: Refusal PROVIDER_DISABLED, SANDBOX_NOT_SUPPORTED, KYC_NOT_REQUIRED, VALIDATION_ERROR, PROVIDER_ERROR (the
    verifier gave no answer, or refused to begin), KYC_UNAVAILABLE, KYC_PERSIST_FAILED.
    """
    require_kyc(caller)
    return await register_client(ports, caller.account, caller.mode, read_order())


class AlreadyKnown(Exception):
    """The client has a check under way, or a decided one."""


async def register_client(
    ports: Ports, account: Account, mode: Mode, order: RegisterOrder, *, only_new: bool = False
) -> KycAnswer:
    """Begin a client's check for a known account, without checking the caller. With `only_new`, raise AlreadyKnown
    instead of returning a stored result.
    """
    check_register(order)
    missing = await missing_files(ports, order)

    async def work(unit: Unit) -> Client:
        client = await find_client(ports, unit, account.id, mode, order.phone)
        if client is None:
            fresh = new_client(ports, account.id, mode, order.phone)
            return unit[Client].add(await _begun(ports, unit, fresh, account, order, missing))
        if may_begin(ports, client):
            return unit[Client].save(await _begun(ports, unit, client, account, order, missing))
        if only_new:
            raise AlreadyKnown
        return client

    client = await retrying(ports.storage, work, again_on=_BEGUN_BY_ANOTHER)
    if client.kyc is KycStatus.REGISTERING and client.request is not None and not client.blocked:
        client = await _send(ports, client)
    return answer_of(ports, client)


async def _begun(
    ports: Ports, unit: Unit, client: Client, account: Account, order: RegisterOrder, missing: set[str]
) -> Client:
    """Return the client with the intent of a check, for the same unit to save; claim its documents and plan its job.

    Raises: Refusal KYC_UNAVAILABLE, VALIDATION_ERROR.
    """
    require_verifier(ports)
    begun = registering(client, ports.kyc.name, ports.clock.now())
    request = CheckRequest(
        operation=operation_of(begun),
        phone=order.phone,
        redirect=account.settings.kyc_flow is KycFlow.REDIRECT,
        documents=await use_uploads(unit, begun, order, missing),
        email=order.email,
        user_type=order.user_type,
    )
    await plan_follow(ports, unit, begun.id)
    return msgspec.structs.replace(begun, request=encrypt_request(ports, begun, request))


def new_client(ports: Ports, account_id: str, mode: Mode, phone: str) -> Client:
    """Return a new client with only a phone (E.164)."""
    now = ports.clock.now()
    record_id = ports.ids.uuid()
    return Client(
        id=record_id,
        account_id=account_id,
        mode=mode,
        phone=ports.vault.encrypt(phone.encode(), client_phone_aad(record_id)),
        phone_digest=client_id(ports, account_id, mode, phone),
        kyc=KycStatus.REQUIRED,
        created_at=now,
        updated_at=now,
    )


async def _send(ports: Ports, client: Client) -> Client:
    """Send the check to the verifier. Raises: Refusal PROVIDER_ERROR, KYC_UNAVAILABLE, KYC_PERSIST_FAILED."""
    told = await send(CHECKS, ports, client)
    try:
        client = (await settle(CHECKS, ports, told)).subject or client
    except Unavailable:
        raise unavailable() if told.fault is not None else _unsaved() from None
    match told.fault:
        case None:
            return client
        case Refused():
            raise Refusal(
                "PROVIDER_ERROR", "The verifier refused the registration; see which fields the account's flow needs"
            )
        case OutcomeUnknown():
            raise silent()
        case _:
            raise unavailable()


def _unsaved() -> Refusal:
    """Return the refusal when the verifier began but our record was not saved; the job that follows the check corrects
    it.
    """
    return Refusal(
        "KYC_PERSIST_FAILED",
        "The verifier accepted the client, but the record was not saved; do not repeat the request, contact support",
    )
